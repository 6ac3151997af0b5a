//! A process, and how far it is with each range.

use crate::world::message::Awaited;
use crate::world::names::Write;
use stamp::{
    AppendWindow, Backup, ExtentName, HeldRange, Incarnation, RangeDocument, RangeId, Release, SealWalk,
    StreamId, Take, Taking,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names that one incarnation makes for one range, at most.
const COUNTERS_OF_RANGE_MAX: u64 = 1000;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) incarnation: Incarnation,
    /// Names that it has made for each range: what it does with two ranges leads to the same names in either
    /// order.
    pub(crate) counters: BTreeMap<RangeId, u64>,
    /// Whether its lease is before its deadline.
    pub(crate) has_lease: bool,
    pub(crate) ranges: BTreeMap<RangeId, Role>,
    pub(crate) awaited: Vec<Awaited>,
}

impl Process {
    /// A process that has just joined.
    pub(crate) fn new(incarnation: Incarnation) -> Self {
        let (counters, ranges, awaited) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Process { incarnation, counters, has_lease: true, ranges, awaited }
    }

    /// A counter that it has not used, for something of this range.
    pub(crate) fn next_counter(&mut self, range: RangeId) -> u64 {
        let counter = self.counters.entry(range).or_default();
        *counter += 1;
        range.0.counter * COUNTERS_OF_RANGE_MAX + *counter
    }

    /// Whether it has joined and done nothing since: all such processes are alike.
    pub(crate) fn is_fresh(&self) -> bool {
        self.has_lease && self.counters.is_empty() && self.ranges.is_empty() && self.awaited.is_empty()
    }

    /// The range, if it is served.
    pub(crate) fn serving(&self, range: RangeId) -> Option<&Serving> {
        match self.ranges.get(&range) {
            Some(Role::Serving(serving)) => Some(serving),
            _ => None,
        }
    }
}

/// How far a process is with a range. It does nothing with ranges that have no role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// The transaction of a take is under way.
    Taking(Box<Take>),
    /// Open extents are being sealed, or their lengths recorded.
    Sealing(Box<Taking>),
    /// It serves.
    Serving(Box<Serving>),
    /// It leaves its range alone, for ever: a planted fault.
    Stuck,
}

/// A range that is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Serving {
    pub(crate) held: HeldRange,
    /// Durable writes, as readers see them.
    pub(crate) visible: Vec<Write>,
    /// Writes that decisions are made over, and that are not durable.
    pub(crate) pending: Vec<Write>,
    pub(crate) tail: Tail,
    /// The extent that was opened last.
    pub(crate) opened: Option<ExtentName>,
    /// The extent that this owner sealed last, while its length is not recorded.
    pub(crate) sealed: Option<(ExtentName, u64)>,
    /// Whether the log must be read again once that length is recorded.
    pub(crate) must_reload: bool,
    pub(crate) release: Release,
    /// The heirs of a split that is under way.
    pub(crate) heirs: Option<[Arc<RangeDocument>; 2]>,
    /// What a backup must have of the split that made this range, for the owner that split it.
    pub(crate) backup_of_split: Option<Box<Backup>>,
}

/// The end of the log in the hands of its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tail {
    /// No extent takes appends.
    None,
    /// An extent takes appends.
    Open(AppendWindow),
    /// An extent is being sealed by its owner.
    Closing(SealWalk),
}

impl Serving {
    /// A range that was just read.
    pub(crate) fn new(held: HeldRange, visible: Vec<Write>) -> Self {
        Serving {
            held,
            visible,
            pending: Vec::new(),
            tail: Tail::None,
            opened: None,
            sealed: None,
            must_reload: false,
            release: Release::default(),
            heirs: None,
            backup_of_split: None,
        }
    }

    /// The log: the only stream of the range.
    pub(crate) fn log(&self) -> Option<StreamId> {
        self.held.document().streams.keys().next().copied()
    }

    /// Whether a change of the document can begin.
    pub(crate) fn is_free(&self) -> bool {
        self.held.sent().is_none() && self.heirs.is_none()
    }
}
