//! Changes of lists become changes of the range's document.
//!
//! What always holds: all changes of a list are made or none; what is shared or removed takes no more
//! appends. A transaction of the metadata store drops few extents: a stream of many is renamed first, so that
//! nobody sees it any more, and emptied then.

use crate::error::StampError;
use crate::layer::held::{GOING, Held, of_change};
use stamp::{Change, ExtentName, RangeDocument, StreamId, TrimPoint};
use std::collections::BTreeMap;
use stream::{ExtentId, OwnedStream, Owner, StreamChange, StreamError, StreamName};

/// Extents that one change drops.
const DROPPED_AT_ONCE_MAX: usize = 100;

/// Changes of one list of the layers above, and what is still to be done behind them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Planned {
    changes: Vec<Change>,
    /// Whether streams have got a name of those that are going.
    leaves_going: bool,
}

/// Plans `changes`. Streams are looked up as the changes before have left them. Pure, but for the ids of new
/// streams.
fn plan(
    document: &RangeDocument,
    changes: &[StreamChange],
    ids: &dyn Fn(ExtentId) -> Result<ExtentName, StreamError>,
    mut new_id: impl FnMut() -> StreamId,
) -> Result<Planned, StreamError> {
    let named = document.streams.iter().map(|(id, entry)| (entry.purpose.clone(), *id));
    let mut streams: BTreeMap<String, StreamId> = named.collect();
    let find = |streams: &BTreeMap<String, StreamId>, stream: &OwnedStream| {
        let id = streams.get(stream.name.as_str()).copied();
        id.ok_or_else(|| StreamError::NoStream(stream.name.clone()))
    };
    let listed = |stream: StreamId| {
        let entries = document.streams.get(&stream).map(|entry| entry.extents.as_slice()).unwrap_or_default();
        entries.iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    // What each stream is given by shares of this list.
    let mut given: BTreeMap<StreamId, Vec<ExtentName>> = BTreeMap::new();
    let mut planned = Planned::default();
    let mut dropped = 0;
    for change in changes {
        match change {
            StreamChange::Create(stream) => {
                let (id, purpose) = (new_id(), stream.name.as_str().to_owned());
                if streams.insert(purpose.clone(), id).is_some() {
                    return Err(StreamError::StreamExists(stream.name.clone()));
                }
                planned.changes.push(Change::CreateStream { stream: id, purpose });
            }
            StreamChange::Delete(stream) => {
                let id = find(&streams, stream)?;
                streams.remove(stream.name.as_str());
                let count = listed(id).len();
                if dropped + count <= DROPPED_AT_ONCE_MAX {
                    dropped += count;
                    planned.changes.push(Change::DeleteStream { stream: id });
                } else {
                    let purpose = format!("{GOING}{id}");
                    planned.leaves_going = true;
                    planned.changes.push(Change::RenameStream { stream: id, purpose });
                }
            }
            StreamChange::Rename { from, to } => {
                let id = find(&streams, from)?;
                let purpose = to.name.as_str().to_owned();
                streams.remove(from.name.as_str());
                if streams.insert(purpose.clone(), id).is_some() {
                    return Err(StreamError::StreamExists(to.name.clone()));
                }
                planned.changes.push(Change::RenameStream { stream: id, purpose });
            }
            StreamChange::Unlist { stream, extents } => {
                let stream = find(&streams, stream)?;
                let extents = extents.iter().map(|extent| ids(*extent)).collect::<Result<Vec<_>, _>>()?;
                dropped += extents.len();
                planned.changes.push(Change::Unlist { stream, extents });
            }
            StreamChange::Share { from, to } | StreamChange::ShareSome { from, to, .. } => {
                let (from, to) = (find(&streams, from)?, find(&streams, to)?);
                let wanted = |extent: &ExtentName| match change {
                    StreamChange::ShareSome { extents, .. } => extents.contains(&extent.short()),
                    _ => true,
                };
                // Ranges that were one and become one again list the same extents.
                let known = [listed(to), given.get(&to).cloned().unwrap_or_default()].concat();
                let mut extents = [listed(from), given.get(&from).cloned().unwrap_or_default()].concat();
                extents.retain(|extent| wanted(extent) && !known.contains(extent));
                given.entry(to).or_default().extend(&extents);
                planned.changes.push(Change::Share { from, to, extents });
            }
        }
    }
    Ok(planned)
}

/// The stream that a change ends the appends of.
fn ended(change: &StreamChange) -> Option<&OwnedStream> {
    match change {
        StreamChange::Share { from, .. } | StreamChange::ShareSome { from, .. } => Some(from),
        StreamChange::Delete(stream) => Some(stream),
        StreamChange::Create(_) | StreamChange::Rename { .. } | StreamChange::Unlist { .. } => None,
    }
}

/// The owners that a change names.
fn owned(change: &StreamChange) -> Vec<&OwnedStream> {
    match change {
        StreamChange::Create(stream) | StreamChange::Delete(stream) => vec![stream],
        StreamChange::Unlist { stream, .. } => vec![stream],
        StreamChange::Rename { from, to }
        | StreamChange::Share { from, to }
        | StreamChange::ShareSome { from, to, .. } => vec![from, to],
    }
}

impl Held {
    /// Changes several streams' lists in one durable step, or not at all.
    pub(super) async fn modify(&self, changes: &[StreamChange]) -> Result<(), StreamError> {
        for stream in changes.iter().flat_map(owned) {
            self.check_owner(&stream.name, stream.owner)?;
        }
        if let [StreamChange::Unlist { stream, extents }] = changes {
            // Each that is gone is one less: they need not go in one step.
            for some in extents.chunks(DROPPED_AT_ONCE_MAX) {
                let change = StreamChange::Unlist { stream: stream.clone(), extents: some.to_vec() };
                self.modify_at_once(&[change]).await?;
            }
            return Ok(());
        }
        self.modify_at_once(changes).await
    }

    async fn modify_at_once(&self, changes: &[StreamChange]) -> Result<(), StreamError> {
        for stream in changes.iter().filter_map(ended) {
            // One that these changes make has no appends yet.
            if let Ok(log) = self.log(&stream.name) {
                log.end_extent().await.map_err(StreamError::Unavailable)?;
            }
        }
        let planned = plan(&self.range.document(), changes, &|id| self.ids.name(id), || {
            StreamId(self.range.next_name())
        })?;
        if !planned.changes.is_empty() {
            let document = self.range.change(&planned.changes).await.map_err(of_change)?;
            // What is appended from now on may rely on it, and a restore must find it.
            if document.needs_backup {
                self.back_up().await?;
            }
        }
        if planned.leaves_going
            && let Err(error) = self.remove_going().await
        {
            // Nobody sees them: the next one to open the streams goes on.
            tracing::info!(%error, "streams that were removed are not emptied yet");
        }
        Ok(())
    }

    /// Backs up what is committed: as often as it takes, because it can't be taken back.
    async fn back_up(&self) -> Result<(), StreamError> {
        let mut back_off = self.range.surroundings().back_off();
        loop {
            match self.range.back_up_while_held().await {
                Ok(()) => return Ok(()),
                Err(StampError::Store { .. }) if self.may_go_on() => back_off.wait().await,
                Err(error) => return Err(of_change(error)),
            }
        }
    }

    /// Removes streams that nobody sees any more, some extents at a time.
    pub(super) async fn remove_going(&self) -> Result<(), StampError> {
        loop {
            let document = self.range.document();
            let going = document.streams.iter().find(|(_, entry)| entry.purpose.starts_with(GOING));
            let Some((&stream, entry)) = going else { return Ok(()) };
            if let Some(open) = entry.extents.iter().find(|entry| entry.length.is_none()) {
                // An append came between: nobody will ever read it.
                let log = self.range.log(stream);
                if log.end_extent().await.is_err() || !log.range_lists_sealed(open.name) {
                    return Err(StampError::NotMine(self.range.range()));
                }
                continue;
            }
            let extents: Vec<_> =
                entry.extents.iter().map(|entry| entry.name).take(DROPPED_AT_ONCE_MAX).collect();
            let change = match extents.len() {
                0 => Change::DeleteStream { stream },
                _ => Change::Unlist { stream, extents },
            };
            self.range.change(&[change]).await?;
        }
    }

    /// Drops the stream's extents before the one that holds `first_kept`.
    pub(super) async fn trim(
        &self,
        stream: &StreamName,
        owner: Owner,
        first_kept: ExtentId,
    ) -> Result<(), StreamError> {
        self.check_owner(stream, owner)?;
        let id = self.stream(stream)?;
        loop {
            let document = self.range.document();
            let entry = document.streams.get(&id).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
            let kept = entry.extents.iter().position(|entry| entry.name.short() == first_kept);
            let kept = kept.ok_or(StreamError::NoExtent(first_kept))?;
            let next = kept.min(DROPPED_AT_ONCE_MAX);
            let Some(first) = entry.extents.get(next).filter(|_| next > 0) else { return Ok(()) };
            let to = TrimPoint { ordinal: first.ordinal, offset: 0 };
            self.range.change(&[Change::Trim { stream: id, to }]).await.map_err(of_change)?;
        }
    }

    /// Ends an extent that takes the stream's appends.
    pub(super) async fn seal(
        &self,
        stream: &StreamName,
        owner: Owner,
        extent: ExtentId,
    ) -> Result<(), StreamError> {
        self.check_owner(stream, owner)?;
        let log = self.log(stream)?;
        match self.ids.name(extent) {
            Ok(name) if log.is_open(name) => log.end_extent().await.map_err(StreamError::Unavailable),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::{Incarnation, KeyLimits, Mark, OwnEntry, OwnerEpoch, RangeId, apply_changes};

    const BY: Incarnation = Incarnation(1);

    fn owned_by_us(name: &str) -> OwnedStream {
        StreamName::new(name).owned_by(Owner::first(BY))
    }

    fn name(counter: u64) -> ExtentName {
        ExtentName::new(BY, counter)
    }

    /// The streams a and b; a lists so many sealed extents, b the first of them.
    fn document(count: u64) -> RangeDocument {
        let own = OwnEntry { owner: Some(BY), epoch: OwnerEpoch(1) };
        let empty = RangeDocument::new(RangeId::new(BY, 0), own, KeyLimits::default(), Mark::new(BY, 0));
        let stream = |number| StreamId::new(BY, number);
        let mut changes = vec![
            Change::CreateStream { stream: stream(1), purpose: "a".to_owned() },
            Change::CreateStream { stream: stream(2), purpose: "b".to_owned() },
        ];
        for counter in 100..100 + count {
            let extent = name(counter);
            changes.push(Change::AddExtent { stream: stream(1), extent });
            changes.push(Change::RecordLength { stream: stream(1), extent, length: 5 });
        }
        changes.push(Change::Share { from: stream(1), to: stream(2), extents: vec![name(100)] });
        apply_changes(&empty, &changes).unwrap().document
    }

    fn planned(document: &RangeDocument, changes: &[StreamChange]) -> Result<Planned, StreamError> {
        let mut counter = 50;
        let find = |id| (100..400).map(name).find(|name| name.short() == id).ok_or(StreamError::NoExtent(id));
        plan(document, changes, &find, || {
            counter += 1;
            StreamId::new(BY, counter)
        })
    }

    fn listed(document: &RangeDocument, stream: &str) -> Option<Vec<u64>> {
        let mut entries = document.streams.values().filter(|entry| entry.purpose == stream);
        let extents = &entries.next()?.extents;
        Some(extents.iter().map(|entry| entry.name.0.counter).collect())
    }

    #[test]
    fn lists_change_as_upper_layers_want() {
        let (a, b, c) = (owned_by_us("a"), owned_by_us("b"), owned_by_us("c"));
        let share =
            |from: &OwnedStream, to: &OwnedStream| StreamChange::Share { from: from.clone(), to: to.clone() };
        let some =
            StreamChange::ShareSome { from: a.clone(), to: c.clone(), extents: vec![name(102).short()] };
        let create = || StreamChange::Create(c.clone());
        let unlist = StreamChange::Unlist { stream: a.clone(), extents: vec![name(101).short()] };
        let rename = |from: &OwnedStream, to: &OwnedStream| StreamChange::Rename {
            from: from.clone(),
            to: to.clone(),
        };
        type Case<'a> = (Vec<StreamChange>, Option<&'a [u64]>, Option<&'a [u64]>, Option<&'a [u64]>);
        let cases: [Case<'_>; 6] = [
            (vec![create(), share(&a, &c)], Some(&[100, 101, 102]), Some(&[100]), Some(&[100, 101, 102])),
            (vec![create(), some], Some(&[100, 101, 102]), Some(&[100]), Some(&[102])),
            // Both parents of a merge list the first extent.
            (
                vec![create(), share(&b, &c), share(&a, &c)],
                Some(&[100, 101, 102]),
                Some(&[100]),
                Some(&[100, 101, 102]),
            ),
            (vec![unlist], Some(&[100, 102]), Some(&[100]), None),
            (vec![StreamChange::Delete(a.clone()), rename(&b, &a)], Some(&[100]), None, None),
            (
                vec![rename(&a, &c), create_a(), share(&c, &a)],
                Some(&[100, 101, 102]),
                Some(&[100]),
                Some(&[100, 101, 102]),
            ),
        ];
        for (changes, of_a, of_b, of_c) in cases {
            let before = document(3);
            let planned = planned(&before, &changes).unwrap();
            let after = apply_changes(&before, &planned.changes).unwrap().document;
            let found = ["a", "b", "c"].map(|stream| listed(&after, stream));
            assert_eq!(found, [of_a, of_b, of_c].map(|list| list.map(<[u64]>::to_vec)), "{changes:?}");
        }
    }

    fn create_a() -> StreamChange {
        StreamChange::Create(owned_by_us("a"))
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (a, b, c) = (owned_by_us("a"), owned_by_us("b"), owned_by_us("c"));
        for (change, error) in [
            (StreamChange::Create(a.clone()), StreamError::StreamExists(a.name.clone())),
            (StreamChange::Delete(c.clone()), StreamError::NoStream(c.name.clone())),
            (
                StreamChange::Rename { from: a.clone(), to: b.clone() },
                StreamError::StreamExists(b.name.clone()),
            ),
            (
                StreamChange::Unlist { stream: a, extents: vec![ExtentId(7)] },
                StreamError::NoExtent(ExtentId(7)),
            ),
        ] {
            assert_eq!(planned(&document(3), &[change]), Err(error));
        }
    }

    #[test]
    fn a_stream_of_many_extents_is_renamed_first() {
        let before = document(DROPPED_AT_ONCE_MAX as u64 + 1);
        let planned = planned(&before, &[StreamChange::Delete(owned_by_us("a"))]).unwrap();
        assert!(planned.leaves_going);
        let after = apply_changes(&before, &planned.changes).unwrap();
        assert_eq!(listed(&after.document, "a"), None);
        assert_eq!(after.dropped.len(), 0);
    }
}
