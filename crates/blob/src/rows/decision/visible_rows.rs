//! Which rows a decision sees: those that were requested, unless there were too many.

use std::collections::BTreeMap;

/// The rows that a decision sees.
#[derive(Default)]
pub(crate) struct VisibleRows {
    pub(crate) points: Vec<String>,
    /// By requested prefix: the last row that was read, if there were too many.
    pub(crate) prefixes: BTreeMap<String, Option<String>>,
}

/// How much a decision sees of the rows with one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Whole,
    /// There are too many.
    CutOff,
    /// They were not requested.
    NotRequested,
}

impl VisibleRows {
    /// How much is visible of the rows with this prefix.
    pub(crate) fn visibility(&self, prefix: &str) -> Visibility {
        match self.prefixes.iter().find(|(requested, _)| prefix.starts_with(requested.as_str())) {
            None => Visibility::NotRequested,
            Some((_, None)) => Visibility::Whole,
            Some((_, Some(last))) if last.as_str() > prefix && !last.starts_with(prefix) => Visibility::Whole,
            Some(_) => Visibility::CutOff,
        }
    }

    /// Whether a row of this name is visible if it exists.
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.points.iter().any(|point| point == name) || self.visibility(name) == Visibility::Whole
    }
}
