//! A part of a key: what one property makes of it.
//!
//! ```text
//! value     a text, characters that keys can't hold, '=' and '|' as '=' and four hexadecimal digits;
//!           a number that is not negative, padded with zeros to 10 (Int32) or 19 digits (Int64);
//!           a time as 19 digits of its ticks of 100 ns since the year 1; true, false; a Guid
//! period    a time cut to its month, day or hour: 2026-11, 2026-11-28, 2026-11-28T10
//! reversed  19 digits of the ticks that are left until the year 9999: the newest is first
//! bucket    CRC-64/NVME of the value's text modulo the number of buckets, with that number's digits
//! ```
//!
//! What always holds: the same value gives the same part, in each language that functions are written in;
//! texts of numbers and times sort as the numbers and times do.

use super::characters::is_bad;
use crate::sample::SampleEntity;
use base::checksum::crc64;
use std::fmt;
use table::EdmValue;
use table::edm::{date_time_text, guid_text};

/// Ticks of 100 ns from the year 1 to 1601, where those of the service begin.
pub(crate) const TICKS_BEFORE_1601: u64 = 504_911_232_000_000_000;
/// The last tick of the year 9999, from the year 1.
pub(crate) const TICKS_LAST: u64 = 3_155_378_975_999_999_999;

/// A piece of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// A month.
    Month,
    /// A day.
    Day,
    /// An hour.
    Hour,
}

impl Period {
    /// Characters of `2026-11-28T10:…` that are kept.
    pub(crate) fn len(self) -> usize {
        match self {
            Period::Month => 7,
            Period::Day => 10,
            Period::Hour => 13,
        }
    }

    /// Its length in seconds; of months the mean.
    pub(crate) fn seconds(self) -> f64 {
        match self {
            Period::Month => 30.436_875 * 86_400.0,
            Period::Day => 86_400.0,
            Period::Hour => 3_600.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Period::Month => "month",
            Period::Day => "day",
            Period::Hour => "hour",
        }
    }
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The property's value.
    Value(String),
    /// The period that a time lies in.
    Period(String, Period),
    /// A time counted down.
    Reversed(String),
    /// One of so many buckets.
    Bucket(String, u32),
    /// A word, the same for all entities.
    Word(String),
}

impl Part {
    /// The property that it is made of.
    pub fn property(&self) -> Option<&str> {
        match self {
            Part::Value(name) | Part::Period(name, _) | Part::Reversed(name) | Part::Bucket(name, _) => {
                Some(name)
            }
            Part::Word(_) => None,
        }
    }

    /// Its text; none if the entity has no such property, or none that can be a key.
    pub fn text(&self, entity: &SampleEntity) -> Option<String> {
        let value = |name: &str| entity.value(name);
        match self {
            Part::Word(word) => Some(word.clone()),
            Part::Value(name) => value_text(value(name)?),
            Part::Bucket(name, buckets) => Some(bucket_text(&value_text(value(name)?)?, *buckets)),
            Part::Period(name, period) => match value(name)? {
                EdmValue::DateTime(at) => date_time_text(*at).get(..period.len()).map(str::to_owned),
                _ => None,
            },
            Part::Reversed(name) => match value(name)? {
                EdmValue::DateTime(at) => Some(format!("{:019}", TICKS_LAST - (TICKS_BEFORE_1601 + at.0))),
                _ => None,
            },
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Value(name) => f.write_str(name),
            Part::Period(name, period) => write!(f, "{} of {name}", period.name()),
            Part::Reversed(name) => write!(f, "{name} reversed"),
            Part::Bucket(name, buckets) => write!(f, "hash({name}, {buckets})"),
            Part::Word(word) => write!(f, "'{word}'"),
        }
    }
}

/// A value's text in a key; none if it can't be in one.
pub(crate) fn value_text(value: &EdmValue) -> Option<String> {
    match value {
        EdmValue::String(text) => Some(escaped(text)),
        EdmValue::Boolean(value) => Some(value.to_string()),
        EdmValue::Int32(value) => u32::try_from(*value).ok().map(|value| format!("{value:010}")),
        EdmValue::Int64(value) => u64::try_from(*value).ok().map(|value| format!("{value:019}")),
        EdmValue::DateTime(at) => Some(format!("{:019}", TICKS_BEFORE_1601 + at.0)),
        EdmValue::Guid(guid) => Some(guid_text(guid)),
        EdmValue::Double(_) | EdmValue::Binary(_) => None,
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '=' | super::SEPARATOR => out.push_str(&format!("={:04X}", character as u32)),
            bad if is_bad(bad) => out.push_str(&format!("={:04X}", bad as u32)),
            other => out.push(other),
        }
    }
    out
}

pub(crate) fn bucket_text(text: &str, buckets: u32) -> String {
    let digits = buckets.saturating_sub(1).to_string().len();
    let bucket = crc64(&[text.as_bytes()]) % u64::from(buckets.max(1));
    format!("{bucket:0digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;

    #[test]
    fn parts_have_their_texts() {
        let at = table::edm::parse_date_time("2026-11-28T10:00:00Z").expect("a time");
        let entity = SampleEntity {
            properties: vec![
                ("S".to_owned(), EdmValue::String("a/b=c|ü".to_owned())),
                ("N".to_owned(), EdmValue::Int32(42)),
                ("L".to_owned(), EdmValue::Int64(-1)),
                ("At".to_owned(), EdmValue::DateTime(at)),
            ],
        };
        let text = |part: Part| part.text(&entity);
        assert_eq!(text(Part::Value("S".into())).as_deref(), Some("a=002Fb=003Dc=007Cü"));
        assert_eq!(text(Part::Value("N".into())).as_deref(), Some("0000000042"));
        assert_eq!(text(Part::Value("L".into())), None, "negative numbers don't sort as texts");
        assert_eq!(text(Part::Value("At".into())).as_deref(), Some("0639314568000000000"));
        assert_eq!(text(Part::Period("At".into(), Period::Day)).as_deref(), Some("2026-11-28"));
        assert_eq!(text(Part::Period("At".into(), Period::Hour)).as_deref(), Some("2026-11-28T10"));
        let (up, down) = (text(Part::Value("At".into())), text(Part::Reversed("At".into())));
        let number = |text: Option<String>| text.expect("a text").parse::<u64>().expect("digits");
        assert_eq!(number(up) + number(down), TICKS_LAST);
        assert_eq!(text(Part::Bucket("N".into(), 100)).map(|text| text.len()), Some(2));
        // As `larimar table copy --set` has it: rows stay where they are.
        assert_eq!(bucket_text("r1", 1), "0");
        assert_eq!(date_time_text(Ticks(0)).get(..4), Some("1601"));
    }
}
