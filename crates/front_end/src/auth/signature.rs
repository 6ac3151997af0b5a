//! Keys and signatures: Base64 of HMAC-SHA-256 over a string-to-sign.
//!
//! A key keeps the HMAC's state after its key block, so that each request pays only for the bytes it signs.
//! What always holds: signatures are compared in constant time, and a key is never printed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use subtle::ConstantTimeEq;

/// Bytes of a signature.
const SIGNATURE_SIZE_BYTES: usize = 32;

/// Takes the pieces of a string-to-sign in order: an HMAC on the hot path, a text for error details and
/// tests.
pub trait SignSink {
    /// The next bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl SignSink for Hmac<Sha256> {
    fn put(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }
}

impl SignSink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// One key of an account, ready to sign.
#[derive(Clone)]
pub struct SigningKey {
    keyed: Hmac<Sha256>,
}

impl SigningKey {
    /// A key from its bytes.
    pub fn new(key: &[u8]) -> Self {
        match Hmac::new_from_slice(key) {
            Ok(keyed) => SigningKey { keyed },
            Err(error) => unreachable!("HMAC takes keys of any length: {error}"),
        }
    }

    /// The signature of what `write` puts into the sink, as it stands on the wire.
    pub fn sign(&self, write: impl FnOnce(&mut Hmac<Sha256>)) -> String {
        STANDARD.encode(self.digest(write))
    }

    /// Whether `claimed` signs what `write` puts into the sink.
    pub fn verifies(&self, claimed: &ClaimedSignature, write: impl FnOnce(&mut Hmac<Sha256>)) -> bool {
        self.digest(write).ct_eq(&claimed.0).into()
    }

    /// The bytes of what `write` puts into the sink, under this key.
    pub(crate) fn digest(&self, write: impl FnOnce(&mut Hmac<Sha256>)) -> [u8; SIGNATURE_SIZE_BYTES] {
        let mut keyed = self.keyed.clone();
        write(&mut keyed);
        keyed.finalize().into_bytes().into()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(hidden)")
    }
}

/// A signature that a request came with.
#[derive(Clone, Copy)]
pub struct ClaimedSignature([u8; SIGNATURE_SIZE_BYTES]);

impl ClaimedSignature {
    /// Reads Base64; `None` if it cannot be a signature.
    pub fn parse(text: &[u8]) -> Option<Self> {
        // Two bytes more than a signature needs: the decoder estimates in whole groups.
        let mut bytes = [0; SIGNATURE_SIZE_BYTES + 4];
        let size = STANDARD.decode_slice(text, &mut bytes).ok()?;
        if size != SIGNATURE_SIZE_BYTES {
            return None;
        }
        let mut signature = [0; SIGNATURE_SIZE_BYTES];
        signature.copy_from_slice(&bytes[..SIGNATURE_SIZE_BYTES]);
        Some(ClaimedSignature(signature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_signature_verifies() {
        let key = SigningKey::new(b"key");
        // RFC-like check value: HMAC-SHA-256("key", "The quick brown fox jumps over the lazy dog").
        let signature = key.sign(|sink| sink.put(b"The quick brown fox jumps over the lazy dog"));
        assert_eq!(signature, "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg=");
        let claimed = ClaimedSignature::parse(signature.as_bytes()).expect("a signature");
        assert!(key.verifies(&claimed, |sink| {
            sink.put(b"The quick brown fox ");
            sink.put(b"jumps over the lazy dog");
        }));
        assert!(!key.verifies(&claimed, |sink| sink.put(b"The quick brown fox")));
        assert!(!SigningKey::new(b"other").verifies(&claimed, |sink| sink.put(b"The quick brown fox")));
    }

    #[test]
    fn what_cannot_be_a_signature_is_refused() {
        for text in ["", "AAAA", "????", &"A".repeat(44), &"A".repeat(1000)] {
            assert!(ClaimedSignature::parse(text.as_bytes()).is_none(), "{text}");
        }
    }
}
