//! Decisions on messages as tables: (rows, operation, version) -> (changes, reply). Histories are in `tests/`.

use crate::delete_message::{DeleteMessage, Held};
use crate::head_row::HeadRow;
use crate::message_id::{MessageId, PopReceipt};
use crate::message_row::{MessageRow, NEVER};
use crate::message_store::{MessageStore, Position};
use crate::peek_messages::PeekMessages;
use crate::put_message::PutMessage;
use crate::remove_expired::{NoteSweep, RemoveExpired, SweepNote};
use crate::take_messages::{READ_COUNT_MAX, TakeMessages, next_read_count, read_count};
use crate::update_message::UpdateMessage;
use crate::{QueueError, limits};
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use bytes::Bytes;
use partition::{Decision, Operation, Read, Row, RowChange, RowVersion, Rows};
use std::time::Duration;

const NOW: RowVersion = RowVersion(1_000 * TICKS_PER_SECOND);

fn store() -> MessageStore {
    MessageStore { account: "acct".to_owned(), messages_id: 5 }
}

fn at(visible_at: u64, insertion: u64) -> Position {
    Position { visible_at: Ticks(visible_at), insertion }
}

fn message(expires_at: Ticks) -> MessageRow {
    MessageRow {
        chance: 9,
        expires_at,
        receipt_number: 70,
        dequeue_count: 2,
        text: Bytes::from_static(b"text"),
    }
}

fn row(position: Position, message: &MessageRow) -> Row {
    Row { key: store().message_key(position), version: RowVersion(77), value: message.encode() }
}

fn head(message_count: u64) -> HeadRow {
    HeadRow { message_count, low_water: Ticks(3), swept_expiry: Ticks(50), new_expiry: Ticks(60) }
}

fn head_row(head: HeadRow) -> Row {
    match head.put(store().head_key()) {
        RowChange::Put { key, value } => Row { key, version: RowVersion(76), value },
        RowChange::Delete { .. } => panic!("a head is never deleted"),
    }
}

fn put_of(position: Position, message: &MessageRow) -> RowChange {
    RowChange::Put { key: store().message_key(position), value: message.encode() }
}

fn delete_of(position: Position) -> RowChange {
    RowChange::Delete { key: store().message_key(position) }
}

fn put(invisible_for: u64, lives_for: Option<u64>) -> PutMessage {
    PutMessage {
        store: store(),
        chance: 9,
        receipt_number: 71,
        text: Bytes::from_static(b"text"),
        invisible_for: Duration::from_secs(invisible_for),
        lives_for: lives_for.map(Duration::from_secs),
        low_water: Ticks(4),
    }
}

#[test]
fn a_put_is_a_message_and_a_count() {
    let decision = put(0, Some(20)).decide(&Rows::new(vec![vec![head_row(head(7))]]), NOW);
    let born = at(NOW.0, NOW.0);
    let stored =
        MessageRow { dequeue_count: 0, receipt_number: 71, ..message(Ticks(NOW.0 + 20 * TICKS_PER_SECOND)) };
    let counted = HeadRow { message_count: 8, low_water: Ticks(4), ..head(7) };
    assert_eq!(decision.changes, [put_of(born, &stored), counted.put(store().head_key())]);
    let reply = decision.reply.unwrap();
    assert_eq!((reply.inserted_at, reply.visible_at), (Ticks(NOW.0), Ticks(NOW.0)));
    assert_eq!(reply.receipt, PopReceipt { visible_at: Ticks(NOW.0), number: 71 });
}

#[test]
fn a_put_that_hides_lies_where_it_becomes_visible_and_one_that_never_ends_has_no_expiry() {
    let decision = put(5, None).decide(&Rows::new(vec![vec![]]), NOW);
    let stored = MessageRow { dequeue_count: 0, receipt_number: 71, ..message(NEVER) };
    let position = at(NOW.0 + 5 * TICKS_PER_SECOND, NOW.0);
    let counted = HeadRow { message_count: 1, low_water: Ticks(4), swept_expiry: NEVER, new_expiry: NEVER };
    let expected = [put_of(position, &stored), counted.put(store().head_key())];
    assert_eq!(decision.changes, expected);
    assert_eq!(decision.reply.unwrap().expires_at, service::TICKS_MAX);
}

fn take(count: usize) -> TakeMessages {
    TakeMessages {
        store: store(),
        low_water: Ticks(3),
        until: Ticks(NOW.0),
        receipt_numbers: (80..).take(count).collect(),
        read_count: read_count(count),
        invisible_for: Duration::from_secs(30),
    }
}

#[test]
fn a_get_moves_what_is_visible_and_removes_what_has_expired() {
    let (live, dead) = (message(NEVER), message(Ticks(NOW.0)));
    let later = at(NOW.0 + 1, 40);
    let front =
        vec![row(at(10, 10), &live), row(at(20, 15), &dead), row(at(30, 30), &live), row(later, &live)];
    let decision = take(5).decide(&Rows::new(vec![front, vec![head_row(head(7))]]), NOW);
    let taken = |receipt_number| MessageRow { dequeue_count: 3, receipt_number, ..live.clone() };
    let hidden_until = NOW.0 + 30 * TICKS_PER_SECOND;
    let reply = decision.reply.unwrap();
    assert_eq!(reply.messages.iter().map(|one| one.id.insertion).collect::<Vec<_>>(), [10, 30]);
    assert_eq!(reply.messages.iter().map(|one| one.receipt.number).collect::<Vec<_>>(), [80, 81]);
    assert_eq!((reply.low_water, reply.again), (Ticks(NOW.0), false));
    let counted = HeadRow { message_count: 6, low_water: Ticks(NOW.0), ..head(7) };
    assert_eq!(
        decision.changes,
        [
            delete_of(at(20, 15)),
            RowChange::Delete { key: store().away_key(15) },
            delete_of(at(10, 10)),
            put_of(at(hidden_until, 10), &taken(80)),
            delete_of(at(30, 30)),
            put_of(at(hidden_until, 30), &taken(81)),
            counted.put(store().head_key()),
        ]
    );
}

#[test]
fn the_low_water_stays_below_what_is_left() {
    let live = message(NEVER);
    let front: Vec<Row> = (1..=3).map(|index| row(at(10 * index, 10 * index), &live)).collect();
    let reply = take(2).decide(&Rows::new(vec![front, vec![]]), NOW).reply.unwrap();
    assert_eq!((reply.messages.len(), reply.low_water), (2, Ticks(30)));
    // All that was read was taken: others may have the last one's instant.
    let many: Vec<Row> = (1..=read_count(2) as u64).map(|index| row(at(10, index), &live)).collect();
    let reply = take(2).decide(&Rows::new(vec![many, vec![]]), NOW).reply.unwrap();
    assert_eq!(reply.low_water, Ticks(10));
    let dead = message(Ticks(1));
    let expired: Vec<Row> = (1..=read_count(2) as u64).map(|index| row(at(index, index), &dead)).collect();
    let reply = take(2).decide(&Rows::new(vec![expired, vec![]]), NOW).reply.unwrap();
    assert!(reply.again && reply.messages.is_empty(), "{reply:?}");
}

#[test]
fn an_empty_get_raises_the_low_water_only_with_a_change() {
    let near = HeadRow { low_water: Ticks(NOW.0 - 5), ..head(0) };
    let get = TakeMessages { low_water: Ticks(NOW.0 - 5), ..take(1) };
    let decision = get.decide(&Rows::new(vec![vec![], vec![head_row(near)]]), NOW);
    assert!(decision.changes.is_empty());
    assert_eq!(decision.reply.unwrap().low_water, Ticks(NOW.0 - 5));
    let decision = take(1).decide(&Rows::new(vec![vec![], vec![head_row(head(0))]]), NOW);
    assert_eq!(decision.changes.len(), 1);
    assert_eq!(decision.reply.unwrap().low_water, Ticks(NOW.0));
}

#[test]
fn a_peek_changes_nothing() {
    let front = vec![row(at(10, 10), &message(NEVER)), row(at(20, 20), &message(Ticks(5)))];
    let from = Position::first_at(Ticks(0));
    let peek = PeekMessages { store: store(), from, until: Ticks(NOW.0), count: 5, read_count: 13 };
    let decision = peek.decide(&Rows::new(vec![front]), NOW);
    assert!(decision.changes.is_empty());
    let shown = decision.reply.unwrap().messages;
    assert_eq!(shown.iter().map(|one| (one.id.insertion, one.dequeue_count)).collect::<Vec<_>>(), [(10, 2)]);
}

fn held(number: u64, chance: u64) -> Held {
    let receipt = PopReceipt { visible_at: Ticks(10), number };
    Held { id: MessageId { insertion: 4, chance }, receipt }
}

#[test]
fn only_the_last_receipt_deletes() {
    let delete = |held, message: MessageRow| -> Decision<Result<bool, QueueError>> {
        let rows = Rows::new(vec![vec![row(at(10, 4), &message)], vec![head_row(head(7))]]);
        DeleteMessage { store: store(), held, low_water: Ticks(0) }.decide(&rows, NOW)
    };
    let good = delete(held(70, 9), message(NEVER));
    assert!(good.reply.unwrap());
    let mark = RowChange::Delete { key: store().away_key(4) };
    assert_eq!(good.changes, [delete_of(at(10, 4)), mark, head(7).without(1).put(store().head_key())]);
    for (held, message) in
        [(held(77, 9), message(NEVER)), (held(70, 8), message(NEVER)), (held(70, 9), message(Ticks(NOW.0)))]
    {
        let refused = delete(held, message);
        assert!(!refused.reply.unwrap() && refused.changes.is_empty(), "{held:?}");
    }
}

/// The receipt of a message that was never moved was twice the first half of its id, which every peek shows.
#[test]
fn an_id_does_not_lead_to_a_receipt() {
    let born = at(NOW.0, NOW.0);
    let decision = put(0, None).decide(&Rows::new(vec![vec![]]), NOW);
    let RowChange::Put { value, .. } = &decision.changes[0] else { panic!("{decision:?}") };
    let stored = Row { key: store().message_key(born), version: NOW, value: value.clone() };
    let put = decision.reply.unwrap();
    let delete = |number| {
        let receipt = PopReceipt { visible_at: put.visible_at, number };
        let delete =
            DeleteMessage { store: store(), held: Held { id: put.id, receipt }, low_water: Ticks(0) };
        let rows = Rows::new(vec![vec![stored.clone()], vec![head_row(head(7))]]);
        delete.decide(&rows, RowVersion(NOW.0 + 1)).reply.unwrap()
    };
    for (number, what) in [(put.id.insertion, "its first half"), (put.id.chance, "its second half")] {
        assert!(!delete(number), "{what}");
    }
    assert!(delete(put.receipt.number));
}

#[test]
fn receipts_of_messages_that_were_stored_without_a_number_stay_good() {
    let former = b"\x01\x09\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x00text";
    let stored = Row { value: Bytes::from_static(former), ..row(at(10, 4), &message(NEVER)) };
    let update = |number| UpdateMessage {
        store: store(),
        held: held(number, 9),
        invisible_for: Duration::ZERO,
        receipt_number: 71,
        text: None,
    };
    let updated = update(77).decide(&Rows::new(vec![vec![stored.clone()]]), NOW);
    let moved = MessageRow { dequeue_count: 0, receipt_number: 71, ..message(NEVER) };
    assert_eq!(updated.changes[1], put_of(at(NOW.0, 4), &moved));
    assert!(updated.reply.unwrap().is_some());
    let refused = update(70).decide(&Rows::new(vec![vec![stored]]), NOW);
    assert!(refused.reply.unwrap().is_none());
}

#[test]
fn an_update_keeps_what_it_does_not_change() {
    let update = |text: Option<&'static str>, seconds, expires_at| {
        let update = UpdateMessage {
            store: store(),
            held: held(70, 9),
            invisible_for: Duration::from_secs(seconds),
            receipt_number: 71,
            text: text.map(|text| Bytes::from_static(text.as_bytes())),
        };
        update.decide(&Rows::new(vec![vec![row(at(10, 4), &message(expires_at))]]), NOW)
    };
    let to = at(NOW.0 + 2 * TICKS_PER_SECOND, 4);
    let moved = MessageRow { receipt_number: 71, ..message(NEVER) };
    assert_eq!(update(None, 2, NEVER).changes, [delete_of(at(10, 4)), put_of(to, &moved)]);
    let changed = MessageRow { text: Bytes::from_static(b"new"), ..moved };
    let decision = update(Some("new"), 2, NEVER);
    assert_eq!(decision.changes, [delete_of(at(10, 4)), put_of(to, &changed)]);
    let receipt = decision.reply.unwrap().unwrap().receipt;
    assert_eq!(receipt, PopReceipt { visible_at: to.visible_at, number: 71 });
    let refused = update(None, 2, Ticks(NOW.0 + TICKS_PER_SECOND));
    assert!(matches!(refused.reply, Err(QueueError::VisibleAfterExpiry)) && refused.changes.is_empty());
}

#[test]
fn a_sweep_removes_only_what_has_expired_where_it_was_seen() {
    let remove = RemoveExpired { store: store(), positions: vec![at(5, 5), at(6, 6), at(7, 7)] };
    let dead = row(at(5, 5), &message(Ticks(NOW.0)));
    let live = row(at(7, 7), &message(NEVER));
    let rows = Rows::new(vec![vec![head_row(head(7))], vec![dead], vec![], vec![live]]);
    let decision = remove.decide(&rows, NOW);
    assert_eq!(decision.reply.unwrap(), 1);
    assert_eq!(decision.changes, [delete_of(at(5, 5)), head(7).without(1).put(store().head_key())]);
}

#[test]
fn a_sweep_keeps_the_expiries_of_messages_put_meanwhile() {
    let note = |note, head: HeadRow| {
        let decision = NoteSweep { store: store(), note }.decide(&Rows::new(vec![vec![head_row(head)]]), NOW);
        decision.changes
    };
    let begun = HeadRow { swept_expiry: Ticks(50), new_expiry: NEVER, ..head(1) };
    assert_eq!(note(SweepNote::Begins, head(1)), [begun.put(store().head_key())]);
    let seen = HeadRow { swept_expiry: Ticks(99), ..head(1) };
    assert_eq!(note(SweepNote::Saw(Ticks(99)), head(1)), [seen.put(store().head_key())]);
    assert_eq!(seen.first_expiry(), Ticks(60));
}

#[test]
fn the_longest_get_reads_few_rows() {
    assert!(read_count(limits::MESSAGES_TAKEN_MAX) <= 64);
}

/// A get that met nothing but expired messages read nine of them at a time, each time with a sync: ten thousand kept it
/// busy for a thousand syncs.
#[test]
fn reads_of_nothing_but_expired_messages_grow_up_to_a_bound() {
    let counts = std::iter::successors(Some(read_count(1)), |count| Some(next_read_count(*count)));
    assert_eq!(counts.take(5).collect::<Vec<_>>(), [9, 36, 144, READ_COUNT_MAX, READ_COUNT_MAX]);
    assert_eq!(next_read_count(read_count(limits::MESSAGES_TAKEN_MAX)), 160);
    let dead = message(Ticks(1));
    let expired: Vec<Row> = (1..=36).map(|index| row(at(index, index), &dead)).collect();
    let get = TakeMessages { read_count: 36, ..take(1) };
    let [Read::Range { limit: 36, .. }, _] = get.reads()[..] else { panic!("{:?}", get.reads()) };
    let reply = get.decide(&Rows::new(vec![expired.clone(), vec![]]), NOW).reply.unwrap();
    assert!(reply.again, "as many as were asked for");
    let reply = get.decide(&Rows::new(vec![expired[..35].to_vec(), vec![]]), NOW).reply.unwrap();
    assert!(!reply.again, "there are no more");
}
