//! A `$filter` as tokens.
//!
//! Keywords and operators are lower-case. `true`, `false` and the prefixes of literals are taken in any case,
//! because clients write them so. Blanks separate, and may be left out where no two words would run together.

use super::error::FilterError;
use super::expression::{Grammar, Operator};
use crate::edm::{DateTimeError, EdmType, EdmValue, parse_date_time, parse_guid, parse_hex};
use crate::name::{continues_identifier, starts_identifier};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// The name of a property.
    Identifier(&'a str),
    /// A constant.
    Literal(EdmValue),
    /// A date-time before 1601, and so before all that can be stored.
    EarlyDateTime,
    /// `null`
    Null,
    /// A comparison.
    Operator(Operator),
    /// `and`
    And,
    /// `or`
    Or,
    /// `not`
    Not,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`, in the extended grammar only.
    Comma,
    /// Nothing more.
    End,
}

/// Cuts tokens off a filter's text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Byte offset of the unread rest.
    at: usize,
    grammar: Grammar,
}

impl<'a> Lexer<'a> {
    /// Over a filter.
    pub(crate) fn new(text: &'a str, grammar: Grammar) -> Self {
        Lexer { text, at: 0, grammar }
    }

    /// A syntax error at byte offset `at`.
    pub(crate) fn error_at(&self, at: usize) -> FilterError {
        FilterError::Syntax { position: self.position(at), text: self.text.to_owned() }
    }

    /// A byte offset in UTF-16 units.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.text.get(..at).map_or(at, |before| before.encode_utf16().count())
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token and the byte offset where it starts.
    pub(crate) fn next(&mut self) -> Result<(usize, Token<'a>), FilterError> {
        let rest = self.rest().trim_start_matches([' ', '\t', '\r', '\n']);
        self.at = self.text.len() - rest.len();
        let start = self.at;
        let token = match rest.bytes().next() {
            None => Token::End,
            Some(b'(') => {
                self.at += 1;
                Token::Open
            }
            Some(b')') => {
                self.at += 1;
                Token::Close
            }
            Some(b',') if self.grammar == Grammar::Extended => {
                self.at += 1;
                Token::Comma
            }
            Some(b'\'') => Token::Literal(EdmValue::String(self.quoted(start)?)),
            Some(b'0'..=b'9' | b'-' | b'+') => Token::Literal(self.number()?),
            Some(_) => self.word()?,
        };
        Ok((start, token))
    }

    /// Text in quotes, in which a quote is doubled. `start` is where the token starts.
    fn quoted(&mut self, start: usize) -> Result<String, FilterError> {
        let mut out = String::new();
        let mut rest = self.rest().strip_prefix('\'').unwrap_or_default();
        loop {
            let Some(end) = rest.find('\'') else {
                return Err(self.error_at(start));
            };
            out.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('\'') {
                Some(after) => {
                    out.push('\'');
                    rest = after;
                }
                None => break,
            }
        }
        self.at = self.text.len() - rest.len();
        Ok(out)
    }

    fn word(&mut self) -> Result<Token<'a>, FilterError> {
        let rest = self.rest();
        let start = self.at;
        if !rest.starts_with(starts_identifier) {
            return Err(self.error_at(start));
        }
        let len = rest.find(|character| !continues_identifier(character)).unwrap_or(rest.len());
        let word = &rest[..len];
        self.at += len;
        if rest[len..].starts_with('\'')
            && let Some(edm_type) = literal_prefix(word)
        {
            return self.prefixed(start, edm_type);
        }
        Ok(match word {
            "and" => Token::And,
            "or" => Token::Or,
            "not" => Token::Not,
            "null" => Token::Null,
            "eq" => Token::Operator(Operator::Equal),
            "ne" => Token::Operator(Operator::NotEqual),
            "lt" => Token::Operator(Operator::Less),
            "le" => Token::Operator(Operator::LessOrEqual),
            "gt" => Token::Operator(Operator::Greater),
            "ge" => Token::Operator(Operator::GreaterOrEqual),
            "NaN" => Token::Literal(EdmValue::Double(f64::NAN)),
            "INF" | "Infinity" => Token::Literal(EdmValue::Double(f64::INFINITY)),
            _ if word.eq_ignore_ascii_case("true") => Token::Literal(EdmValue::Boolean(true)),
            _ if word.eq_ignore_ascii_case("false") => Token::Literal(EdmValue::Boolean(false)),
            _ if self.rest().starts_with('\'') => return Err(self.error_at(self.at)),
            _ => Token::Identifier(word),
        })
    }

    /// A literal of the form `word'text'`, after the word.
    fn prefixed(&mut self, start: usize, edm_type: EdmType) -> Result<Token<'a>, FilterError> {
        let text = self.quoted(start)?;
        let value = match edm_type {
            EdmType::DateTime => match parse_date_time(&text) {
                Err(DateTimeError::TooEarly) => return Ok(Token::EarlyDateTime),
                read => read.ok().map(EdmValue::DateTime),
            },
            EdmType::Guid => parse_guid(&text).map(EdmValue::Guid),
            _ => parse_hex(&text).map(EdmValue::Binary),
        };
        match value {
            Some(value) => Ok(Token::Literal(value)),
            None => Err(self.literal_error(edm_type, start)),
        }
    }

    /// The literal from `start` to here can't be of its type.
    fn literal_error(&self, edm_type: EdmType, start: usize) -> FilterError {
        let name = edm_type.name();
        let literal = self.text.get(start..self.at).unwrap_or_default();
        let position = self.position(start);
        let message =
            format!("Unrecognized '{name}' literal '{literal}' at '{position}' in '{}'.", self.text);
        FilterError::Literal { position, message }
    }

    fn number(&mut self) -> Result<EdmValue, FilterError> {
        let start = self.at;
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix('-') {
            for name in ["INF", "Infinity"] {
                if after.starts_with(name) && !after[name.len()..].starts_with(continues_identifier) {
                    self.at += 1 + name.len();
                    return Ok(EdmValue::Double(f64::NEG_INFINITY));
                }
            }
        }
        let (len, whole) = number_len(rest.as_bytes()).ok_or_else(|| self.error_at(start))?;
        let digits = &rest[..len];
        self.at += len;
        let suffix = self.rest().bytes().next();
        let (edm_type, suffix_len) = match suffix {
            Some(b'l' | b'L') if whole => (EdmType::Int64, 1),
            Some(b'd' | b'D' | b'f' | b'F') => (EdmType::Double, 1),
            _ if whole => (EdmType::Int32, 0),
            _ => (EdmType::Double, 0),
        };
        self.at += suffix_len;
        if self.rest().starts_with(continues_identifier) || self.rest().starts_with('\'') {
            return Err(self.error_at(start));
        }
        let value = match edm_type {
            EdmType::Int64 => digits.parse().ok().map(EdmValue::Int64),
            EdmType::Int32 => digits.parse().ok().map(EdmValue::Int32),
            _ => {
                let double = digits.parse().ok().filter(|value: &f64| value.is_finite());
                double.map(EdmValue::Double)
            }
        };
        value.ok_or_else(|| self.literal_error(edm_type, start))
    }
}

/// The type of a literal that `word` introduces, if it stands right before a quote.
fn literal_prefix(word: &str) -> Option<EdmType> {
    let is = |prefix: &str| word.eq_ignore_ascii_case(prefix);
    if is("datetime") {
        Some(EdmType::DateTime)
    } else if is("guid") {
        Some(EdmType::Guid)
    } else if is("X") || is("binary") {
        Some(EdmType::Binary)
    } else {
        None
    }
}

/// How many bytes a number takes at the front of `text`, and whether it has neither fraction nor exponent.
fn number_len(text: &[u8]) -> Option<(usize, bool)> {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let signed = |at: usize| usize::from(matches!(text.get(at), Some(b'-' | b'+')));
    let mut at = signed(0);
    let whole_digits = digits(at);
    if whole_digits == 0 {
        return None;
    }
    at += whole_digits;
    let mut whole = true;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
        whole = false;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = signed(at + 1);
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
        whole = false;
    }
    Some((at, whole))
}
