//! What clients wrote, and what a read may have of it.
//!
//! What always holds: a row has one writer, which ends a change before it begins the next one, and changes a
//! row no more once it is open whether a change was done. So a read may have what was acknowledged last
//! before it began, or any later change that was not refused.

use std::collections::BTreeMap;

/// A table by its number, a tenant, and a number.
pub(crate) type RowId = (usize, i32, i32);

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is under way, or it is open whether it was done.
    Open,
    Acknowledged,
    /// Certainly not done.
    Refused,
}

/// A change of a row: its new text, or none for a delete.
#[derive(Clone, Debug)]
struct Change {
    text: Option<String>,
    ending: Ending,
}

/// All changes of all rows.
#[derive(Default)]
pub(crate) struct Ledger {
    rows: BTreeMap<RowId, Vec<Change>>,
}

/// From which change of each row on a read may have it; a row that is not there was not changed yet.
pub(crate) type Since = BTreeMap<RowId, usize>;

impl Ledger {
    /// A change begins; its number.
    pub(crate) fn begin(&mut self, row: RowId, text: Option<String>) -> usize {
        let changes = self.rows.entry(row).or_insert_with(|| vec![absent()]);
        changes.push(Change { text, ending: Ending::Open });
        changes.len() - 1
    }

    pub(crate) fn end(&mut self, row: RowId, number: usize, ending: Ending) {
        if let Some(change) = self.rows.get_mut(&row).and_then(|changes| changes.get_mut(number)) {
            change.ending = ending;
        }
    }

    /// Where a read of a tenant that begins now stands.
    pub(crate) fn since(&self, is_read: impl Fn(&RowId) -> bool) -> Since {
        let last = |changes: &Vec<Change>| {
            changes.iter().rposition(|change| change.ending == Ending::Acknowledged).unwrap_or_default()
        };
        self.rows.iter().filter(|(row, _)| is_read(row)).map(|(row, changes)| (*row, last(changes))).collect()
    }

    /// Whether what a read has is what it may have.
    pub(crate) fn check(
        &self,
        is_read: impl Fn(&RowId) -> bool,
        since: &Since,
        found: &BTreeMap<RowId, String>,
    ) -> Result<(), String> {
        for (row, changes) in self.rows.iter().filter(|(row, _)| is_read(row)) {
            let (there, from) = (found.get(row), since.get(row).copied().unwrap_or_default());
            let mut allowed = changes.iter().skip(from).filter(|change| change.ending != Ending::Refused);
            if !allowed.any(|change| change.text.as_ref() == there) {
                let changes = changes.get(from..).unwrap_or_default();
                return Err(format!("row {row:?} is {there:?}, and its changes are {changes:?}"));
            }
        }
        match found.keys().find(|row| is_read(row) && !self.rows.contains_key(*row)) {
            Some(row) => Err(format!("row {row:?} is there, and nothing wrote it")),
            None => Ok(()),
        }
    }
}

/// Before its first change a row is not there.
fn absent() -> Change {
    Change { text: None, ending: Ending::Acknowledged }
}

#[test]
fn a_read_has_the_last_acknowledged_change_or_a_later_one() {
    use Ending::{Acknowledged, Open, Refused};
    let row = (0, 1, 2);
    // Changes before the read begins, changes meanwhile, and what a read may have.
    let cases: [(&[(&str, Ending)], &[(&str, Ending)], &[&str], &[&str]); 6] = [
        (&[("a", Acknowledged)], &[], &["a"], &["", "b"]),
        (&[("a", Acknowledged), ("b", Open)], &[], &["a", "b"], &[""]),
        (&[("a", Acknowledged), ("b", Refused)], &[], &["a"], &["b", ""]),
        (&[("a", Acknowledged), ("", Acknowledged)], &[], &[""], &["a"]),
        (&[("a", Acknowledged)], &[("b", Acknowledged)], &["a", "b"], &[""]),
        (&[("a", Acknowledged)], &[("b", Refused), ("", Open)], &["a", ""], &["b"]),
    ];
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    for (before, meanwhile, may, may_not) in cases {
        let mut ledger = Ledger::default();
        let change = |ledger: &mut Ledger, (new, ending): &(&str, Ending)| {
            let number = ledger.begin(row, text(new));
            ledger.end(row, number, *ending);
        };
        before.iter().for_each(|of| change(&mut ledger, of));
        let since = ledger.since(|_| true);
        meanwhile.iter().for_each(|of| change(&mut ledger, of));
        let check = |found: &str| {
            let found = text(found).map(|found| (row, found)).into_iter().collect();
            ledger.check(|_| true, &since, &found).is_ok()
        };
        assert!(may.iter().all(|found| check(found)), "{before:?} {meanwhile:?}");
        assert!(!may_not.iter().any(|found| check(found)), "{before:?} {meanwhile:?}");
    }
    let found = [((0, 9, 9), "a".to_owned())].into();
    assert!(Ledger::default().check(|_| true, &Since::new(), &found).is_err());
}
