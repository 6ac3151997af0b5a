//! Signs requests of the development account as official clients do (SharedKey, Table service, path style).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The development account that every emulator of this protocol knows. Its key is public.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Signs for the development account.
#[derive(Clone)]
pub(crate) struct Signer {
    keyed: Hmac<Sha256>,
}

impl Signer {
    pub(crate) fn new() -> Self {
        let key = STANDARD.decode(KEY).expect("the development key is Base64");
        Self { keyed: Hmac::new_from_slice(&key).expect("any length is a key") }
    }

    /// The `Authorization` value of a request. `path` is the target as sent, from its first slash, without query.
    pub(crate) fn authorization(&self, verb: &str, content_type: &str, date: &str, path: &str) -> String {
        let mut keyed = self.keyed.clone();
        keyed.update(format!("{verb}\n\n{content_type}\n{date}\n/{ACCOUNT}{path}").as_bytes());
        format!("SharedKey {ACCOUNT}:{}", STANDARD.encode(keyed.finalize().into_bytes()))
    }
}

/// The current time as the `x-ms-date` header wants it.
pub(crate) fn date_now() -> String {
    httpdate::fmt_http_date(std::time::SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::Signer;

    /// The first worked example of the protocol's documentation; official clients compute the same.
    #[test]
    fn signs_as_the_documented_example() {
        let authorization = Signer::new().authorization(
            "POST",
            "application/json",
            "Sat, 21 Nov 2026 09:00:00 GMT",
            "/devstoreaccount1/Tables",
        );
        assert_eq!(authorization, "SharedKey devstoreaccount1:YU1flhL94bjd2Zv5wrmVHUS/QeTX9vre8bVedncM1eo=");
    }
}
