//! Which of the rows under a blob's name a decision asks for, how much of them, and which it therefore sees.
//!
//! Why: a name may hold very many rows, and a decision needs few. What always holds: what was not asked for
//! is not taken for absent; a change asks for more a bounded number of times.

use super::BlobChange;
use crate::limits::ROWS_OF_A_BLOB_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// What starts the names of all rows of a kind: snapshots, chunks, …
const KIND_LEN: usize = 2;
/// Starts of names of one kind that are asked for on their own: the chunks of one content, say. What needs
/// more of them is shown all of the kind, or it would be run again for each.
const PREFIXES_OF_A_KIND_MAX: usize = 2;
/// Times that a change is run because it needs to see more, or can't see as much, at most; each time is one
/// prefix more, or all of a kind, or [`FEWER_DIVISOR`] times fewer rows.
pub(crate) const ROUND_COUNT_MAX: usize = 32;

/// Which rows, besides the head, a decision is shown.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The head with the content of the base blob, if that lies in its row.
    pub(crate) content: bool,
    pub(super) points: Vec<String>,
    /// None of them is the start of another.
    pub(super) prefixes: BTreeSet<String>,
    /// Rows that are shown of each prefix, at most.
    pub(super) rows_max: usize,
}

/// If the rows, or what becomes of them, are too many bytes for one operation, so many times fewer are shown.
const FEWER_DIVISOR: usize = 4;

impl Asked {
    /// What a change asks for by itself.
    pub(crate) fn by<C: BlobChange>(change: &C) -> Self {
        let (points, prefixes) = (change.more_rows(), BTreeSet::new());
        let content = change.keeps_content();
        let mut asked = Asked { content, points, prefixes, rows_max: ROWS_OF_A_BLOB_MAX };
        change.more_prefixes().into_iter().for_each(|prefix| asked.add(prefix));
        asked
    }

    /// Asks for fewer rows of each prefix: the decision takes the rest for cut off. False: it asks for none
    /// by prefix, or there are no fewer.
    pub(crate) fn ask_for_fewer(&mut self) -> bool {
        self.rows_max /= FEWER_DIVISOR;
        self.rows_max > 0 && !self.prefixes.is_empty()
    }

    /// Adds the rows whose names start so.
    pub(crate) fn add(&mut self, prefix: String) {
        let kind = prefix.get(..KIND_LEN).unwrap_or_default().to_owned();
        let of_kind = self.prefixes.iter().filter(|other| other.starts_with(&kind)).count();
        let added = if of_kind < PREFIXES_OF_A_KIND_MAX { prefix } else { kind };
        if !self.prefixes.iter().any(|other| added.starts_with(other)) {
            self.prefixes.retain(|other| !other.starts_with(&added));
            self.prefixes.insert(added);
        }
    }
}

/// Which rows a decision sees.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) points: Vec<String>,
    /// By the starts of names that were asked for: the last row, if there were too many.
    pub(super) prefixes: BTreeMap<String, Option<String>>,
}

/// What a decision sees of the rows whose names start in some way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Whole,
    /// There are too many.
    CutOff,
    /// It has not asked.
    Unasked,
}

impl Seen {
    /// Of the rows whose names start so.
    pub(super) fn sight(&self, prefix: &str) -> Sight {
        match self.prefixes.iter().find(|(asked, _)| prefix.starts_with(asked.as_str())) {
            None => Sight::Unasked,
            Some((_, None)) => Sight::Whole,
            Some((_, Some(last))) if last.as_str() > prefix && !last.starts_with(prefix) => Sight::Whole,
            Some(_) => Sight::CutOff,
        }
    }

    /// Whether a row of this name is seen if it is there.
    pub(super) fn shows(&self, name: &str) -> bool {
        self.points.iter().any(|point| point == name) || self.sight(name) == Sight::Whole
    }
}
