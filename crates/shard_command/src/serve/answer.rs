//! The answer of a request, out of the catalog: pure.

use super::map_json::map_json;
use super::request::Target;
use crate::keys::key_of;
use serde_json::{Value, json};
use shard_map::{Catalog, RouteError};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The epoch that its ETag names; none: it has none.
    pub(crate) epoch: Option<u64>,
    /// JSON, or nothing.
    pub(crate) body: String,
}

impl Answer {
    /// A refusal in words.
    pub(crate) fn refused(status: u16, what: &str) -> Self {
        Answer { status, epoch: None, body: json!({ "error": what }).to_string() + "\n" }
    }

    /// Nothing is newer than what the client has.
    pub(crate) fn unchanged(catalog: &Catalog) -> Self {
        Answer { status: 304, epoch: Some(catalog.epoch().0), body: String::new() }
    }
}

/// Answers; `known` is the value of `If-None-Match`, `after` the epoch that the client has.
pub(crate) fn answer(target: &Target, catalog: &Catalog, known: Option<&str>, after: Option<u64>) -> Answer {
    let epoch = catalog.epoch().0;
    let body = match content(target, catalog) {
        Ok(body) => body,
        Err((status, what)) => return Answer::refused(status, &what),
    };
    if after.is_some_and(|after| epoch <= after) || known.is_some_and(|known| names(known, epoch)) {
        return Answer::unchanged(catalog);
    }
    Answer { status: 200, epoch: Some(epoch), body: body() + "\n" }
}

/// Whether a list of ETags has the one of an epoch.
fn names(known: &str, epoch: u64) -> bool {
    let mut tags = known.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    tags.any(|tag| tag == "*" || tag == epoch.to_string())
}

type Refused = (u16, String);

/// What makes the body; large ones are made only if they are sent.
fn content<'a>(
    target: &'a Target,
    catalog: &'a Catalog,
) -> Result<Box<dyn FnOnce() -> String + 'a>, Refused> {
    let find = |name: &str| {
        let none = || (404, format!("catalog `{}` has no map of that name", catalog.name()));
        catalog.map(name).ok_or_else(none)
    };
    Ok(match target {
        Target::Catalog => Box::new(|| catalog.to_json()),
        Target::Map(name) => {
            let map = find(name)?;
            Box::new(move || map_json(catalog, map).to_string())
        }
        Target::Route(name, texts) => {
            let map = find(name)?;
            let key = key_of(map.key_type(), texts).map_err(|error| (400, error.to_string()))?;
            let route = map.route(&key).map_err(|error| match error {
                RouteError::Key(_) => (400, error.to_string()),
                RouteError::NotMapped { .. } => (404, error.to_string()),
            })?;
            let placement = route.placement;
            let shard = catalog.shard(placement.shard.as_str());
            let body: Value = json!({
                "catalog": catalog.name(), "epoch": catalog.epoch(), "map": map.name(),
                "mapping": route.mapping.to_string(), "shard": placement.shard, "state": placement.state,
                "since": placement.since, "location": shard.map(|shard| &shard.location),
                "shard_state": shard.map(|shard| shard.state),
            });
            Box::new(move || body.to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;

    fn catalog() -> Catalog {
        let text = "catalog = \"a\"\n[shards.one]\nlocation = \"x\"\n[maps.m]\nkey = \"int32\"\n\
                    ranges = [{ high = 5, shard = \"one\" }, { low = 5, shard = \"one\" }]\n[maps.p]\nkey = \"int32\"";
        let described = Description::parse(text).expect("a description");
        let catalog = Catalog::new(described.catalog.clone(), [1; 16]).apply(&described.changes());
        catalog.expect("it applies").catalog
    }

    #[test]
    fn answers_follow_from_target_and_what_the_client_has() {
        let route = |map: &str, key: &str| Target::Route(map.to_owned(), vec![key.to_owned()]);
        let map = |name: &str| Target::Map(name.to_owned());
        for (target, known, after, status) in [
            (Target::Catalog, None, None, 200),
            (Target::Catalog, Some("\"1\""), None, 304),
            (Target::Catalog, Some("\"0\", W/\"1\""), None, 304),
            (Target::Catalog, Some("\"11\""), None, 200),
            (Target::Catalog, Some("*"), None, 304),
            (map("m"), None, Some(0), 200),
            (map("m"), None, Some(1), 304),
            (map("x"), Some("\"1\""), None, 404),
            (route("m", "7"), None, None, 200),
            (route("m", "x"), None, None, 400),
            (Target::Route("m".to_owned(), vec![]), None, None, 400),
            (route("p", "7"), None, None, 404),
        ] {
            let answered = answer(&target, &catalog(), known, after);
            assert_eq!(answered.status, status, "{target:?} {known:?} {after:?}");
            assert_eq!(answered.epoch.is_some(), matches!(status, 200 | 304), "{target:?}");
        }
    }

    #[test]
    fn a_map_has_encoded_bounds() {
        let body = answer(&Target::Map("m".to_owned()), &catalog(), None, None).body;
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["ranges"][1]["low"], "80000005");
        assert_eq!(body["ranges"][0]["high"], "80000005");
        assert_eq!((&body["ranges"][1]["high"], &body["hash"]), (&Value::Null, &Value::Null));
        let body = answer(&Target::Route("m".to_owned(), vec!["4".to_owned()]), &catalog(), None, None).body;
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((&body["mapping"], &body["location"]), (&json!("range-"), &json!("x")));
    }
}
