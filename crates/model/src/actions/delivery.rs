//! Messages arrive at their store, answers arrive at their process; either may be lost or late.

use crate::actions::step::{Possible, Steps, Stopped, spend};
use crate::actions::{part_answers, transaction_answers};
use crate::metadata_store::Leniency;
use crate::setting::{Breach, Breaches, Event, Setting};
use crate::world::World;
use crate::world::message::{Answer, Awaited, Effect, Message};
use stamp::{PartKind, PutAnswer, TransactionAnswer};

/// Steps of what a process waits for.
pub(crate) fn add_of_process(steps: &mut Steps<'_>, process: usize) {
    let has_lease = steps.world.processes[process].has_lease;
    for (index, awaited) in steps.world.processes[process].awaited.iter().enumerate() {
        add_next(steps, process, index);
        if has_lease {
            add_time_out(steps, process, index);
        }
        if awaited.message.is_part() && awaited.answer.is_none() {
            add_failure(steps, process, index);
        }
    }
}

/// The next step of a message that a process waits for: it arrives, or its answer does.
pub(crate) fn add_next(steps: &mut Steps<'_>, process: usize, index: usize) {
    let setting = steps.setting;
    let awaited = &steps.world.processes[process].awaited[index];
    if awaited.answer.is_some() {
        steps.process(
            process,
            || format!("receives the answer to {}", describe(&awaited.message)),
            |world| receive(world, setting, process, index),
        );
    } else if can_arrive(steps.world, &awaited.message) {
        steps.process(
            process,
            || format!("has {} arrive", describe(&awaited.message)),
            |world| {
                let message = world.processes[process].awaited[index].message.clone();
                let answer = arrive(world, &message, setting.breaches);
                world.process(process).awaited[index].answer = Some(answer);
                Ok(())
            },
        );
    }
}

fn add_time_out(steps: &mut Steps<'_>, process: usize, index: usize) {
    let setting = steps.setting;
    let awaited = &steps.world.processes[process].awaited[index];
    steps.process(
        process,
        || format!("gets no answer to {} in time", describe(&awaited.message)),
        |world| {
            spend(world, Event::Unknown)?;
            time_out(world, setting, process, index)
        },
    );
}

fn add_failure(steps: &mut Steps<'_>, process: usize, index: usize) {
    let awaited = &steps.world.processes[process].awaited[index];
    steps.process(
        process,
        || format!("has {} fail for certain", describe(&awaited.message)),
        |world| {
            spend(world, Event::Failure)?;
            let answer = Answer::Put(PutAnswer::Failed { status: 507 });
            world.process(process).awaited[index].answer = Some(answer);
            Ok(())
        },
    );
}

/// Steps of what nobody waits for. One that would change nothing is left out: it is lost.
pub(crate) fn add_of_orphans(steps: &mut Steps<'_>) {
    let setting = steps.setting;
    let orphans = steps.world.orphans.clone();
    for (index, message) in orphans.iter().enumerate() {
        let is_second = index > 0 && orphans[index - 1] == *message;
        let has_effect = match message {
            Message::Put { path, .. } => !steps.world.store.has(*path),
            Message::Transaction { transaction, .. } => {
                steps.world.metadata.holds(transaction, leniency(transaction, setting.breaches))
            }
        };
        if has_effect && !is_second {
            steps.other(
                || format!("{} arrives late", describe(message)),
                |world| {
                    let message = std::rc::Rc::make_mut(&mut world.orphans).remove(index);
                    arrive(world, &message, setting.breaches);
                    Ok(())
                },
            );
        }
    }
}

fn can_arrive(world: &World, message: &Message) -> bool {
    matches!(message, Message::Put { .. }) || !world.metadata.is_lost()
}

fn leniency(transaction: &stamp::Transaction, breaches: Breaches) -> Leniency {
    // A trim that is written over whatever is there; everything else keeps its compares.
    let drops = transaction.puts.iter().any(|(key, _)| matches!(key, stamp::Key::Dropped(_)));
    Leniency {
        epoch_alone: breaches.has(Breach::EqualEpochs),
        no_revisions: breaches.has(Breach::NoRevisionCompare) && drops,
    }
}

/// A message does at its store what it does.
fn arrive(world: &mut World, message: &Message, breaches: Breaches) -> Answer {
    match message {
        Message::Put { path, header } => Answer::Put(world.store().create(*path, *header)),
        Message::Transaction { transaction, effect } => {
            let answer = world.metadata().commit(transaction, leniency(transaction, breaches));
            if matches!(answer, TransactionAnswer::Committed(_)) {
                take_effect(world, effect);
            }
            Answer::Transaction(answer)
        }
    }
}

fn take_effect(world: &mut World, effect: &Effect) {
    match effect {
        Effect::None => {}
        Effect::Checkpoint { stream, ordinal, writes } => {
            world.history().checkpointed.insert((*stream, *ordinal), writes.clone());
        }
        Effect::Inherit(heirs) => {
            let inherited: Vec<_> = world.history.checkpointed.clone().into_iter().collect();
            for ((stream, ordinal), writes) in inherited {
                for heir in heirs.get(&stream).into_iter().flatten() {
                    world.history().checkpointed.insert((*heir, ordinal), writes.clone());
                }
            }
        }
    }
}

fn receive(world: &mut World, setting: &Setting, process: usize, index: usize) -> Possible {
    let Awaited { range, message, answer } = world.process(process).awaited.remove(index);
    match (message, answer) {
        (Message::Put { header, .. }, Some(Answer::Put(answer))) => {
            part_answers::receive(world, setting, process, range, &header, answer)
        }
        (message, Some(Answer::Transaction(answer))) => {
            transaction_answers::receive(world, setting, process, range, message, answer)
        }
        _ => Err(Stopped::Impossible),
    }
}

/// The process does not wait longer. What it sent may still arrive; it sends the same again.
fn time_out(world: &mut World, setting: &Setting, process: usize, index: usize) -> Possible {
    let Awaited { range, message, answer } = world.process(process).awaited.remove(index);
    if answer.is_none() {
        world.orphan(message.clone());
    }
    match message {
        Message::Put { header, .. } => {
            part_answers::receive(world, setting, process, range, &header, PutAnswer::Unknown)
        }
        message => {
            let unknown = TransactionAnswer::Unknown;
            transaction_answers::receive(world, setting, process, range, message, unknown)
        }
    }
}

fn describe(message: &Message) -> String {
    match message {
        Message::Put { header, .. } => {
            let extent = header.place.extent.0;
            let name = format!("extent {}-{} at {}", extent.incarnation.0, extent.counter, header.offset);
            match header.kind {
                PartKind::Part => format!("write {} for {name}", header.body_checksum),
                PartKind::Seal => format!("a seal by {} of {name}", header.writer.incarnation.0),
            }
        }
        Message::Transaction { transaction, .. } => describe_transaction(transaction),
    }
}

fn describe_transaction(transaction: &stamp::Transaction) -> String {
    let documents = transaction.puts.iter().filter_map(|(_, value)| match value {
        stamp::Value::Document(document) => Some(document),
        _ => None,
    });
    let mut text = String::from("a transaction");
    for document in documents {
        let mark = document.mark.0;
        text += &format!(
            " {}-{}: owner {:?} epoch {}",
            mark.incarnation.0,
            mark.counter,
            document.own.owner.map(|owner| owner.0),
            document.own.epoch.0
        );
        for entry in document.streams.values().flat_map(|stream| &stream.extents) {
            let name = entry.name.0;
            let length = entry.length.map_or("open".to_owned(), |length| length.to_string());
            text += &format!(", {}-{} {length}", name.incarnation.0, name.counter);
        }
    }
    text
}
