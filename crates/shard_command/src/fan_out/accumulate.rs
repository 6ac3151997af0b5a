//! Aggregates of the rows of one shard, column by column: pure.

use super::request::{AggregateFunction, Question};
use super::sorted::Ordered;
use shard_backend::{Row, Value};
use shard_router::{Aggregate, AggregateError, Sum};

/// What a shard, or all of them, have of each column that is aggregated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Accumulated {
    parts: Vec<Aggregate<Ordered>>,
}

impl Accumulated {
    /// Of no rows.
    pub(super) fn new(question: &Question) -> Self {
        Accumulated { parts: question.aggregates.iter().map(|_| Aggregate::default()).collect() }
    }

    /// With a row.
    pub(super) fn add(&mut self, question: &Question, row: &Row) -> Result<(), AggregateError> {
        for (part, of) in self.parts.iter_mut().zip(&question.aggregates) {
            let merged = Aggregate::merge([std::mem::take(part), of_row(*of, row)])?;
            *part = merged;
        }
        Ok(())
    }

    /// That of several shards.
    pub(super) fn merge(
        question: &Question,
        shards: impl IntoIterator<Item = Self>,
    ) -> Result<Self, AggregateError> {
        let mut merged = Accumulated::new(question);
        for shard in shards {
            for (part, of) in merged.parts.iter_mut().zip(shard.parts) {
                *part = Aggregate::merge([std::mem::take(part), of])?;
            }
        }
        Ok(merged)
    }

    /// The value of each aggregate, in the order of the question.
    pub(super) fn values(&self, question: &Question) -> Vec<Value> {
        let values = self.parts.iter().zip(&question.aggregates).map(|(part, (function, _))| {
            let value = |ordered: &Option<Ordered>| ordered.as_ref().map_or(Value::Null, |one| one.0.clone());
            match function {
                AggregateFunction::Count => Value::Int64(i64::try_from(part.count).unwrap_or(i64::MAX)),
                AggregateFunction::Sum => match part.sum {
                    None => Value::Null,
                    Some(Sum::Whole(sum)) => Value::Int64(sum),
                    Some(Sum::Double(sum)) => Value::Float64(sum),
                },
                AggregateFunction::Min => value(&part.least),
                AggregateFunction::Max => value(&part.greatest),
                AggregateFunction::Avg => part.mean().map_or(Value::Null, Value::Float64),
            }
        });
        values.collect()
    }
}

/// The aggregate of one row; of NULL it is that of no row.
fn of_row((function, column): (AggregateFunction, Option<usize>), row: &Row) -> Aggregate<Ordered> {
    let Some(column) = column else { return Aggregate { count: 1, ..Aggregate::default() } };
    let value = match row.values.get(column) {
        None | Some(Value::Null) => return Aggregate::default(),
        Some(value) => value,
    };
    let sum = match value {
        Value::Int32(number) => Some(Sum::Whole(i64::from(*number))),
        Value::Int64(number) => Some(Sum::Whole(*number)),
        Value::Float64(number) => Some(Sum::Double(*number)),
        _ => None,
    };
    let ordered = |wanted| (function == wanted).then(|| Ordered(value.clone()));
    Aggregate {
        count: 1,
        sum: sum.filter(|_| matches!(function, AggregateFunction::Sum | AggregateFunction::Avg)),
        least: ordered(AggregateFunction::Min),
        greatest: ordered(AggregateFunction::Max),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::question;
    use super::super::request::{AggregateRequest, FanOutRequest};
    use super::*;

    #[test]
    fn aggregates_of_shards_are_those_of_all_rows() {
        use AggregateFunction::{Avg, Count, Max, Min, Sum};
        let of = |(function, column): (AggregateFunction, &str)| AggregateRequest {
            function,
            column: (column != "*").then(|| column.to_owned()),
        };
        let wanted = [
            (Count, "*"),
            (Count, "state"),
            (Sum, "number"),
            (Sum, "amount"),
            (Min, "state"),
            (Max, "number"),
            (Avg, "amount"),
            (Avg, "number"),
        ];
        let request = FanOutRequest {
            table: "orders".to_owned(),
            aggregates: wanted.into_iter().map(of).collect(),
            ..FanOutRequest::default()
        };
        let question = question(&request).expect("a question");
        let row = |amount: Option<f64>, number: i32, state: Option<&str>| Row {
            values: vec![
                amount.map_or(Value::Null, Value::Float64),
                number.into(),
                state.map_or(Value::Null, Value::from),
                1.into(),
            ],
        };
        let shard = |rows: &[Row]| {
            let mut accumulated = Accumulated::new(&question);
            rows.iter().for_each(|row| accumulated.add(&question, row).expect("it fits"));
            accumulated
        };
        let one = shard(&[row(Some(1.5), 1, Some("new")), row(None, 2, None)]);
        let other = shard(&[row(Some(2.5), 9, Some("done"))]);
        let merged = Accumulated::merge(&question, [one, shard(&[]), other]).expect("it fits");
        let float = Value::Float64;
        let expected = [
            3_i64.into(),
            2_i64.into(),
            12_i64.into(),
            float(4.0),
            "done".into(),
            9.into(),
            float(2.0),
            float(4.0),
        ];
        assert_eq!(merged.values(&question), expected);
        let none = Accumulated::merge(&question, [shard(&[])]).expect("none").values(&question);
        assert_eq!((&none[0], &none[2], &none[7]), (&0_i64.into(), &Value::Null, &Value::Null));
    }
}
