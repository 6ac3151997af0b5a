//! What a request wants beyond the protocol, by name.
//!
//! ```text
//! x-larimar-extensions: startswith, count      request; blanks and empty names do nothing
//! x-larimar-snapshot: 0123…                    request; see `page_snapshot`
//! ```
//!
//! What always holds: a request without these headers is answered as the protocol says; a name that is not
//! known is refused, because an answer without what was asked for would be taken for one with it.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use hyper::header::{HeaderMap, HeaderName};
use table::SnapshotId;

const EXTENSIONS: HeaderName = HeaderName::from_static("x-larimar-extensions");
/// The header of a snapshot, in requests and answers.
pub(super) const SNAPSHOT: HeaderName = HeaderName::from_static("x-larimar-snapshot");

/// Characters of an unknown name that its refusal repeats.
const SHOWN_NAME_LEN_MAX: usize = 64;

/// Which rows a query reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SnapshotUse {
    /// As they are.
    #[default]
    None,
    /// As they are, and they are pinned so.
    Pin,
    /// As they were.
    Read {
        /// When this was pinned.
        id: SnapshotId,
        /// It ends after this page.
        ends: bool,
    },
}

/// What a request wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// `startswith` in `$filter`.
    pub(crate) starts_with: bool,
    /// Entities are counted, not returned.
    pub(crate) count: bool,
    /// Rows of one moment.
    pub(crate) snapshot: SnapshotUse,
    /// From the last key to the first.
    pub(crate) reverse: bool,
}

/// What is named.
#[derive(Default)]
struct Names {
    starts_with: bool,
    count: bool,
    snapshot: bool,
    snapshot_end: bool,
    reverse: bool,
}

/// A name and what it asks for.
type Named = (&'static str, fn(&mut Names) -> &mut bool);

/// All that there are.
const KNOWN: [Named; 5] = [
    ("startswith", |names| &mut names.starts_with),
    ("count", |names| &mut names.count),
    ("snapshot", |names| &mut names.snapshot),
    ("snapshot-end", |names| &mut names.snapshot_end),
    ("reverse", |names| &mut names.reverse),
];

impl Extensions {
    /// Reads the headers; names may be in several of them.
    pub(crate) fn of_request(headers: &HeaderMap) -> Result<Extensions, ApiError> {
        let mut names = Names::default();
        for value in headers.get_all(EXTENSIONS) {
            let text = value.to_str().map_err(|_| unknown("of bytes that are no ASCII"))?;
            for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let known = KNOWN.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
                let (_, named) = known.ok_or_else(|| unknown(&format!("'{}'", shown(name))))?;
                *named(&mut names) = true;
            }
        }
        let snapshot = match (snapshot_of(headers)?, names.snapshot_end) {
            (Some(id), ends) => SnapshotUse::Read { id, ends },
            (None, true) => {
                return Err(refused(format!("snapshot-end ends the snapshot in {SNAPSHOT}: name one.")));
            }
            (None, false) if names.snapshot => SnapshotUse::Pin,
            (None, false) => SnapshotUse::None,
        };
        let Names { starts_with, count, reverse, .. } = names;
        Ok(Extensions { starts_with, count, snapshot, reverse })
    }

    /// Refuses those that an operation that is no query of entities can't fulfil, where its answer could be
    /// taken for one that does.
    pub(crate) fn check_for_others(&self) -> Result<(), ApiError> {
        match self.snapshot {
            SnapshotUse::Read { .. } => Err(refused(format!(
                "{SNAPSHOT} is for queries of entities: this operation has no snapshot."
            ))),
            SnapshotUse::None | SnapshotUse::Pin => Ok(()),
        }
    }

    /// The same for lists of tables.
    pub(crate) fn check_for_tables(&self) -> Result<(), ApiError> {
        let others = Extensions { starts_with: self.starts_with, ..Extensions::default() };
        match *self == others {
            true => Ok(()),
            false => {
                Err(refused(format!("Of the names in {EXTENSIONS} lists of tables have startswith only.")))
            }
        }
    }
}

fn snapshot_of(headers: &HeaderMap) -> Result<Option<SnapshotId>, ApiError> {
    let Some(value) = headers.get(SNAPSHOT) else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    let what = || refused(format!("{SNAPSHOT} is not what an answer had: return it as it was."));
    id.ok_or_else(what).map(Some)
}

fn shown(name: &str) -> String {
    name.chars().take(SHOWN_NAME_LEN_MAX).collect()
}

fn unknown(name: &str) -> ApiError {
    let known = KNOWN.map(|(known, _)| known).join(", ");
    refused(format!(
        "The header {EXTENSIONS} has the name {name}, which this server does not know. It knows: {known}."
    ))
}

fn refused(message: String) -> ApiError {
    ApiError::with_message(ErrorCode::InvalidHeaderValue, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn of_pairs(pairs: &[(HeaderName, &'static str)]) -> Result<Extensions, ApiError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        Extensions::of_request(&headers)
    }

    fn of(values: &[&'static str]) -> Result<Extensions, ApiError> {
        of_pairs(&values.iter().map(|value| (EXTENSIONS, *value)).collect::<Vec<_>>())
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
            (&["reverse"], Extensions { reverse: true, ..Extensions::default() }),
            (&["snapshot"], Extensions { snapshot: SnapshotUse::Pin, ..Extensions::default() }),
        ] {
            assert_eq!(of(values), Ok(expected), "{values:?}");
        }
    }

    #[test]
    fn a_snapshot_is_pinned_read_or_ended() {
        let id = TOKEN.parse().expect("a token");
        let use_of = |pairs: &[(HeaderName, &'static str)]| of_pairs(pairs).map(|wanted| wanted.snapshot);
        // The header alone is enough: without the name a page of another moment would be taken for one of it.
        for (names, ends) in
            [("", false), ("snapshot", false), ("snapshot-end", true), ("snapshot,snapshot-end", true)]
        {
            let found = use_of(&[(EXTENSIONS, names), (SNAPSHOT, TOKEN)]);
            assert_eq!(found, Ok(SnapshotUse::Read { id, ends }), "{names}");
        }
        for pairs in [&[(EXTENSIONS, "snapshot-end")][..], &[(SNAPSHOT, "")], &[(SNAPSHOT, "latest")]] {
            let error = use_of(pairs).expect_err("not a use");
            assert_eq!(error.code, ErrorCode::InvalidHeaderValue, "{pairs:?}");
        }
    }

    #[test]
    fn what_other_operations_refuse() {
        let snapshot = of_pairs(&[(SNAPSHOT, TOKEN)]).expect("read");
        assert!(snapshot.check_for_others().is_err() && snapshot.check_for_tables().is_err());
        for (names, is_for_tables) in
            [("", true), ("startswith", true), ("count", false), ("snapshot", false), ("reverse", false)]
        {
            let wanted = of(&[names]).expect("known");
            assert!(wanted.check_for_others().is_ok(), "{names}");
            assert_eq!(wanted.check_for_tables().is_ok(), is_for_tables, "{names}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_known() {
        for (value, shown) in [("startswith, magic", "'magic'"), ("startswith;count", "'startswith;count'")] {
            let error = of(&[value]).expect_err(value);
            assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
            assert!(error.message().contains(shown), "{}", error.message());
            assert!(error.message().contains("startswith, count"), "{}", error.message());
        }
        let long: &'static str = "x".repeat(5000).leak();
        assert!(of(&[long]).expect_err("long").message().len() < 300);
    }
}
