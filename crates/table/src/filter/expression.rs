//! What a `$filter` means: a boolean expression over comparisons of a property with a constant.
//!
//! What always holds: `And` and `Or` have two children or more, none of their own kind; `Not` never holds a
//! `Not`.

use crate::edm::EdmValue;

/// A boolean expression. A comparison with a property that the row lacks is false, so each expression is true
/// or false for each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// All must hold.
    And(Vec<Expression>),
    /// One must hold.
    Or(Vec<Expression>),
    /// Must not hold.
    Not(Box<Expression>),
    /// A property against a constant, the property on the left.
    Compare {
        /// Any name; [`super::predicate`] separates keys and Timestamp from own properties.
        property: String,
        /// How.
        operator: Operator,
        /// With what.
        constant: EdmValue,
    },
    /// A property is a text that begins so; false for one that is no text. Only of the extended grammar.
    StartsWith {
        /// Any name, as above.
        property: String,
        /// Perhaps empty.
        prefix: String,
    },
    /// `true` or `false` on its own.
    Constant(bool),
}

/// Which filters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// What the protocol has.
    Protocol,
    /// `startswith(property,'text')` as well.
    Extended,
}

/// How a property is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `eq`
    Equal,
    /// `ne`
    NotEqual,
    /// `lt`
    Less,
    /// `le`
    LessOrEqual,
    /// `gt`
    Greater,
    /// `ge`
    GreaterOrEqual,
}

impl Operator {
    /// The operator that means the same with the sides swapped.
    pub(crate) fn swapped(self) -> Operator {
        match self {
            Operator::Equal | Operator::NotEqual => self,
            Operator::Less => Operator::Greater,
            Operator::LessOrEqual => Operator::GreaterOrEqual,
            Operator::Greater => Operator::Less,
            Operator::GreaterOrEqual => Operator::LessOrEqual,
        }
    }

    /// The operator that holds when this one does not, for values that are always there and ordered.
    pub(crate) fn negated(self) -> Operator {
        match self {
            Operator::Equal => Operator::NotEqual,
            Operator::NotEqual => Operator::Equal,
            Operator::Less => Operator::GreaterOrEqual,
            Operator::LessOrEqual => Operator::Greater,
            Operator::Greater => Operator::LessOrEqual,
            Operator::GreaterOrEqual => Operator::Less,
        }
    }

    /// The name in error texts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operator::Equal => "Equal",
            Operator::NotEqual => "NotEqual",
            Operator::Less => "LessThan",
            Operator::LessOrEqual => "LessThanOrEqual",
            Operator::Greater => "GreaterThan",
            Operator::GreaterOrEqual => "GreaterThanOrEqual",
        }
    }
}

impl Expression {
    /// The conjunction of `terms`, of which there is at least one.
    pub(crate) fn and(terms: Vec<Expression>) -> Expression {
        Self::join(terms, Expression::And, |term| match term {
            Expression::And(inner) => Ok(inner),
            other => Err(other),
        })
    }

    /// The disjunction of `terms`, of which there is at least one.
    pub(crate) fn or(terms: Vec<Expression>) -> Expression {
        Self::join(terms, Expression::Or, |term| match term {
            Expression::Or(inner) => Ok(inner),
            other => Err(other),
        })
    }

    fn join(
        terms: Vec<Expression>,
        kind: fn(Vec<Expression>) -> Expression,
        same_kind: fn(Expression) -> Result<Vec<Expression>, Expression>,
    ) -> Expression {
        let mut flat = Vec::with_capacity(terms.len());
        for term in terms {
            match same_kind(term) {
                // Query builders nest to the left: reusing the longer list keeps this linear.
                Ok(inner) if flat.is_empty() => flat = inner,
                Ok(inner) => flat.extend(inner),
                Err(other) => flat.push(other),
            }
        }
        match flat.len() {
            1 => flat.swap_remove(0),
            _ => kind(flat),
        }
    }

    /// The negation. Every expression is true or false, so two negations cancel.
    pub(crate) fn negated(self) -> Expression {
        match self {
            Expression::Not(inner) => *inner,
            Expression::Constant(value) => Expression::Constant(!value),
            other => Expression::Not(Box::new(other)),
        }
    }

    /// The lower-cased values of `TableName` outside which nothing matches; `None` if any name can. Names
    /// longer than `len_max` bytes belong to no table.
    pub(crate) fn table_names(&self, len_max: usize) -> Option<Vec<String>> {
        match self {
            Expression::Compare { property, operator: Operator::Equal, constant: EdmValue::String(name) }
                if property == "TableName" =>
            {
                let fits = name.len() <= len_max;
                Some(fits.then(|| name.to_ascii_lowercase()).into_iter().collect())
            }
            Expression::And(terms) => {
                (terms.iter()).filter_map(|term| term.table_names(len_max)).min_by_key(Vec::len)
            }
            Expression::Or(terms) => {
                let mut names = Vec::new();
                for term in terms {
                    names.extend(term.table_names(len_max)?);
                }
                names.sort();
                names.dedup();
                Some(names)
            }
            _ => None,
        }
    }
}
