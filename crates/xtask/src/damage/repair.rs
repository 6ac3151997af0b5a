//! What `larimar repair DIR --json FILE` says it cannot bring back: the one place that knows how its plan is
//! written. What always holds: an entry excuses only what its outcome names, and one without a name stands
//! for all inside its container or partition.
//!
//! ```text
//! {"losses": [{"service": "table", "kind": "entity", "account": "…", "container": "…", "partition": "…", "row": "…",
//!              "outcome": "lost" | "older" | "uncertain", "ranges": […]}, …]}
//! ```
//!
//! A blob's name is in `blob`, a message's id in `message`; `ranges` are those bytes of a blob that cannot be
//! read.

use super::model::{Key, Kind, Verdict};
use crate::Outcome;
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Command, Stdio};

const CONTAINER_NAMES: [&str; 4] = ["container", "table", "queue", "name"];
const INNER_NAMES: [&str; 5] = ["row", "blob", "message", "id", "name"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fall {
    Lost,
    Older,
    Uncertain,
}

#[derive(Debug, PartialEq, Eq)]
struct Loss {
    key: Key,
    fall: Fall,
    has_ranges: bool,
}

/// The losses of a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    losses: Vec<Loss>,
}

impl Plan {
    pub(crate) fn parse(json: &Json) -> Outcome<Self> {
        let losses = json["losses"].as_array().ok_or("the plan has no list of losses")?;
        let parse = |loss: &Json| parse_loss(loss).ok_or_else(|| format!("not a loss: {loss}"));
        Ok(Plan { losses: losses.iter().map(parse).collect::<Result<_, _>>()? })
    }

    pub(crate) fn len(&self) -> usize {
        self.losses.len()
    }

    /// Whether the plan said that this would be answered.
    pub(crate) fn excuses(&self, key: &Key, verdict: &Verdict) -> bool {
        self.losses.iter().any(|loss| covers(&loss.key, key) && allows(loss, verdict))
    }
}

/// Whether a loss is this thing, or all that it lies in.
fn covers(loss: &Key, key: &Key) -> bool {
    if loss.container != key.container {
        return false;
    }
    if loss.kind == key.kind {
        let is_or_holds = |whole: &String, part: &String| whole.is_empty() || whole == part;
        // Answers about a whole partition or queue are excused by each loss in it.
        let holds_or_is_asked = |whole: &String, part: &String| part.is_empty() || is_or_holds(whole, part);
        return is_or_holds(&loss.partition, &key.partition) && holds_or_is_asked(&loss.name, &key.name);
    }
    loss.kind.inner() == Some(key.kind)
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
    let kind = Kind::parse(loss["kind"].as_str()?)?;
    let first =
        |names: &[&str]| names.iter().find_map(|name| loss[*name].as_str()).unwrap_or_default().to_owned();
    let name = if kind.inner().is_some() { String::new() } else { first(&INNER_NAMES) };
    let fall = match loss["outcome"].as_str()? {
        "lost" => Fall::Lost,
        "older" => Fall::Older,
        "uncertain" => Fall::Uncertain,
        _ => return None,
    };
    let has_ranges = loss["ranges"].as_array().is_some_and(|ranges| !ranges.is_empty());
    let key = Key { kind, container: first(&CONTAINER_NAMES), partition: first(&["partition"]), name };
    Some(Loss { key, fall, has_ranges })
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
        let row = json!({"service": "table", "kind": "entity", "account": "a", "container": "t", "partition": "p",
                         "row": "r", "outcome": "lost"});
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
}
