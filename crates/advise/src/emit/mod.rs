//! Functions that make the keys of a design, in several languages, with tests of their own.
//!
//! A file has what it needs and no more dependencies than its language. Its tests are keys of entities of
//! the sample, made here. Times are whole numbers: ticks of 100 ns since the year 1, which C# has as
//! `DateTime.Ticks`; each file converts from its language's time. What always holds: all languages make the
//! same keys, byte by byte; the text of a file depends on design and sample only.

mod csharp;
mod python;
mod rust;
mod typescript;

use crate::design::part::TICKS_BEFORE_1601;
use crate::design::{Part, key_of};
use crate::predict::Prediction;
use crate::sample::{Sample, SampleEntity};
use std::collections::BTreeMap;
use table::EdmValue;
use table::edm::guid_text;

/// Keys in the tests of each function.
const EXAMPLES_MAX: usize = 5;

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python 3.
    Python,
    /// TypeScript, for Node.
    TypeScript,
    /// C#, for Mono and .NET.
    CSharp,
    /// Rust, without crates.
    Rust,
}

/// A value that a function takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// A text, or a Guid as one.
    Text(String),
    Flag(bool),
    /// A whole number, padded to so many digits.
    Whole(i64, usize),
    /// Ticks since the year 1.
    Time(u64),
}

/// What a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    Whole { digits: usize },
    Time,
}

/// A function that makes a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyFunction {
    /// Its name in words: `partition`, `key`.
    pub(crate) name: Vec<String>,
    pub(crate) parts: Vec<Part>,
    /// Names of properties in words, in the order of their first part.
    pub(crate) parameters: Vec<Parameter>,
    /// Arguments and the key that they make.
    pub(crate) examples: Vec<(Vec<Argument>, String)>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) property: String,
    pub(crate) name: Vec<String>,
    pub(crate) kind: Kind,
}

/// The file of a design.
pub fn emit(language: Language, prediction: &Prediction, sample: &Sample) -> String {
    let functions = functions(prediction, sample);
    let about = format!("Keys of a table: {}", prediction.design);
    match language {
        Language::Python => python::file(&about, &functions),
        Language::TypeScript => typescript::file(&about, &functions),
        Language::CSharp => csharp::file(&about, &functions),
        Language::Rust => rust::file(&about, &functions),
    }
}

fn functions(prediction: &Prediction, sample: &Sample) -> Vec<KeyFunction> {
    let design = &prediction.design;
    let mut all =
        vec![function("partition key", &design.partition, sample), function("row key", &design.row, sample)];
    for (index, second) in prediction.seconds.iter().enumerate() {
        let number = index + 1;
        if second.is_table {
            all.push(function(&format!("index {number} partition key"), &second.partition, sample));
            all.push(function(&format!("index {number} row key"), &second.row, sample));
        } else {
            all.push(function(&format!("second {number} row key"), &second.row, sample));
        }
    }
    all
}

fn function(name: &str, parts: &[Part], sample: &Sample) -> KeyFunction {
    let mut parameters: Vec<Parameter> = Vec::new();
    let first = sample.entities.iter().find(|entity| key_of(parts, entity).is_some());
    for property in parts.iter().filter_map(Part::property) {
        let kind = first.and_then(|entity| argument(entity, property)).map_or(Kind::Text, |one| one.kind());
        if parameters.iter().all(|one| one.property != property) {
            let mut name = words(property);
            // Two names may differ in their case only.
            if parameters.iter().any(|one| one.name == name) {
                name.push(parameters.len().to_string());
            }
            parameters.push(Parameter { property: property.to_owned(), name, kind });
        }
    }
    let mut examples: BTreeMap<String, Vec<Argument>> = BTreeMap::new();
    for entity in &sample.entities {
        if examples.len() >= EXAMPLES_MAX {
            break;
        }
        let arguments: Option<Vec<Argument>> =
            parameters.iter().map(|one| argument(entity, &one.property)).collect();
        let fits = |arguments: &[Argument]| {
            arguments.iter().zip(&parameters).all(|(argument, one)| argument.kind() == one.kind)
        };
        if let (Some(key), Some(arguments)) = (key_of(parts, entity), arguments)
            && fits(&arguments)
        {
            examples.insert(key, arguments);
        }
    }
    KeyFunction {
        name: name.split(' ').map(str::to_owned).collect(),
        parts: parts.to_vec(),
        parameters,
        examples: examples.into_iter().map(|(key, arguments)| (arguments, key)).collect(),
    }
}

fn argument(entity: &SampleEntity, property: &str) -> Option<Argument> {
    match entity.value(property)? {
        EdmValue::String(text) => Some(Argument::Text(text.clone())),
        EdmValue::Guid(guid) => Some(Argument::Text(guid_text(guid))),
        EdmValue::Boolean(value) => Some(Argument::Flag(*value)),
        EdmValue::Int32(value) => Some(Argument::Whole(i64::from(*value), 10)),
        EdmValue::Int64(value) => Some(Argument::Whole(*value, 19)),
        EdmValue::DateTime(at) => Some(Argument::Time(TICKS_BEFORE_1601 + at.0)),
        EdmValue::Double(_) | EdmValue::Binary(_) => None,
    }
}

impl Argument {
    fn kind(&self) -> Kind {
        match self {
            Argument::Text(_) => Kind::Text,
            Argument::Flag(_) => Kind::Flag,
            Argument::Whole(_, digits) => Kind::Whole { digits: *digits },
            Argument::Time(_) => Kind::Time,
        }
    }
}

impl KeyFunction {
    /// The parameter that a part is made of.
    pub(crate) fn parameter(&self, part: &Part) -> Option<&Parameter> {
        self.parameters.iter().find(|one| part.property() == Some(&one.property))
    }
}

/// The words of a name: `customer`, `id` of `CustomerId`; with `value` behind, so that no word of a language
/// is a name.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for character in name.chars() {
        let is_letter = character.is_ascii_alphanumeric();
        if words.is_empty() || (character.is_ascii_uppercase() && was_lower) || character == '_' {
            words.push(String::new());
        }
        was_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
        let last = words.last_mut();
        match (last, is_letter) {
            (Some(word), true) => word.push(character.to_ascii_lowercase()),
            // Other letters are written out, so that names stay apart.
            (Some(word), false) if character != '_' => word.push_str(&format!("u{:x}", character as u32)),
            _ => {}
        }
    }
    words.retain(|word| !word.is_empty());
    if words.first().is_none_or(|word| word.starts_with(|one: char| one.is_ascii_digit())) {
        words.insert(0, "n".to_owned());
    }
    words.push("value".to_owned());
    words
}

/// `customer_id_value`
pub(crate) fn snake(words: &[String]) -> String {
    words.join("_")
}

/// `customerIdValue`
pub(crate) fn camel(words: &[String]) -> String {
    let (first, rest) = words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    first.to_owned() + &pascal(rest)
}

/// `CustomerIdValue`
pub(crate) fn pascal(words: &[String]) -> String {
    words.iter().map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

/// A text in double quotes, with an escape for each character that is no plain letter of ASCII.
pub(crate) fn quoted(text: &str, escape: fn(u32) -> String) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' | '$' | '{' | '}' => out.push_str(&escape(character as u32)),
            ' '..='~' => out.push(character),
            other => out.push_str(&escape(other as u32)),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests;
