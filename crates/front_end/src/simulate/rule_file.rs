//! The rule file of `--simulate FILE`: TOML, from its text to checked settings.
//!
//! ```text
//! profile = "azure"            seed = 7            speed = 60
//!
//! [limits]                     partition_entities_per_second = 500
//! [boundaries]                 partitions = 1, empty = 1, page_rows = 10, examined_rows = 1000
//! [balancing]                  load = 0.5, begins_after_s = 180, away_min_s = 5, away_max_s = 20
//!
//! [[fault]]
//! name = "lost-answer"         service = "table"   operation = "InsertEntity"   key_prefix = "tasks/p"
//! every = 3                    reset = "after"
//! ```
//!
//! What always holds: a key that is not known, or a value that makes no sense, is an error that names its
//! line; nothing is ignored.

use super::balancing::BalancingSettings;
use super::boundaries::Boundaries;
use super::fault_rule::FaultRule;
use super::settings::{PROFILES, SimulationSettings, TargetLimits};
use settings_file::{SECONDS_MAX, Section, SettingsFileError, meant};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::time::Duration;
use table::limits::PAGE_ROWS_MAX;

mod fault;

/// Fault rules at most: each request is compared with all of them.
pub(crate) const FAULT_RULES_MAX: usize = 256;

/// By how much durations may be divided.
const SPEED_RANGE: RangeInclusive<f64> = 1e-3..=1e6;

/// Reads a rule file.
pub fn parse_rule_file(text: &str) -> Result<SimulationSettings, SettingsFileError> {
    let parsed = settings_file::parse(text)?;
    let keys = &["profile", "seed", "speed", "limits", "boundaries", "balancing", "fault"];
    let file = Section::new(text, "the file", parsed.get_ref(), keys)?;
    let mut settings = match file.text("profile")? {
        None => SimulationSettings::default(),
        Some((name, at)) => SimulationSettings::profile(name).ok_or_else(|| {
            let known = PROFILES.join(", ");
            file.refuse_at(at, format!("there is no profile {name:?} ({known}){}", meant(name, PROFILES)))
        })?,
    };
    if let Some(seed) = file.number("seed", 0.0..=9e15)? {
        settings.seed = seed as u64;
    }
    if let Some(section) = file.section("limits", &LIMIT_KEYS)? {
        read_limits(&section, &mut settings.limits)?;
    }
    if let Some(section) =
        file.section("boundaries", &["partitions", "empty", "page_rows", "examined_rows"])?
    {
        read_boundaries(&section, &mut settings.boundaries)?;
    }
    if let Some(section) = file.section("balancing", &BALANCING_KEYS)? {
        settings.balancing = read_balancing(&section, settings.balancing.unwrap_or_default())?;
    }
    let speed = file.number("speed", SPEED_RANGE)?.unwrap_or(1.0);
    settings.balancing = settings.balancing.map(|balancing| balancing.at_speed(speed));
    settings.rules = read_rules(&file)?;
    Ok(settings)
}

const LIMIT_KEYS: [&str; 8] = [
    "partition_entities_per_second",
    "queue_messages_per_second",
    "block_blob_requests_per_second",
    "page_blob_requests_per_second",
    "page_blob_bytes_per_second",
    "account_requests_per_second",
    "ingress_bytes_per_second",
    "egress_bytes_per_second",
];

/// 0 stands for no limit.
fn read_limits(section: &Section<'_>, limits: &mut TargetLimits) -> Result<(), SettingsFileError> {
    let slots = [
        &mut limits.partition_entities,
        &mut limits.queue_messages,
        &mut limits.block_blob_requests,
        &mut limits.page_blob_requests,
        &mut limits.page_blob_bytes,
        &mut limits.account_requests,
        &mut limits.ingress_bytes,
        &mut limits.egress_bytes,
    ];
    for (key, slot) in LIMIT_KEYS.into_iter().zip(slots) {
        if let Some(count) = section.count(key, 0..=1 << 50)? {
            *slot = NonZeroU64::new(count);
        }
    }
    Ok(())
}

fn read_boundaries(section: &Section<'_>, boundaries: &mut Boundaries) -> Result<(), SettingsFileError> {
    if let Some(share) = section.number("partitions", 0.0..=1.0)? {
        boundaries.partitions = share;
    }
    if let Some(share) = section.number("empty", 0.0..=1.0)? {
        boundaries.empty = share;
    }
    if let Some(rows) = section.count("page_rows", 1..=PAGE_ROWS_MAX as u64)? {
        boundaries.page_rows = usize::try_from(rows).ok();
    }
    if let Some(rows) = section.count("examined_rows", 1..=1 << 50)? {
        boundaries.examined_rows = Some(rows);
    }
    Ok(())
}

const BALANCING_KEYS: [&str; 8] = [
    "enabled",
    "load",
    "begins_after_s",
    "away_min_s",
    "away_max_s",
    "cools_after_s",
    "averaged_s",
    "timed_out",
];

/// `None`: it is switched off.
fn read_balancing(
    section: &Section<'_>,
    usual: BalancingSettings,
) -> Result<Option<BalancingSettings>, SettingsFileError> {
    let seconds = |key, usual| -> Result<Duration, SettingsFileError> {
        let given = section.number(key, 1e-6..=SECONDS_MAX)?;
        Ok(given.map_or(usual, Duration::from_secs_f64))
    };
    let balancing = BalancingSettings {
        load: section.number("load", 1e-6..=1e6)?.unwrap_or(usual.load),
        begins_after: seconds("begins_after_s", usual.begins_after)?,
        away_for_min: seconds("away_min_s", usual.away_for_min)?,
        away_for_max: seconds("away_max_s", usual.away_for_max)?,
        cools_after: seconds("cools_after_s", usual.cools_after)?,
        averaged_for: seconds("averaged_s", usual.averaged_for)?,
        timed_out: section.number("timed_out", 0.0..=1.0)?.unwrap_or(usual.timed_out),
    };
    if balancing.away_for_min > balancing.away_for_max {
        let key = if section.table.contains_key("away_min_s") { "away_min_s" } else { "away_max_s" };
        return Err(section.refuse(key, "away_min_s is more than away_max_s".to_owned()));
    }
    Ok(section.flag("enabled")?.unwrap_or(true).then_some(balancing))
}

fn read_rules(file: &Section<'_>) -> Result<Vec<FaultRule>, SettingsFileError> {
    let Some((key, value)) = file.table.get_key_value("fault") else { return Ok(Vec::new()) };
    let wanted = || file.refuse_at(key.span().start, "fault rules are written as [[fault]]".to_owned());
    let tables = value.get_ref().as_array().ok_or_else(wanted)?;
    if tables.len() > FAULT_RULES_MAX {
        return Err(
            file.refuse_at(key.span().start, format!("there are more than {FAULT_RULES_MAX} fault rules"))
        );
    }
    let mut rules: Vec<FaultRule> = Vec::with_capacity(tables.len());
    for (index, table) in tables.iter().enumerate() {
        let table_at = table.span().start;
        let table = table.get_ref().as_table().ok_or_else(wanted)?;
        let section = Section::new(file.text, "[[fault]]", table, &fault::KEYS)?;
        let rule = fault::read_rule(&section, index + 1, table_at)?;
        if rules.iter().any(|other| other.name == rule.name) {
            return Err(section.refuse("name", format!("there is another rule of the name {:?}", rule.name)));
        }
        rules.push(rule);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests;
