//! Expressions over tags: `"k"='v' AND @container='c'` to find blobs, and with `<>`, `OR` and parentheses as
//! a condition.
//!
//! ```text
//! any  = all ("OR" all)*      all = one ("AND" one)*      one = "(" any ")" | name op value
//! name = "double quoted" | word | @container      op = = > >= < <= <>      value = 'single quoted'
//! ```
//!
//! What always holds: any text is an expression or is refused; comparison is by Unicode code point, and a tag
//! that is not there compares in no way, not even by `<>`.

use crate::error::BlobError;
use crate::limits::{TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX};
use crate::name::{Pairs, is_tag_char};
use std::collections::BTreeSet;

/// Parentheses inside each other at most.
const DEPTH_MAX: usize = 16;
/// Bytes of an expression at most: clients send conditions of a thousand comparisons.
const SIZE_BYTES_MAX: usize = 32 << 10;
/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagFilter {
    /// One of them holds.
    Any(Vec<TagFilter>),
    /// All of them hold.
    All(Vec<TagFilter>),
    /// A tag, or `@container`, compares so with a text.
    Compare {
        /// The tag's key.
        name: String,
        /// How.
        how: Comparison,
        /// With what.
        value: String,
    },
}

/// How two texts compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl TagFilter {
    /// What stands for the container in a search.
    pub const CONTAINER: &str = "@container";

    /// Reads an expression. A search may not use `<>`, `OR` and parentheses; a condition may not name the
    /// container.
    pub fn parse(text: &str, is_search: bool) -> Result<TagFilter, BlobError> {
        let mut parser = Parser { whole: text, rest: text, is_search, depth: 0 };
        if text.len() > SIZE_BYTES_MAX {
            return Err(parser.malformed("the query is too long"));
        }
        let filter = parser.any()?;
        parser.skip_blanks();
        if !parser.rest.is_empty() {
            return Err(parser.unexpected());
        }
        let tags: BTreeSet<&str> =
            filter.names().into_iter().filter(|name| *name != Self::CONTAINER).collect();
        if is_search && tags.len() > TAGS_MAX {
            let why = format!("Error parsing query: there can be at most {TAGS_MAX} unique tags in a query");
            return Err(BlobError::InvalidTagFilter(why));
        }
        Ok(filter)
    }

    /// Whether it holds for a blob with these tags.
    pub fn matches(&self, tags: &Pairs, container: Option<&str>) -> bool {
        match self {
            TagFilter::Any(parts) => parts.iter().any(|part| part.matches(tags, container)),
            TagFilter::All(parts) => parts.iter().all(|part| part.matches(tags, container)),
            TagFilter::Compare { name, how, value } => {
                let found = match name.as_str() {
                    Self::CONTAINER => container,
                    name => tags.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()),
                };
                match (found, how) {
                    (None, _) => false,
                    (Some(found), Comparison::Equal) => found == value,
                    (Some(found), Comparison::NotEqual) => found != value,
                    (Some(found), Comparison::Less) => found < value.as_str(),
                    (Some(found), Comparison::LessOrEqual) => found <= value.as_str(),
                    (Some(found), Comparison::Greater) => found > value.as_str(),
                    (Some(found), Comparison::GreaterOrEqual) => found >= value.as_str(),
                }
            }
        }
    }

    /// The container that all blobs it holds for lie in, if it says one.
    pub(crate) fn container(&self) -> Option<&str> {
        match self {
            TagFilter::Any(_) => None,
            TagFilter::All(parts) => parts.iter().find_map(TagFilter::container),
            TagFilter::Compare { name, how, value } => {
                (name == Self::CONTAINER && *how == Comparison::Equal).then_some(value)
            }
        }
    }

    /// The tags that it names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            TagFilter::Any(parts) | TagFilter::All(parts) => {
                parts.iter().flat_map(TagFilter::names).collect()
            }
            TagFilter::Compare { name, .. } => vec![name],
        }
    }
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    is_search: bool,
    depth: usize,
}

impl Parser<'_> {
    /// A refusal of what begins here.
    fn malformed(&self, why: impl std::fmt::Display) -> BlobError {
        let read = self.whole.len() - self.rest.len();
        let position = 1 + self.whole.get(..read).map_or(0, |read| read.chars().count());
        let text = format!("Error parsing query at or near character position {position}: {why}");
        BlobError::InvalidTagFilter(text)
    }

    /// A refusal that shows the word, or the sign, that begins here.
    fn unexpected(&self) -> BlobError {
        let word =
            self.rest.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(self.rest.len());
        let sign = self.rest.chars().next().map_or(0, char::len_utf8);
        match &self.rest[..word.max(sign)] {
            "" => self.malformed("unexpected end of query"),
            found => self.malformed(format_args!("unexpected '{found}'")),
        }
    }

    /// Refuses a key or value that no tag can have. Only in a search it may not be too long, either.
    fn check(&self, text: &str, (chars_min, chars_max): (usize, usize), what: &str) -> Result<(), BlobError> {
        if let Some(char) = text.chars().find(|char| !is_tag_char(*char)) {
            return Err(self.malformed(format_args!("'{char}' not permitted in tag name or value")));
        }
        if self.is_search && !(chars_min..=chars_max).contains(&text.chars().count()) {
            let why = format_args!("{what} must be between {chars_min} and {chars_max} characters in length");
            return Err(self.malformed(why));
        }
        Ok(())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, text: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let is_there = self.rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        let ends = is_there
            && !self.rest[word.len()..].starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_');
        if ends {
            self.rest = &self.rest[word.len()..];
        }
        ends
    }

    fn any(&mut self) -> Result<TagFilter, BlobError> {
        let mut parts = vec![self.all()?];
        while !self.is_search && self.takes_word("OR") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { TagFilter::Any(parts) })
    }

    fn all(&mut self) -> Result<TagFilter, BlobError> {
        let mut parts = vec![self.one()?];
        while self.takes_word("AND") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { TagFilter::All(parts) })
    }

    fn one(&mut self) -> Result<TagFilter, BlobError> {
        if !self.is_search && self.takes("(") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(self.malformed("too many parentheses inside each other"));
            }
            let inside = self.any()?;
            self.depth -= 1;
            return if self.takes(")") { Ok(inside) } else { Err(self.unexpected()) };
        }
        let name = self.name()?;
        let how = self.comparison()?;
        let value = self.quoted('\'')?;
        if name != TagFilter::CONTAINER {
            self.check(&value, (0, TAG_VALUE_CHARS_MAX), "tag value")?;
        }
        Ok(TagFilter::Compare { name, how, value })
    }

    fn name(&mut self) -> Result<String, BlobError> {
        self.skip_blanks();
        let name = match self.rest.chars().next() {
            Some('"') => self.quoted('"')?,
            Some('@') if self.is_search => {
                let parameter = format!("@{}", word(&self.rest[1..]));
                if parameter != TagFilter::CONTAINER {
                    return Err(self.malformed(format_args!("unsupported parameter '{parameter}'")));
                }
                self.rest = &self.rest[parameter.len()..];
                return Ok(parameter);
            }
            _ => {
                let name = word(self.rest);
                if name.is_empty() {
                    return Err(self.unexpected());
                }
                self.rest = &self.rest[name.len()..];
                name.to_owned()
            }
        };
        self.check(&name, (1, TAG_KEY_CHARS_MAX), "tag")?;
        Ok(name)
    }

    fn comparison(&mut self) -> Result<Comparison, BlobError> {
        let all = [
            ("<>", Comparison::NotEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            ("=", Comparison::Equal),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ];
        for (text, how) in all {
            if !(self.is_search && how == Comparison::NotEqual) && self.takes(text) {
                return Ok(how);
            }
        }
        Err(self.unexpected())
    }

    fn quoted(&mut self, quote: char) -> Result<String, BlobError> {
        self.skip_blanks();
        let inside = self.rest.strip_prefix(quote).ok_or_else(|| self.unexpected())?;
        let end = inside.find(quote).ok_or_else(|| self.unexpected())?;
        let text = inside[..end].to_owned();
        self.rest = &inside[end + 1..];
        Ok(text)
    }
}

/// The letters, digits and underscores that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags() -> Pairs {
        vec![("a".into(), "5".into()), ("b c".into(), "x".into())]
    }

    #[test]
    fn searches_and_conditions() {
        let table = [
            ("\"a\"='5'", true, Some(true)),
            ("a = '5' AND \"b c\" > 'w'", true, Some(true)),
            ("@container='box' and a<'6'", true, Some(true)),
            ("@container='other'", true, Some(false)),
            ("a<>'5'", true, None),
            ("a='5' OR a='6'", true, None),
            ("(a='6' or a='5') and \"b c\"='x'", false, Some(true)),
            ("missing='1'", false, Some(false)),
            ("missing<>'1'", false, Some(false)),
            ("a<>'1'", false, Some(true)),
            ("a='5", false, None),
            ("a=5", false, None),
            ("", false, None),
            ("a='5' b", false, None),
            ("@container='box'", false, None),
            ("@container='$web'", true, Some(false)),
            ("a='b$'", false, None),
            ("\"a$\"='b'", false, None),
        ];
        for (text, is_search, expected) in table {
            let found = TagFilter::parse(text, is_search).ok();
            assert_eq!(found.map(|filter| filter.matches(&tags(), Some("box"))), expected, "{text}");
        }
    }

    #[test]
    fn refusals_say_where_and_why() {
        let eleven: Vec<String> = (0..11).map(|index| format!("k{index}='v'")).collect();
        let (key, value) = ("k".repeat(129), "v".repeat(257));
        let table = [
            (
                "a='5' and @box='1'".to_owned(),
                "at or near character position 11: unsupported parameter '@box'",
            ),
            ("'a'='5'".to_owned(), "at or near character position 1: unexpected '''"),
            ("a='5' b".to_owned(), "at or near character position 7: unexpected 'b'"),
            ("a='5' AND b > Year_1 ".to_owned(), "at or near character position 15: unexpected 'Year_1'"),
            ("a=".to_owned(), "at or near character position 3: unexpected end of query"),
            ("a='ä'".to_owned(), "'ä' not permitted in tag name or value"),
            (format!("{key}='v'"), ": tag must be between 1 and 128 characters in length"),
            (format!("a='{value}'"), ": tag value must be between 0 and 256 characters in length"),
            (eleven.join(" and "), "Error parsing query: there can be at most 10 unique tags in a query"),
        ];
        for (text, expected) in table {
            match TagFilter::parse(&text, true) {
                Err(BlobError::InvalidTagFilter(told)) => assert!(told.ends_with(expected), "{text}: {told}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        let ten_and_container = format!("{} and @container='box'", eleven[..10].join(" and "));
        assert!(TagFilter::parse(&ten_and_container, true).is_ok());
        for condition in [format!("{key}='v'"), format!("a<>'{value}'"), eleven.join(" and ")] {
            assert!(
                TagFilter::parse(&condition, false).is_ok(),
                "a condition has no such bounds: {condition}"
            );
        }
    }

    #[test]
    fn searches_of_one_container() {
        for (text, expected) in [
            ("a='1'", None),
            ("@container='box'", Some("box")),
            ("a='1' and @container='box'", Some("box")),
            ("@container>'box'", None),
            ("@container>='box' and @container='box'", Some("box")),
        ] {
            let filter = TagFilter::parse(text, true).unwrap();
            assert_eq!(filter.container(), expected, "{text}");
        }
        let either = TagFilter::parse("a='1' or b='1'", false).unwrap();
        assert_eq!(either.container(), None);
    }

    /// A condition of some hundred comparisons was refused as too long.
    #[test]
    fn long_conditions() {
        let many: Vec<String> = (0..1000).map(|index| format!("tag1 <> 'v{index}'")).collect();
        let filter = TagFilter::parse(&many.join(" and "), false).expect("a thousand comparisons");
        assert!(filter.matches(&vec![("tag1".into(), "val1".into())], None));
        assert!(!filter.matches(&vec![("tag1".into(), "v999".into())], None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ab@\"'=<>() ANDOR]{0,40}", is_search: bool) {
            let _ = TagFilter::parse(&text, is_search);
        }
    }
}
