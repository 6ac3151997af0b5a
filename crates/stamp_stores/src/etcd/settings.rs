//! What can be set of etcd, each with its default.

use crate::secret::Secret;
use http_client::ConnectionSettings;
use std::time::Duration;

/// Connections to one member, at most.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection is kept without a request.
const IDLE_FOR: Duration = Duration::from_secs(60);
/// How long one try of `stamp_streams` may take, unless it is set otherwise.
const TRY_FOR: Duration = stamp_streams::TRY_FOR;
/// The share of it that making a connection has, in fifths: the next member is tried then.
const CONNECT_FIFTHS: u32 = 1;
/// That of the answer to a read, before the next member is tried.
const READ_FIFTHS: u32 = 2;
/// That of the answer to a transaction, which is not sent again here: a change of the leader takes less than
/// 2 s.
const COMMIT_FIFTHS: u32 = 4;
/// That of the wait for a change.
const WAIT_FIFTHS: u32 = 4;

/// Settings of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValueSettings {
    /// What all keys begin with, so that several stamps share an etcd; may be empty.
    pub prefix: String,
    /// A file of certificates in PEM form that members are trusted by, and no others. Without it
    /// `ETCDCTL_CACERT`, and then those of the system.
    pub ca_file: Option<String>,
    /// The client's certificate in PEM form. Without it `ETCDCTL_CERT`.
    pub certificate_file: Option<String>,
    /// Its key. Without it `ETCDCTL_KEY`.
    pub key_file: Option<String>,
    /// A user of etcd. Without it `ETCDCTL_USER`.
    pub user: Option<String>,
    /// The user's password. Without it `ETCDCTL_PASSWORD`.
    pub password: Option<Secret>,
    /// Connections to one member, at most.
    pub connections_max: usize,
    /// How long a connection is kept without a request.
    pub idle_for: Duration,
    /// The longest wait for a connection.
    pub connect_for: Duration,
    /// The longest wait for the answer to a read, before the next member is tried.
    pub read_for: Duration,
    /// The longest wait for the answer to a transaction.
    pub commit_for: Duration,
    /// The longest wait for a change.
    pub wait_for: Duration,
}

impl Default for KeyValueSettings {
    fn default() -> Self {
        KeyValueSettings {
            prefix: String::new(),
            ca_file: None,
            certificate_file: None,
            key_file: None,
            user: None,
            password: None,
            connections_max: CONNECTIONS_MAX,
            idle_for: IDLE_FOR,
            connect_for: TRY_FOR * CONNECT_FIFTHS / 5,
            read_for: TRY_FOR * READ_FIFTHS / 5,
            commit_for: TRY_FOR * COMMIT_FIFTHS / 5,
            wait_for: TRY_FOR * WAIT_FIFTHS / 5,
        }
    }
}

impl KeyValueSettings {
    /// The same with the times of an etcd whose requests take up to `try_for`, another member included: the
    /// longest waits for a connection, for answers and for a change follow from it.
    pub fn with_try_for(self, try_for: Duration) -> Self {
        KeyValueSettings {
            connect_for: try_for * CONNECT_FIFTHS / 5,
            read_for: try_for * READ_FIFTHS / 5,
            commit_for: try_for * COMMIT_FIFTHS / 5,
            wait_for: try_for * WAIT_FIFTHS / 5,
            ..self
        }
    }

    /// Bounds of connections whose answers come in parts within `part_for`.
    pub(crate) fn connections(&self, part_for: Duration) -> ConnectionSettings {
        ConnectionSettings {
            connections_max: self.connections_max,
            idle_for: self.idle_for,
            connect_for: self.connect_for,
            permit_for: self.read_for,
            part_for,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_follow_from_the_time_of_a_try() {
        let usual = KeyValueSettings::default();
        assert_eq!(usual.clone().with_try_for(stamp_streams::TRY_FOR), usual);
        let slow = usual.with_try_for(Duration::from_secs(20));
        let waits = [slow.connect_for, slow.read_for, slow.commit_for, slow.wait_for];
        assert_eq!(waits, [4, 8, 16, 16].map(Duration::from_secs));
    }
}
