//! `$filter`: the input is the filter's text.
//!
//! Beyond the checks of all targets: the service accepts what [`Filter::parse`] accepts; an accepted filter
//! and its negation partition the fixture's rows, each row in exactly one (a row that the derived key ranges
//! lose is in neither); and parentheses, blanks and a doubled negation change nothing.

use crate::stamp::{Stamp, TABLE, rows};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use table::{Filter, FilterError};

pub(crate) fn run(stamp: &mut Stamp, input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let matching = match (Filter::parse(text), select(stamp, text)) {
        (Ok(_), Ok(matching)) => matching,
        (Err(FilterError::NotImplemented { .. }), Err(501)) => return,
        (Err(FilterError::Syntax { position, text: shown }), Err(400)) => {
            assert!(position <= text.encode_utf16().count(), "position {position} in {text:?}");
            assert_eq!(shown, text);
            return;
        }
        (Err(error), Err(400)) if !matches!(error, FilterError::NotImplemented { .. }) => return,
        (parsed, selected) => panic!("{text:?}: {parsed:?}, but the answer is {selected:?}"),
    };
    let all = select(stamp, "").expect("all rows");
    if text.trim().is_empty() {
        assert_eq!(matching, all);
        return;
    }
    // A filter may have the largest allowed size: variants of it are then too large.
    let derived = |text: String| match Filter::parse(&text) {
        Err(FilterError::TooComplex(_)) => None,
        _ => Some(select(stamp, &text).unwrap_or_else(|status| panic!("{text:?} is refused with {status}"))),
    };
    if let Some(others) = derived(format!("not ({text})")) {
        let mut union: Vec<_> = matching.iter().chain(&others).cloned().collect();
        union.sort();
        let mut all = all;
        all.sort();
        assert_eq!(union, all, "{text:?} and its negation");
    }
    for same in [format!(" ( {text} )"), format!("not not ({text})"), format!("({text})or false")] {
        if let Some(found) = derived(same) {
            assert_eq!(found, matching, "{text:?} in another form");
        }
    }
}

/// The keys of the rows that match, or the status of the refusal.
fn select(stamp: &Stamp, filter: &str) -> Result<Vec<(String, String)>, u16> {
    let filter = utf8_percent_encode(filter, NON_ALPHANUMERIC);
    let answer = stamp.request("GET", &format!("/{TABLE}()?$filter={filter}"), &[], b"");
    if answer.is_refusal() {
        return Err(answer.status);
    }
    let key = |entity: &serde_json::Value, name: &str| entity[name].as_str().expect("a key").to_owned();
    let rows = rows(&answer.text()).into_iter();
    Ok(rows.map(|entity| (key(&entity, "PartitionKey"), key(&entity, "RowKey"))).collect())
}
