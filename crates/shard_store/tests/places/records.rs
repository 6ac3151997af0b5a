//! What every place of records holds.

use crate::place::Place;
use base::random::splitmix64;
use futures_util::future::join_all;
use shard_store::{Put, Record, VALUE_BYTES_MAX};
use std::collections::BTreeMap;

/// Two handles do random operations; each finds what a map in memory has.
pub(crate) async fn one_place_is_as_the_model(place: &dyn Place) {
    let handles = [place.records("model"), place.records("model")];
    let mut model = BTreeMap::<String, String>::new();
    let mut random = 42;
    // Prefixes of each other, and characters around `-` and `.`.
    let keys = ["a", "a-", "a-0", "a-00", "a-1", "a-z", "a.", "b-1", "catalog", "part-00ff-00001"];
    assert_eq!(handles[0].list("a", "z", 10).await, Ok(vec![]));
    for step in 0..150_usize {
        let mut below = |bound: usize| (splitmix64(&mut random) % bound as u64) as usize;
        let (records, key) = (&handles[below(2)], keys[below(keys.len())]);
        match below(5) {
            0 | 1 => {
                let value = match below(8) {
                    0 => "é😀\n\"'\\\t".repeat(below(4)),
                    1 => "x".repeat(VALUE_BYTES_MAX),
                    _ => format!("value {step}"),
                };
                let expected = if model.contains_key(key) { Put::Taken } else { Put::Done };
                assert_eq!(records.put(key, &value).await, Ok(expected), "{key}");
                model.entry(key.to_owned()).or_insert(value);
            }
            2 => {
                assert_eq!(records.remove(key).await, Ok(()), "{key}");
                model.remove(key);
            }
            3 => assert_eq!(records.get(key).await, Ok(model.get(key).cloned()), "{key}"),
            _ => {
                let (from, to, count) = (key, keys[below(keys.len())], 1 + below(5));
                let found =
                    model.iter().filter(|(key, _)| key.as_str() >= from && key.as_str() < to).take(count);
                let record =
                    |(key, value): (&String, &String)| Record { key: key.clone(), value: value.clone() };
                assert_eq!(
                    records.list(from, to, count).await,
                    Ok(found.map(record).collect()),
                    "{from} {to}"
                );
            }
        }
    }
    assert_eq!(handles[1].list("", "z", 100).await.expect("a list").len(), model.len());
}

/// Eight handles put the same keys at the same time.
pub(crate) async fn of_many_puts_of_a_key_one_is_done(place: &dyn Place) {
    let handles: Vec<_> = (0..8).map(|_| place.records("race")).collect();
    for round in 0..5 {
        let key = format!("entry-{round}");
        let values: Vec<String> = (0..handles.len()).map(|index| format!("value {index}")).collect();
        let puts = handles.iter().zip(&values).map(|(records, value)| records.put(&key, value));
        let puts: Vec<_> = join_all(puts).await.into_iter().map(|put| put.expect("a put")).collect();
        let done: Vec<usize> = (0..puts.len()).filter(|index| puts[*index] == Put::Done).collect();
        assert_eq!(done.len(), 1, "{puts:?}");
        assert_eq!(handles[0].get(&key).await, Ok(Some(values[done[0]].clone())));
    }
}
