//! A table of a file whose keys are known, and its typed values.
//!
//! What always holds: each mistake names its line; a key that is not known is refused, with the nearest name.

use crate::mistake::{SettingsFileError, line_of, meant};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A table whose keys are known.
pub struct Section<'a> {
    /// The whole file, for lines.
    pub text: &'a str,
    name: &'static str,
    /// Its keys and values.
    pub table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// A table of the file, called `name` in errors, that has no other keys than these.
    pub fn new(
        text: &'a str,
        name: &'static str,
        table: &'a DeTable<'a>,
        known: &[&'static str],
    ) -> Result<Self, SettingsFileError> {
        let (section, unknown) = Section::with_unknown_keys(text, name, table, known);
        match unknown.into_iter().next() {
            None => Ok(section),
            Some(mistake) => Err(mistake),
        }
    }

    /// A table of the file, and a mistake for each key that is not one of these, in the order of the file:
    /// for those that name all mistakes at once.
    pub fn with_unknown_keys(
        text: &'a str,
        name: &'static str,
        table: &'a DeTable<'a>,
        known: &[&'static str],
    ) -> (Self, Vec<SettingsFileError>) {
        let section = Section { text, name, table };
        let mut unknown: Vec<&Spanned<DeString<'_>>> =
            table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        let mistake = |key: &Spanned<DeString<'_>>| {
            let given = key.get_ref().as_ref();
            let what = format!("{name} has no key {given:?}{}", meant(given, known.iter().copied()));
            section.refuse_at(key.span().start, what)
        };
        let mistakes = unknown.into_iter().map(mistake).collect();
        (section, mistakes)
    }

    /// A mistake at a byte of the file.
    pub fn refuse_at(&self, at: usize, what: String) -> SettingsFileError {
        SettingsFileError { line: line_of(self.text, at), what }
    }

    /// Blames a key, which is there, or the table's first one.
    pub fn refuse(&self, key: &str, what: String) -> SettingsFileError {
        let place = self.table.get_key_value(key).map(|(key, _)| key.span().start);
        let first = || self.table.keys().map(|key| key.span().start).min();
        self.refuse_at(place.or_else(first).unwrap_or(0), what)
    }

    /// A key's value, and where the key stands.
    pub fn value(&self, key: &str) -> Option<(&'a DeValue<'a>, usize)> {
        let (key, value) = self.table.get_key_value(key)?;
        Some((value.get_ref(), key.span().start))
    }

    /// A mistake of a key, which stands at that byte: what its value must be.
    pub fn wrong(&self, key: &str, at: usize, wanted: &str) -> SettingsFileError {
        self.refuse_at(at, format!("{key} in {} must be {wanted}", self.name))
    }

    /// A table in this one, which has no other keys than these.
    pub fn section(
        &self,
        key: &'static str,
        known: &[&'static str],
    ) -> Result<Option<Section<'a>>, SettingsFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let table = value.as_table().ok_or_else(|| self.wrong(key, at, "a table"))?;
        Section::new(self.text, key, table, known).map(Some)
    }

    /// A text, and where its key stands.
    pub fn text(&self, key: &str) -> Result<Option<(&'a str, usize)>, SettingsFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(key, at, "a text, in quotes"))?;
        Ok(Some((text, at)))
    }

    /// A text, or a list of texts, and where their key stands; empty without the key.
    pub fn texts(&self, key: &str) -> Result<(Vec<&'a str>, usize), SettingsFileError> {
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

    /// True or false.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, SettingsFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, at, "true or false"))
    }

    /// A number of that range, with or without fraction.
    pub fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, SettingsFileError> {
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

    /// A whole number of that range.
    pub fn count(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, SettingsFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(None) };
        let wanted = || format!("a whole number from {} to {}", range.start(), range.end());
        count_of(value, &range).map(Some).ok_or_else(|| self.wrong(key, at, &wanted()))
    }

    /// A whole number of that range, or a list of some; empty without the key.
    pub fn counts(&self, key: &str, range: RangeInclusive<u64>) -> Result<Vec<u64>, SettingsFileError> {
        let Some((value, at)) = self.value(key) else { return Ok(Vec::new()) };
        let counts = match value {
            DeValue::Array(values) => values.iter().map(|value| count_of(value.get_ref(), &range)).collect(),
            value => count_of(value, &range).map(|count| vec![count]),
        };
        counts.filter(|counts: &Vec<u64>| !counts.is_empty()).ok_or_else(|| {
            let (from, to) = (range.start(), range.end());
            self.wrong(key, at, &format!("a whole number from {from} to {to}, or a list of them"))
        })
    }
}

fn count_of(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Option<u64> {
    match value {
        DeValue::Integer(number) => integer(number).filter(|number| range.contains(number)),
        _ => None,
    }
}

fn integer(number: &toml::de::DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}
