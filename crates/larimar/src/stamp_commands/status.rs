//! `larimar stamp status`: who serves the stamp, who stands by, how much there is.

use crate::Failure;
use crate::stamp_commands::opened::OpenedStamp;
use crate::stamp_commands::print_value;
use base::ByteSize;
use serde_json::{Value, json};
use stamp::{DOCUMENT_SIZE_BYTES_MAX, Incarnation, encode_document};
use stamp_streams::StampSnapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

/// Reads and prints it.
pub(super) async fn status(stamp: &OpenedStamp, is_json: bool) -> Result<ExitCode, Failure> {
    let snapshot = stamp.snapshot().await?;
    let mut left = BTreeMap::new();
    for (process, state) in snapshot.processes() {
        if state.has_key {
            let rest = snapshot.lease_left(*process).await.map_err(|error| Failure::of_work(&error))?;
            left.insert(*process, rest);
        }
    }
    // Where the object store does not answer, the rest is worth the more.
    let backup = match snapshot.newest_backup().await {
        Ok(backup) => json!({ "revision": backup.map(|revision| revision.0) }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    Ok(print_value(&facts(&stamp.name, &snapshot, &left, backup), is_json, text))
}

fn facts(
    name: &str,
    snapshot: &StampSnapshot,
    left: &BTreeMap<Incarnation, Option<Duration>>,
    mut backup: Value,
) -> Value {
    let seconds = |process: &Incarnation| left.get(process).and_then(|left| left.map(|left| left.as_secs()));
    let owner = |own: stamp::OwnEntry| {
        json!({
            "process": own.owner.map(|owner| owner.to_string()),
            "epoch": own.epoch.0,
            "lives": own.owner.is_some_and(|owner| left.contains_key(&owner)),
            "lease_left_seconds": own.owner.as_ref().and_then(seconds),
        })
    };
    let mut owners: Vec<Value> = Vec::new();
    let (mut owning, mut streams, mut extents) = (BTreeSet::new(), 0, Extents::default());
    let (mut document_bytes, mut changed_at) = (0, 0);
    for (id, range) in snapshot.ranges() {
        let mut entry = owner(range.own);
        entry["range"] = id.to_string().into();
        owners.push(entry);
        owning.extend(range.own.owner);
        streams += range.document.streams.len();
        extents.count(snapshot, *id);
        document_bytes = document_bytes.max(encode_document(&range.document, snapshot.life().stamp).len());
        changed_at = changed_at.max(range.changed_at.0);
    }
    backup["is_current"] = backup["revision"].as_u64().is_some_and(|at| at >= changed_at).into();
    let others = snapshot.processes().iter().filter(|(process, _)| !owning.contains(process));
    let (standing_by, gone): (Vec<_>, Vec<_>) = others.partition(|(_, state)| state.has_key);
    let names = |processes: Vec<(&Incarnation, _)>| -> Vec<String> {
        processes.into_iter().map(|(process, _)| process.to_string()).collect()
    };
    json!({
        "stamp": name,
        "id": snapshot.life().stamp.to_string(),
        "generation": snapshot.life().generation.to_string(),
        "restores": snapshot.restores(),
        "revision": snapshot.revision().0,
        "owners": owners,
        "standing_by": names(standing_by),
        "gone": names(gone),
        "ranges": snapshot.ranges().len(),
        "streams": streams,
        "extents": extents.all,
        "open_extents": extents.open,
        "sealed_bytes": extents.sealed_bytes,
        "document_bytes": document_bytes,
        "document_bytes_max": DOCUMENT_SIZE_BYTES_MAX,
        "backup": backup,
        "waiting_for_collection": {
            "extents": snapshot.dropped().len(),
            "bytes": snapshot.dropped().values().sum::<u64>(),
        },
        "is_collection_on": snapshot.is_collection_on(),
        "has_unfinished_migration": snapshot.has_unfinished_migration(),
    })
}

#[derive(Default)]
struct Extents {
    all: usize,
    open: usize,
    sealed_bytes: u64,
}

impl Extents {
    fn count(&mut self, snapshot: &StampSnapshot, range: stamp::RangeId) {
        for extent in snapshot.extents(range) {
            self.all += 1;
            self.open += usize::from(extent.length.is_none());
            self.sealed_bytes += extent.length.unwrap_or(0);
        }
    }
}

/// The facts as lines.
fn text(facts: &Value) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:24} {value}\n"));
    let number = |path: &str| facts.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let word = |path: &str| facts.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let size = |path: &str| ByteSize(number(path)).to_string();
    let list = |path: &str| {
        let names = facts.pointer(path).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    line("stamp", word("/stamp"));
    for owner in facts["owners"].as_array().into_iter().flatten() {
        line("served by", served_by(owner));
    }
    for (name, processes) in [("stands by", list("/standing_by")), ("gone", list("/gone"))] {
        for process in processes {
            line(name, process.to_owned());
        }
    }
    if facts["has_unfinished_migration"] == json!(true) {
        line("migration", "not finished: no process serves the stamp; run larimar migrate again".to_owned());
    }
    line("generation", format!("{}, restored {} times", word("/generation"), number("/restores")));
    line("revision", number("/revision").to_string());
    line("ranges", number("/ranges").to_string());
    line("streams", number("/streams").to_string());
    let open = number("/open_extents");
    line(
        "extents",
        format!("{}, {open} of them open; the others have {}", number("/extents"), size("/sealed_bytes")),
    );
    let percent = number("/document_bytes") * 100 / number("/document_bytes_max").max(1);
    let of = format!("{} of at most {}", size("/document_bytes"), size("/document_bytes_max"));
    line("document", format!("{of} ({percent} %)"));
    line("newest backup", backup(&facts["backup"]));
    let dropped = format!("{} extents", number("/waiting_for_collection/extents"));
    line("waits for collection", format!("{dropped} with {}", size("/waiting_for_collection/bytes")));
    if facts["is_collection_on"] == json!(false) {
        line("collection", "off: a restore is under way, or was broken off".to_owned());
    }
    text
}

fn served_by(owner: &Value) -> String {
    let epoch = owner["epoch"].as_u64().unwrap_or(0);
    match (owner["process"].as_str(), owner["lives"] == json!(true)) {
        (Some(process), true) => match owner["lease_left_seconds"].as_u64() {
            Some(left) => format!("{process}, epoch {epoch}, its lease has {left} s left"),
            None => format!("{process}, epoch {epoch}"),
        },
        (Some(process), false) => format!("nobody: the lease of {process} (epoch {epoch}) has ended"),
        (None, _) => format!("nobody: it was given up, or never taken (epoch {epoch})"),
    }
}

fn backup(backup: &Value) -> String {
    match (backup["revision"].as_u64(), backup["error"].as_str()) {
        (Some(revision), _) if backup["is_current"] == json!(true) => {
            format!("revision {revision}, which has every change of the documents")
        }
        (Some(revision), _) => format!("revision {revision}, older than the last change of the documents"),
        (None, Some(error)) => format!("unknown: {error}"),
        (None, None) => "there is none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_serves_and_whether_the_backup_is_current() {
        let owner = |process: Option<&str>, lives: bool, left: Option<u64>| json!({ "process": process, "epoch": 3, "lives": lives, "lease_left_seconds": left });
        for (owner, expected) in [
            (owner(Some("ab"), true, Some(8)), "ab, epoch 3, its lease has 8 s left"),
            (owner(Some("ab"), true, None), "ab, epoch 3"),
            (owner(Some("ab"), false, None), "nobody: the lease of ab (epoch 3) has ended"),
            (owner(None, false, None), "nobody: it was given up, or never taken (epoch 3)"),
        ] {
            assert_eq!(served_by(&owner), expected);
        }
        for (given, part) in [
            (json!({ "revision": 7, "is_current": true }), "revision 7, which has every change"),
            (json!({ "revision": 7, "is_current": false }), "revision 7, older"),
            (json!({ "revision": null, "is_current": false }), "there is none"),
            (json!({ "error": "no answer", "is_current": false }), "unknown: no answer"),
        ] {
            assert!(backup(&given).starts_with(part), "{given}");
        }
    }
}
