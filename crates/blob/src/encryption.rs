//! What a request says of a blob's encryption: a key of the customer's, or the name of an encryption scope.
//!
//! Bytes are stored as they come: a key guards who may use a blob, not what lies on the disk. What always
//! holds: a blob that was written with a key is read, extended and described only with the same key, of which
//! only the hash is kept.

use crate::error::BlobError;

/// A key's hash or a scope, as requests present it and as a blob keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encryption {
    /// The SHA-256 of the customer's key, in Base64.
    pub key_sha256: Option<String>,
    /// The encryption scope.
    pub scope: Option<String>,
}

impl Encryption {
    /// Whether a request with `self` may use what `stored` encrypts.
    pub fn check_key(&self, stored: &Encryption) -> Result<(), BlobError> {
        match (&self.key_sha256, &stored.key_sha256) {
            (None, None) => Ok(()),
            (Some(given), Some(stored)) if given == stored => Ok(()),
            (Some(_), Some(_)) => Err(BlobError::EncryptionKeyMismatch),
            (None, Some(_)) => Err(BlobError::EncryptionKeyMissing),
            (Some(_), None) => Err(BlobError::EncryptionKeyUnknown),
        }
    }

    /// The same for a request that changes it: its scope must be the blob's.
    pub fn check_write(&self, stored: &Encryption) -> Result<(), BlobError> {
        self.check_key(stored)?;
        if self.scope == stored.scope { Ok(()) } else { Err(BlobError::EncryptionScopeMismatch) }
    }
}

/// What a container says of the encryption of new blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerEncryption {
    /// The scope of blobs that name none.
    pub default_scope: Option<String>,
    /// Blobs may have no other.
    pub denies_override: bool,
}

impl ContainerEncryption {
    /// The encryption of a new blob.
    pub fn of_new_blob(&self, given: Encryption) -> Result<Encryption, BlobError> {
        let is_other = given.key_sha256.is_some()
            || given.scope.as_ref().is_some_and(|scope| self.default_scope.as_ref() != Some(scope));
        if self.denies_override && is_other {
            return Err(BlobError::EncryptionScopeForbidden);
        }
        let scope = match &given.key_sha256 {
            None => given.scope.or_else(|| self.default_scope.clone()),
            Some(_) => None,
        };
        Ok(Encryption { scope, ..given })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encryption(key: &str, scope: &str) -> Encryption {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Encryption { key_sha256: text(key), scope: text(scope) }
    }

    #[test]
    fn keys_and_scopes() {
        use BlobError::{
            EncryptionKeyMismatch, EncryptionKeyMissing, EncryptionKeyUnknown, EncryptionScopeMismatch,
        };
        for (given, stored, expected) in [
            (encryption("", ""), encryption("", ""), Ok(())),
            (encryption("a", ""), encryption("a", ""), Ok(())),
            (encryption("b", ""), encryption("a", ""), Err(EncryptionKeyMismatch)),
            (encryption("", ""), encryption("a", ""), Err(EncryptionKeyMissing)),
            (encryption("a", ""), encryption("", ""), Err(EncryptionKeyUnknown)),
            (encryption("", ""), encryption("", "s"), Err(EncryptionScopeMismatch)),
            (encryption("", "s"), encryption("", "s"), Ok(())),
            (encryption("", "t"), encryption("", "s"), Err(EncryptionScopeMismatch)),
        ] {
            assert_eq!(given.check_write(&stored), expected, "{given:?} {stored:?}");
        }
    }

    #[test]
    fn a_container_may_insist_on_its_scope() {
        let free = ContainerEncryption { default_scope: Some("s".into()), denies_override: false };
        assert_eq!(free.of_new_blob(encryption("", "")), Ok(encryption("", "s")));
        assert_eq!(free.of_new_blob(encryption("", "t")), Ok(encryption("", "t")));
        assert_eq!(free.of_new_blob(encryption("k", "")), Ok(encryption("k", "")));
        let strict = ContainerEncryption { denies_override: true, ..free };
        assert_eq!(strict.of_new_blob(encryption("", "s")), Ok(encryption("", "s")));
        for given in [encryption("", "t"), encryption("k", "")] {
            assert_eq!(strict.of_new_blob(given), Err(BlobError::EncryptionScopeForbidden));
        }
    }
}
