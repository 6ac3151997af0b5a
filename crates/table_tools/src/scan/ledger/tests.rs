//! Rows are read once each, however ranges are divided, and wherever a run ends.

use super::*;
use crate::scan::key::text_cmp;
use proptest::prelude::*;

fn claim(ledger: &mut Ledger, id: u64, keys: &[(&str, &str)], has_more: bool) -> (usize, bool) {
    ledger.claim(id, keys.iter().copied(), has_more)
}

fn read(ledger: &mut Ledger) -> OpenRange {
    match ledger.next(true) {
        Next::Read(range) => range,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_upper_part_is_read_once() {
    let mut ledger = Ledger::new(KeyRange::all());
    let range = read(&mut ledger);
    assert_eq!(ledger.next(true), Next::Wait, "nothing was claimed yet");
    assert_eq!(claim(&mut ledger, range.id, &[("a", "1"), ("b", "1")], true), (2, false));
    ledger.finish_page(range.id, 2, None, None, false);
    let Next::Divide(candidate) = ledger.next(true) else { panic!("nothing to divide") };
    assert_eq!(ledger.next(true), Next::Wait, "one at a time");
    // While the place is looked for, the next page is claimed up to c: a division at c would come too late.
    assert_eq!(claim(&mut ledger, range.id, &[("c", "1"), ("c", "2")], true), (2, false));
    let at = |text: &str| Division::AtPartition(text.to_owned());
    assert!(!ledger.divide(&candidate, &at("c"), None));
    assert!(ledger.divide(&candidate, &at("d"), None));
    assert!(!ledger.divide(&candidate, &at("e"), None), "what it was found for is no longer so");
    let upper = read(&mut ledger);
    assert_eq!(upper.range.filter().as_deref(), Some("PartitionKey ge 'd'"));
    // The lower part is cut where the upper one begins.
    assert_eq!(claim(&mut ledger, range.id, &[("c", "3"), ("d", ""), ("e", "1")], true), (1, true));
    ledger.finish_page(range.id, 1, None, None, true);
    assert_eq!(claim(&mut ledger, upper.id, &[], true), (0, false), "an empty page is no end");
    assert_eq!(claim(&mut ledger, upper.id, &[("d", "")], false), (1, true));
    ledger.finish_page(upper.id, 1, None, None, true);
    assert_eq!((ledger.next(true), ledger.rows, ledger.finished), (Next::End, 4, 2));
}

#[test]
fn a_partition_is_divided_by_rows_and_what_is_behind_it_is_not_forgotten() {
    let mut ledger = Ledger::new(KeyRange::all());
    let range = read(&mut ledger);
    claim(&mut ledger, range.id, &[("p", "1")], true);
    ledger.finish_page(range.id, 1, None, None, false);
    let Next::Divide(candidate) = ledger.next(true) else { panic!("nothing to divide") };
    assert!(ledger.divide(&candidate, &Division::AtRow("5".to_owned()), None));
    let filters: Vec<String> = (0..2).map(|_| read(&mut ledger).range.filter().expect("a filter")).collect();
    assert_eq!(filters, ["PartitionKey eq 'p' and RowKey ge '5'", "PartitionKey ge 'p '"]);
    assert_eq!(claim(&mut ledger, range.id, &[("p", "4"), ("p", "5"), ("q", "1")], true), (1, true));
    // A range that is at its last page is left alone.
    let mut ledger = Ledger::new(KeyRange::all());
    let range = read(&mut ledger);
    claim(&mut ledger, range.id, &[("p", "1")], true);
    ledger.finish_page(range.id, 1, None, None, false);
    claim(&mut ledger, range.id, &[("p", "2")], false);
    assert_eq!(ledger.next(true), Next::Wait);
}

/// A table in order, read with pages of random sizes, divided at random places, cut off at a random step and
/// gone on with from the last snapshot.
fn read_all(keys: &[(String, String)], choices: &[u8]) -> Result<Vec<(String, String)>, TestCaseError> {
    let (mut done, mut kept) = (Vec::new(), Vec::new());
    let mut ledger = Ledger::new(KeyRange::all());
    let mut snapshot = ledger.clone();
    let mut running: Vec<(OpenRange, Option<usize>)> = Vec::new();
    let mut choices = choices.iter().copied().cycle();
    for _ in 0..10_000 {
        let mut choose = || usize::from(choices.next().unwrap_or(0));
        match choose() % 8 {
            0 => {
                // What is kept, goes through its text.
                let text = serde_json::to_string(&ledger).expect("JSON");
                snapshot = serde_json::from_str(&text).expect("a ledger");
                kept.clone_from(&done);
            }
            1 if choose() % 4 == 0 => {
                ledger = snapshot.clone();
                done.clone_from(&kept);
                running.clear();
            }
            2..=4 => match ledger.next(true) {
                Next::Read(range) => {
                    let at = range.cursor.as_ref().map(|cursor| cursor.partition.parse().expect("a place"));
                    running.push((range, at));
                }
                Next::Divide(candidate) => {
                    let (partition, row) = &keys[choose() * 7 % keys.len()];
                    let division = match choose() % 2 {
                        0 => Division::AtPartition(partition.clone()),
                        _ => Division::AtRow(row.clone()),
                    };
                    let is_rows = matches!(candidate.range, KeyRange::Rows { .. });
                    if !is_rows || matches!(division, Division::AtRow(_)) {
                        ledger.divide(&candidate, &division, None);
                    }
                }
                Next::Wait => {}
                Next::End => return Ok(done),
            },
            _ if !running.is_empty() => {
                let which = choose() % running.len();
                let (range, at) = &mut running[which];
                let page: Vec<usize> = (at.unwrap_or(0)..keys.len())
                    .filter(|index| is_in(&range.range, &keys[*index]))
                    .collect();
                let size = (1 + choose() % 4).min(page.len());
                let has_more = size < page.len();
                let rows = page[..size].iter().map(|index| &keys[*index]);
                let rows: Vec<(&str, &str)> =
                    rows.map(|(one, other)| (one.as_str(), other.as_str())).collect();
                let (count, is_end) = ledger.claim(range.id, rows.iter().copied(), has_more);
                done.extend(page[..count].iter().map(|index| keys[*index].clone()));
                let next = page.get(size).copied();
                let continuation =
                    next.map(|next| Continuation { partition_key: next.to_string(), row_key: None });
                ledger.finish_page(range.id, count as u64, continuation.as_ref(), None, is_end);
                *at = next;
                if is_end {
                    running.swap_remove(which);
                }
            }
            _ => {}
        }
    }
    Err(TestCaseError::reject("the choices lead nowhere"))
}

fn is_in(range: &KeyRange, (partition, row): &(String, String)) -> bool {
    let within = |text: &str, from: &Option<String>, before: &Option<String>| {
        from.as_ref().is_none_or(|from| text_cmp(text, from).is_ge())
            && before.as_ref().is_none_or(|before| text_cmp(text, before).is_lt())
    };
    match range {
        KeyRange::Partitions { from, before } => within(partition, from, before),
        KeyRange::Rows { partition: of, from, before } => of == partition && within(row, from, before),
    }
}

proptest! {
    #[test]
    fn each_row_is_read_once(
        keys in proptest::collection::btree_set(("[a-d]{1,2}", "[0-9]{1,2}"), 1..60),
        choices in proptest::collection::vec(any::<u8>(), 50..400),
    ) {
        let keys: Vec<(String, String)> = keys.into_iter().collect();
        let mut done = read_all(&keys, &choices)?;
        done.sort();
        prop_assert_eq!(done, keys);
    }
}
