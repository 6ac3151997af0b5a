//! A table of a rule file whose keys are known, and its typed values; each mistake names its line.

use crate::simulate::nearest::nearest;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// The longest duration that a file may name.
pub(super) const SECONDS_MAX: f64 = 1e6;

/// What is wrong with a rule file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct RuleFileError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The end of a message about an unknown name.
pub(super) fn meant<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, names).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// A table whose keys are known.
pub(super) struct Section<'a> {
    /// The whole file, for lines.
    pub(super) text: &'a str,
    name: &'static str,
    pub(super) table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        text: &'a str,
        name: &'static str,
        table: &'a DeTable<'a>,
        known: &[&'static str],
    ) -> Result<Self, RuleFileError> {
        let section = Section { text, name, table };
        let mut unknown: Vec<&Spanned<DeString<'_>>> =
            table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        match unknown.first() {
            None => Ok(section),
            Some(key) => {
                let given = key.get_ref().as_ref();
                let what = format!("{name} has no key {given:?}{}", meant(given, known.iter().copied()));
                Err(section.refuse_at(key.span().start, what))
            }
        }
    }

    pub(super) fn refuse_at(&self, at: usize, what: String) -> RuleFileError {
        RuleFileError { line: line_of(self.text, at), what }
    }

    /// Blames a key, which is there, or the table's first one.
    pub(super) fn refuse(&self, key: &str, what: String) -> RuleFileError {
        let place = self.table.get_key_value(key).map(|(key, _)| key.span().start);
        let first = || self.table.keys().map(|key| key.span().start).min();
        self.refuse_at(place.or_else(first).unwrap_or(0), what)
    }

    pub(super) fn value(&self, key: &str) -> Option<(&'a DeValue<'a>, usize)> {
        let (key, value) = self.table.get_key_value(key)?;
        Some((value.get_ref(), key.span().start))
    }

    pub(super) fn wrong(&self, key: &str, at: usize, wanted: &str) -> RuleFileError {
        self.refuse_at(at, format!("{key} in {} must be {wanted}", self.name))
    }

    pub(super) fn section(
        &self,
        key: &'static str,
        known: &[&'static str],
    ) -> Result<Option<Section<'a>>, RuleFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let table = value.as_table().ok_or_else(|| self.wrong(key, at, "a table"))?;
        Section::new(self.text, key, table, known).map(Some)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<(&'a str, usize)>, RuleFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(key, at, "a text, in quotes"))?;
        Ok(Some((text, at)))
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&self, key: &str) -> Result<(Vec<&'a str>, usize), RuleFileError> {
        let Some((value, at)) = self.value(key) else { return Ok((Vec::new(), 0)) };
        let wrong = || self.wrong(key, at, "a text, in quotes, or a list of texts");
        let texts = match value {
            DeValue::String(text) => vec![text.as_ref()],
            DeValue::Array(texts) => {
                let texts: Option<Vec<&str>> = texts.iter().map(|text| text.get_ref().as_str()).collect();
                texts.filter(|texts| !texts.is_empty()).ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        };
        Ok((texts, at))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, RuleFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, at, "true or false"))
    }

    pub(super) fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, RuleFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let number: Option<f64> = match value {
            DeValue::Integer(number) => integer(number).map(|number| number as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let wanted = format!("a number from {} to {}", range.start(), range.end());
                Err(self.wrong(key, at, &wanted))
            }
        }
    }

    pub(super) fn count(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, RuleFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let number = match value {
            DeValue::Integer(number) => integer(number),
            _ => None,
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let wanted = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.wrong(key, at, &wanted))
            }
        }
    }
}

fn integer(number: &toml::de::DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}
