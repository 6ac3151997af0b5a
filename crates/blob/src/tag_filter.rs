//! Expressions over tags: `"k"='v' AND @container='c'` to find blobs, and with `<>`, `OR` and parentheses as a condition.
//!
//! ```text
//! any  = all ("OR" all)*      all = one ("AND" one)*      one = "(" any ")" | name op value
//! name = "double quoted" | word | @container      op = = > >= < <= <>      value = 'single quoted'
//! ```
//!
//! What always holds: any text is an expression or is refused; comparison is by Unicode code point.

use crate::error::BlobError;
use crate::name::Pairs;

/// Parentheses inside each other at most.
const DEPTH_MAX: usize = 16;
/// Bytes of an expression at most.
const SIZE_BYTES_MAX: usize = 8 << 10;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagFilter {
    /// One of them holds.
    Any(Vec<TagFilter>),
    /// All of them hold.
    All(Vec<TagFilter>),
    /// A tag, or `@container`, compares so with a text. A tag that is not there only compares by `<>`.
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
    /// Reads an expression. A search may not use `<>`, `OR` and parentheses; a condition may not name the container.
    pub fn parse(text: &str, is_search: bool) -> Result<TagFilter, BlobError> {
        if text.len() > SIZE_BYTES_MAX {
            return Err(malformed("it is too long"));
        }
        let mut parser = Parser { rest: text, is_search, depth: 0 };
        let filter = parser.any()?;
        parser.skip_blanks();
        if parser.rest.is_empty() { Ok(filter) } else { Err(malformed(parser.rest)) }
    }

    /// Whether it holds for a blob with these tags.
    pub fn matches(&self, tags: &Pairs, container: Option<&str>) -> bool {
        match self {
            TagFilter::Any(parts) => parts.iter().any(|part| part.matches(tags, container)),
            TagFilter::All(parts) => parts.iter().all(|part| part.matches(tags, container)),
            TagFilter::Compare { name, how, value } => {
                let found = match name.as_str() {
                    "@container" => container,
                    name => tags.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()),
                };
                match (found, how) {
                    (None, how) => *how == Comparison::NotEqual,
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

fn malformed(near: &str) -> BlobError {
    BlobError::InvalidTagFilter(near.chars().take(64).collect())
}

struct Parser<'a> {
    rest: &'a str,
    is_search: bool,
    depth: usize,
}

impl Parser<'_> {
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
                return Err(malformed("it is too deep"));
            }
            let inside = self.any()?;
            self.depth -= 1;
            return if self.takes(")") { Ok(inside) } else { Err(malformed(self.rest)) };
        }
        let name = self.name()?;
        let how = self.comparison()?;
        let value = self.quoted('\'')?;
        Ok(TagFilter::Compare { name, how, value })
    }

    fn name(&mut self) -> Result<String, BlobError> {
        self.skip_blanks();
        if self.rest.starts_with('"') {
            return self.quoted('"');
        }
        if self.is_search && self.takes("@container") {
            return Ok("@container".to_owned());
        }
        let end = self.rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(malformed(self.rest));
        }
        self.rest = rest;
        Ok(word.to_owned())
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
        Err(malformed(self.rest))
    }

    fn quoted(&mut self, quote: char) -> Result<String, BlobError> {
        self.skip_blanks();
        let inside = self.rest.strip_prefix(quote).ok_or_else(|| malformed(self.rest))?;
        let end = inside.find(quote).ok_or_else(|| malformed(self.rest))?;
        let text = inside[..end].to_owned();
        self.rest = &inside[end + 1..];
        Ok(text)
    }
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
            ("missing<>'1'", false, Some(true)),
            ("a='5", false, None),
            ("a=5", false, None),
            ("", false, None),
            ("a='5' b", false, None),
            ("@container='box'", false, None),
        ];
        for (text, is_search, expected) in table {
            let found = TagFilter::parse(text, is_search).ok();
            assert_eq!(found.map(|filter| filter.matches(&tags(), Some("box"))), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ab@\"'=<>() ANDOR]{0,40}", is_search: bool) {
            let _ = TagFilter::parse(&text, is_search);
        }
    }
}
