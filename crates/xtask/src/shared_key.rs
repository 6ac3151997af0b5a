//! Signs requests of the development account as official clients do (SharedKey, Table and Queue service, path style).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The development account that every emulator of this protocol knows. Its key is public.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// What current queue clients send.
const QUEUE_VERSION: &str = "2026-04-06";

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

    /// A whole request to the Queue service but for its body. `parameters` are in the order of their names, and need no
    /// escaping.
    pub(crate) fn queue_request(
        &self,
        host: std::net::SocketAddr,
        verb: &str,
        date: &str,
        path: &str,
        parameters: &[(&str, &str)],
        body_size: usize,
    ) -> String {
        let length = if body_size == 0 { String::new() } else { body_size.to_string() };
        let content_type = if body_size == 0 { "" } else { "application/xml" };
        let mut signed = format!(
            "{verb}\n\n\n{length}\n\n{content_type}\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{QUEUE_VERSION}\n\
             /{ACCOUNT}/{ACCOUNT}/{path}"
        );
        let mut target = format!("/{ACCOUNT}/{path}");
        for (index, (name, value)) in parameters.iter().enumerate() {
            signed.push_str(&format!("\n{name}:{value}"));
            target.push_str(&format!("{}{name}={value}", if index == 0 { '?' } else { '&' }));
        }
        let mut keyed = self.keyed.clone();
        keyed.update(signed.as_bytes());
        let signature = STANDARD.encode(keyed.finalize().into_bytes());
        let content_type = if body_size == 0 { "" } else { "Content-Type: application/xml\r\n" };
        format!(
            "{verb} {target} HTTP/1.1\r\nHost: {host}\r\n{content_type}Content-Length: {body_size}\r\n\
             x-ms-date: {date}\r\nx-ms-version: {QUEUE_VERSION}\r\n\
             Authorization: SharedKey {ACCOUNT}:{signature}\r\n\r\n"
        )
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
