//! Signs requests of the development account as official clients do (SharedKey, all services, path style).

use crate::Outcome;
use crate::client::server_process::ServerProcess;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::net::SocketAddr;

/// The development account that every emulator of this protocol knows. Its key is public.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// What clients take to find the server and sign.
pub(crate) fn connection_string(server: &ServerProcess) -> Outcome<String> {
    let addresses =
        [("Blob", server.blob_address), ("Queue", server.queue_address), ("Table", Some(server.address))];
    let mut text = format!("DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};");
    for (service, address) in addresses {
        let address = address.ok_or_else(|| format!("the server has no {service} service"))?;
        text.push_str(&format!("{service}Endpoint=http://{address}/{ACCOUNT};"));
    }
    Ok(text)
}

/// What clients of tables take to find an emulator and sign.
pub(crate) fn table_connection_string(address: SocketAddr) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT};")
}

/// What current queue and blob clients send.
const VERSION: &str = "2026-04-06";

/// Signs for one account.
#[derive(Clone)]
pub(crate) struct Signer {
    account: &'static str,
    keyed: Hmac<Sha256>,
}

impl Signer {
    /// For the development account.
    pub(crate) fn new() -> Self {
        Self::of(ACCOUNT)
    }

    /// For any account that has the development account's key.
    pub(crate) fn of(account: &'static str) -> Self {
        let key = STANDARD.decode(KEY).expect("the development key is Base64");
        Self { account, keyed: Hmac::new_from_slice(&key).expect("any length is a key") }
    }

    /// The account.
    pub(crate) fn account(&self) -> &'static str {
        self.account
    }

    /// The `Authorization` value of a request. `path` is the target as sent, from its first slash, without
    /// query.
    pub(crate) fn authorization(&self, verb: &str, content_type: &str, date: &str, path: &str) -> String {
        let mut keyed = self.keyed.clone();
        let account = self.account;
        keyed.update(format!("{verb}\n\n{content_type}\n{date}\n/{account}{path}").as_bytes());
        format!("SharedKey {account}:{}", STANDARD.encode(keyed.finalize().into_bytes()))
    }

    /// A whole request to the Queue service but for its body. `parameters` are in the order of their names,
    /// and need no escaping.
    pub(crate) fn queue_request(
        &self,
        host: SocketAddr,
        verb: &str,
        date: &str,
        path: &str,
        parameters: &[(&str, &str)],
        body_size: usize,
    ) -> String {
        let content_type = if body_size == 0 { "" } else { "application/xml" };
        let request = ServiceRequest { verb, path, parameters, headers: &[], content_type };
        self.service_request(host, date, &request, body_size as u64)
    }

    /// A whole request to the Queue or the Blob service but for its body.
    pub(crate) fn service_request(
        &self,
        host: SocketAddr,
        date: &str,
        request: &ServiceRequest<'_>,
        body_size: u64,
    ) -> String {
        let ServiceRequest { verb, path, parameters, headers, content_type } = *request;
        let mut headers = headers.to_vec();
        headers.extend([("x-ms-date", date), ("x-ms-version", VERSION)]);
        headers.sort_unstable();
        let length = if body_size == 0 { String::new() } else { body_size.to_string() };
        let mut signed = format!("{verb}\n\n\n{length}\n\n{content_type}\n\n\n\n\n\n\n");
        let account = self.account;
        let mut target = format!("/{account}/{path}");
        let mut lines = String::new();
        for (name, value) in headers {
            signed.push_str(&format!("{name}:{value}\n"));
            lines.push_str(&format!("{name}: {value}\r\n"));
        }
        signed.push_str(&format!("/{account}/{account}/{path}"));
        for (index, (name, value)) in parameters.iter().enumerate() {
            signed.push_str(&format!("\n{name}:{value}"));
            target.push_str(&format!("{}{name}={value}", if index == 0 { '?' } else { '&' }));
        }
        let mut keyed = self.keyed.clone();
        keyed.update(signed.as_bytes());
        let signature = STANDARD.encode(keyed.finalize().into_bytes());
        if !content_type.is_empty() {
            lines.push_str(&format!("Content-Type: {content_type}\r\n"));
        }
        format!(
            "{verb} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {body_size}\r\n\
             Authorization: SharedKey {account}:{signature}\r\n\r\n"
        )
    }
}

/// What a request to the Queue or the Blob service asks for.
#[derive(Clone, Copy)]
pub(crate) struct ServiceRequest<'a> {
    pub(crate) verb: &'a str,
    /// After the account; needs no escaping.
    pub(crate) path: &'a str,
    /// In the order of their names, and in no need of escaping.
    pub(crate) parameters: &'a [(&'a str, &'a str)],
    /// Those that start with `x-ms-`, in lower case.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// Empty: none.
    pub(crate) content_type: &'a str,
}

/// The argument of a server for accounts that [`Signer::of`] signs for.
pub(crate) fn account_argument(account: &str) -> String {
    format!("{account}:{KEY}")
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
