//! The published vectors (`vectors/keys.json`), which other languages read, too: if an encoding or a hash
//! became another, stored maps would send keys to shards that do not have their data.

use serde_json::Value;
use shard_map::{Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, MappingId, Name, ShardMap};
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../vectors/keys.json");

fn vectors(section: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(VECTORS).expect("JSON");
    all[section].as_array().expect("a list").clone()
}

fn key_type(vector: &Value) -> KeyType {
    let names = vector["key"].as_array().expect("kinds");
    let kinds = names.iter().map(|name| KeyKind::parse(name.as_str().expect("a text")).expect("a kind"));
    KeyType::new(kinds).expect("a key type")
}

fn values(json: &Value, key: &KeyType) -> Vec<KeyValue> {
    let list = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    list.iter()
        .zip(key.kinds())
        .map(|(value, kind)| KeyValue::parse(*kind, &text(value)).expect("a value"))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn keys_are_encoded_as_published_and_come_back() {
    let mut former: Option<(KeyType, Vec<u8>)> = None;
    for vector in vectors("keys") {
        let key = key_type(&vector);
        let values = values(&vector["value"], &key);
        let encoded = key.encode(&values).expect("a key");
        assert_eq!(hex(encoded.as_bytes()), vector["encoded"].as_str().expect("digits"), "{vector}");
        assert_eq!(key.decode(encoded.as_bytes()).expect("a key"), values);
        if let Some((_, bytes)) = former.filter(|(former, _)| *former == key) {
            assert!(bytes.as_slice() < encoded.as_bytes(), "{vector}");
        }
        former = Some((key, encoded.as_bytes().to_vec()));
    }
}

#[test]
fn bounds_are_encoded_as_published() {
    for vector in vectors("bounds") {
        let key = key_type(&vector);
        let bound = key.bound(&values(&vector["low"], &key)).expect("a bound");
        assert_eq!(hex(bound.as_bytes()), vector["encoded"].as_str().expect("digits"), "{vector}");
        let back = key.decode_bound(bound.as_bytes()).expect("a bound");
        assert_eq!(key.bound(&back).expect("a bound"), bound);
    }
}

#[test]
fn keys_are_in_the_published_virtual_shards() {
    let mut maps = BTreeMap::new();
    for vector in vectors("keys") {
        let key = key_type(&vector);
        let values = values(&vector["value"], &key);
        for hashed in vector["virtual_shards"].as_array().expect("a list") {
            let number =
                |name: &str| u32::try_from(hashed[name].as_u64().expect("a number")).expect("32 bits");
            let (columns, count) = (number("columns") as usize, number("count"));
            let made = || map(&key, Hashed { hash: KeyHash::Sha256V1, columns, count });
            let map = maps.entry((key.to_string(), columns, count)).or_insert_with(made);
            let route = map.route(&values).expect("a route");
            assert_eq!(route.mapping, MappingId::Virtual(number("number")), "{vector}");
        }
    }
}

fn map(key: &KeyType, hashed: Hashed) -> ShardMap {
    let mut map = MapBuilder::new(Name::parse("map").expect("a name"), key.clone());
    map.hash(hashed).expect("a hash").spread(&[Name::parse("one").expect("a name")]).expect("all of them");
    map.build().expect("a map")
}
