//! A sample of keys: lines of CSV (a column each, quotes as usual) or of JSON (a value, or a list).
//!
//! What always holds: a sample has [`SAMPLE_KEYS_MAX`] keys at most; a line that is no key is named.

use crate::keys::key_of;
use serde_json::Value;
use shard_map::{KeyType, KeyValue};

/// Keys of a sample, at most; the rest is not read.
pub(crate) const SAMPLE_KEYS_MAX: usize = 1_000_000;

/// Keys in the order in which they were written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The keys.
    pub keys: Vec<Vec<KeyValue>>,
}

/// A line that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the sample: {what}")]
pub struct SampleError {
    line: usize,
    what: String,
}

impl Sample {
    /// Reads a sample. Lines that begin with `[`, `"` and end alike, or are numbers, are read as JSON first.
    pub fn parse(text: &str, key: &KeyType) -> Result<Self, SampleError> {
        let mut keys = Vec::new();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (index, line) in lines.take(SAMPLE_KEYS_MAX) {
            let wrong = |what: String| SampleError { line: index + 1, what };
            let texts = json_texts(line).or_else(|| csv_texts(line));
            let texts = texts.ok_or_else(|| wrong("it is neither CSV nor JSON".to_owned()))?;
            if texts.len() != key.kinds().len() {
                return Err(wrong(format!("it has {} columns, and the key is {key}", texts.len())));
            }
            keys.push(key_of(key, &texts).map_err(|error| wrong(error.to_string()))?);
        }
        Ok(Sample { keys })
    }
}

fn json_texts(line: &str) -> Option<Vec<String>> {
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match serde_json::from_str(line).ok()? {
        Value::Array(values) => values.into_iter().map(text).collect(),
        one => text(one).map(|text| vec![text]),
    }
}

/// The columns of a line; none if a quote does not end.
fn csv_texts(line: &str) -> Option<Vec<String>> {
    let mut columns = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(one) = characters.next() {
        let column = columns.last_mut()?;
        match one {
            '"' if is_quoted && characters.peek() == Some(&'"') => column.extend(characters.next()),
            '"' if is_quoted || column.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => columns.push(String::new()),
            other => column.push(other),
        }
    }
    (!is_quoted).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::KeyKind;

    #[test]
    fn lines_of_both_forms_are_keys() {
        let key = KeyType::new([KeyKind::Text, KeyKind::Int64]).expect("a type");
        let text = "eu,1\n\"a,\"\"b\"\"\",2\n[\"us\", 3]\n[\"us\", \"4\"]\n\n";
        let sample = Sample::parse(text, &key).expect("a sample");
        let expected: [(&str, i64); 4] = [("eu", 1), ("a,\"b\"", 2), ("us", 3), ("us", 4)];
        let expected: Vec<Vec<KeyValue>> =
            expected.iter().map(|(text, id)| vec![(*text).into(), (*id).into()]).collect();
        assert_eq!(sample.keys, expected);
        for (text, expected) in [
            ("eu,1\neu", "line 2 of the sample: it has 1 columns, and the key is (text, int64)"),
            ("eu,x", "line 1 of the sample: "),
            ("\"eu,1", "line 1 of the sample: it is neither CSV nor JSON"),
        ] {
            let error = Sample::parse(text, &key).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
