//! The protocol version that a request names, `x-ms-version`.
//!
//! What always holds: a version is a day that exists; one newer than known is served like the newest known.

use crate::auth::shared_key::X_MS_VERSION;
use crate::error::ApiError;
use hyper::header::HeaderMap;
use service::parse_date_time;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The first version there was.
const OLDEST_VERSION: &[u8] = b"2009-04-14";

/// The newest version known when this was written. Newer ones are served the same, and logged once.
const NEWEST_KNOWN_VERSION: &[u8] = b"2026-10-06";

/// Newer versions that are remembered as logged, at most.
const VERSIONS_LOGGED_MAX: usize = 64;

/// `YYYY-MM-DD`, a day that there is, not before the first version.
pub(crate) fn is_version(text: &[u8]) -> bool {
    text.len() == OLDEST_VERSION.len()
        && text >= OLDEST_VERSION
        && std::str::from_utf8(text).is_ok_and(|text| parse_date_time(text).is_ok())
}

/// Newer versions than known that were seen.
#[derive(Default)]
pub(crate) struct VersionLog {
    seen: Mutex<BTreeSet<Vec<u8>>>,
}

impl VersionLog {
    /// Refuses a version that is none; logs each newer one once.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(version) = headers.get(X_MS_VERSION) else {
            return Ok(());
        };
        let version = version.as_bytes();
        if !is_version(version) {
            return Err(ApiError::invalid_header(X_MS_VERSION.as_str(), version));
        }
        if version > NEWEST_KNOWN_VERSION {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.len() < VERSIONS_LOGGED_MAX && seen.insert(version.to_vec()) {
                tracing::info!(
                    "x-ms-version {} is newer than known; it is served as {}",
                    version.escape_ascii(),
                    NEWEST_KNOWN_VERSION.escape_ascii()
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn versions() {
        for (version, good) in [
            ("2019-02-02", true),
            ("2009-04-14", true),
            ("2031-01-01", true),
            ("2024-02-29", true),
            ("2026-12-31", true),
            ("2025-02-29", false),
            ("2050-99-99", false),
            ("2026-00-10", false),
            ("2026-11-00", false),
            ("2026-06-31", false),
            ("", false),
            ("2008-01-01", false),
            ("2019-02", false),
            ("2019/02/02", false),
            ("latest", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(X_MS_VERSION, HeaderValue::from_static(version));
            assert_eq!(VersionLog::default().check(&headers).is_ok(), good, "{version}");
        }
        assert!(VersionLog::default().check(&HeaderMap::new()).is_ok());
    }
}
