//! Decisions on messages as tables: (rows, operation, version) -> (changes, reply). Histories are in
//! `tests/`.

use crate::expiry::remove_expired::{RemoveExpired, StoreSweepProgress, SweepProgress};
use crate::messages::delete_message::DeleteMessage;
use crate::messages::front::{READ_COUNT_MAX, next_read_count, read_count};
use crate::messages::message_handle::MessageHandle;
use crate::messages::message_id::{MessageId, PopReceipt};
use crate::messages::peek_messages::PeekMessages;
use crate::messages::put_message::PutMessage;
use crate::messages::take_messages::TakeMessages;
use crate::messages::update_message::UpdateMessage;
use crate::rows::head_row::HeadRow;
use crate::rows::message_row::{MessageRow, NEVER};
use crate::rows::message_store::{MessageStore, Position};
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
fn a_put_stores_a_message_and_counts_it() {
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
fn an_invisible_put_lies_where_it_becomes_visible_and_one_without_lifetime_never_expires() {
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
fn a_get_moves_visible_messages_and_removes_expired_ones() {
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
    assert_eq!((reply.low_water, reply.may_have_more), (Ticks(NOW.0), false));
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
fn the_low_water_stays_before_messages_that_were_not_taken() {
    let live = message(NEVER);
    let front: Vec<Row> = (1..=3).map(|index| row(at(10 * index, 10 * index), &live)).collect();
    let reply = take(2).decide(&Rows::new(vec![front, vec![]]), NOW).reply.unwrap();
    assert_eq!((reply.messages.len(), reply.low_water), (2, Ticks(30)));
    // All rows that were read were taken: further messages may have the last one's instant.
    let many: Vec<Row> = (1..=read_count(2) as u64).map(|index| row(at(10, index), &live)).collect();
    let reply = take(2).decide(&Rows::new(vec![many, vec![]]), NOW).reply.unwrap();
    assert_eq!(reply.low_water, Ticks(10));
    let dead = message(Ticks(1));
    let expired: Vec<Row> = (1..=read_count(2) as u64).map(|index| row(at(index, index), &dead)).collect();
    let reply = take(2).decide(&Rows::new(vec![expired, vec![]]), NOW).reply.unwrap();
    assert!(reply.may_have_more && reply.messages.is_empty(), "{reply:?}");
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

fn handle(number: u64, chance: u64) -> MessageHandle {
    let receipt = PopReceipt { visible_at: Ticks(10), number };
    MessageHandle { id: MessageId { insertion: 4, chance }, receipt }
}

#[test]
fn only_the_last_receipt_deletes() {
    let delete = |handle, message: MessageRow| -> Decision<Result<bool, QueueError>> {
        let rows = Rows::new(vec![vec![row(at(10, 4), &message)], vec![head_row(head(7))]]);
        DeleteMessage { store: store(), handle, low_water: Ticks(0) }.decide(&rows, NOW)
    };
    let good = delete(handle(70, 9), message(NEVER));
    assert!(good.reply.unwrap());
    let away_marker = RowChange::Delete { key: store().away_key(4) };
    assert_eq!(good.changes, [delete_of(at(10, 4)), away_marker, head(7).without(1).put(store().head_key())]);
    for (handle, message) in [
        (handle(77, 9), message(NEVER)),
        (handle(70, 8), message(NEVER)),
        (handle(70, 9), message(Ticks(NOW.0))),
    ] {
        let refused = delete(handle, message);
        assert!(!refused.reply.unwrap() && refused.changes.is_empty(), "{handle:?}");
    }
}

/// The receipt of a message that was never moved was once twice the first half of its id, which every peek
/// shows.
#[test]
fn an_id_does_not_lead_to_a_receipt() {
    let born = at(NOW.0, NOW.0);
    let decision = put(0, None).decide(&Rows::new(vec![vec![]]), NOW);
    let RowChange::Put { value, .. } = &decision.changes[0] else { panic!("{decision:?}") };
    let stored = Row { key: store().message_key(born), version: NOW, value: value.clone() };
    let put = decision.reply.unwrap();
    let delete = |number| {
        let receipt = PopReceipt { visible_at: put.visible_at, number };
        let delete = DeleteMessage {
            store: store(),
            handle: MessageHandle { id: put.id, receipt },
            low_water: Ticks(0),
        };
        let rows = Rows::new(vec![vec![stored.clone()], vec![head_row(head(7))]]);
        delete.decide(&rows, RowVersion(NOW.0 + 1)).reply.unwrap()
    };
    for (number, what) in [(put.id.insertion, "its first half"), (put.id.chance, "its second half")] {
        assert!(!delete(number), "{what}");
    }
    assert!(delete(put.receipt.number));
}

#[test]
fn receipts_of_messages_stored_without_a_receipt_number_stay_valid() {
    let former = b"\x01\x09\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x00text";
    let stored = Row { value: Bytes::from_static(former), ..row(at(10, 4), &message(NEVER)) };
    let update = |number| UpdateMessage {
        store: store(),
        handle: handle(number, 9),
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
            handle: handle(70, 9),
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
fn a_sweep_removes_only_expired_messages_that_have_not_moved() {
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
    let store_progress = |progress, head: HeadRow| {
        let decision = StoreSweepProgress { store: store(), progress }
            .decide(&Rows::new(vec![vec![head_row(head)]]), NOW);
        decision.changes
    };
    let begun = HeadRow { swept_expiry: Ticks(50), new_expiry: NEVER, ..head(1) };
    assert_eq!(store_progress(SweepProgress::Begun, head(1)), [begun.put(store().head_key())]);
    let complete = HeadRow { swept_expiry: Ticks(99), ..head(1) };
    assert_eq!(
        store_progress(SweepProgress::Complete(Ticks(99)), head(1)),
        [complete.put(store().head_key())]
    );
    assert_eq!(complete.first_expiry(), Ticks(60));
}

#[test]
fn the_longest_get_reads_few_rows() {
    assert!(read_count(limits::MESSAGES_TAKEN_MAX) <= 64);
}

/// A get that met only expired messages once read nine of them at a time, each time with a sync: ten thousand
/// cost it a thousand syncs.
#[test]
fn reads_of_only_expired_messages_grow_up_to_a_bound() {
    let counts = std::iter::successors(Some(read_count(1)), |count| Some(next_read_count(*count)));
    assert_eq!(counts.take(5).collect::<Vec<_>>(), [9, 36, 144, READ_COUNT_MAX, READ_COUNT_MAX]);
    assert_eq!(next_read_count(read_count(limits::MESSAGES_TAKEN_MAX)), 160);
    let dead = message(Ticks(1));
    let expired: Vec<Row> = (1..=36).map(|index| row(at(index, index), &dead)).collect();
    let get = TakeMessages { read_count: 36, ..take(1) };
    let [Read::Range { limit: 36, .. }, _] = get.reads()[..] else { panic!("{:?}", get.reads()) };
    let reply = get.decide(&Rows::new(vec![expired.clone(), vec![]]), NOW).reply.unwrap();
    assert!(reply.may_have_more, "as many as were requested");
    let reply = get.decide(&Rows::new(vec![expired[..35].to_vec(), vec![]]), NOW).reply.unwrap();
    assert!(!reply.may_have_more, "there are no more");
}
