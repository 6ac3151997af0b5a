//! What is wrong with a design, or with the entities under any.

use super::prediction::{Given, Prediction, Warning};
use crate::design::{Kind, Part};
use crate::sample::{Sample, units};
use std::collections::BTreeSet;

/// Bounds of the service, and what is near them.
const KEY_UNITS_MAX: u64 = 1024;
const ENTITY_SIZE_BYTES_MAX: u64 = 1 << 20;
const ENTITY_SIZE_BYTES_NEAR: u64 = ENTITY_SIZE_BYTES_MAX * 3 / 4;
const PROPERTIES_MAX: usize = 252;
const PROPERTIES_NEAR: usize = PROPERTIES_MAX * 9 / 10;
/// Writes of a time that go to one partition by more than this share are appended.
const APPENDED_SHARE: f64 = 0.5;

fn serious(text: impl Into<String>) -> Warning {
    Warning { is_serious: true, text: text.into() }
}

fn mild(text: impl Into<String>) -> Warning {
    Warning { is_serious: false, text: text.into() }
}

/// Of a design.
pub(super) fn of(prediction: &Prediction, given: &Given<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let design = &prediction.design;
    let column = |name: &str| given.facts.columns.get(name);
    let is_rising = |name: &str| column(name).is_some_and(|column| column.is_rising);
    let is_appended = match design.partition.first() {
        Some(Part::Period(..)) => prediction.hot.share > APPENDED_SHARE,
        Some(Part::Value(name)) => is_rising(name),
        _ => false,
    };
    if is_appended {
        warnings.push(serious(
            "append-only: PartitionKeys rise with time, so all writes go to the end of the table, to one server",
        ));
    }
    let (peak, most) = (given.peak_rate(), prediction.rate_max);
    if peak > most {
        warnings.push(serious(format!(
            "hot: {peak:.0} entities/s are written at the busiest time; the most written partition, of the table or an index \
             table, lets {most:.0} through"
        )));
    }
    for part in design.partition.iter().chain(&design.row) {
        let Part::Value(name) = part else { continue };
        let Some(column) = column(name) else { continue };
        if column.is_unpadded {
            warnings.push(mild(format!(
                "unpadded: {name} has digits of different lengths, which don't sort as numbers: '10' is before '9'"
            )));
        }
        if column.has_bad_characters && design.kind != Kind::AsItIs {
            warnings.push(mild(format!(
                "characters: {name} has some that keys can't hold (/ \\ # ? and control characters): they are escaped"
            )));
        }
    }
    warnings.extend(of_keys(prediction, given.facts.sample));
    let slow = prediction.queries.iter().filter(|query| !query.is_fast_enough);
    warnings.extend(
        slow.map(|query| serious(format!("slow: {} takes about {:.0} ms", query.name, query.took_ms))),
    );
    warnings.dedup();
    warnings
}

/// Of the keys that it makes of the sample.
fn of_keys(prediction: &Prediction, sample: &Sample) -> Vec<Warning> {
    let (mut keys, mut long, mut absent, mut same) = (BTreeSet::new(), 0u64, 0u64, 0u64);
    for entity in &sample.entities {
        let design = &prediction.design;
        let (Some(partition), Some(row)) = (design.partition_key(entity), design.row_key(entity)) else {
            absent += 1;
            continue;
        };
        long += u64::from(units(&partition).max(units(&row)) > KEY_UNITS_MAX);
        same += u64::from(!keys.insert((partition, row)));
    }
    let mut warnings = Vec::new();
    if long > 0 {
        warnings.push(serious(format!(
            "long: {long} keys of the sample have more than {KEY_UNITS_MAX} characters"
        )));
    }
    if absent > 0 {
        warnings
            .push(serious(format!("absent: {absent} entities of the sample lack a property of the keys")));
    }
    if same > 0 {
        warnings.push(serious(format!(
            "not unique: {same} entities of the sample have both keys of another one"
        )));
    }
    warnings
}

/// Of the entities under any design.
pub(crate) fn of_entities(sample: &Sample) -> Vec<Warning> {
    let large = sample.entities.iter().filter(|one| one.size_bytes() > ENTITY_SIZE_BYTES_NEAR).count();
    let wide = sample.entities.iter().filter(|one| one.properties.len() > PROPERTIES_NEAR).count();
    let mut warnings = Vec::new();
    if large > 0 {
        warnings.push(mild(format!(
            "large: {large} entities of the sample are near 1 MiB or beyond it: put what is large into blobs"
        )));
    }
    if wide > 0 {
        warnings.push(mild(format!(
            "wide: {wide} entities of the sample have nearly 255 properties with keys and Timestamp, or more: put some \
             into one property as JSON"
        )));
    }
    warnings
}
