//! How `copy` changes keys and properties: assignments of small expressions.
//!
//! ```text
//! assignment := NAME '=' expression
//! expression := term ('+' term)*
//! term       := 'text' | NAME | function '(' expression (',' argument)* ')'
//! function   := lower(e) | upper(e) | left(e, n) | right(e, n) | pad(e, n) | hash(e, n) | or(e, e)
//! ```
//!
//! In a text a quote is doubled. `left` and `right` take that many characters, `pad` adds zeros in front up
//! to that many, `hash` gives a number from 0 to n - 1 with the digits of n - 1, the same in each run, and
//! `or` gives its second value where the first needs a property that is absent. A property alone keeps its
//! type; all else is text. What always holds: all expressions see the entity as it was read; one that needs
//! an absent property is an error, not an empty text; depth and length are bounded.

use crate::lines::row::Row;
use base::checksum::crc64;
use base::date_time::date_time_text;
use base::guid::guid_text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use storage_client::{Entity, Value};

/// Characters of an assignment, at most.
const LEN_MAX: usize = 4096;
/// Functions within functions, at most.
const DEPTH_MAX: usize = 16;
/// A number in an expression, at most: so many buckets or characters.
const NUMBER_MAX: usize = 1_000_000;

/// Assignments and omissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    set: Vec<(String, Expression)>,
    drop: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Text(String),
    Property(String),
    Joined(Vec<Expression>),
    Lower(Box<Expression>),
    Upper(Box<Expression>),
    Left(Box<Expression>, usize),
    Right(Box<Expression>, usize),
    Pad(Box<Expression>, usize),
    Hash(Box<Expression>, usize),
    Or(Box<Expression>, Box<Expression>),
}

/// Why an assignment can't be read: one line, with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {at} of {text:?}")]
pub struct MappingError {
    text: String,
    /// From 1.
    at: usize,
    what: String,
}

impl Mapping {
    /// Of assignments such as `PartitionKey=hash(Id, 16)`, and of names of properties that are left out.
    pub fn parse(set: &[String], drop: &[String]) -> Result<Self, MappingError> {
        let set = set.iter().map(|text| assignment(text)).collect::<Result<_, _>>()?;
        Ok(Mapping { set, drop: drop.to_vec() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.drop.is_empty()
    }

    /// Whether entities get other keys.
    pub(crate) fn sets_keys(&self) -> bool {
        self.set.iter().any(|(name, _)| matches!(name.as_str(), "PartitionKey" | "RowKey"))
    }

    /// The entity as it is written; an error says what is missing.
    pub(crate) fn apply(&self, row: &Row<'_>) -> Result<Entity, String> {
        let mut json = Vec::new();
        row.put_json(&mut json);
        let entity = Entity::parse_json(&json)?;
        let mut mapped = entity.clone();
        mapped.properties.retain(|(name, _)| !self.drop.contains(name));
        for (name, expression) in &self.set {
            let value = expression.value(&entity)?;
            match name.as_str() {
                "PartitionKey" => mapped.partition_key = text_of(&value),
                "RowKey" => mapped.row_key = text_of(&value),
                _ => match mapped.properties.iter_mut().find(|(other, _)| other == name) {
                    Some((_, old)) => *old = value,
                    None => mapped.properties.push((name.clone(), value)),
                },
            }
        }
        Ok(mapped)
    }
}

impl Expression {
    fn value(&self, entity: &Entity) -> Result<Value, String> {
        let text = |expression: &Expression| expression.value(entity).map(|value| text_of(&value));
        Ok(Value::String(match self {
            Expression::Property(name) => {
                return match name.as_str() {
                    "PartitionKey" => Ok(Value::String(entity.partition_key.clone())),
                    "RowKey" => Ok(Value::String(entity.row_key.clone())),
                    name => entity.value(name).cloned().ok_or_else(|| format!("it has no property {name}")),
                };
            }
            Expression::Or(first, second) => return first.value(entity).or_else(|_| second.value(entity)),
            Expression::Text(text) => text.clone(),
            Expression::Joined(parts) => parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.concat(),
            Expression::Lower(of) => text(of)?.to_lowercase(),
            Expression::Upper(of) => text(of)?.to_uppercase(),
            Expression::Left(of, count) => text(of)?.chars().take(*count).collect(),
            Expression::Right(of, count) => {
                let text = text(of)?;
                let skipped = text.chars().count().saturating_sub(*count);
                text.chars().skip(skipped).collect()
            }
            Expression::Pad(of, count) => {
                let text = text(of)?;
                let zeros = count.saturating_sub(text.chars().count());
                "0".repeat(zeros) + &text
            }
            Expression::Hash(of, count) => {
                let digits = (count - 1).to_string().len();
                let bucket = crc64(&[text(of)?.as_bytes()]) % *count as u64;
                format!("{bucket:0digits$}")
            }
        }))
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Double(value) => format!("{value:?}"),
        Value::DateTime(at) => date_time_text(*at),
        Value::Guid(guid) => guid_text(guid),
        Value::Binary(bytes) => STANDARD.encode(bytes),
    }
}

fn assignment(text: &str) -> Result<(String, Expression), MappingError> {
    let mut parser = Parser { text, characters: text.chars().collect(), at: 0 };
    if parser.characters.len() > LEN_MAX {
        return parser.fail(format!("it has more than {LEN_MAX} characters"));
    }
    let name = parser.name()?;
    parser.expect('=')?;
    let expression = parser.expression(0)?;
    if parser.peek().is_some() {
        return parser.fail("there is more than an expression");
    }
    Ok((name, expression))
}

struct Parser<'a> {
    text: &'a str,
    characters: Vec<char>,
    at: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, what: impl Into<String>) -> Result<T, MappingError> {
        Err(MappingError { text: self.text.to_owned(), at: self.at + 1, what: what.into() })
    }

    fn peek(&mut self) -> Option<char> {
        while self.characters.get(self.at) == Some(&' ') {
            self.at += 1;
        }
        self.characters.get(self.at).copied()
    }

    fn take(&mut self, character: char) -> bool {
        let is_next = self.peek() == Some(character);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, character: char) -> Result<(), MappingError> {
        if self.take(character) { Ok(()) } else { self.fail(format!("{character:?} is missing")) }
    }

    fn name(&mut self) -> Result<String, MappingError> {
        let is_first = self.peek().is_some_and(|one| one.is_alphabetic() || one == '_');
        if !is_first {
            return self.fail("a name is missing");
        }
        let rest = &self.characters[self.at..];
        let name: String = rest.iter().take_while(|one| one.is_alphanumeric() || **one == '_').collect();
        self.at += name.chars().count();
        Ok(name)
    }

    fn number(&mut self) -> Result<usize, MappingError> {
        self.expect(',')?;
        self.peek();
        let digits: String =
            self.characters[self.at..].iter().take_while(|one| one.is_ascii_digit()).collect();
        match digits.parse() {
            Ok(number) if (1..=NUMBER_MAX).contains(&number) => {
                self.at += digits.len();
                Ok(number)
            }
            _ => self.fail(format!("a number from 1 to {NUMBER_MAX} is missing")),
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Expression, MappingError> {
        if depth > DEPTH_MAX {
            return self.fail("it is nested too deeply");
        }
        let mut parts = vec![self.term(depth)?];
        while self.take('+') {
            parts.push(self.term(depth)?);
        }
        match parts.len() {
            1 => Ok(parts.swap_remove(0)),
            _ => Ok(Expression::Joined(parts)),
        }
    }

    fn term(&mut self, depth: usize) -> Result<Expression, MappingError> {
        if self.take('\'') {
            return self.quoted();
        }
        let (start, name) = (self.at, self.name()?);
        if !self.take('(') {
            return Ok(Expression::Property(name));
        }
        let of = Box::new(self.expression(depth + 1)?);
        let expression = match name.as_str() {
            "lower" => Expression::Lower(of),
            "upper" => Expression::Upper(of),
            "left" => Expression::Left(of, self.number()?),
            "right" => Expression::Right(of, self.number()?),
            "pad" => Expression::Pad(of, self.number()?),
            "hash" => Expression::Hash(of, self.number()?),
            "or" => {
                self.expect(',')?;
                Expression::Or(of, Box::new(self.expression(depth + 1)?))
            }
            other => {
                self.at = start;
                return self
                    .fail(format!("{other} is no function (lower, upper, left, right, pad, hash, or)"));
            }
        };
        self.expect(')')?;
        Ok(expression)
    }

    fn quoted(&mut self) -> Result<Expression, MappingError> {
        let mut text = String::new();
        loop {
            let Some(character) = self.characters.get(self.at).copied() else {
                return self.fail("a quote is not closed");
            };
            self.at += 1;
            let is_quote = character == '\'';
            if is_quote && self.characters.get(self.at) != Some(&'\'') {
                return Ok(Expression::Text(text));
            }
            self.at += usize::from(is_quote);
            text.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(set: &str) -> Result<String, String> {
        let mapping = Mapping::parse(&[set.to_owned()], &[]).map_err(|error| error.to_string())?;
        let line = r#"{"PartitionKey":"Ab","RowKey":"r1","N@odata.type":"Edm.Int64","N":"42","S":"x'y"}"#;
        let entity = mapping.apply(&Row::parse(line).expect("a row"))?;
        Ok(match &*mapping.set[0].0 {
            "PartitionKey" => entity.partition_key,
            "RowKey" => entity.row_key,
            name => format!("{:?}", entity.value(name).expect("it was set")),
        })
    }

    #[test]
    fn expressions_give_values() {
        for (set, expected) in [
            ("PartitionKey='a'", "a"),
            ("PartitionKey = 'it''s' + '-' + N + '-' + RowKey", "it's-42-r1"),
            ("RowKey=lower(PartitionKey)+upper(RowKey)", "abR1"),
            ("RowKey=left(S, 2) + right(S, 1) + pad(N, 5)", "x'y00042"),
            ("RowKey=or(Missing, or(Missing2, 'none'))", "none"),
            ("M=N", "Int64(42)"),
            ("M=N+''", "String(\"42\")"),
            ("N='s'", "String(\"s\")"),
        ] {
            assert_eq!(mapped(set).as_deref(), Ok(expected), "{set}");
        }
        // The same in each run and build: it decides where rows are.
        assert_eq!(mapped("PartitionKey=hash(RowKey, 100)"), mapped("PartitionKey=hash('r1', 100)"));
        assert_eq!(mapped("PartitionKey=hash(RowKey, 100)").map(|text| text.len()), Ok(2));
        assert_eq!(mapped("PartitionKey=hash(RowKey, 1)").as_deref(), Ok("0"));
        let drop = Mapping::parse(&[], &["S".to_owned()]).expect("a mapping");
        let row = Row::parse(r#"{"PartitionKey":"p","RowKey":"r","S":1,"T":2}"#).expect("a row");
        let names: Vec<String> =
            drop.apply(&row).expect("an entity").properties.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["T"]);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (set, expected) in [
            ("", "a name is missing at character 1 of \"\""),
            ("A", "'=' is missing at character 2 of \"A\""),
            ("A=", "a name is missing at character 3 of \"A=\""),
            ("A='x", "a quote is not closed at character 5 of \"A='x\""),
            ("A=left(B)", "',' is missing at character 9 of \"A=left(B)\""),
            ("A=left(B, 0)", "a number from 1 to 1000000 is missing at character 11 of \"A=left(B, 0)\""),
            (
                "A=mid(B)",
                "mid is no function (lower, upper, left, right, pad, hash, or) at character 3 of \"A=mid(B)\"",
            ),
            ("A=B C", "there is more than an expression at character 5 of \"A=B C\""),
            ("A=Missing+'x'", "it has no property Missing"),
        ] {
            assert_eq!(mapped(set), Err(expected.to_owned()), "{set}");
        }
        let deep = format!("A={}B{}", "lower(".repeat(20), ")".repeat(20));
        assert!(mapped(&deep).is_err_and(|error| error.starts_with("it is nested too deeply")));
    }
}
