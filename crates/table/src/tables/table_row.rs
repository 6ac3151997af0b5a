//! The stored row of a table in the Container object table.
//!
//! ```text
//! row = u8 format (1) bytes(name as created) u64 container id u64 created at (ticks) policies
//!       policies: see service::policy; bytes(x) is a varint length and then x
//! ```
//!
//! The container id is the row version of the table's creation: all tables of an account share a partition
//! name, whose versions strictly increase, so an id is never used again, also not when a name is deleted and
//! created again.

use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use service::StoredPolicy;
use service::policy::{decode_policies, encode_policies};

const FORMAT: u8 = 1;

/// A table's row, borrowed; the policies are decoded on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableRow<'a> {
    /// The name in the case it was created with.
    pub(crate) name: &'a str,
    /// The id under which the entities are stored.
    pub(crate) container_id: u64,
    /// When the table was created.
    pub(crate) created_at: Ticks,
    policies: &'a [u8],
}

impl<'a> TableRow<'a> {
    /// Reads a stored row.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<TableRow<'a>, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        if decoder.u8("table row format")? != FORMAT {
            return Err(DecodeError("table row format"));
        }
        Ok(TableRow {
            name: decoder.text("table name")?,
            container_id: decoder.u64("container id")?,
            created_at: Ticks(decoder.u64("table creation time")?),
            policies: decoder.rest(),
        })
    }

    /// The stored access policies.
    pub(crate) fn policies(&self) -> Result<Vec<StoredPolicy>, DecodeError> {
        let mut decoder = Decoder::new(self.policies);
        let policies = decode_policies(&mut decoder)?;
        decoder.finish("table row")?;
        Ok(policies)
    }
}

/// The stored form.
pub(crate) fn encode_table_row(
    name: &str,
    container_id: u64,
    created_at: Ticks,
    policies: &[StoredPolicy],
) -> Bytes {
    let mut out = Vec::with_capacity(name.len() + 20);
    out.put_u8_field(FORMAT);
    out.put_bytes_field(name.as_bytes());
    out.put_u64_field(container_id);
    out.put_u64_field(created_at.0);
    encode_policies(policies, &mut out);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_drawn() {
        let bytes = encode_table_row("Abc", 2, Ticks(3), &[]);
        let expected = b"\x01\x03Abc\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0";
        assert_eq!(bytes, &expected[..]);
    }

    proptest! {
        #[test]
        fn rows_come_back(name: String, id: u64, created: u64, ids in prop::collection::vec("[a-z]{1,4}", 0..=5)) {
            let policies: Vec<_> = (ids.into_iter()).map(|id| StoredPolicy { id, ..StoredPolicy::default() }).collect();
            let bytes = encode_table_row(&name, id, Ticks(created), &policies);
            let row = TableRow::open(&bytes).unwrap();
            prop_assert_eq!((row.name, row.container_id, row.created_at), (name.as_str(), id, Ticks(created)));
            prop_assert_eq!(row.policies(), Ok(policies));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>()) {
            bytes.insert(0, FORMAT);
            if let Ok(row) = TableRow::open(&bytes) {
                let _ = row.policies();
            }
        }
    }
}
