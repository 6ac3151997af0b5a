//! Conditions on an object's present version, and the ETag text that carries a version.
//!
//! An ETag is the object's row version written as a date-time inside the weak form of HTTP:
//! `W/"datetime'2021-02-05T17%3A15%3A16.7935715Z'"`, colons escaped, trailing zeros of the fraction cut. What
//! always holds: formatting and parsing a version gives the same version; a well-formed weak tag that is not
//! of this form belongs to somebody else and matches nothing.

use base::date_time::{DATE_TIME_LEN_MAX, DateTimeText, parse_date_time};
use partition::RowVersion;

/// What a request demands of the object's present version. (`If-Match` on the wire.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Condition {
    /// No condition was given.
    #[default]
    None,
    /// `*`: must exist, any version.
    Exists,
    /// Must exist with this row version. A well-formed ETag that can't be one of ours carries `None`: it
    /// never matches.
    Version(Option<RowVersion>),
}

impl Condition {
    /// Whether an object that exists with version `present` is what was asked for.
    pub fn matches(self, present: RowVersion) -> bool {
        match self {
            Condition::None | Condition::Exists => true,
            Condition::Version(wanted) => wanted == Some(present),
        }
    }
}

/// An `If-Match` value that is neither `*` nor of the weak form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ETag is not of the form W/\"...\"")]
pub struct InvalidETag;

const PREFIX: &str = "W/\"datetime'";
const SUFFIX: &str = "'\"";

/// Bytes of a date-time before its first colon, and of its minutes with a colon on either side.
const HOUR_LEN: usize = "9999-12-31T23".len();
const MINUTE_LEN: usize = ":59:".len();

/// Appends the ETag of the version whose time is `timestamp`.
pub fn format_etag(timestamp: &DateTimeText, out: &mut Vec<u8>) {
    let (hour, rest) = timestamp.as_bytes().split_at(HOUR_LEN);
    let (minute, rest) = rest.split_at(MINUTE_LEN);
    let minute = &minute[1..MINUTE_LEN - 1];
    out.reserve(PREFIX.len() + DATE_TIME_LEN_MAX + 4 + SUFFIX.len());
    for part in [PREFIX.as_bytes(), hour, b"%3A", minute, b"%3A", rest, SUFFIX.as_bytes()] {
        out.extend_from_slice(part);
    }
}

/// The version an ETag carries: `Ok(None)` for a weak tag that is none of ours.
pub fn parse_etag(tag: &str) -> Result<Option<RowVersion>, InvalidETag> {
    let is_weak = |rest: &&str| rest.starts_with("/\"") && rest.len() > 2 && rest.ends_with('"');
    // Some clients write the letter small.
    let rest = tag.strip_prefix(['W', 'w']).filter(is_weak).ok_or(InvalidETag)?;
    let date_time = (rest.strip_prefix(&PREFIX[1..])).and_then(|rest| rest.strip_suffix(SUFFIX));
    Ok(date_time.and_then(|text| {
        let text = text.replace("%3A", ":").replace("%3a", ":");
        Some(RowVersion(parse_date_time(&text).ok()?.0))
    }))
}

/// The condition in an `If-Match` value. An empty value asks for a tag that nothing has.
pub fn parse_if_match(value: &str) -> Result<Condition, InvalidETag> {
    match value.trim() {
        "*" => Ok(Condition::Exists),
        "" => Ok(Condition::Version(None)),
        tag => parse_etag(tag).map(Condition::Version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use proptest::prelude::*;

    fn etag(version: RowVersion) -> String {
        let mut out = Vec::new();
        format_etag(&DateTimeText::new(Ticks(version.0)), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_form_that_clients_know() {
        let tag = "W/\"datetime'2021-02-05T17%3A15%3A16.7935715Z'\"";
        let version = parse_etag(tag).unwrap().unwrap();
        assert_eq!(etag(version), tag);
        let lower_case = tag.replace("%3A", "%3a");
        assert_eq!(parse_etag(&lower_case), Ok(Some(version)));
        assert_eq!(parse_etag(&tag.replace('W', "w")), Ok(Some(version)));
    }

    #[test]
    fn weak_tags_of_others_match_nothing() {
        for tag in ["W/\"0x5B168C7B6E589D2\"", "W/\"datetime'yesterday'\"", "W/\"\"", "w/\"wrong\""] {
            assert_eq!(parse_if_match(tag), Ok(Condition::Version(None)), "{tag}");
        }
        assert!(!Condition::Version(None).matches(RowVersion(0)));
    }

    #[test]
    fn what_is_no_weak_tag_is_refused() {
        for tag in ["\"abc\"", "W/\"", "W/abc", "datetime'2020-01-01T00:00:00Z'", "**"] {
            assert_eq!(parse_if_match(tag), Err(InvalidETag), "{tag}");
        }
        assert_eq!(parse_if_match(" * "), Ok(Condition::Exists));
        assert_eq!(parse_if_match(""), Ok(Condition::Version(None)));
    }

    proptest! {
        #[test]
        fn versions_come_back(ticks in 0..=crate::date_time::TICKS_MAX.0) {
            prop_assert_eq!(parse_etag(&etag(RowVersion(ticks))), Ok(Some(RowVersion(ticks))));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = parse_if_match(&text);
        }
    }
}
