//! What is asked of all shards, and whether a schema can answer it: pure.
//!
//! What always holds: a question that is checked names columns of its table only, and sums numbers only.

use super::sorted::compare;
use shard_backend::{BatchBounds, ColumnKind, Row, Schema, TableSchema, Value};
use shard_map::KeyValue;
use std::cmp::Ordering;

/// Rows of an answer, at most.
pub const FAN_OUT_ROWS_MAX: u32 = 100_000;
/// Rows of each shard that are kept to be sorted by a column that is not their key, at most.
pub const FAN_OUT_SORTED_ROWS_MAX: u32 = 10_000;

/// What is asked, as it is typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FanOutRequest {
    /// The table, which is sharded.
    pub table: String,
    /// The columns that are shown; none: all.
    pub columns: Vec<String>,
    /// Conditions, such as `state=new` or `number>=7`; all must hold.
    pub conditions: Vec<String>,
    /// The column that rows are sorted by; none: the primary key.
    pub order_by: Option<String>,
    /// Whether the greatest comes first.
    pub is_descending: bool,
    /// Rows, at most.
    pub rows_max: u32,
    /// What is computed in place of rows; none: rows.
    pub aggregates: Vec<AggregateRequest>,
}

/// What is computed of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateRequest {
    /// What.
    pub function: AggregateFunction,
    /// Of which column; none: of the rows.
    pub column: Option<String>,
}

/// An aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// How many rows, or values that are not NULL.
    Count,
    /// Their sum.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The mean.
    Avg,
}

impl AggregateFunction {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
            AggregateFunction::Avg => "avg",
        }
    }
}

/// Why a question makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FanOutMistake {
    /// The schema has no such table.
    #[error("the schema has no table `{0}`")]
    NoTable(String),
    /// It is a reference table.
    #[error("`{0}` is a reference table: each shard has all of it")]
    Reference(String),
    /// The table has no such column.
    #[error("table `{0}` has no column `{1}`; it has {2}")]
    NoColumn(String, String, String),
    /// A condition that can't be read.
    #[error("{0:?} is no condition; write COLUMN=VALUE, or another comparison: != < <= > >=")]
    Condition(String),
    /// A value that is none of its column.
    #[error("{text:?}: column `{column}` is {kind}, and the value is none")]
    Value {
        /// The condition.
        text: String,
        /// The column.
        column: String,
        /// Its kind.
        kind: ColumnKind,
    },
    /// A sum of what is no number.
    #[error("column `{0}` is {1}, of which there is no {2}")]
    NoNumber(String, ColumnKind, &'static str),
    /// Too many rows.
    #[error("at most {max} rows are {what}; ask for fewer")]
    Rows {
        /// At most so many.
        max: u32,
        /// What is done with them.
        what: &'static str,
    },
}

/// Whether a comparison holds, by the order of both sides.
type Holds = fn(Ordering) -> bool;

/// A comparison of a column with a value.
#[derive(Clone, Debug)]
struct Condition {
    column: usize,
    holds: Holds,
    value: Value,
}

/// A question that a schema can answer. Columns are by their places in the table.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) table: TableSchema,
    pub(crate) columns: Vec<usize>,
    conditions: Vec<Condition>,
    /// None: by the primary key.
    pub(crate) order_by: Option<usize>,
    pub(crate) is_descending: bool,
    pub(crate) rows_max: u32,
    pub(crate) aggregates: Vec<(AggregateFunction, Option<usize>)>,
    /// How much of a shard is read at once.
    pub(crate) batch: BatchBounds,
}

const COMPARISONS: [(&str, Holds); 6] = [
    ("!=", Ordering::is_ne),
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("=", Ordering::is_eq),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];

impl Question {
    pub(crate) fn of(request: &FanOutRequest, schema: &Schema) -> Result<Self, FanOutMistake> {
        let no_table = || FanOutMistake::NoTable(request.table.clone());
        let table = schema.table(&request.table).ok_or_else(no_table)?.clone();
        if !table.is_sharded() {
            return Err(FanOutMistake::Reference(request.table.clone()));
        }
        let columns: Vec<usize> =
            request.columns.iter().map(|name| column(&table, name)).collect::<Result<_, _>>()?;
        let columns = if columns.is_empty() { (0..table.columns().len()).collect() } else { columns };
        let conditions = request.conditions.iter().map(|text| condition(&table, text));
        let conditions = conditions.collect::<Result<_, _>>()?;
        let aggregates = request.aggregates.iter().map(|of| aggregate(&table, of));
        let aggregates = aggregates.collect::<Result<_, _>>()?;
        let mut order_by = request.order_by.as_ref().map(|name| column(&table, name)).transpose()?;
        if request.is_descending && order_by.is_none() {
            order_by = table.row_key().first().copied();
        }
        let (max, what) = match order_by {
            Some(_) => (FAN_OUT_SORTED_ROWS_MAX, "sorted by a column, or from the last one on"),
            None => (FAN_OUT_ROWS_MAX, "given"),
        };
        if request.rows_max > max {
            return Err(FanOutMistake::Rows { max, what });
        }
        let (is_descending, rows_max) = (request.is_descending, request.rows_max);
        let batch = BatchBounds::default();
        Ok(Question { table, columns, conditions, order_by, is_descending, rows_max, aggregates, batch })
    }

    /// The same with other bounds of a batch.
    pub(crate) fn with_batch(self, batch: BatchBounds) -> Self {
        Question { batch, ..self }
    }

    /// Whether a row is asked for. A comparison with NULL holds never, as in SQL.
    pub(crate) fn wants(&self, row: &Row) -> bool {
        self.conditions.iter().all(|condition| {
            let value = row.values.get(condition.column);
            value.is_some_and(|value| compare(value, &condition.value).is_some_and(condition.holds))
        })
    }

    /// A column's name.
    pub(crate) fn name(&self, column: usize) -> &str {
        self.table.columns().get(column).map_or("", |column| column.name.as_str())
    }

    /// An aggregate's name, such as `sum(amount)`.
    pub(crate) fn aggregate_name(&self, (function, column): &(AggregateFunction, Option<usize>)) -> String {
        let of = column.map_or("*", |column| self.name(column));
        format!("{}({of})", function.name())
    }
}

fn column(table: &TableSchema, name: &str) -> Result<usize, FanOutMistake> {
    let found = table.columns().iter().position(|column| column.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
        FanOutMistake::NoColumn(table.name().to_owned(), name.to_owned(), known.join(", "))
    })
}

/// The first comparison in the text splits it: a value may have further ones.
fn condition(table: &TableSchema, text: &str) -> Result<Condition, FanOutMistake> {
    let places = COMPARISONS.iter().filter_map(|(sign, holds)| Some((text.find(sign)?, *sign, *holds)));
    // Of those at one place the longer one.
    let first = places.min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
    let (at, sign, holds) = first.ok_or_else(|| FanOutMistake::Condition(text.to_owned()))?;
    let (name, value) = (text[..at].trim(), &text[at + sign.len()..]);
    let column = column(table, name)?;
    let kind = table.columns().get(column).map_or(ColumnKind::Text, |column| column.kind);
    let value = value_of(kind, value);
    let none = || FanOutMistake::Value { text: text.to_owned(), column: name.to_owned(), kind };
    Ok(Condition { column, holds, value: value.ok_or_else(none)? })
}

fn value_of(kind: ColumnKind, text: &str) -> Option<Value> {
    match kind {
        ColumnKind::Bool => text.parse().ok().map(Value::Bool),
        ColumnKind::Float64 => text.parse().ok().map(Value::Float64),
        kind => KeyValue::parse(kind.key_kind()?, text).ok().map(Value::from),
    }
}

fn aggregate(
    table: &TableSchema,
    request: &AggregateRequest,
) -> Result<(AggregateFunction, Option<usize>), FanOutMistake> {
    let (function, Some(name)) = (request.function, &request.column) else {
        return Ok((request.function, None));
    };
    let column = column(table, name)?;
    let kind = table.columns().get(column).map_or(ColumnKind::Text, |column| column.kind);
    let is_number = matches!(kind, ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64);
    match function {
        AggregateFunction::Sum | AggregateFunction::Avg if !is_number => {
            Err(FanOutMistake::NoNumber(name.clone(), kind, function.name()))
        }
        _ => Ok((function, Some(column))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const SCHEMA: &str = "map = \"m\"\n[sharded.orders]\nkey = \"tenant\"\n\
        primary_key = [\"tenant\", \"number\"]\n\
        columns = { tenant = \"int32\", number = \"int32\", state = \"text null\", amount = \"float64 null\" }\n\
        [reference.countries]\nprimary_key = \"code\"\ncolumns = { code = \"text\" }";

    pub(crate) fn question(request: &FanOutRequest) -> Result<Question, FanOutMistake> {
        Question::of(request, &Schema::parse(SCHEMA).expect("a schema"))
    }

    fn orders() -> FanOutRequest {
        FanOutRequest { table: "orders".to_owned(), rows_max: 10, ..FanOutRequest::default() }
    }

    #[test]
    fn conditions_compare_values_of_their_columns() {
        // amount, number, state, tenant
        let row = Row { values: vec![Value::Float64(2.5), 7.into(), "a=b".into(), 1.into()] };
        let null = Row { values: vec![Value::Null, 7.into(), Value::Null, 1.into()] };
        for (condition, holds, holds_of_null) in [
            ("number=7", true, true),
            ("number != 7", false, false),
            ("number>=7", true, true),
            ("number>7", false, false),
            ("number<=6", false, false),
            ("number<8", true, true),
            ("state=a=b", true, false),
            ("state!=x", true, false),
            ("amount<2.75", true, false),
        ] {
            let condition = condition.replace(" != ", "!=");
            let request = FanOutRequest { conditions: vec![condition.clone()], ..orders() };
            let question = question(&request).expect("a question");
            assert_eq!((question.wants(&row), question.wants(&null)), (holds, holds_of_null), "{condition}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let with = |change: &dyn Fn(&mut FanOutRequest)| {
            let mut request = orders();
            change(&mut request);
            question(&request).map(drop).expect_err("no sense").to_string()
        };
        let aggregate =
            |function, column: &str| AggregateRequest { function, column: Some(column.to_owned()) };
        assert_eq!(with(&|request| request.table = "x".to_owned()), "the schema has no table `x`");
        assert!(with(&|request| request.table = "countries".to_owned()).contains("reference table"));
        let columns = with(&|request| request.columns = vec!["x".to_owned()]);
        assert_eq!(columns, "table `orders` has no column `x`; it has amount, number, state, tenant");
        assert!(with(&|request| request.conditions = vec!["number".to_owned()]).contains("no condition"));
        assert!(with(&|request| request.conditions = vec!["number=x".to_owned()]).contains("is int32"));
        let sum = with(&|request| request.aggregates = vec![aggregate(AggregateFunction::Sum, "state")]);
        assert_eq!(sum, "column `state` is text, of which there is no sum");
        assert!(with(&|request| request.rows_max = FAN_OUT_ROWS_MAX + 1).contains("100000 rows"));
        let sorted = with(&|request| {
            (request.rows_max, request.is_descending) = (FAN_OUT_SORTED_ROWS_MAX + 1, true);
        });
        assert!(sorted.contains("10000 rows are sorted"), "{sorted}");
    }
}
