//! What opens an account: its key, or a signature made with it.
//!
//! What always holds: neither is printed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Characters of a signature.
pub(crate) const SIGNATURE_LEN: usize = 44;

/// An account's key, ready to sign.
#[derive(Clone)]
pub struct AccountKey {
    keyed: Hmac<Sha256>,
}

impl AccountKey {
    /// From its usual form, Base64; an error says what is wrong.
    pub fn from_base64(text: &str) -> Result<Self, String> {
        let key = STANDARD.decode(text).map_err(|_| "it is not Base64".to_owned())?;
        if key.is_empty() {
            return Err("it is empty".to_owned());
        }
        match Hmac::new_from_slice(&key) {
            Ok(keyed) => Ok(AccountKey { keyed }),
            Err(error) => unreachable!("HMAC takes keys of any length: {error}"),
        }
    }

    /// The signature of a string, in Base64.
    pub(crate) fn sign(&self, string_to_sign: &[u8]) -> String {
        // Base64 is text.
        String::from_utf8(self.sign_parts(&[string_to_sign]).to_vec()).unwrap_or_default()
    }

    /// The signature of a string that is in parts, in Base64.
    pub(crate) fn sign_parts(&self, string_to_sign: &[&[u8]]) -> [u8; SIGNATURE_LEN] {
        let mut mac = self.keyed.clone();
        string_to_sign.iter().for_each(|part| mac.update(part));
        let mut signature = [0; SIGNATURE_LEN];
        match STANDARD.encode_slice(mac.finalize().into_bytes(), &mut signature) {
            Ok(_) => signature,
            Err(error) => unreachable!("32 bytes are 44 characters: {error}"),
        }
    }
}

/// What a request shows.
#[derive(Clone)]
pub enum Credentials {
    /// A signature in the `Authorization` header (SharedKey).
    Key(AccountKey),
    /// These parameters in the address, encoded as they were given.
    Sas(String),
    /// Nothing: public blobs.
    Anonymous,
}

impl Credentials {
    /// From an account's key in Base64.
    pub fn key(text: &str) -> Result<Self, String> {
        AccountKey::from_base64(text).map(Credentials::Key)
    }

    /// From a shared access signature, with or without `?`.
    pub fn sas(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_start_matches('?').trim_matches('&');
        if !text.split('&').any(|part| part.starts_with("sig=") && part.len() > 4) {
            return Err("it has no 'sig'".to_owned());
        }
        if text.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
            return Err("it has characters that must be percent-encoded".to_owned());
        }
        Ok(Credentials::Sas(text.to_owned()))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credentials::Key(_) => "Key(hidden)",
            Credentials::Sas(_) => "Sas(hidden)",
            Credentials::Anonymous => "Anonymous",
        })
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(hidden)")
    }
}
