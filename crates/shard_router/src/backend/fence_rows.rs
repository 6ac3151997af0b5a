//! The fence of a SQL shard, as `shard_store` writes it: the table `larimar_fence` has a row a mapping with
//! map, mapping, since and state.

use crate::fenced::routed::Routed;
use shard_map::{Epoch, State};
use shard_store::{LocalMapping, Refusal, check_fence};

/// A row: mapping, since, state.
pub(crate) type FenceRow = (String, i64, String);

/// Whether the fence's rows let an operation pass. A row that can't be read is none.
pub(crate) fn check_rows(routed: &Routed, rows: &[FenceRow]) -> Result<(), Refusal> {
    for mapping in routed.mappings() {
        let id = mapping.mapping.to_string();
        let row = rows.iter().find(|(there, ..)| *there == id);
        let here = row.and_then(|(_, since, state)| mapping_of_row(*since, state));
        let map = routed.map().name();
        check_fence(map, &mapping.mapping, here.as_ref(), mapping.since, routed.access())?;
    }
    Ok(())
}

/// What a row says; none if it can't be read.
pub(crate) fn mapping_of_row(since: i64, state: &str) -> Option<LocalMapping> {
    let since = Epoch(u64::try_from(since).ok()?);
    Some(LocalMapping { high: None, state: parse_state(state)?, since })
}

fn parse_state(text: &str) -> Option<State> {
    [State::Online, State::ReadOnly, State::Offline].into_iter().find(|state| state.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_written() {
        assert_eq!(parse_state("online"), Some(State::Online));
        assert_eq!(parse_state("read-only"), Some(State::ReadOnly));
        assert_eq!(parse_state("offline"), Some(State::Offline));
        assert_eq!(parse_state("Online"), None);
    }
}
