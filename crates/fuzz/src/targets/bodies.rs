//! Bodies: the input's first byte chooses an operation, the rest is its JSON or XML.
//!
//! Beyond the checks of all targets: an accepted entity is returned as it was sent, by another JSON reader;
//! the returned form is accepted again and returned the same; and accepted policies and settings are returned
//! in a form that is accepted and returned the same.

use crate::stamp::{Answer, Stamp, TABLE, entity_path};
use serde_json::{Map, Value};

const FULL: (&str, &str) = ("accept", "application/json;odata=fullmetadata");
const CHOICE_COUNT: u8 = 6;

pub(crate) fn run(stamp: &mut Stamp, input: &[u8]) {
    let Some((&choice, body)) = input.split_first() else {
        return;
    };
    let new_entity = entity_path("p", "new");
    let answer = match choice % CHOICE_COUNT {
        0 => insert(stamp, body),
        1 => replace(stamp, &new_entity, body),
        2 => stamp.request("PATCH", &entity_path("p", "a"), &[], body),
        3 => stamp.request("POST", "/Tables", &[], body),
        4 => write_xml(stamp, &format!("/{TABLE}?comp=acl"), body),
        _ => write_xml(stamp, "/?restype=service&comp=properties", body),
    };
    if answer.is_refusal() {
        stamp.check_unchanged("the body was refused");
    }
}

fn insert(stamp: &Stamp, body: &[u8]) -> Answer {
    let answer = stamp.request("POST", &format!("/{TABLE}"), &[FULL], body);
    if answer.is_refusal() {
        return answer;
    }
    let answered = object(answer.json());
    check_as_sent(body, &answered);
    let key = |name: &str| answered[name].as_str().expect("a key").to_owned();
    let own = entity_path(&key("PartitionKey"), &key("RowKey"));
    let found = stamp.request("GET", &own, &[FULL], b"");
    assert_eq!(object(found.json()), answered, "the insert's answer and the stored entity");
    check_again(stamp, answered);
    answer
}

fn replace(stamp: &Stamp, path: &str, body: &[u8]) -> Answer {
    let answer = stamp.request("PUT", path, &[], body);
    if !answer.is_refusal() {
        let found = object(stamp.request("GET", path, &[FULL], b"").json());
        check_as_sent(body, &found);
        check_again(stamp, found);
    }
    answer
}

/// Sends the service's response to it again, under another key.
fn check_again(stamp: &Stamp, mut answered: Map<String, Value>) {
    let copy = entity_path("copy", "copy");
    for name in ["PartitionKey", "RowKey"] {
        answered[name] = "copy".into();
    }
    let body = serde_json::to_vec(&answered).expect("JSON");
    let sent = stamp.request("PUT", &copy, &[], &body);
    assert_eq!(sent.status, 204, "{}", sent.text());
    let found = stamp.request("GET", &copy, &[FULL], b"").json();
    assert_eq!(own_members(&object(found)), own_members(&answered), "after a second round");
}

/// Members that the client chose: no annotations of the entity itself, no Timestamp.
fn own_members(entity: &Map<String, Value>) -> Map<String, Value> {
    let own = entity.iter().filter(|(name, _)| !name.starts_with("odata.") && !name.starts_with("Timestamp"));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Each member of an accepted body is in the answer, as another reader understands it.
fn check_as_sent(body: &[u8], answered: &Map<String, Value>) {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).expect("what was accepted is text");
    // Ignored members may hold JSON that is no value: half a surrogate pair, or a number beyond all bounds.
    let Ok(sent) = serde_json::from_str(text) else {
        return;
    };
    let sent = object(sent);
    for (name, value) in &sent {
        if name.starts_with("odata.") || name.contains("@odata.") || name == "Timestamp" {
            continue;
        }
        let annotation = sent.get(&format!("{name}@odata.type")).and_then(Value::as_str);
        let found = answered.get(name);
        match (value, annotation) {
            (Value::Null, _) => assert_eq!(found, None, "{name} is null"),
            (Value::String(_) | Value::Bool(_), None | Some("Edm.String" | "Edm.Boolean")) => {
                assert_eq!(found, Some(value), "{name}");
            }
            (Value::Number(number), None) => {
                let found = found.and_then(Value::as_number).unwrap_or_else(|| panic!("{name} is lost"));
                assert_eq!(found.as_f64(), number.as_f64(), "{name}");
                assert_eq!(found.is_i64(), number.is_i64(), "{name} changed its type");
            }
            (_, Some(annotation)) => {
                assert!(found.is_some(), "{name} is lost");
                let kept = answered.get(&format!("{name}@odata.type")).and_then(Value::as_str);
                // Types that follow from the JSON are not annotated.
                let told = matches!(annotation, "Edm.String" | "Edm.Boolean" | "Edm.Int32" | "Edm.Double");
                assert!(
                    kept == Some(annotation) || (kept.is_none() && told),
                    "{name}: {annotation}, {kept:?}"
                );
            }
            (Value::Array(_) | Value::Object(_), None) => panic!("{name} is no property: {value}"),
        }
    }
}

fn write_xml(stamp: &Stamp, path: &str, body: &[u8]) -> Answer {
    let answer = stamp.request("PUT", path, &[("content-type", "application/xml")], body);
    if !answer.is_refusal() {
        let first = stamp.request("GET", path, &[], b"");
        assert_eq!(first.status, 200);
        let again = stamp.request("PUT", path, &[("content-type", "application/xml")], &first.body);
        assert!(!again.is_refusal(), "{} for {}", again.text(), first.text());
        assert_eq!(stamp.request("GET", path, &[], b"").text(), first.text());
    }
    answer
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("no object: {other}"),
    }
}
