//! What `larimar repair DIR --json FILE` says it cannot bring back: the one place that knows how its plan is
//! written (`docs/damage.md`). What always holds: an entry excuses only what its outcome names, and one
//! without a name stands for all inside its container or partition; one of names that nobody knows, for all
//! between two keys.

use super::model::{Key, Kind, Verdict};
use crate::Outcome;
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fall {
    Lost,
    Older,
    Uncertain,
}

/// Keys of losses; empty texts stand for everything.
#[derive(Debug, PartialEq, Eq)]
struct Loss {
    /// `None`: of any kind.
    kind: Option<Kind>,
    container: String,
    partition: String,
    /// RowKey, blob name, or how a message's id starts.
    name: String,
    /// The first and the last of them, if only that is known.
    ends: [Option<End>; 2],
    fall: Fall,
    has_ranges: bool,
}

/// Where a range of keys ends.
#[derive(Debug, PartialEq, Eq)]
struct End {
    container: String,
    partition: Option<String>,
    name: Option<String>,
}

/// The losses of a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    losses: Vec<Loss>,
}

impl Plan {
    pub(crate) fn parse(json: &Json) -> Outcome<Self> {
        let losses = json["losses"].as_array().ok_or("the plan has no list of losses")?;
        let mut plan = Plan::default();
        for loss in losses.iter().filter(|loss| is_named(loss)) {
            plan.losses.push(parse_loss(loss).ok_or_else(|| format!("not a loss: {loss}"))?);
        }
        Ok(plan)
    }

    pub(crate) fn len(&self) -> usize {
        self.losses.len()
    }

    /// Whether the plan said that this would be answered.
    pub(crate) fn excuses(&self, key: &Key, verdict: &Verdict) -> bool {
        self.losses.iter().any(|loss| covers(loss, key) && allows(loss, verdict))
    }
}

/// Whether it is of things that are judged: properties are not, and nobody asks for rows of a container that
/// has no name.
fn is_named(loss: &Json) -> bool {
    loss["kind"] != "properties" && !(loss["container"].is_null() && loss["container_id"].is_string())
}

/// Whether a loss is this thing, or all that it lies in.
fn covers(loss: &Loss, key: &Key) -> bool {
    let is_or_holds = |whole: &String, part: &String| whole.is_empty() || whole == part;
    let Some(kind) = loss.kind else { return true };
    if !is_or_holds(&loss.container, &key.container) {
        return false;
    }
    if kind != key.kind {
        return kind.inner() == Some(key.kind);
    }
    // Answers about a whole partition or queue are excused by each loss in it.
    let is_asked = key.name.is_empty() || loss.name.is_empty();
    let has_name = match kind {
        Kind::Message => key.name.starts_with(&loss.name),
        _ => key.name == loss.name,
    };
    is_or_holds(&loss.partition, &key.partition) && (is_asked || has_name) && lies_between(&loss.ends, key)
}

/// Whether a thing lies between these ends, or nobody can say that it does not.
fn lies_between([from, to]: &[Option<End>; 2], key: &Key) -> bool {
    // Messages lie in the order of times, containers in that of ids.
    let is_comparable = |end: &&End| key.kind != Kind::Message && end.container == key.container;
    let before = |from: &End| match (&from.partition, &from.name) {
        (Some(partition), _) if key.partition != *partition => key.partition < *partition,
        (_, Some(name)) => !key.name.is_empty() && key.name < *name,
        _ => false,
    };
    let behind = |to: &End| match (&to.partition, &to.name) {
        (Some(partition), _) if key.partition != *partition => key.partition > *partition,
        (_, Some(name)) => key.name > *name,
        _ => false,
    };
    !from.as_ref().filter(is_comparable).is_some_and(before)
        && !to.as_ref().filter(is_comparable).is_some_and(behind)
}

fn allows(loss: &Loss, verdict: &Verdict) -> bool {
    match (loss.fall, verdict) {
        (_, Verdict::Loud(_) | Verdict::Cut(_)) => loss.has_ranges,
        (Fall::Lost, Verdict::Missing | Verdict::LastMissing) => true,
        (Fall::Older, Verdict::Older | Verdict::Back | Verdict::LastMissing) => true,
        (Fall::Uncertain, Verdict::Missing | Verdict::Older | Verdict::Back | Verdict::LastMissing) => true,
        _ => false,
    }
}

fn parse_loss(loss: &Json) -> Option<Loss> {
    let kind = match loss["kind"].as_str()? {
        "other" => None,
        kind => Some(Kind::parse(kind)?),
    };
    let fall = match loss["outcome"].as_str()? {
        "lost" => Fall::Lost,
        "older" => Fall::Older,
        "uncertain" => Fall::Uncertain,
        _ => return None,
    };
    let whole = parse_end(loss);
    Some(Loss {
        kind,
        container: whole.container,
        partition: whole.partition.unwrap_or_default(),
        name: whole.name.unwrap_or_default(),
        ends: ["from", "to"].map(|end| {
            let end = &loss["keys"][end];
            end.is_object().then(|| parse_end(end))
        }),
        fall,
        has_ranges: loss["ranges"].as_array().is_some_and(|ranges| !ranges.is_empty()),
    })
}

fn parse_end(place: &Json) -> End {
    let text = |name: &str| place[name].as_str().map(str::to_owned);
    End {
        container: text("container").unwrap_or_default(),
        partition: text("partition_key"),
        name: text("row_key").or_else(|| text("blob")).or_else(|| text("message_id")),
    }
}

/// Whether the binary has the command.
pub(crate) fn is_known(binary: &Path) -> bool {
    let status = Command::new(binary)
        .args(["help", "repair"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Repairs a folder; the plan is written beside it.
pub(crate) fn repair(binary: &Path, data: &Path) -> Outcome<Plan> {
    let plan = data.with_file_name("plan.json");
    run(Command::new(binary).arg("repair").arg(data).args(["--apply", "--json"]).arg(&plan), "repair")?;
    Plan::parse(&serde_json::from_slice(&std::fs::read(plan)?)?)
}

/// `larimar check` must find nothing.
pub(crate) fn check(binary: &Path, data: &Path) -> Outcome<()> {
    run(Command::new(binary).arg("check").arg(data), "check")
}

fn run(command: &mut Command, what: &str) -> Outcome<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let told = [output.stdout, output.stderr].concat();
    Err(format!("{what}: {}: {}", output.status, String::from_utf8_lossy(&told).trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(losses: Json) -> Plan {
        Plan::parse(&json!({ "losses": losses })).unwrap()
    }

    #[test]
    fn a_loss_excuses_its_own_key_and_what_it_says() {
        let row = json!({"service": "table", "kind": "entity", "account": "a", "container": "t", "container_id": "7",
                         "partition_key": "p", "row_key": "r", "outcome": "lost"});
        let plan = plan(json!([row]));
        let key = Key::inside(Kind::Entity, "t", "p", "r");
        assert!(plan.excuses(&key, &Verdict::Missing));
        assert!(!plan.excuses(&key, &Verdict::Older));
        assert!(!plan.excuses(&key, &Verdict::Loud("500".into())));
        assert!(!plan.excuses(&Key::inside(Kind::Entity, "t", "p", "r2"), &Verdict::Missing));
        assert!(!plan.excuses(&Key::inside(Kind::Entity, "t2", "p", "r"), &Verdict::Missing));
    }

    #[test]
    fn a_lost_container_excuses_all_in_it_and_ranges_excuse_errors() {
        let plan = plan(json!([
            {"kind": "queue", "container": "q", "outcome": "uncertain"},
            {"kind": "blob", "container": "c", "blob": "b", "outcome": "lost", "ranges": [[0, 5]]},
        ]));
        assert!(plan.excuses(&Key::inside(Kind::Message, "q", "", "1"), &Verdict::Back));
        assert!(!plan.excuses(&Key::inside(Kind::Blob, "q", "", "1"), &Verdict::Back));
        assert!(plan.excuses(&Key::inside(Kind::Blob, "c", "", "b"), &Verdict::Loud("500".into())));
        assert!(Plan::parse(&json!({"losses": [{"kind": "entity", "outcome": "gone"}]})).is_err());
    }

    #[test]
    fn unnamed_losses_excuse_what_lies_between_their_ends() {
        let end =
            |row: &str| json!({"kind": "entity", "container": "t", "partition_key": "p", "row_key": row});
        let plan = plan(json!([
            {"kind": "entity", "container": "t", "outcome": "lost", "keys": {"from": end("b"), "to": end("d")}},
            {"kind": "message", "container": "q", "message_id": "11-2", "outcome": "lost"},
            {"kind": "blob", "container": null, "container_id": "7", "blob": "b", "outcome": "lost"},
            {"kind": "properties", "service": "blob", "outcome": "lost"},
        ]));
        assert_eq!(plan.len(), 2);
        let excuses = |kind, container: &str, partition: &str, name: &str| {
            plan.excuses(&Key::inside(kind, container, partition, name), &Verdict::Missing)
        };
        for (partition, row, is_excused) in [
            ("p", "b", true),
            ("p", "c", true),
            ("p", "d", true),
            ("p", "a", false),
            ("p", "e", false),
            ("o", "c", false),
        ] {
            assert_eq!(excuses(Kind::Entity, "t", partition, row), is_excused, "{partition} {row}");
        }
        assert!(excuses(Kind::Message, "q", "", "11-22") && !excuses(Kind::Message, "q", "", "11-3"));
        assert!(!excuses(Kind::Blob, "c", "", "b") && !excuses(Kind::Entity, "u", "p", "c"));
        let anywhere = super::tests::plan(json!([{"kind": "other", "container": null, "outcome": "lost"}]));
        assert!(anywhere.excuses(&Key::container(Kind::Queue, "q"), &Verdict::Missing));
    }
}
