//! Ranges are taken: the four steps of `stamp::Taking`.

use crate::actions::lease;
use crate::actions::load::{broken, load};
use crate::actions::sending::{next_mark, send_part, walk_on};
use crate::actions::step::{Possible, Steps, Stopped};
use crate::setting::{Breach, Setting};
use crate::world::World;
use crate::world::message::{Effect, Message};
use crate::world::names::life;
use crate::world::process::Role;
use stamp::{
    Change, Key, LEASE_TTL, Observed, ObservedOwner, OwnEntry, OwnerEpoch, PartHeader, PartPath, RangeId,
    Take, TakeChoice, TakingStep, Value, WalkStep, WalkStop, choose_take,
};
use std::sync::Arc;
use std::time::Duration;

/// A process takes a range that it may take.
pub(crate) fn add(steps: &mut Steps<'_>, process: usize) {
    let setting = steps.setting;
    let ranges: Vec<RangeId> = steps.world.metadata.documents().map(|document| document.range).collect();
    for range in ranges {
        if lease::is_idle(&steps.world.processes[process], range) {
            let words = || format!("takes range {}-{}", range.0.incarnation.0, range.0.counter);
            steps.process(process, words, |world| begin(world, setting, process, range));
        }
    }
}

pub(crate) fn begin(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    let taker = world.processes[process].incarnation;
    if makes(world, process, range) && !setting.breaches.has(Breach::TakeHeirsEarly) {
        return Err(Stopped::Impossible);
    }
    let Some(observed) = observe(world, setting, range) else { return Err(Stopped::Impossible) };
    let mark = next_mark(world, process, range);
    let life = life(world.metadata.generation());
    let TakeChoice::Take(mut take) = choose_take(life, taker, &observed, LEASE_TTL, mark) else {
        return Err(Stopped::Impossible);
    };
    if setting.breaches.has(Breach::EqualEpochs) {
        take_at_epoch(&mut take, observed.own.epoch.max(OwnerEpoch(1)));
    }
    world.send_transaction(process, range, take.transaction.clone(), Effect::None);
    world.process(process).ranges.insert(range, Role::Taking(take));
    Ok(())
}

/// Whether a split by this process that is under way makes the range: it would serve parent and heir at a
/// time.
fn makes(world: &World, process: usize, range: RangeId) -> bool {
    world.processes[process].ranges.values().any(|role| {
        let Role::Serving(serving) = role else { return false };
        serving.heirs.iter().flatten().any(|heir| heir.range == range)
    })
}

fn observe(world: &World, setting: &Setting, range: RangeId) -> Option<Observed> {
    let (own, document) = (world.metadata.own(range)?, world.metadata.document(range)?.clone());
    let owner = own.owner.map(|incarnation| {
        let is_over = lease::is_over(world, incarnation) || setting.breaches.has(Breach::TrustKeyAlone);
        ObservedOwner {
            has_key: world.metadata.has_process(incarnation),
            beat: world.metadata.changed_at(Key::Beat(incarnation)),
            // Who waits for a lease time sees the deadline of a silent owner pass before that.
            beat_unchanged_for: if is_over { LEASE_TTL } else { Duration::ZERO },
        }
    });
    let revision = world.metadata.changed_at(Key::Document(range));
    Some(Observed { own, document, revision, owner })
}

/// A planted fault: the epoch does not rise.
fn take_at_epoch(take: &mut Take, epoch: OwnerEpoch) {
    take.owner.epoch = epoch;
    let own = OwnEntry::of(take.owner);
    let mut document = (*take.document).clone();
    document.own = own;
    take.document = Arc::new(document);
    for (key, value) in &mut take.transaction.puts {
        match key {
            Key::Own(_) => *value = Value::Own(own),
            _ => *value = Value::Document(take.document.clone()),
        }
    }
}

/// The take is committed: all tails are sealed side by side.
pub(crate) fn begin_sealing(
    world: &mut World,
    setting: &Setting,
    process: usize,
    range: RangeId,
) -> Possible {
    send_seals(world, setting, process, range);
    advance(world, setting, process, range)
}

/// Reads on with each walk that waits for no answer, and sends the seals that it comes to.
fn send_seals(world: &mut World, setting: &Setting, process: usize, range: RangeId) {
    let Some(Role::Sealing(taking)) = world.role(process, range) else { return };
    let mut taking = taking.clone();
    for index in 0..taking.walks().count() {
        let Some(walk) = taking.walk_mut(index) else { continue };
        if let WalkStep::Create(seal) = walk_on(world, walk) {
            let extent = seal.place.extent;
            let is_sent = world.processes[process].awaited.iter().any(|awaited| {
                matches!(&awaited.message, Message::Put { header, .. } if header.place.extent == extent)
            });
            if !is_sent && !is_skipped(setting, &seal) {
                send_seal(world, setting, process, range, seal);
            }
        }
    }
    world.process(process).ranges.insert(range, Role::Sealing(taking));
}

/// Whether a planted fault leaves the seal out.
fn is_skipped(setting: &Setting, seal: &PartHeader) -> bool {
    let skips_empty = setting.breaches.has(Breach::SkipEmptySeal) && seal.offset == 0;
    skips_empty || setting.breaches.has(Breach::SkipSeal) || setting.breaches.has(Breach::CountBehindHole)
}

fn send_seal(world: &mut World, setting: &Setting, process: usize, range: RangeId, seal: PartHeader) {
    if setting.breaches.has(Breach::SealElsewhere) {
        let path = PartPath { extent: seal.place.extent, offset: u64::MAX };
        return world.send(process, range, Message::Put { path, header: seal });
    }
    send_part(world, process, range, seal);
}

/// Goes on with the sealing as far as it goes without an answer.
pub(crate) fn advance(world: &mut World, setting: &Setting, process: usize, range: RangeId) -> Possible {
    send_seals(world, setting, process, range);
    let Some(Role::Sealing(taking)) = world.role(process, range) else { return Ok(()) };
    if taking.held().sent().is_some() {
        return Ok(());
    }
    let taking = taking.clone();
    let changes = match taking.step() {
        TakingStep::Stopped(WalkStop::Broken(why)) => return broken(world, process, range, why),
        TakingStep::Stopped(_) => {
            world.drop_range(process, range);
            return Ok(());
        }
        TakingStep::Record(changes) => changes,
        TakingStep::Seal => {
            let lengths =
                taking.walks().map(|walk| (walk.place(), skipped_length(world, setting, &walk.step())));
            let changes = lengths.map(|(place, length)| {
                let (stream, extent) = (place.stream, place.extent);
                length.map(|length| Change::RecordLength { stream, extent, length })
            });
            let Some(changes) = changes.collect() else { return Ok(()) };
            changes
        }
    };
    if changes.is_empty() {
        return load(world, setting, process, range);
    }
    let mark = next_mark(world, process, range);
    let Some(Role::Sealing(taking)) = world.role(process, range) else { return Ok(()) };
    let sent =
        taking.held_mut().begin(&changes, mark).map_err(|error| Stopped::Violation(error.to_string()))?;
    let transaction = sent.transaction.clone();
    world.send_transaction(process, range, transaction, Effect::None);
    Ok(())
}

/// The length that a planted fault records without a seal.
fn skipped_length(world: &World, setting: &Setting, step: &WalkStep) -> Option<u64> {
    match step {
        WalkStep::Sealed { length } => Some(*length),
        WalkStep::Create(seal) if is_skipped(setting, seal) => {
            if !setting.breaches.has(Breach::CountBehindHole) {
                return Some(seal.offset);
            }
            let listed = world.store.objects_of(seal.place.extent).map(PartHeader::end);
            Some(listed.max().unwrap_or(0))
        }
        _ => None,
    }
}
