//! Parses a filter's tokens into an expression, with an explicit stack of open parentheses: a deep filter
//! must not need a deep call stack.
//!
//! ```text
//! or   = and ('or' and)*
//! and  = not ('and' not)*
//! not  = 'not'* unit (operator unit)?
//! unit = '(' or ')' | property | literal | call
//! call = 'startswith' '(' property ',' text ')'      in the extended grammar
//! ```
//!
//! One side of a comparison is a property and the other a constant; a property on its own stands for
//! `property eq true`. What always holds: work is bounded by [`FILTER_BYTES_MAX`], the result by
//! [`FILTER_COMPARISONS_MAX`] and [`FILTER_DEPTH_MAX`].

use super::bounds::{FILTER_BYTES_MAX, FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};
use super::error::FilterError;
use super::expression::{Expression, Grammar, Operator};
use super::lexer::{Lexer, Token};
use crate::edm::EdmValue;
use base::Ticks;

/// Parses a filter; `None` if it is empty.
pub(crate) fn parse(text: &str, grammar: Grammar) -> Result<Option<Expression>, FilterError> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(too_complex("it is too long"));
    }
    let mut parser = Parser::open(text, grammar)?;
    if parser.token == Token::End {
        return Ok(None);
    }
    let part = parser.whole()?;
    parser.boolean(part).map(Some)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token, and the byte offset where it starts.
    token: Token<'a>,
    at: usize,
    comparisons: usize,
    grammar: Grammar,
}

/// The function of the extended grammar.
const STARTS_WITH: &str = "startswith";

/// A stack frame: what has been parsed since a parenthesis was opened.
#[derive(Default)]
struct Frame<'a> {
    /// Terms of `or` that are complete.
    any: Vec<Expression>,
    /// Terms of `and` since the last `or`.
    all: Vec<Expression>,
    /// How many `not` stand before the present term.
    negations: usize,
    /// Left side and operator of a comparison whose right side is to come, and the operator's byte offset.
    left: Option<(Part<'a>, Operator, usize)>,
}

/// A part of a filter that is not yet known to be a side of a comparison or an expression of its own. The
/// numbers are byte offsets for errors.
enum Part<'a> {
    Property(&'a str),
    Literal(EdmValue, usize),
    EarlyDateTime(usize),
    Null(usize),
    Expression(Expression),
}

impl<'a> Parser<'a> {
    fn open(text: &'a str, grammar: Grammar) -> Result<Self, FilterError> {
        let mut lexer = Lexer::new(text, grammar);
        let (at, token) = lexer.next()?;
        Ok(Parser { lexer, token, at, comparisons: 0, grammar })
    }

    /// Returns the present token and advances to the next.
    fn take(&mut self) -> Result<Token<'a>, FilterError> {
        let (at, next) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn unexpected(&self) -> FilterError {
        self.lexer.error_at(self.at)
    }

    /// Reads all tokens.
    fn whole(&mut self) -> Result<Part<'a>, FilterError> {
        let mut outer: Vec<Frame<'a>> = Vec::new();
        let mut open = Frame::default();
        loop {
            while self.token == Token::Not && open.left.is_none() {
                self.take()?;
                open.negations += 1;
            }
            if self.token == Token::Open {
                self.take()?;
                outer.push(std::mem::take(&mut open));
                if outer.len() > FILTER_DEPTH_MAX {
                    return Err(too_complex("it is nested too deeply"));
                }
                continue;
            }
            let mut part = self.operand()?;
            // A complete part closes as many parentheses as follow it.
            while let Some(whole) = self.follow(part, &mut open)? {
                let Some(before) = outer.pop() else {
                    return if self.token == Token::End { Ok(whole) } else { Err(self.unexpected()) };
                };
                if self.token != Token::Close {
                    return Err(self.unexpected());
                }
                self.take()?;
                open = before;
                part = whole;
            }
        }
    }

    fn operand(&mut self) -> Result<Part<'a>, FilterError> {
        let at = self.at;
        let is_operand = matches!(
            self.token,
            Token::Identifier(_) | Token::Literal(_) | Token::EarlyDateTime | Token::Null
        );
        if !is_operand {
            return Err(self.unexpected());
        }
        Ok(match self.take()? {
            // A property may have this name, too.
            Token::Identifier(STARTS_WITH)
                if self.grammar == Grammar::Extended && self.token == Token::Open =>
            {
                Part::Expression(self.call()?)
            }
            Token::Identifier(name) => Part::Property(name),
            Token::Literal(value) => Part::Literal(value, at),
            Token::EarlyDateTime => Part::EarlyDateTime(at),
            _ => Part::Null(at),
        })
    }

    /// The rest of a call, from its parenthesis on.
    fn call(&mut self) -> Result<Expression, FilterError> {
        self.take()?;
        let property = match self.token {
            // It is a time for every entity.
            Token::Identifier("Timestamp") => return Err(self.no_call()),
            Token::Identifier(name) => name.to_owned(),
            _ => return Err(self.no_call()),
        };
        self.take()?;
        self.take_of_call(&Token::Comma)?;
        let Token::Literal(EdmValue::String(prefix)) = &mut self.token else { return Err(self.no_call()) };
        let prefix = std::mem::take(prefix);
        self.take()?;
        self.take_of_call(&Token::Close)?;
        self.count_comparison()?;
        Ok(Expression::StartsWith { property, prefix })
    }

    fn take_of_call(&mut self, expected: &Token<'_>) -> Result<(), FilterError> {
        if self.token != *expected {
            return Err(self.no_call());
        }
        self.take().map(drop)
    }

    fn no_call(&self) -> FilterError {
        let position = self.lexer.position(self.at);
        let message = format!(
            "startswith takes the name of a property and a text in quotes, as in startswith(RowKey,'a'); something else is \
             at position {position}."
        );
        FilterError::Call { position, message }
    }

    /// Adds a part to the open frame. `None`: an operator followed, and another part must come. Otherwise the
    /// frame is complete, and is returned as one part.
    fn follow(&mut self, part: Part<'a>, open: &mut Frame<'a>) -> Result<Option<Part<'a>>, FilterError> {
        let part = match (open.left.take(), &self.token) {
            (Some((left, operator, at)), _) => {
                self.compare(left, (operator, at), part).map(Part::Expression)?
            }
            (None, Token::Operator(operator)) => {
                open.left = Some((part, *operator, self.at));
                self.take()?;
                return Ok(None);
            }
            (None, _) => part,
        };
        let part = match std::mem::take(&mut open.negations) {
            0 => part,
            negations => {
                let expression = self.boolean(part)?;
                Part::Expression(match negations % 2 {
                    0 => expression,
                    _ => expression.negated(),
                })
            }
        };
        match self.token {
            Token::And => open.all.push(self.boolean(part)?),
            Token::Or => {
                open.all.push(self.boolean(part)?);
                open.any.push(Expression::and(std::mem::take(&mut open.all)));
            }
            _ if open.any.is_empty() && open.all.is_empty() => return Ok(Some(part)),
            _ => {
                open.all.push(self.boolean(part)?);
                open.any.push(Expression::and(std::mem::take(&mut open.all)));
                return Ok(Some(Part::Expression(Expression::or(std::mem::take(&mut open.any)))));
            }
        }
        self.take()?;
        Ok(None)
    }

    fn compare(
        &mut self,
        left: Part<'a>,
        (operator, at): (Operator, usize),
        right: Part<'a>,
    ) -> Result<Expression, FilterError> {
        let position = || self.lexer.position(at);
        let (property, operator, constant) = match (left, right) {
            (Part::Null(_), _) | (_, Part::Null(_)) => return Err(null_comparison(operator, position())),
            (Part::Property(property), Part::Literal(constant, _)) => (property, operator, constant),
            (Part::Literal(constant, _), Part::Property(property)) => {
                (property, operator.swapped(), constant)
            }
            (Part::Property(property), Part::EarlyDateTime(_)) => {
                return self.comparison_with_early(property, operator);
            }
            (Part::EarlyDateTime(_), Part::Property(property)) => {
                return self.comparison_with_early(property, operator.swapped());
            }
            _ => return Err(FilterError::NotImplemented { position: position() }),
        };
        self.comparison_of(property, operator, constant)
    }

    /// A comparison with a date-time before all that can be stored: stored date-times are greater, values of
    /// other types less. A comparison with the first one that can be stored distinguishes the two.
    fn comparison_with_early(
        &mut self,
        property: &str,
        operator: Operator,
    ) -> Result<Expression, FilterError> {
        let mut with_first = |operator| self.comparison_of(property, operator, EdmValue::DateTime(Ticks(0)));
        Ok(match operator {
            Operator::Equal => Expression::Constant(false),
            // A property that exists is less than the first one, equal to it or greater.
            Operator::NotEqual => {
                Expression::or(vec![with_first(Operator::Less)?, with_first(Operator::GreaterOrEqual)?])
            }
            Operator::Less | Operator::LessOrEqual => with_first(Operator::Less)?,
            Operator::Greater | Operator::GreaterOrEqual => with_first(Operator::GreaterOrEqual)?,
        })
    }

    fn comparison_of(
        &mut self,
        property: &str,
        operator: Operator,
        constant: EdmValue,
    ) -> Result<Expression, FilterError> {
        self.count_comparison()?;
        Ok(Expression::Compare { property: property.to_owned(), operator, constant })
    }

    fn count_comparison(&mut self) -> Result<(), FilterError> {
        self.comparisons += 1;
        match self.comparisons > FILTER_COMPARISONS_MAX {
            true => Err(too_complex("it has too many comparisons")),
            false => Ok(()),
        }
    }

    /// The part as an expression of its own.
    fn boolean(&mut self, part: Part<'a>) -> Result<Expression, FilterError> {
        match part {
            Part::Expression(expression) => Ok(expression),
            Part::Property("PartitionKey" | "RowKey" | "Timestamp") => Err(self.unexpected()),
            Part::Property(property) => {
                self.comparison_of(property, Operator::Equal, EdmValue::Boolean(true))
            }
            Part::Literal(EdmValue::Boolean(value), _) => Ok(Expression::Constant(value)),
            Part::Literal(_, at) | Part::EarlyDateTime(at) | Part::Null(at) => Err(self.lexer.error_at(at)),
        }
    }
}

fn too_complex(what: &str) -> FilterError {
    FilterError::TooComplex(format!("The filter is too complex: {what}."))
}

fn null_comparison(operator: Operator, position: usize) -> FilterError {
    let message = match operator {
        Operator::Equal | Operator::NotEqual => "One of the request inputs is not valid.".to_owned(),
        _ => format!(
            "The operator '{}' is not supported for the 'null' literal; only equality checks are supported.",
            operator.name()
        ),
    };
    FilterError::Null { position, message }
}
