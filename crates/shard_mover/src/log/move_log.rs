//! Reading and putting the records of moves.
//!
//! What always holds: parts of a long state are put before the state that names them; a put whose answer is
//! lost is an error that leaves it open, and the next read shows what is there.

use super::id::MoveId;
use super::keys;
use super::position::Position;
use super::state::{FORMAT, Move, MoveState, StateRecord};
use crate::error::MoveError;
use crate::limits::{PAGE, STATES_MAX};
use base::date_time::date_time_text;
use base::{Clock, Random};
use serde::{Deserialize, Serialize};
use shard_map::{Name, SHARDS_MAX};
use shard_store::{Put, Record, Records, VALUE_BYTES_MAX};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The records of all moves of a catalog.
#[derive(Clone)]
pub(crate) struct MoveLog {
    pub(crate) records: Arc<dyn Records>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// A state as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: u64,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Content {
    /// The text of the state is in parts.
    Parts {
        text_id: String,
        part_count: usize,
    },
    Whole(StateRecord),
}

/// What every record has.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl MoveLog {
    pub(crate) fn new_id(&self) -> MoveId {
        MoveId::new(self.clock.now(), self.random.next_u64())
    }

    /// A move with all its states.
    pub(crate) async fn read(&self, id: &MoveId) -> Result<Move, MoveError> {
        let prefix = keys::states(id);
        let found = self.records.list(&prefix, &keys::behind(&prefix), STATES_MAX).await?;
        let mut states = Vec::with_capacity(found.len());
        for (number, record) in found.iter().enumerate() {
            if record.key != keys::state(id, number) {
                return Err(self.damaged(&keys::state(id, number), "it is missing, and a later one is not"));
            }
            states.push(self.state(record).await?);
        }
        if states.is_empty() {
            return Err(MoveError::NoMove { place: self.records.place().to_owned(), id: id.clone() });
        }
        let first = keys::state(id, 0);
        Move::of(id.clone(), states).ok_or_else(|| self.damaged(&first, "it is not of the state planned"))
    }

    /// All moves, the oldest first.
    pub(crate) async fn all(&self) -> Result<Vec<Move>, MoveError> {
        let mut ids: Vec<MoveId> = Vec::new();
        let (mut from, to) = (keys::MOVE.to_owned(), keys::behind(keys::MOVE));
        loop {
            let page = self.records.list(&from, &to, PAGE).await?;
            ids.extend(page.iter().filter_map(|record| Some(keys::read_state(&record.key)?.0)));
            ids.dedup();
            match page.last() {
                Some(last) if page.len() == PAGE => from = format!("{}0", last.key),
                _ => break,
            }
        }
        let mut moves = Vec::with_capacity(ids.len());
        for id in ids {
            moves.push(self.read(&id).await?);
        }
        Ok(moves)
    }

    async fn state(&self, record: &Record) -> Result<StateRecord, MoveError> {
        let damaged = |error: serde_json::Error| self.damaged(&record.key, error.to_string());
        let Format { format } = serde_json::from_str(&record.value).map_err(damaged)?;
        if format > FORMAT {
            let (place, key) = (self.records.place().to_owned(), record.key.clone());
            return Err(MoveError::Newer { place, key, format });
        }
        let stored: Stored = serde_json::from_str(&record.value).map_err(damaged)?;
        let (text_id, part_count) = match stored.content {
            Content::Whole(state) => return Ok(state),
            Content::Parts { text_id, part_count } => (text_id, part_count),
        };
        let mut text = String::new();
        for index in 0..part_count {
            let key = keys::part(&text_id, index);
            let part = self.records.get(&key).await?;
            text.push_str(&part.ok_or_else(|| self.damaged(&key, "it is missing"))?);
        }
        serde_json::from_str(&text).map_err(damaged)
    }

    /// Puts a state under its number; another may be there already.
    pub(crate) async fn put(&self, id: &MoveId, number: usize, state: MoveState) -> Result<Put, MoveError> {
        let record = StateRecord { at: date_time_text(self.clock.now()), state };
        let text = json(&Stored { format: FORMAT, content: Content::Whole(record.clone()) });
        let text = match text.len() <= VALUE_BYTES_MAX {
            true => text,
            false => self.put_parts(&json(&record)).await?,
        };
        Ok(self.records.put(&keys::state(id, number), &text).await?)
    }

    async fn put_parts(&self, mut text: &str) -> Result<String, MoveError> {
        let text_id = self.new_id().to_string();
        let mut part_count = 0;
        while !text.is_empty() {
            let piece;
            (piece, text) = text.split_at(text.floor_char_boundary(VALUE_BYTES_MAX));
            self.records.put(&keys::part(&text_id, part_count), piece).await?;
            part_count += 1;
        }
        Ok(json(&Stored { format: FORMAT, content: Content::Parts { text_id, part_count } }))
    }

    /// Takes a mapping of one `since` for a move; the id of the move that has it.
    pub(crate) async fn take_mapping(&self, of: &Move) -> Result<String, MoveError> {
        let key = keys::moving(&of.order.map, &of.order.mapping, of.order.since);
        match self.records.put(&key, of.id.as_str()).await? {
            Put::Done => Ok(of.id.to_string()),
            Put::Taken => {
                let there = self.records.get(&key).await?;
                there.ok_or_else(|| self.damaged(&key, "it was there and is gone"))
            }
        }
    }

    /// How far the copy of a move is, and the number of the next such record.
    pub(crate) async fn position(&self, id: &MoveId) -> Result<(Option<Position>, u64), MoveError> {
        let prefix = keys::positions(id);
        let (mut from, to) = (prefix.clone(), keys::behind(&prefix));
        let mut last: Option<Record> = None;
        loop {
            let page = self.records.list(&from, &to, PAGE).await?;
            let is_end = page.len() < PAGE;
            last = page.into_iter().next_back().or(last);
            match &last {
                Some(last) if !is_end => from = format!("{}0", last.key),
                _ => break,
            }
        }
        let Some(last) = last else { return Ok((None, 0)) };
        // One that can't be read costs a copy from the start.
        let position = serde_json::from_str::<Position>(&last.value).ok();
        let next = keys::number_of(&last.key).map_or(0, |number| number + 1);
        Ok((position.filter(|position| position.format <= FORMAT), next))
    }

    /// Puts how far a copy is. Another mover of the same move may have put that number: fine.
    pub(crate) async fn put_position(
        &self,
        id: &MoveId,
        number: u64,
        position: &Position,
    ) -> Result<(), MoveError> {
        self.records.put(&keys::position(id, number), &json(position)).await?;
        Ok(())
    }

    /// Removes what is not needed after a copy.
    pub(crate) async fn remove_positions(&self, id: &MoveId) -> Result<(), MoveError> {
        self.remove_all(&keys::positions(id)).await
    }

    /// Keeps which shards a publish did not reach, and no others.
    pub(crate) async fn put_unreached(&self, unreached: &BTreeMap<Name, String>) -> Result<(), MoveError> {
        let known = self.unreached().await?;
        for shard in known.keys().filter(|shard| known.get(*shard) != unreached.get(*shard)) {
            self.records.remove(&keys::unreached(shard)).await?;
        }
        for (shard, why) in unreached.iter().filter(|(shard, why)| known.get(*shard) != Some(*why)) {
            self.records.put(&keys::unreached(shard), why).await?;
        }
        Ok(())
    }

    /// The shards that the last publish did not reach, and why.
    pub(crate) async fn unreached(&self) -> Result<BTreeMap<Name, String>, MoveError> {
        let to = keys::behind(keys::UNREACHED);
        let found = self.records.list(keys::UNREACHED, &to, SHARDS_MAX).await?;
        let read = |record: Record| {
            let shard = Name::parse(record.key.strip_prefix(keys::UNREACHED)?).ok()?;
            Some((shard, record.value))
        };
        Ok(found.into_iter().filter_map(read).collect())
    }

    async fn remove_all(&self, prefix: &str) -> Result<(), MoveError> {
        loop {
            let page = self.records.list(prefix, &keys::behind(prefix), PAGE).await?;
            for record in &page {
                self.records.remove(&record.key).await?;
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    fn damaged(&self, key: &str, what: impl Into<String>) -> MoveError {
        let place = self.records.place().to_owned();
        MoveError::Damaged { place, key: key.to_owned(), what: what.into() }
    }
}

fn json<T: Serialize>(of: &T) -> String {
    // Numbers and texts have a form in JSON.
    serde_json::to_string(of).unwrap_or_default()
}
