//! The expressions of queries over a blob's content: a small part of SQL.
//!
//! ```text
//! query    = SELECT (* | COUNT(*) | column [AS name] (, column [AS name])*) FROM BlobStorage [[AS] alias]
//!            [WHERE condition] [LIMIT number] [;]
//! column   = [BlobStorage. | alias.] (name | "name" | [name] | _1)         _1 is the first column
//! condition = comparisons with = <> != < <= > >= , IS [NOT] NULL, [NOT] LIKE, joined by NOT, AND, OR and parentheses
//! ```
//!
//! A value is a number if what it is compared with is one, else a text. What always holds: any text is a query or is
//! refused, and the work is bounded by [`EXPRESSION_SIZE_BYTES_MAX`].

use std::cmp::Ordering;

/// Bytes of an expression at most.
pub(super) const EXPRESSION_SIZE_BYTES_MAX: usize = 256 << 10;
/// Parentheses and negations inside each other at most.
const DEPTH_MAX: usize = 64;

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadExpression(pub(super) String);

/// What is selected.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Selected {
    /// Records as they are.
    All,
    /// How many there are.
    Count,
    /// These columns under these names.
    Columns(Vec<(String, String)>),
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    pub(super) selected: Selected,
    pub(super) condition: Option<Condition>,
    pub(super) limit: Option<u64>,
}

/// A condition on a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Compare(Operand, Comparison, Operand),
    Like(Operand, String),
    IsNull(Operand),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Column(String),
    Text(String),
    Number(f64),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Differs,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering == Ordering::Equal,
            Comparison::Differs => ordering != Ordering::Equal,
            Comparison::Less => ordering == Ordering::Less,
            Comparison::AtMost => ordering != Ordering::Greater,
            Comparison::More => ordering == Ordering::Greater,
            Comparison::AtLeast => ordering != Ordering::Less,
        }
    }
}

/// A value that a record has for a column, or that stands in the expression.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Number(f64),
}

impl Condition {
    /// Whether it holds; `column` tells a record's values. A comparison with what is missing never does.
    pub(super) fn holds(&self, column: &impl Fn(&str) -> Option<String>) -> bool {
        let value = |operand: &Operand| match operand {
            Operand::Column(name) => column(name).map(Value::Text),
            Operand::Text(text) => Some(Value::Text(text.clone())),
            Operand::Number(number) => Some(Value::Number(*number)),
        };
        match self {
            Condition::Not(inner) => !inner.holds(column),
            Condition::And(a, b) => a.holds(column) && b.holds(column),
            Condition::Or(a, b) => a.holds(column) || b.holds(column),
            Condition::IsNull(operand) => value(operand).is_none(),
            Condition::Like(operand, pattern) => match value(operand) {
                Some(Value::Text(text)) => is_like(text.as_bytes(), pattern.as_bytes()),
                _ => false,
            },
            Condition::Compare(a, comparison, b) => {
                let ordering = match (value(a), value(b)) {
                    (Some(Value::Number(a)), Some(Value::Number(b))) => a.partial_cmp(&b),
                    (Some(Value::Text(a)), Some(Value::Number(b))) => {
                        number(&a).and_then(|a| a.partial_cmp(&b))
                    }
                    (Some(Value::Number(a)), Some(Value::Text(b))) => {
                        number(&b).and_then(|b| a.partial_cmp(&b))
                    }
                    (Some(Value::Text(a)), Some(Value::Text(b))) => Some(a.cmp(&b)),
                    _ => None,
                };
                ordering.is_some_and(|ordering| comparison.holds(ordering))
            }
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// `%` stands for any bytes, `_` for one. The place after the last `%` is the only one to come back to.
fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut in_pattern, mut back) = (0, 0, None);
    while at < text.len() {
        match pattern.get(in_pattern) {
            Some(b'%') => {
                back = Some((at, in_pattern));
                in_pattern += 1;
            }
            Some(byte) if *byte == b'_' || *byte == text[at] => {
                at += 1;
                in_pattern += 1;
            }
            _ => match back {
                Some((from, percent)) => {
                    back = Some((from + 1, percent));
                    (at, in_pattern) = (from + 1, percent + 1);
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|byte| *byte == b'%')
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A bare word, which may be a keyword.
    Word(String),
    /// A name in quotes or brackets.
    Name(String),
    Text(String),
    Number(f64),
    Sign(&'static str),
    End,
}

/// Signs, longest first.
const SIGNS: [&str; 13] = ["<>", "!=", "<=", ">=", "<", ">", "=", "(", ")", ",", "*", ".", ";"];

fn tokens(text: &str) -> Result<Vec<Token>, BadExpression> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let closing = match first {
            '\'' | '"' => Some(first),
            '[' => Some(']'),
            _ => None,
        };
        let size = if let Some(closing) = closing {
            let (content, size) = quoted(rest, closing)?;
            tokens.push(if first == '\'' { Token::Text(content) } else { Token::Name(content) });
            size
        } else if first.is_alphabetic() || first == '_' {
            let size = rest.find(|char: char| !(char.is_alphanumeric() || char == '_')).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..size].to_owned()));
            size
        } else if first.is_ascii_digit() || first == '-' {
            let is_part = |char: char| char.is_ascii_alphanumeric() || char == '.';
            let size = 1 + rest[1..].find(|char| !is_part(char)).unwrap_or(rest.len() - 1);
            let number = rest[..size].parse().map_err(|_| near(rest))?;
            tokens.push(Token::Number(number));
            size
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign)).ok_or_else(|| near(rest))?;
            tokens.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[size..].trim_start();
    }
    tokens.push(Token::End);
    Ok(tokens)
}

fn near(rest: &str) -> BadExpression {
    let part: String = rest.chars().take(20).collect();
    BadExpression(format!("The query expression can't be read near '{part}'."))
}

/// What stands between quotes, where a doubled one stands for itself; and how many bytes that is.
fn quoted(rest: &str, closing: char) -> Result<(String, usize), BadExpression> {
    let mut content = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        if char != closing {
            content.push(char);
        } else if chars.peek().is_some_and(|(_, next)| *next == closing) {
            content.push(char);
            chars.next();
        } else {
            return Ok((content, at + char.len_utf8()));
        }
    }
    Err(near(rest))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// Names that may stand before a column.
    tables: Vec<String>,
    depth: usize,
}

impl Query {
    /// Reads an expression.
    pub(super) fn parse(text: &str) -> Result<Self, BadExpression> {
        if text.len() > EXPRESSION_SIZE_BYTES_MAX {
            return Err(BadExpression("The query expression is too long.".to_owned()));
        }
        let mut parser =
            Parser { tokens: tokens(text)?, at: 0, tables: vec!["BlobStorage".to_owned()], depth: 0 };
        // The alias that comes after the columns may stand before them.
        let from = parser.tokens.iter().position(|token| is_word(token, "FROM"));
        if let Some(from) = from {
            let skipped =
                if parser.tokens.get(from + 2).is_some_and(|token| is_word(token, "AS")) { 3 } else { 2 };
            if let Some(Token::Word(alias)) = parser.tokens.get(from + skipped)
                && !["WHERE", "LIMIT"].iter().any(|word| alias.eq_ignore_ascii_case(word))
            {
                parser.tables.push(alias.clone());
            }
        }
        parser.query()
    }
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(text) if text.eq_ignore_ascii_case(word))
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn unexpected<T>(&self) -> Result<T, BadExpression> {
        Err(BadExpression(format!("The query expression has an unexpected {:?}.", self.peek())))
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = is_word(self.peek(), word);
        self.at += usize::from(found);
        found
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn must(&mut self, found: bool) -> Result<(), BadExpression> {
        if found { Ok(()) } else { self.unexpected() }
    }

    fn query(&mut self) -> Result<Query, BadExpression> {
        let found = self.takes("SELECT");
        self.must(found)?;
        let selected = self.selected()?;
        let found = self.takes("FROM") && self.takes("BlobStorage");
        self.must(found)?;
        self.takes("AS");
        if self.tables.len() > 1 {
            self.at += 1;
        }
        let condition = if self.takes("WHERE") { Some(self.any_of()?) } else { None };
        let limit = match self.takes("LIMIT") {
            false => None,
            true => match self.next() {
                Token::Number(number) if number >= 0.0 && number.fract() == 0.0 => Some(number as u64),
                _ => return self.unexpected(),
            },
        };
        self.takes_sign(";");
        match self.peek() {
            Token::End => Ok(Query { selected, condition, limit }),
            _ => self.unexpected(),
        }
    }

    fn selected(&mut self) -> Result<Selected, BadExpression> {
        if self.takes_sign("*") {
            return Ok(Selected::All);
        }
        if self.takes("COUNT") {
            let found = self.takes_sign("(") && self.takes_sign("*") && self.takes_sign(")");
            return self.must(found).map(|()| Selected::Count);
        }
        let mut columns = Vec::new();
        loop {
            let column = self.column()?;
            let mut name = column.clone();
            if self.takes("AS") {
                name = match self.next() {
                    Token::Word(name) | Token::Name(name) => name,
                    _ => return self.unexpected(),
                };
            }
            columns.push((column, name));
            if !self.takes_sign(",") {
                return Ok(Selected::Columns(columns));
            }
        }
    }

    fn column(&mut self) -> Result<String, BadExpression> {
        match self.next() {
            Token::Word(word) => {
                let is_table = self.tables.iter().any(|table| table.eq_ignore_ascii_case(&word));
                if is_table && self.takes_sign(".") { self.column() } else { Ok(word) }
            }
            Token::Name(name) => Ok(name),
            _ => self.unexpected(),
        }
    }

    fn any_of(&mut self) -> Result<Condition, BadExpression> {
        let mut condition = self.all_of()?;
        while self.takes("OR") {
            condition = Condition::Or(Box::new(condition), Box::new(self.all_of()?));
        }
        Ok(condition)
    }

    fn all_of(&mut self) -> Result<Condition, BadExpression> {
        let mut condition = self.one()?;
        while self.takes("AND") {
            condition = Condition::And(Box::new(condition), Box::new(self.one()?));
        }
        Ok(condition)
    }

    fn one(&mut self) -> Result<Condition, BadExpression> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(BadExpression("The query expression is too deep.".to_owned()));
        }
        let condition = self.one_inside();
        self.depth -= 1;
        condition
    }

    fn one_inside(&mut self) -> Result<Condition, BadExpression> {
        if self.takes("NOT") {
            return Ok(Condition::Not(Box::new(self.one()?)));
        }
        if self.takes_sign("(") {
            let inside = self.any_of()?;
            let found = self.takes_sign(")");
            return self.must(found).map(|()| inside);
        }
        let left = self.operand()?;
        if self.takes("IS") {
            let negated = self.takes("NOT");
            let found = self.takes("NULL");
            self.must(found)?;
            let is_null = Condition::IsNull(left);
            return Ok(if negated { Condition::Not(Box::new(is_null)) } else { is_null });
        }
        let negated = self.takes("NOT");
        if self.takes("LIKE") {
            let Token::Text(pattern) = self.next() else { return self.unexpected() };
            let like = Condition::Like(left, pattern);
            return Ok(if negated { Condition::Not(Box::new(like)) } else { like });
        }
        self.must(!negated)?;
        let comparison = match self.next() {
            Token::Sign("=") => Comparison::Equal,
            Token::Sign("<>" | "!=") => Comparison::Differs,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::AtMost,
            Token::Sign(">") => Comparison::More,
            Token::Sign(">=") => Comparison::AtLeast,
            _ => return self.unexpected(),
        };
        Ok(Condition::Compare(left, comparison, self.operand()?))
    }

    fn operand(&mut self) -> Result<Operand, BadExpression> {
        match self.peek() {
            Token::Text(text) => {
                let text = text.clone();
                self.at += 1;
                Ok(Operand::Text(text))
            }
            Token::Number(number) => {
                let number = *number;
                self.at += 1;
                Ok(Operand::Number(number))
            }
            _ => self.column().map(Operand::Column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(condition: &str) -> bool {
        let query = Query::parse(&format!("select * from BlobStorage s where {condition}")).unwrap();
        let column = |name: &str| match name {
            "_1" | "id" => Some("300".to_owned()),
            "name" => Some("o'wner".to_owned()),
            _ => None,
        };
        query.condition.unwrap().holds(&column)
    }

    #[test]
    fn conditions() {
        for yes in [
            "_1 > 250",
            "_1 > 29 and id = 300.0",
            "'4' > _1",
            "name = 'o''wner'",
            "s.name like 'o%r' and BlobStorage.[name] like '_''%'",
            "not (id < 5 or id <> 300)",
            "other is null and id is not null",
            "name not like '%x%' or other = 1",
            "id >= 300 and id <= 300 and id != 1",
            "-5 < id",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in ["_1 > 300", "other = 'x'", "other <> 'x'", "name > 5", "name like 'o'", "id is null"] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn selections() {
        let columns = |list: &[(&str, &str)]| {
            Selected::Columns(list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
        };
        for (text, selected, limit) in [
            ("SELECT * from BlobStorage", Selected::All, None),
            ("select count(*) from blobstorage;", Selected::Count, None),
            (
                "SELECT _2, s.name AS n FROM BlobStorage AS s LIMIT 3",
                columns(&[("_2", "_2"), ("name", "n")]),
                Some(3),
            ),
            ("SELECT \"a b\" FROM BlobStorage", columns(&[("a b", "a b")]), None),
        ] {
            let query = Query::parse(text).unwrap();
            assert_eq!((query.selected, query.limit), (selected, limit), "{text}");
        }
        for bad in [
            "",
            "SELECT",
            "SELECT * FROM Other",
            "SELECT * FROM BlobStorage WHERE",
            "SELECT * FROM BlobStorage WHERE a",
            "SELECT * FROM BlobStorage WHERE a = 'b",
            "SELECT * FROM BlobStorage LIMIT 1.5",
            "SELECT * FROM BlobStorage s t",
            "DELETE FROM BlobStorage",
        ] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
        let deep = format!("SELECT * FROM BlobStorage WHERE {}a = 1", "(".repeat(100_000));
        assert!(Query::parse(&deep).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_is_refused(text in "(?i)(SELECT|FROM|BlobStorage|WHERE|[a_*,()='\"<>é. 1-]){0,24}") {
            let _ = Query::parse(&text);
        }
    }
}
