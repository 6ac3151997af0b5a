//! Keys as they are typed: a text for each column.

use shard_map::{KeyError, KeyType, KeyValue};

/// The values of a key, or of a bound with fewer columns.
pub fn key_of<S: AsRef<str>>(key: &KeyType, texts: &[S]) -> Result<Vec<KeyValue>, KeyError> {
    if texts.len() > key.kinds().len() {
        return Err(KeyError::WrongCount { expected: key.to_string(), found: texts.len() });
    }
    let values = key.kinds().iter().zip(texts).map(|(kind, text)| KeyValue::parse(*kind, text.as_ref()));
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::KeyKind;

    #[test]
    fn texts_become_values_by_the_kinds_of_their_columns() {
        let key = KeyType::new([KeyKind::Text, KeyKind::Int32]).expect("a type");
        assert_eq!(key_of(&key, &["17", "17"]), Ok(vec!["17".into(), 17_i32.into()]));
        assert_eq!(key_of(&key, &["eu"]), Ok(vec!["eu".into()]));
        assert!(matches!(key_of(&key, &["eu", "1", "2"]), Err(KeyError::WrongCount { found: 3, .. })));
        assert!(matches!(key_of(&key, &["eu", "x"]), Err(KeyError::NoValue { .. })));
    }
}
