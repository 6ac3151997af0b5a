//! What an operator changes.
//!
//! What always holds: each is checked before it begins, and says in words what was done.

use super::body::{Fields, required};
use super::looks::layers;
use super::{Api, Call, Done};
use crate::admin::route::Answer;
use crate::admin::sampled::TABLES_BY_NAME;
use crate::admin::tokens::Role;
use crate::output::log::{announce, parse_levels};
use base::BoxFuture;
use partition::{ObjectTable, PartitionError, Partitions};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a change that takes long came to; `None`: there is no such range.
type Outcome = Result<Option<(Value, String)>, PartitionError>;

fn done(body: &Value, words: String) -> Result<Done, Answer> {
    Ok(Done { answer: Answer::json(200, body), words })
}

/// The object tables that a change is for.
fn tables_of(table: Option<(ObjectTable, &'static str)>) -> Vec<ObjectTable> {
    match table {
        Some((table, _)) => vec![table],
        None => TABLES_BY_NAME.into_iter().map(|(table, _)| table).collect(),
    }
}

/// Which ranges a change is for: those of a table, or of all.
fn chosen(call: Call<'_>) -> Result<(Vec<ObjectTable>, Option<u64>), Answer> {
    let fields = Fields::parse(call.body, &["table", "range"])?;
    Ok((tables_of(fields.table()?), fields.range()?))
}

/// Targets that levels name, and letters of each, at most.
const LEVEL_TARGET_COUNT_MAX: usize = 7;
const LEVEL_TARGET_LEN_MAX: usize = 40;

/// Whether a text is what the description says of levels; the flag takes more, such as nothing at all.
fn are_levels(text: &str) -> bool {
    let is_level = |word: &str| matches!(word, "off" | "error" | "warn" | "info" | "debug" | "trace");
    let is_target = |name: &str| {
        (1..=LEVEL_TARGET_LEN_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let of_target =
        |part: &str| part.split_once('=').is_some_and(|(target, level)| is_target(target) && is_level(level));
    let mut parts = text.split(',');
    parts.next().is_some_and(is_level)
        && parts.clone().count() <= LEVEL_TARGET_COUNT_MAX
        && parts.all(of_target)
}

impl Api {
    /// `PUT /log-level`.
    pub(super) fn set_log_level(&self, call: Call<'_>) -> Result<Done, Answer> {
        let fields = Fields::parse(call.body, &["levels"])?;
        let text = required(fields.text("levels")?, "levels")?;
        let wrong = || {
            let why =
                "levels are off, error, warn, info, debug or trace, or several such as warn,partition=debug";
            Answer::error(400, "bad_levels", why)
        };
        let levels = Some(text).filter(|text| are_levels(text)).and_then(|text| parse_levels(text).ok());
        let levels = levels.ok_or_else(wrong)?;
        self.log.replace(levels);
        let levels = self.log.levels();
        done(&json!({ "levels": levels }), format!("{levels} is logged until the settings are read again"))
    }

    /// `POST /flush`.
    pub(super) async fn flush(&self, call: Call<'_>) -> Result<Done, Answer> {
        let (tables, range) = chosen(call)?;
        let flush = async move |partitions: Arc<Partitions>| {
            let mut count = 0;
            for table in tables {
                count += partitions.flush_now(table, range).await?;
            }
            let words = format!("{count} ranges were flushed");
            Ok((count > 0).then(|| (json!({ "done": true, "ranges": count }), words)))
        };
        let partitions = layers(call)?.partitions;
        self.run(Box::pin(async move { flush(partitions).await })).await
    }

    /// `POST /compact`.
    pub(super) async fn compact(&self, call: Call<'_>) -> Result<Done, Answer> {
        let (tables, range) = chosen(call)?;
        let partitions = layers(call)?.partitions;
        let compact = async move {
            let mut count: Option<u64> = None;
            for table in tables {
                let compacted = partitions.compact_now(table, range).await?;
                count = compacted.map(|compacted| compacted + count.unwrap_or(0)).or(count);
            }
            Ok(count.map(|count| {
                (json!({ "done": true, "compactions": count }), format!("{count} compactions were done"))
            }))
        };
        self.run(Box::pin(compact)).await
    }

    /// `POST /split`.
    pub(super) async fn split(&self, call: Call<'_>) -> Result<Done, Answer> {
        let fields = Fields::parse(call.body, &["table", "range"])?;
        let (table, name) = required(fields.table()?, "table")?;
        let range = required(fields.range()?, "range")?;
        let partitions = layers(call)?.partitions;
        let split = async move {
            if !partitions.range_details(table).await.iter().any(|known| known.id == range) {
                return Ok(None);
            }
            let is_split = partitions.split_in_middle(table, range).await?;
            let what = if is_split { "was split" } else { "was not split: no key parts it" };
            Ok(Some((json!({ "done": true, "split": is_split }), format!("range {range} of {name} {what}"))))
        };
        self.run(Box::pin(split)).await
    }

    /// Does what takes long, unless something of that kind is under way.
    async fn run(&self, work: BoxFuture<'static, Outcome>) -> Result<Done, Answer> {
        let Ok(permit) = self.changing.clone().try_acquire_owned() else {
            return Err(Answer::error(409, "busy", "another flush, compaction or split is under way"));
        };
        let (reply, outcome) = oneshot::channel();
        let task = async move {
            let outcome = work.await;
            drop(permit);
            // Nobody waits for it any more.
            match reply.send(outcome) {
                Ok(()) => {}
                Err(Ok(Some((_, words)))) => {
                    announce(&format!("admin side: what was begun has ended: {words}"))
                }
                Err(Ok(None)) => announce("admin side: what was begun has ended: there is no such range"),
                Err(Err(error)) => announce(&format!("admin side: what was begun has failed: {error}")),
            }
        };
        if let Err(error) = self.spawner.spawn_dedicated("admin-work", Box::pin(task)) {
            return Err(Answer::error(503, "no_thread", &format!("no thread can be started: {error}")));
        }
        match tokio::time::timeout(self.wait_max, outcome).await {
            Ok(Ok(Ok(Some((body, words))))) => done(&body, words),
            Ok(Ok(Ok(None))) => {
                Err(Answer::error(404, "no_such_range", "there is no such range that is served"))
            }
            Ok(Ok(Err(error))) => {
                let answer = Answer::error(503, "storage", &error.to_string());
                Ok(Done { answer, words: format!("it failed: {error}") })
            }
            Ok(Err(_)) => Err(Answer::error(503, "storage", "it broke off")),
            Err(_) => Ok(Done {
                answer: Answer::json(202, &json!({ "done": false })),
                words: "it has begun and goes on".to_owned(),
            }),
        }
    }

    /// `PUT /drain`.
    pub(super) fn set_drain(&self, call: Call<'_>) -> Result<Done, Answer> {
        let draining = Fields::parse(call.body, &["draining"])?.bool("draining")?;
        call.readiness.hold_out(draining);
        let words = match draining {
            true => "/ready answers 503 from now on; requests are served on",
            false => "/ready says again whether requests are served",
        };
        done(&json!({ "draining": draining }), words.to_owned())
    }

    /// `PUT /simulate`.
    pub(super) fn set_simulate(&self, call: Call<'_>) -> Result<Done, Answer> {
        let fields = Fields::parse(call.body, &["profile"])?;
        let profile = required(fields.text("profile")?, "profile")?;
        let Some(simulation) = &self.simulation else {
            let why = "nothing is simulated: larimar was started without --simulate";
            return Err(Answer::error(409, "not_simulating", why));
        };
        if !simulation.set_profile(profile) {
            let why = format!("there is no such profile; there are {}", front_end::PROFILES.join(", "));
            return Err(Answer::error(400, "no_such_profile", &why));
        }
        done(
            &json!({ "simulating": simulation.given() }),
            format!("profile {} is simulated", simulation.given()),
        )
    }

    /// `POST /settings/reload`.
    pub(super) async fn reload_settings(&self, call: Call<'_>) -> Result<Done, Answer> {
        Fields::parse(call.body, &[])?;
        match tokio::time::timeout(self.wait_max, self.settings.reload()).await {
            Ok(Ok(outcome)) => done(&json!({ "outcome": outcome }), outcome),
            Ok(Err(mistake)) => {
                Ok(Done { answer: Answer::error(409, "not_reloaded", &mistake), words: mistake })
            }
            Err(_) => {
                let words = "the file is still being read; the log says what comes of it";
                let answer = Answer::error(409, "not_reloaded", words);
                Ok(Done { answer, words: words.to_owned() })
            }
        }
    }

    /// `POST /token`.
    pub(super) fn rotate_token(&self, call: Call<'_>) -> Result<Done, Answer> {
        let fields = Fields::parse(call.body, &["role"])?;
        let Some(role) = Role::of_name(required(fields.text("role")?, "role")?) else {
            return Err(Answer::error(400, "bad_body", "role has to be read, operate or admin"));
        };
        match call.tokens.rotate(role) {
            Ok(token) => done(
                &json!({ "role": role.name(), "token": token }),
                format!("the token of role {} is another one now", role.name()),
            ),
            Err(error) => {
                let words = format!("the file of tokens can't be written, all is as before: {error}");
                Ok(Done { answer: Answer::error(503, "storage", &words), words })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing at all was taken for the usual levels.
    #[test]
    fn levels_are_those_of_the_description() {
        for (text, expected) in [
            ("warn", true),
            ("warn,partition=debug", true),
            ("off,a=info,b=info,c=info,d=info,e=info,f=info,g=info", true),
            ("off,a=info,b=info,c=info,d=info,e=info,f=info,g=info,h=info", false),
            ("", false),
            ("WARN", false),
            ("3", false),
            ("partition=debug", false),
            ("warn,", false),
            ("warn,=debug", false),
            ("warn, partition=debug", false),
            ("warn\n", false),
        ] {
            assert_eq!(are_levels(text), expected, "{text:?}");
            assert!(!expected || parse_levels(text).is_ok(), "{text:?}");
        }
    }
}
