//! The stored row of a queue in the Container object table.
//!
//! ```text
//! row      = u8 format (1) bytes(name) u64 messages id, u64 created at (ticks) metadata policies
//! metadata = varint count, then bytes(name) bytes(value) of each
//!            policies: see service::policy; bytes(x) is a varint length and then x
//! ```
//!
//! The messages id is the row version of the queue's creation or of its last clearing: all queues of an
//! account share a partition name, whose versions strictly rise, so an id is never used again. Messages under
//! an id that no row names are unreachable at once, and their space is reclaimed in the background.

use crate::error::QueueError;
use crate::limits::METADATA_SIZE_BYTES_MAX;
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use service::StoredPolicy;
use service::policy::{decode_policies, encode_policies};

const FORMAT: u8 = 1;

/// Names and values that a client attached to a queue, in the order of names in lower case.
pub type Metadata = Vec<(String, String)>;

/// Checks a queue's metadata against its limits.
pub(crate) fn check_metadata(metadata: &Metadata) -> Result<(), QueueError> {
    let size: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > METADATA_SIZE_BYTES_MAX { Err(QueueError::MetadataTooLarge) } else { Ok(()) }
}

/// A queue's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueRow {
    /// The name.
    pub(crate) name: String,
    /// The container id of the messages.
    pub(crate) messages_id: u64,
    /// When the queue was created.
    pub(crate) created_at: Ticks,
    /// Metadata that a client attached.
    pub(crate) metadata: Metadata,
    /// Stored access policies.
    pub(crate) policies: Vec<StoredPolicy>,
}

impl QueueRow {
    /// Reads a stored row.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = open(bytes)?;
        let name = decoder.text("queue name")?.to_owned();
        let messages_id = decoder.u64("messages id")?;
        let created_at = Ticks(decoder.u64("queue creation time")?);
        let mut metadata = Metadata::new();
        for _ in 0..decoder.varint("metadata count")? {
            let name = decoder.text("metadata name")?.to_owned();
            metadata.push((name, decoder.text("metadata value")?.to_owned()));
        }
        let policies = decode_policies(&mut decoder)?;
        decoder.finish("queue row")?;
        Ok(QueueRow { name, messages_id, created_at, metadata, policies })
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.name.len() + 32);
        out.put_u8_field(FORMAT);
        out.put_bytes_field(self.name.as_bytes());
        out.put_u64_field(self.messages_id);
        out.put_u64_field(self.created_at.0);
        out.put_varint(self.metadata.len() as u64);
        for (name, value) in &self.metadata {
            out.put_bytes_field(name.as_bytes());
            out.put_bytes_field(value.as_bytes());
        }
        encode_policies(&self.policies, &mut out);
        out.into()
    }
}

/// The messages id in a stored row. The rest is not decoded, because each request on messages needs only the
/// id.
pub(crate) fn messages_id_of(bytes: &[u8]) -> Result<u64, DecodeError> {
    let mut decoder = open(bytes)?;
    decoder.text("queue name")?;
    decoder.u64("messages id")
}

fn open(bytes: &[u8]) -> Result<Decoder<'_>, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    match decoder.u8("queue row format")? {
        FORMAT => Ok(decoder),
        _ => Err(DecodeError("queue row format")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_drawn() {
        let row = QueueRow {
            name: "abc".to_owned(),
            messages_id: 2,
            created_at: Ticks(3),
            metadata: vec![("k".to_owned(), "v".to_owned())],
            policies: vec![],
        };
        let expected = b"\x01\x03abc\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\x01k\x01v\0";
        assert_eq!(row.encode(), &expected[..]);
        assert_eq!(messages_id_of(expected), Ok(2));
    }

    proptest! {
        #[test]
        fn rows_come_back(
            name: String, id: u64, created: u64,
            metadata in prop::collection::vec((any::<String>(), any::<String>()), 0..4),
            ids in prop::collection::vec("[a-z]{1,4}", 0..=5),
        ) {
            let policies = ids.into_iter().map(|id| StoredPolicy { id, ..StoredPolicy::default() }).collect();
            let row = QueueRow { name, messages_id: id, created_at: Ticks(created), metadata, policies };
            prop_assert_eq!(QueueRow::decode(&row.encode()), Ok(row.clone()));
            prop_assert_eq!(messages_id_of(&row.encode()), Ok(id));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>()) {
            bytes.insert(0, FORMAT);
            let _ = QueueRow::decode(&bytes);
            let _ = messages_id_of(&bytes);
        }
    }
}
