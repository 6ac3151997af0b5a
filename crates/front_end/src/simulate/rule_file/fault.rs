//! A `[[fault]]` table, from its keys to a rule.

use crate::simulate::fault_rule::{Choice, Disturbance, FaultRule, Match, When};
use crate::simulate::operation::OPERATIONS;
use hyper::StatusCode;
use settings_file::{SECONDS_MAX, Section, SettingsFileError, meant};
use std::num::NonZeroU64;
use std::time::Duration;

pub(super) const KEYS: [&str; 15] = [
    "name",
    "account",
    "service",
    "operation",
    "key_prefix",
    "every",
    "probability",
    "times",
    "delay_ms",
    "status",
    "code",
    "message",
    "when",
    "reset",
    "cut_body_bytes",
];

const SERVICES: [&str; 3] = ["blob", "queue", "table"];

/// Letters of a rule's name, and of a code, at most: both stand in headers.
const NAME_LEN_MAX: usize = 64;

/// Letters of a message at most.
const MESSAGE_LEN_MAX: usize = 1024;

/// The code of statuses that have a usual one.
fn usual_code(status: u64) -> Option<&'static str> {
    Some(match status {
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServerBusy",
        _ => return None,
    })
}

/// Reads the rule that is the `number`th of its file, and begins at `at`.
pub(super) fn read_rule(
    section: &Section<'_>,
    number: usize,
    at: usize,
) -> Result<FaultRule, SettingsFileError> {
    let name = match section.text("name")? {
        None => format!("fault-{number}"),
        Some((name, _)) if is_name(name) => name.to_owned(),
        Some((_, at)) => return Err(section.wrong("name", at, NAME_WANTED)),
    };
    let delay = section.number("delay_ms", 0.0..=SECONDS_MAX * 1000.0)?;
    let rule = FaultRule {
        name,
        matches: read_match(section)?,
        choice: read_choice(section)?,
        times: section.count("times", 1..=u64::MAX >> 1)?,
        delay: delay.map(|millis| Duration::from_secs_f64(millis / 1000.0)),
        disturbance: read_disturbance(section)?,
    };
    if rule.delay.is_none() && rule.disturbance.is_none() {
        let what = "a fault rule must do something: give status, reset, cut_body_bytes or delay_ms";
        return Err(match section.table.is_empty() {
            true => section.refuse_at(at, what.to_owned()),
            false => section.refuse("", what.to_owned()),
        });
    }
    Ok(rule)
}

const NAME_WANTED: &str = "1 to 64 letters, digits, dots, hyphens and underscores";

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_LEN_MAX).contains(&text.len()) && text.bytes().all(is_letter)
}

fn read_match(section: &Section<'_>) -> Result<Match, SettingsFileError> {
    let service = section.text("service")?;
    if let Some((given, at)) = service
        && !SERVICES.contains(&given)
    {
        let what =
            format!("there is no service {given:?} ({}){}", SERVICES.join(", "), meant(given, SERVICES));
        return Err(section.refuse_at(at, what));
    }
    let (operations, at) = section.texts("operation")?;
    if let Some(unknown) = operations.iter().find(|name| !OPERATIONS.contains(name)) {
        let what = format!("there is no operation {unknown:?}{}", meant(unknown, OPERATIONS));
        return Err(section.refuse_at(at, what));
    }
    Ok(Match {
        account: section.text("account")?.map(|(account, _)| account.to_owned()),
        service: service.map(|(service, _)| service.to_owned()),
        operations: operations.into_iter().map(str::to_owned).collect(),
        key_prefix: section.text("key_prefix")?.map_or_else(String::new, |(prefix, _)| prefix.to_owned()),
    })
}

fn read_choice(section: &Section<'_>) -> Result<Choice, SettingsFileError> {
    let every = section.count("every", 1..=u64::MAX >> 1)?.and_then(NonZeroU64::new);
    let probability = section.number("probability", 0.0..=1.0)?;
    match (every, probability) {
        (Some(_), Some(_)) => {
            Err(section.refuse("probability", "a fault rule has every or probability, not both".to_owned()))
        }
        (None, Some(probability)) => Ok(Choice::Probability(probability)),
        (every, None) => Ok(Choice::Every(every.unwrap_or(NonZeroU64::MIN))),
    }
}

fn read_disturbance(section: &Section<'_>) -> Result<Option<Disturbance>, SettingsFileError> {
    let given: Vec<&str> = ["status", "reset", "cut_body_bytes"]
        .into_iter()
        .filter(|key| section.table.contains_key(*key))
        .collect();
    if let [first, second, ..] = given[..] {
        return Err(section.refuse(second, format!("a fault rule has {first} or {second}, not both")));
    }
    let lone = ["code", "message", "when"].into_iter().find(|key| section.table.contains_key(*key));
    match (given.first(), lone) {
        (Some(&"status"), _) | (_, None) => {}
        (_, Some(key)) => return Err(section.refuse(key, format!("{key} goes with status only"))),
    }
    if let Some(status) = section.count("status", 400..=599)? {
        return read_answer(section, status).map(Some);
    }
    if let Some(when) = read_when(section, "reset")? {
        return Ok(Some(Disturbance::Reset(when)));
    }
    Ok(section.count("cut_body_bytes", 0..=1 << 50)?.map(Disturbance::CutBody))
}

fn read_answer(section: &Section<'_>, status: u64) -> Result<Disturbance, SettingsFileError> {
    let code = match section.text("code")? {
        Some((code, _)) if is_name(code) => code.to_owned(),
        Some((_, at)) => return Err(section.wrong("code", at, NAME_WANTED)),
        None => match usual_code(status) {
            Some(code) => code.to_owned(),
            None => {
                return Err(section.refuse("status", format!("status {status} has no usual code: give code")));
            }
        },
    };
    let message = section.text("message")?;
    if let Some((text, at)) = message
        && (text.len() > MESSAGE_LEN_MAX || text.chars().any(char::is_control))
    {
        return Err(section.wrong("message", at, &format!("one line of at most {MESSAGE_LEN_MAX} bytes")));
    }
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.ok_or_else(|| section.refuse("status", "there is no such status".to_owned()))?;
    let when = read_when(section, "when")?.unwrap_or(When::Before);
    Ok(Disturbance::Answer { status, code, message: message.map(|(text, _)| text.to_owned()), when })
}

fn read_when(section: &Section<'_>, key: &str) -> Result<Option<When>, SettingsFileError> {
    match section.text(key)? {
        None => Ok(None),
        Some(("before", _)) => Ok(Some(When::Before)),
        Some(("after", _)) => Ok(Some(When::After)),
        Some((_, at)) => Err(section.wrong(key, at, "\"before\" or \"after\" the work is done")),
    }
}
