//! Looks for a place to divide a range at, by queries for the first key behind a text.
//!
//! The search halves the texts between what is claimed and the range's end until there are keys on both
//! sides. Each answer narrows it: without a key above the middle the end comes down, without a key below it
//! the beginning goes up. A place is a text, not a key: see [`super::midpoint`].

use super::key::{Key, is_plain, next_text, text_cmp};
use super::ledger::{Candidate, Division};
use super::midpoint::midpoint;
use super::range::KeyRange;
use crate::access::TableAccess;
use crate::error::ToolError;
use crate::lines::row::rows_of_page;
use storage_client::Query;

/// Queries of one search, at most.
const PROBES_MAX: usize = 64;
/// Beginnings that are tried before, at most.
const BEGINNINGS_MAX: usize = 24;
/// Empty pages that are read for one answer, at most.
const EMPTY_PAGES_MAX: usize = 16;

/// What a search has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) division: Option<Division>,
    /// A text from which on there is no key; of the kind of key that the division is of.
    pub(crate) empty_from: Option<String>,
}

/// A search between two texts. There is a key, `first`, that is the first one behind what is claimed.
#[derive(Debug)]
struct Search {
    low: String,
    high: Option<String>,
    first: String,
}

impl Search {
    /// Where to look next.
    fn middle(&self) -> Option<String> {
        midpoint(&self.low, self.high.as_deref())
    }

    /// Texts that are beyond all keys with the same beginning, of what is claimed and the first key behind
    /// it: most often one of the first is beyond all keys, which spares many middles.
    fn beyond(&self) -> Vec<String> {
        let (low, first) = (self.low.chars(), self.first.chars());
        let common: Vec<char> =
            low.zip(first).take_while(|(low, first)| low == first).map(|(low, _)| low).collect();
        let beginnings = (0..=common.len()).rev().take(BEGINNINGS_MAX);
        let text = |len: usize| common[..len].iter().collect::<String>() + "~";
        beginnings.map(text).filter(|text| is_plain(text)).collect()
    }

    /// Whether the middle divides, now that it is known if there is a key from there on.
    fn is_found(&mut self, middle: &str, has_key: bool) -> bool {
        match has_key {
            false => self.high = Some(middle.to_owned()),
            true if text_cmp(&self.first, middle).is_lt() => return true,
            // Nothing is between what is claimed and the first key.
            true => self.low.clone_from(&self.first),
        }
        false
    }
}

/// Looks for a place to divide the candidate at.
pub(crate) async fn search(table: &mut TableAccess, candidate: &Candidate) -> Result<Found, ToolError> {
    let Candidate { range, claimed, stop, empty_from, .. } = candidate;
    if let KeyRange::Partitions { .. } = range {
        // A stop within a partition leaves that partition's first rows in the range.
        let stop = stop.as_ref().map(|stop| match stop.row.as_str() {
            "" => stop.partition.clone(),
            _ => next_text(&stop.partition),
        });
        let within = range.before(lower(stop.as_deref(), before(range)));
        if let Some(first) = first_key(table, &within.from(&next_text(&claimed.partition))).await? {
            let search =
                Search { low: claimed.partition.clone(), high: None, first: first.partition.clone() };
            let (text, high) = halve(table, search, &within, empty_from.as_deref()).await?;
            let is_usable = is_plain(&first.partition);
            let text = text.or_else(|| is_usable.then_some(first.partition));
            return Ok(Found { division: text.map(Division::AtPartition), empty_from: high });
        }
    }
    let (rows, hint) = match range {
        KeyRange::Rows { .. } => (range.clone(), empty_from.as_deref()),
        // What is behind a partition must be the same by both orders.
        KeyRange::Partitions { .. } if !is_plain(&claimed.partition) => {
            return Ok(Found { division: None, empty_from: None });
        }
        KeyRange::Partitions { .. } => (KeyRange::partition(claimed.partition.clone()), None),
    };
    let stop = stop.as_ref().filter(|stop| stop.partition == claimed.partition).map(|stop| stop.row.as_str());
    let within = rows.before(lower(stop, before(&rows)));
    let Some(first) = first_key(table, &within.from(&next_text(&claimed.row))).await? else {
        return Ok(Found { division: None, empty_from: None });
    };
    let search = Search { low: claimed.row.clone(), high: None, first: first.row };
    let (text, high) = halve(table, search, &within, hint).await?;
    let is_kind = matches!(range, KeyRange::Rows { .. }) || text.is_some();
    Ok(Found { division: text.map(Division::AtRow), empty_from: high.filter(|_| is_kind) })
}

fn before(range: &KeyRange) -> Option<&str> {
    let (KeyRange::Partitions { before, .. } | KeyRange::Rows { before, .. }) = range;
    before.as_deref()
}

/// The lower of two upper bounds.
fn lower<'a>(one: Option<&'a str>, other: Option<&'a str>) -> Option<&'a str> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if text_cmp(one, other).is_lt() { one } else { other }),
        (one, other) => one.or(other),
    }
}

/// A text that divides, and one from which on there is no key.
async fn halve(
    table: &mut TableAccess,
    mut search: Search,
    within: &KeyRange,
    hint: Option<&str>,
) -> Result<(Option<String>, Option<String>), ToolError> {
    search.high = lower(hint, before(within)).map(str::to_owned);
    if search.high.is_none() {
        for beyond in search.beyond() {
            if first_key(table, &within.from(&beyond)).await?.is_none() {
                search.high = Some(beyond);
                break;
            }
        }
    }
    for _ in 0..PROBES_MAX {
        let Some(middle) = search.middle() else { break };
        let key = first_key(table, &within.from(&middle)).await?;
        if search.is_found(&middle, key.is_some()) {
            return Ok((Some(middle), search.high));
        }
    }
    Ok((None, search.high))
}

/// The first key of a range.
async fn first_key(table: &mut TableAccess, range: &KeyRange) -> Result<Option<Key>, ToolError> {
    let select = vec!["PartitionKey".to_owned(), "RowKey".to_owned()];
    let mut query = Query { filter: range.filter(), select, page_size_max: Some(1), ..Query::all() };
    let mut body = Vec::new();
    for _ in 0..EMPTY_PAGES_MAX {
        query.from = table.page(&query, &mut body).await?;
        let rows = rows_of_page(&body).map_err(ToolError::Refused)?;
        if let Some(row) = rows.first() {
            return Ok(Some(Key::new(&*row.partition_key, &*row.row_key)));
        }
        if query.from.is_none() {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches in keys behind `claimed`: the division, and how many queries that took.
    fn divide(keys: &[String], claimed: &str) -> (Option<String>, usize) {
        let behind = |text: &str, inclusive: bool| {
            keys.iter().find(|key| key.as_str() > text || (inclusive && key.as_str() == text)).cloned()
        };
        let Some(first) = behind(claimed, false) else { return (None, 0) };
        let mut search = Search { low: claimed.to_owned(), high: None, first };
        let beyond = search.beyond();
        let tried = beyond.iter().take_while(|text| behind(text, true).is_some()).count();
        search.high = beyond.get(tried).cloned();
        for probes in 1..=PROBES_MAX {
            let probes = probes + tried + 1;
            let Some(middle) = search.middle() else { return (None, probes) };
            let key = behind(&middle, true);
            if search.is_found(&middle, key.is_some()) {
                return (Some(middle), probes);
            }
        }
        (None, PROBES_MAX)
    }

    #[test]
    fn places_have_keys_on_both_sides() {
        let numbered: Vec<String> = (0..1000).map(|number| format!("part-{number:06}")).collect();
        let words: Vec<String> = ["a", "b", "zebra", "zoo"].map(str::to_owned).to_vec();
        for (keys, claimed) in [(&numbered, "part-000003"), (&numbered, "part-000900"), (&words, "a")] {
            let (text, probes) = divide(keys, claimed);
            let text = text.expect("a place");
            let below = keys.iter().filter(|key| key.as_str() > claimed && **key < text).count();
            let above = keys.iter().filter(|key| **key >= text).count();
            assert!(below > 0 && above > 0, "{text} after {probes}: {below} {above}");
            assert!(probes <= 24, "{text} after {probes}");
        }
        assert_eq!(divide(&words, "zebra").0, None, "one key is not divided");
        assert_eq!(divide(&words, "zoo").0, None);
    }
}
