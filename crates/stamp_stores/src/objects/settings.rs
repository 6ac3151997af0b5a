//! What can be set of an object store, each with its default. Most of it is of buckets alone.

use http_client::ConnectionSettings;
use std::time::Duration;

/// Connections to a bucket's endpoint, at most: appends in flight, reads and the sweep together.
const CONNECTIONS_MAX: usize = 128;
/// How long a connection is kept without a request: less than servers and what balances load keep it.
const IDLE_FOR: Duration = Duration::from_secs(20);
/// How long one try of a request may take, unless it is set otherwise.
const TRY_FOR: Duration = stamp_streams::TRY_FOR;
/// The share of it that making a connection has, and a further part of an answer, in fifths.
const CONNECT_FIFTHS: u32 = 2;
const PART_FIFTHS: u32 = 4;
/// How much longer the head of an answer may take, with what is sent before it: `stamp_streams` gives a try
/// up earlier; this is for callers without a bound of their own.
const ANSWER_TRIES: u32 = 2;

/// Settings of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectStoreSettings {
    /// Where buckets are, as `http://HOST[:PORT]` or of `https`. Without it `AWS_ENDPOINT_URL_S3`,
    /// `AWS_ENDPOINT_URL`, and then AWS itself.
    pub endpoint: Option<String>,
    /// The region that signatures name. Without it `AWS_REGION`, `AWS_DEFAULT_REGION`, and then `us-east-1`.
    pub region: Option<String>,
    /// Whether the bucket is in the path, and not in the host's name. Without it: in the path at an endpoint
    /// that was given, or if the bucket's name has a dot.
    pub path_style: Option<bool>,
    /// A file of certificates in PEM form that the server is trusted by, and no others. Without it
    /// `AWS_CA_BUNDLE`, and then those of the system.
    pub ca_file: Option<String>,
    /// Connections, at most.
    pub connections_max: usize,
    /// How long a connection is kept without a request.
    pub idle_for: Duration,
    /// The longest wait for a connection.
    pub connect_for: Duration,
    /// The longest wait for the head of an answer, and for a free connection.
    pub answer_for: Duration,
    /// The longest wait for a further part of an answer.
    pub part_for: Duration,
}

impl Default for ObjectStoreSettings {
    fn default() -> Self {
        ObjectStoreSettings {
            endpoint: None,
            region: None,
            path_style: None,
            ca_file: None,
            connections_max: CONNECTIONS_MAX,
            idle_for: IDLE_FOR,
            connect_for: TRY_FOR * CONNECT_FIFTHS / 5,
            answer_for: TRY_FOR * ANSWER_TRIES,
            part_for: TRY_FOR * PART_FIFTHS / 5,
        }
    }
}

impl ObjectStoreSettings {
    /// The same with the times of a store whose requests take up to `try_for`, with what they send: the
    /// longest waits for a connection, for the head of an answer and for a part of one follow from it.
    pub fn with_try_for(self, try_for: Duration) -> Self {
        ObjectStoreSettings {
            connect_for: try_for * CONNECT_FIFTHS / 5,
            answer_for: try_for * ANSWER_TRIES,
            part_for: try_for * PART_FIFTHS / 5,
            ..self
        }
    }

    pub(crate) fn connections(&self) -> ConnectionSettings {
        ConnectionSettings {
            connections_max: self.connections_max,
            idle_for: self.idle_for,
            connect_for: self.connect_for,
            permit_for: self.answer_for,
            part_for: self.part_for,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_follow_from_the_time_of_a_try() {
        let usual = ObjectStoreSettings::default();
        assert_eq!(usual.clone().with_try_for(stamp_streams::TRY_FOR), usual);
        let slow = usual.with_try_for(Duration::from_secs(20));
        let waits = [slow.connect_for, slow.answer_for, slow.part_for];
        assert_eq!(waits, [8, 40, 16].map(Duration::from_secs));
    }
}
