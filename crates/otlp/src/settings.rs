//! Where traces and metrics go, how many, and how often.

use http_client::{Endpoint, Proxies};
use std::fmt;
use std::time::Duration;

/// Of an exporter.
#[derive(Clone)]
pub struct ExportSettings {
    /// The collector, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are below it. `None`:
    /// nothing is sent.
    pub endpoint: Option<Endpoint>,
    /// Headers of each delivery, such as those that authenticate it. Their values are not printed.
    pub headers: Vec<(String, String)>,
    /// Of requests whose client does not say whether they are traced: which share is, from 0 to 1.
    pub share: f64,
    /// Time from one delivery of metrics to the next; zero: none.
    pub metrics_every: Duration,
    /// The proxies of the environment.
    pub proxies: Proxies,
}

/// Values of headers may be secrets.
impl fmt::Debug for ExportSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExportSettings { endpoint, headers, share, metrics_every, .. } = self;
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut out = out.debug_struct("ExportSettings");
        out.field("endpoint", endpoint).field("headers", &names).field("share", share);
        out.field("metrics_every", metrics_every).finish_non_exhaustive()
    }
}

/// What can't be used as a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Headers as the environment's `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value,name=value`, values
/// percent-encoded.
///
/// # Errors
///
/// The place of an entry that is none. Its text is not in the error: it may be a secret.
pub fn headers_of(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let entries = text.split(',').map(str::trim).enumerate().filter(|(_, entry)| !entry.is_empty());
    let header = |(at, entry): (usize, &str)| {
        let wrong =
            |what: &str| SettingsError(format!("entry {} of OTEL_EXPORTER_OTLP_HEADERS {what}", at + 1));
        let (name, value) =
            entry.split_once('=').ok_or_else(|| wrong("has no equals sign: write name=value"))?;
        let name = name.trim().to_ascii_lowercase();
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_of_name) {
            return Err(wrong("has a name that a header can't have"));
        }
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8();
        let value = value.map_err(|_| wrong("has a value that is no text"))?;
        match value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            true => Ok((name, value.into_owned())),
            false => Err(wrong("has a value that a header can't have")),
        }
    };
    entries.map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_headers_are_not_printed() {
        let settings = ExportSettings {
            endpoint: None,
            headers: headers_of("authorization=Bearer%20hidden").expect("headers"),
            share: 1.0,
            metrics_every: Duration::ZERO,
            proxies: Proxies::none(),
        };
        let printed = format!("{settings:?}");
        assert!(printed.contains("authorization") && !printed.contains("hidden"), "{printed}");
    }

    #[test]
    fn headers_are_pairs_and_errors_name_no_secret() {
        let headers = headers_of(" Authorization=Basic%20abc==, x-tenant = a ,").expect("headers");
        let expected = [("authorization", "Basic abc=="), ("x-tenant", "a")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(headers_of("").expect("none"), []);
        for (text, part) in [
            ("secret", "entry 1 of OTEL_EXPORTER_OTLP_HEADERS has no equals sign"),
            ("a=b,=secret", "entry 2"),
            ("a b=secret", "has a name"),
            ("a=secret%0d%0ab: c", "has a value"),
            ("a=%ffsecret", "is no text"),
        ] {
            let error = headers_of(text).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
