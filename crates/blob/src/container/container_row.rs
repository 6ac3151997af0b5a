//! The stored row of a blob container in the Container object table.
//!
//! ```text
//! row = u8 format (1, or 2 with encryption) bytes(name) u64 container id u64 modified at u64 etag
//!       u8 public access (0 none, 1 blob, 2 container) pairs metadata, lease, policies,
//!       [text default scope u8 denies others]
//! ```
//!
//! The container id is the row version of the container's creation: all containers of an account share a
//! partition name, whose versions strictly rise, so an id never returns.

use crate::encryption::ContainerEncryption;
use crate::lease::Lease;
use crate::name::Pairs;
use crate::rows::fields::{put_pairs, put_text, take_pairs, take_text};
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use service::StoredPolicy;
use service::policy::{decode_policies, encode_policies};

const FORMAT: u8 = 1;
const FORMAT_WITH_ENCRYPTION: u8 = 2;

/// What may be read without credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublicAccess {
    /// Nothing.
    #[default]
    None,
    /// Blobs.
    Blob,
    /// Blobs, the container, and its listing.
    Container,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRow {
    /// Its name.
    pub name: String,
    /// Where its blobs are.
    pub id: u64,
    /// When it last changed.
    pub modified_at: Ticks,
    /// The version of that change.
    pub etag: u64,
    /// What may be read without credentials.
    pub public_access: PublicAccess,
    /// Metadata.
    pub metadata: Pairs,
    /// Its lease.
    pub lease: Lease,
    /// Stored access policies.
    pub policies: Vec<StoredPolicy>,
    /// What its new blobs are encrypted with.
    pub encryption: ContainerEncryption,
}

impl ContainerRow {
    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let has_encryption = self.encryption != ContainerEncryption::default();
        out.put_u8_field(if has_encryption { FORMAT_WITH_ENCRYPTION } else { FORMAT });
        out.put_bytes_field(self.name.as_bytes());
        out.put_u64_field(self.id);
        out.put_u64_field(self.modified_at.0);
        out.put_u64_field(self.etag);
        out.put_u8_field(match self.public_access {
            PublicAccess::None => 0,
            PublicAccess::Blob => 1,
            PublicAccess::Container => 2,
        });
        put_pairs(&mut out, &self.metadata);
        self.lease.encode(&mut out);
        encode_policies(&self.policies, &mut out);
        if has_encryption {
            put_text(&mut out, self.encryption.default_scope.as_deref());
            out.put_u8_field(u8::from(self.encryption.denies_override));
        }
        out
    }

    /// Reads a stored row.
    pub(crate) fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(value);
        let format = decoder.u8("container format")?;
        if format != FORMAT && format != FORMAT_WITH_ENCRYPTION {
            return Err(DecodeError("container format"));
        }
        let mut row = ContainerRow {
            name: decoder.text("container name")?.to_owned(),
            id: decoder.u64("container id")?,
            modified_at: Ticks(decoder.u64("modified")?),
            etag: decoder.u64("etag")?,
            public_access: match decoder.u8("public access")? {
                0 => PublicAccess::None,
                1 => PublicAccess::Blob,
                2 => PublicAccess::Container,
                _ => return Err(DecodeError("public access")),
            },
            metadata: take_pairs(&mut decoder)?,
            lease: Lease::decode(&mut decoder)?,
            policies: decode_policies(&mut decoder)?,
            encryption: ContainerEncryption::default(),
        };
        if format == FORMAT_WITH_ENCRYPTION {
            row.encryption.default_scope = take_text(&mut decoder)?;
            row.encryption.denies_override = decoder.u8("denies other scopes")? != 0;
        }
        decoder.finish("container row")?;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let row = ContainerRow {
            name: "box".into(),
            id: 7,
            modified_at: Ticks(8),
            etag: 9,
            public_access: PublicAccess::Container,
            metadata: vec![("a".into(), "b".into())],
            lease: Lease::Broken { id: "x".into() },
            policies: vec![StoredPolicy { id: "p".into(), ..StoredPolicy::default() }],
            encryption: ContainerEncryption { default_scope: Some("s".into()), denies_override: true },
        };
        assert_eq!(ContainerRow::decode(&row.encode()).as_ref(), Ok(&row));
        let row = ContainerRow { encryption: ContainerEncryption::default(), ..row };
        assert_eq!(row.encode()[0], FORMAT, "rows without encryption stay as they were");
        assert_eq!(ContainerRow::decode(&row.encode()), Ok(row));
        assert!(ContainerRow::decode(&[1, 2]).is_err());
    }
}
