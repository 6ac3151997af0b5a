//! Conditions on a blob or container: what a request demands of what is there.
//!
//! Reads: `If-Match` and `If-Unmodified-Since` must hold, and of `If-None-Match` and `If-Modified-Since` one.
//! Writes: an ETag condition decides over the date that goes with it. Dates compare in whole seconds.

use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::name::Pairs;
use crate::tags::tag_filter::TagFilter;
use base::Ticks;
use base::clock::TICKS_PER_SECOND;

/// The ETag of a version, without quotes.
pub fn etag_text(etag: u64) -> String {
    format!("0x{etag:X}")
}

/// ETags of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ETags {
    /// `*`
    Any,
    /// These, without quotes.
    List(Vec<String>),
}

impl ETags {
    /// Reads a header's value.
    pub fn parse(text: &str) -> ETags {
        let text = text.trim();
        if text.split(',').any(|part| part.trim() == "*") {
            return ETags::Any;
        }
        let tag = |part: &str| {
            let part = part.trim();
            part.strip_prefix("W/").unwrap_or(part).trim_matches('"').to_owned()
        };
        ETags::List(text.split(',').map(tag).collect())
    }

    fn contains(&self, etag: u64) -> bool {
        match self {
            ETags::Any => true,
            ETags::List(tags) => tags.iter().any(|tag| tag.eq_ignore_ascii_case(&etag_text(etag))),
        }
    }
}

/// Conditions of one request, and the lease that it presents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`
    pub if_match: Option<ETags>,
    /// `If-None-Match`
    pub if_none_match: Option<ETags>,
    /// `If-Modified-Since`
    pub if_modified_since: Option<Ticks>,
    /// `If-Unmodified-Since`
    pub if_unmodified_since: Option<Ticks>,
    /// `x-ms-if-tags`
    pub if_tags: Option<TagFilter>,
    /// `x-ms-lease-id`, as 36 lower-case characters.
    pub lease_id: Option<String>,
    /// The key or scope that the request names.
    pub encryption: Encryption,
}

/// What conditions look at.
#[derive(Clone, Copy, Debug)]
pub struct Present<'a> {
    /// The ETag.
    pub etag: u64,
    /// When it was last changed.
    pub modified_at: Ticks,
    /// Its tags.
    pub tags: &'a Pairs,
}

fn seconds(at: Ticks) -> u64 {
    at.0 / TICKS_PER_SECOND
}

impl Conditions {
    /// The lease's id.
    pub fn lease(&self) -> Option<&str> {
        self.lease_id.as_deref()
    }

    /// Refuses a read of what must not be there, whether it is or not: uploads of the older Node client that
    /// must not overwrite begin with one, and go on only after this error.
    pub fn check_readable(&self) -> Result<(), BlobError> {
        match self.if_none_match {
            Some(ETags::Any) => Err(BlobError::UnsatisfiableCondition),
            _ => Ok(()),
        }
    }

    /// Whether something that is there may be read.
    pub fn check_read(&self, present: Present<'_>) -> Result<(), BlobError> {
        self.check_readable()?;
        if self.if_match.as_ref().is_some_and(|tags| !tags.contains(present.etag)) {
            return Err(BlobError::ConditionNotMet);
        }
        if self.if_unmodified_since.is_some_and(|at| seconds(present.modified_at) > seconds(at)) {
            return Err(BlobError::ConditionNotMet);
        }
        let differs = self.if_none_match.as_ref().map(|tags| !tags.contains(present.etag));
        let modified = self.if_modified_since.map(|at| seconds(present.modified_at) > seconds(at));
        match (differs, modified) {
            (None, None) | (Some(true), _) | (_, Some(true)) => {}
            _ => return Err(BlobError::NotModified),
        }
        self.check_tags(present)
    }

    /// Whether something may be written; `None`: nothing is there.
    pub fn check_write(&self, present: Option<Present<'_>>) -> Result<(), BlobError> {
        let Some(present) = present else {
            // Only a tag can demand that something is there.
            return match &self.if_match {
                Some(_) => Err(BlobError::ConditionNotMet),
                None => Ok(()),
            };
        };
        match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) if !tags.contains(present.etag) => return Err(BlobError::ConditionNotMet),
            (None, Some(at)) if seconds(present.modified_at) > seconds(at) => {
                return Err(BlobError::ConditionNotMet);
            }
            _ => {}
        }
        match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) if tags.contains(present.etag) => return Err(BlobError::ConditionNotMet),
            (None, Some(at)) if seconds(present.modified_at) <= seconds(at) => {
                return Err(BlobError::ConditionNotMet);
            }
            _ => {}
        }
        self.check_tags(present)
    }

    /// As [`Self::check_write`], for operations that make something: `If-None-Match: *` asks that nothing is
    /// there.
    pub fn check_create(&self, present: Option<Present<'_>>) -> Result<(), BlobError> {
        match self.check_write(present) {
            Err(_) if present.is_some() && self.if_none_match == Some(ETags::Any) => {
                Err(BlobError::BlobAlreadyExists)
            }
            other => other,
        }
    }

    fn check_tags(&self, present: Present<'_>) -> Result<(), BlobError> {
        match &self.if_tags {
            Some(filter) if !filter.matches(present.tags, None) => Err(BlobError::ConditionNotMet),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: &Pairs = &Vec::new();

    fn at(second: u64) -> Ticks {
        Ticks(second * TICKS_PER_SECOND + 5)
    }

    fn present() -> Present<'static> {
        Present { etag: 0xAB, modified_at: at(100), tags: TAGS }
    }

    fn conditions(matches: &str, none: &str, since: u64, unmodified: u64) -> Conditions {
        let tags = |text: &str| (!text.is_empty()).then(|| ETags::parse(text));
        let time = |second: u64| (second > 0).then(|| Ticks(second * TICKS_PER_SECOND));
        Conditions {
            if_match: tags(matches),
            if_none_match: tags(none),
            if_modified_since: time(since),
            if_unmodified_since: time(unmodified),
            ..Conditions::default()
        }
    }

    #[test]
    fn reads() {
        use BlobError::{ConditionNotMet, NotModified, UnsatisfiableCondition};
        let table = [
            (conditions("", "", 0, 0), Ok(())),
            (conditions("\"0xAB\"", "", 0, 100), Ok(())),
            (conditions("\"0xAB\"", "", 0, 99), Err(ConditionNotMet)),
            (conditions("\"0x1\", \"0xab\"", "", 0, 0), Ok(())),
            (conditions("*,\"0x1\"", "", 0, 0), Ok(())),
            (conditions("\"0x1\"", "", 0, 0), Err(ConditionNotMet)),
            (conditions("", "\"0xAB\"", 0, 0), Err(NotModified)),
            (conditions("", "\"0x1\",\"0x2\"", 0, 0), Ok(())),
            (conditions("", "", 100, 0), Err(NotModified)),
            (conditions("", "", 99, 0), Ok(())),
            (conditions("", "\"0xAB\"", 99, 0), Ok(())),
            (conditions("", "\"0x1\"", 100, 0), Ok(())),
            (conditions("", "*", 0, 0), Err(UnsatisfiableCondition)),
        ];
        for (conditions, expected) in table {
            assert_eq!(conditions.check_read(present()), expected, "{conditions:?}");
        }
    }

    #[test]
    fn writes() {
        use BlobError::{BlobAlreadyExists, ConditionNotMet};
        let table = [
            (conditions("\"0xAB\"", "", 0, 99), Ok(())),
            (conditions("\"0x1\"", "", 0, 200), Err(ConditionNotMet)),
            (conditions("", "\"0xAB\"", 1, 0), Err(ConditionNotMet)),
            (conditions("", "\"0x1\"", 200, 0), Ok(())),
            (conditions("", "", 100, 0), Err(ConditionNotMet)),
            (conditions("", "", 0, 99), Err(ConditionNotMet)),
            (conditions("*", "", 0, 0), Ok(())),
            (conditions("", "*", 0, 0), Err(ConditionNotMet)),
        ];
        for (conditions, expected) in table {
            assert_eq!(conditions.check_write(Some(present())), expected, "{conditions:?}");
        }
        assert_eq!(conditions("", "*", 0, 0).check_create(Some(present())), Err(BlobAlreadyExists));
        assert_eq!(conditions("", "*", 0, 0).check_create(None), Ok(()));
        assert_eq!(conditions("*", "", 0, 0).check_create(None), Err(ConditionNotMet));
        assert_eq!(conditions("", "", 5, 5).check_write(None), Ok(()));
    }
}
