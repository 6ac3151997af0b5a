//! What a request wants beyond the protocol, by name.
//!
//! ```text
//! x-larimar-extensions: startswith, count      request; blanks and empty names do nothing
//! ```
//!
//! What always holds: a request without the header is answered as the protocol says; a name that is not known
//! is refused, because an answer without what was asked for would be taken for one with it.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use hyper::header::{HeaderMap, HeaderName};

const EXTENSIONS: HeaderName = HeaderName::from_static("x-larimar-extensions");

/// Characters of an unknown name that its refusal repeats.
const SHOWN_NAME_LEN_MAX: usize = 64;

/// What a request wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// `startswith` in `$filter`.
    pub(crate) starts_with: bool,
    /// Entities are counted, not returned.
    pub(crate) count: bool,
}

/// A name and what it asks for.
type Named = (&'static str, fn(&mut Extensions));

/// All that there are.
const KNOWN: [Named; 2] =
    [("startswith", |wanted| wanted.starts_with = true), ("count", |wanted| wanted.count = true)];

impl Extensions {
    /// Reads the header; names may be in several of them.
    pub(crate) fn of_request(headers: &HeaderMap) -> Result<Extensions, ApiError> {
        let mut wanted = Extensions::default();
        for value in headers.get_all(EXTENSIONS) {
            let names = value.to_str().map_err(|_| unknown("of bytes that are no ASCII"))?;
            for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let known = KNOWN.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
                let (_, ask) = known.ok_or_else(|| unknown(&format!("'{}'", shown(name))))?;
                ask(&mut wanted);
            }
        }
        Ok(wanted)
    }
}

impl Extensions {
    /// Refuses those that would change which tables a list has, or in which order.
    pub(crate) fn check_for_tables(&self) -> Result<(), ApiError> {
        match self.count {
            true => Err(ApiError::with_message(
                ErrorCode::InvalidHeaderValue,
                format!("Of the names in {EXTENSIONS} lists of tables have startswith only."),
            )),
            false => Ok(()),
        }
    }
}

fn shown(name: &str) -> String {
    name.chars().take(SHOWN_NAME_LEN_MAX).collect()
}

fn unknown(name: &str) -> ApiError {
    let known = KNOWN.map(|(known, _)| known).join(", ");
    ApiError::with_message(
        ErrorCode::InvalidHeaderValue,
        format!(
            "The header {EXTENSIONS} has the name {name}, which this server does not know. It knows: {known}."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn of(values: &[&'static str]) -> Result<Extensions, ApiError> {
        let pair = |value: &&'static str| (EXTENSIONS, HeaderValue::from_static(value));
        let mut headers = HeaderMap::new();
        values.iter().map(pair).for_each(|(name, value)| {
            headers.append(name, value);
        });
        Extensions::of_request(&headers)
    }

    #[test]
    fn names_are_read_in_any_case_and_from_several_headers() {
        let starts_with = Extensions { starts_with: true, ..Extensions::default() };
        let both = Extensions { count: true, ..starts_with };
        for (values, expected) in [
            (&[][..], Extensions::default()),
            (&[""], Extensions::default()),
            (&[" , ,"], Extensions::default()),
            (&["startswith"], starts_with),
            (&["StartsWith , startswith"], starts_with),
            (&["", "startswith"], starts_with),
            (&["startswith,count"], both),
            (&["count", "startswith"], both),
        ] {
            assert_eq!(of(values), Ok(expected), "{values:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_known() {
        for (value, shown) in [("startswith, magic", "'magic'"), ("startswith;count", "'startswith;count'")] {
            let error = of(&[value]).expect_err(value);
            assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
            assert!(error.message().contains(shown), "{}", error.message());
            assert!(error.message().contains("startswith"), "{}", error.message());
        }
        let long: &'static str = "x".repeat(5000).leak();
        assert!(of(&[long]).expect_err("long").message().len() < 300);
    }
}
