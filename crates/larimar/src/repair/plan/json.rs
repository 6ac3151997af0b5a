//! Plans as JSON, as `docs/damage.md` describes it.
//!
//! What always holds: what is written is read again, field by field; ids are texts, because JSON's numbers
//! are not exact.

use super::{Loss, Lost, Plan};
use crate::places::{Place, PlaceRange, Service};
use blob::BlobPart;
use partition::LossOutcome;
use serde_json::{Map, Value, json};

const FORMAT: u64 = 1;
const OUTCOMES: [LossOutcome; 3] = [LossOutcome::Lost, LossOutcome::Older, LossOutcome::Uncertain];

/// A file that should be a plan is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no plan of a repair that this program knows")]
pub(crate) struct NoPlan;

impl Plan {
    pub(crate) fn to_json(&self) -> String {
        let plan = json!({
            "format": FORMAT,
            "folder": self.folder,
            "applied": self.is_applied,
            "finished": self.is_finished,
            "needed_bytes": self.needed_bytes,
            "actions": self.actions,
            "losses": self.losses.iter().map(loss_value).collect::<Vec<_>>(),
            "unfinished_runs": self.unfinished_runs,
            "still_damaged": self.still_damaged,
        });
        format!("{plan:#}\n")
    }

    pub(crate) fn from_json(text: &[u8]) -> Result<Self, NoPlan> {
        let plan: Value = serde_json::from_slice(text).map_err(|_| NoPlan)?;
        let flag = |name: &str| plan[name].as_bool().ok_or(NoPlan);
        if plan["format"] != FORMAT {
            return Err(NoPlan);
        }
        Ok(Plan {
            folder: text_of(&plan, "folder").ok_or(NoPlan)?,
            is_applied: flag("applied")?,
            is_finished: flag("finished")?,
            needed_bytes: plan["needed_bytes"].as_u64().ok_or(NoPlan)?,
            actions: texts(&plan, "actions")?,
            losses: array(&plan, "losses")?.iter().map(loss_from).collect::<Result<_, _>>()?,
            unfinished_runs: texts(&plan, "unfinished_runs")?,
            still_damaged: texts(&plan, "still_damaged")?,
        })
    }
}

fn array<'a>(plan: &'a Value, name: &str) -> Result<&'a Vec<Value>, NoPlan> {
    plan[name].as_array().ok_or(NoPlan)
}

fn texts(plan: &Value, name: &str) -> Result<Vec<String>, NoPlan> {
    array(plan, name)?.iter().map(|text| text.as_str().map(str::to_owned).ok_or(NoPlan)).collect()
}

fn text_of(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn loss_value(loss: &Loss) -> Value {
    let mut value = match &loss.lost {
        Lost::Named(place) => place_value(place),
        Lost::Unnamed(range) => {
            let mut value = place_value(&range.within);
            value.insert("kind".to_owned(), range.within.service.kind_of_objects().into());
            let end = |place: &Option<Place>| place.as_ref().map(|place| Value::Object(place_value(place)));
            value.insert("keys".to_owned(), json!({"from": end(&range.from), "to": end(&range.to)}));
            value
        }
    };
    value.insert("outcome".to_owned(), loss.outcome.name().into());
    value.insert("reason".to_owned(), loss.reason.clone().into());
    Value::Object(value)
}

fn place_value(place: &Place) -> Map<String, Value> {
    let mut value = Map::new();
    let queue = place.container.clone().filter(|_| is_of_messages(place));
    let id = place.container_id.map(|id| id.to_string());
    let part = |is_it: fn(&BlobPart) -> bool| {
        place.blob_part.as_ref().filter(|part| is_it(part)).map(|part| match part {
            BlobPart::Snapshot(name) | BlobPart::Version(name) | BlobPart::StagedBlock(name) => name.clone(),
        })
    };
    let texts = [
        ("account", &place.account),
        ("container", &place.container),
        ("container_id", &id),
        ("partition_key", &place.partition_key),
        ("row_key", &place.row_key),
        ("queue", &queue),
        ("message_id", &place.message_id),
        ("blob", &place.blob),
        ("snapshot", &part(|part| matches!(part, BlobPart::Snapshot(_)))),
        ("version", &part(|part| matches!(part, BlobPart::Version(_)))),
        ("staged_block", &part(|part| matches!(part, BlobPart::StagedBlock(_)))),
    ];
    value.insert("service".to_owned(), place.service.name().into());
    value.insert("kind".to_owned(), place.kind().into());
    for (name, text) in texts {
        let is_always_there = matches!(name, "account" | "container");
        if is_always_there || text.is_some() {
            value.insert(name.to_owned(), json!(text));
        }
    }
    if place.is_properties {
        value.insert("properties".to_owned(), true.into());
    }
    value
}

/// Whether it is about messages, and not about the queue itself.
fn is_of_messages(place: &Place) -> bool {
    place.service == Service::Queue && place.container_id.is_some()
}

fn loss_from(value: &Value) -> Result<Loss, NoPlan> {
    let place = place_from(value)?;
    let lost = match &value["keys"] {
        Value::Null => Lost::Named(place),
        keys => {
            let end = |name: &str| match &keys[name] {
                Value::Null => Ok(None),
                place => place_from(place).map(Some),
            };
            let range = PlaceRange { within: place, from: end("from")?, to: end("to")? };
            Lost::Unnamed(Box::new(range))
        }
    };
    let outcome = text_of(value, "outcome").ok_or(NoPlan)?;
    let outcome = OUTCOMES.into_iter().find(|known| known.name() == outcome).ok_or(NoPlan)?;
    Ok(Loss { lost, outcome, reason: text_of(value, "reason").ok_or(NoPlan)? })
}

fn place_from(value: &Value) -> Result<Place, NoPlan> {
    let id = text_of(value, "container_id").map(|id| id.parse().map_err(|_| NoPlan)).transpose()?;
    Ok(Place {
        service: Service::parse(value["service"].as_str().ok_or(NoPlan)?),
        account: text_of(value, "account"),
        container: text_of(value, "container"),
        container_id: id,
        partition_key: text_of(value, "partition_key"),
        row_key: text_of(value, "row_key"),
        message_id: text_of(value, "message_id"),
        blob: text_of(value, "blob"),
        blob_part: text_of(value, "snapshot")
            .map(BlobPart::Snapshot)
            .or_else(|| text_of(value, "version").map(BlobPart::Version))
            .or_else(|| text_of(value, "staged_block").map(BlobPart::StagedBlock)),
        is_properties: value["properties"] == true,
    })
}
