//! How rows may be moved from one backend to another: while writers go on, while readers do, or only while
//! clients are away; and why not better.
//!
//! ```text
//! read-only  source   a fence: else a writer that is late is lost, or is on both shards
//!            source   an ordered scan: a copy that is cut off goes on where it was, and keeps no
//!                     writers out for a second copy
//!            target   a fence: else a client with a map of before may write what the copy replaces
//! online     source   the same, and change capture: what is written during the copy
//!            source   a fence that holds until commit: the last changes are complete at a known point
//!            source   transactions over the shard: changes that belong together are captured together
//!            target   the same as read-only, and conditional writes: a change is put once, and over an older
//!                     one only
//! ```
//!
//! What always holds: a better mode is never allowed to a backend that can do less.

use super::capabilities::{Capabilities, Fence, Transactions};
use std::fmt;

/// How rows are moved. The later, the less clients notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveMode {
    /// Clients must be away: nothing refuses them.
    Offline,
    /// Readers go on, writers are refused until the switch.
    ReadOnly,
    /// Writers go on, and are fenced for the switch.
    OnlineFenced,
}

/// One of the two sides of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Where the rows are.
    Source,
    /// Where they are to be.
    Target,
}

/// What a side can't do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// No fence of any kind.
    Fence,
    /// No ordered scan.
    OrderedScan,
    /// A fence that holds until commit.
    HeldFence,
    /// Transactions over the shard.
    Transactions,
    /// Change capture.
    ChangeCapture,
    /// Conditional writes.
    ConditionalWrite,
}

/// Why a mode is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// The mode that it rules out.
    pub mode: MoveMode,
    /// Which side can't.
    pub side: Side,
    /// What it can't do.
    pub lack: Lack,
}

/// The best mode, and each reason against a better one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveChoice {
    /// The best mode that is safe.
    pub mode: MoveMode,
    /// Why no better one is; empty for [`MoveMode::OnlineFenced`].
    pub reasons: Vec<Reason>,
}

/// How rows may be moved.
pub fn choose_move(source: &Capabilities, target: &Capabilities) -> MoveChoice {
    let mut reasons = Vec::new();
    let mut need = |mode, side, lack, is_there: bool| {
        if !is_there {
            reasons.push(Reason { mode, side, lack });
        }
    };
    use MoveMode::{OnlineFenced, ReadOnly};
    need(ReadOnly, Side::Source, Lack::Fence, source.fence != Fence::None);
    need(ReadOnly, Side::Source, Lack::OrderedScan, source.ordered_scan);
    need(ReadOnly, Side::Target, Lack::Fence, target.fence != Fence::None);
    // Without any fence that is said already.
    need(OnlineFenced, Side::Source, Lack::HeldFence, source.fence != Fence::Expires);
    let whole = source.transactions == Transactions::Shard;
    need(OnlineFenced, Side::Source, Lack::Transactions, whole);
    need(OnlineFenced, Side::Source, Lack::ChangeCapture, source.change_capture);
    need(OnlineFenced, Side::Target, Lack::ConditionalWrite, target.conditional_write);
    let is_ruled_out = |mode| reasons.iter().any(|reason| reason.mode == mode);
    let mode = match (is_ruled_out(ReadOnly), is_ruled_out(OnlineFenced)) {
        (true, _) => MoveMode::Offline,
        (false, true) => ReadOnly,
        (false, false) => OnlineFenced,
    };
    MoveChoice { mode, reasons }
}

impl fmt::Display for MoveMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            MoveMode::Offline => "offline",
            MoveMode::ReadOnly => "read-only",
            MoveMode::OnlineFenced => "online",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Source => "source",
            Side::Target => "target",
        };
        let why = match self.lack {
            Lack::Fence => "can't refuse a client whose map is old",
            Lack::OrderedScan => "can't be read in the order of keys, so a copy that is cut off begins again",
            Lack::HeldFence => "does not hold its fence until a commit, so the last change is not known",
            Lack::Transactions => "has no transactions over a shard, so changes are captured in parts",
            Lack::ChangeCapture => "does not give its changes, so writes during the copy would be lost",
            Lack::ConditionalWrite => "has no conditional writes, so a late change could replace a newer one",
        };
        write!(out, "not {}: the {side} {why}", self.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that there is.
    const ALL: Capabilities = Capabilities { change_capture: true, ..Capabilities::POSTGRES };

    #[test]
    fn a_move_is_as_good_as_both_sides_allow() {
        use Lack::{ChangeCapture, ConditionalWrite, HeldFence, OrderedScan, Transactions as Whole};
        use MoveMode::{Offline, OnlineFenced, ReadOnly};
        use Side::{Source, Target};
        let tables = Capabilities::STORAGE_TABLES;
        let no_fence = Capabilities { fence: Fence::None, ..ALL };
        let no_scan = Capabilities { ordered_scan: false, ..ALL };
        let no_condition = Capabilities { conditional_write: false, ..ALL };
        let captured_tables = Capabilities { change_capture: true, ..tables };
        let cases: [(_, _, _, &[(Side, Lack)]); 11] = [
            (ALL, ALL, OnlineFenced, &[]),
            (ALL, tables, OnlineFenced, &[]),
            (Capabilities::POSTGRES, Capabilities::SQLITE, ReadOnly, &[(Source, ChangeCapture)]),
            (Capabilities::SQLITE, tables, ReadOnly, &[(Source, ChangeCapture)]),
            (tables, ALL, ReadOnly, &[(Source, HeldFence), (Source, Whole), (Source, ChangeCapture)]),
            (captured_tables, tables, ReadOnly, &[(Source, HeldFence), (Source, Whole)]),
            (ALL, no_condition, ReadOnly, &[(Target, ConditionalWrite)]),
            (no_condition, ALL, OnlineFenced, &[]),
            (no_fence, ALL, Offline, &[(Source, Lack::Fence)]),
            (ALL, no_fence, Offline, &[(Target, Lack::Fence)]),
            (no_scan, no_fence, Offline, &[(Source, OrderedScan), (Target, Lack::Fence)]),
        ];
        for (source, target, mode, lacks) in cases {
            let choice = choose_move(&source, &target);
            let found: Vec<_> = choice.reasons.iter().map(|reason| (reason.side, reason.lack)).collect();
            assert_eq!((choice.mode, found.as_slice()), (mode, lacks), "{source:?} {target:?}");
        }
        let reason = &choose_move(&Capabilities::SQLITE, &tables).reasons[0];
        let expected =
            "not online: the source does not give its changes, so writes during the copy would be lost";
        assert_eq!(reason.to_string(), expected);
    }

    /// All backends that there could be.
    fn every() -> Vec<Capabilities> {
        let mut every = Vec::new();
        for transactions in [Transactions::Row, Transactions::Partition, Transactions::Shard] {
            for fence in [Fence::None, Fence::Expires, Fence::HeldUntilCommit] {
                for bits in 0..8 {
                    let bit = |number: u32| bits >> number & 1 == 1;
                    let (ordered_scan, conditional_write, change_capture) = (bit(0), bit(1), bit(2));
                    let one =
                        Capabilities { transactions, ordered_scan, conditional_write, fence, change_capture };
                    every.push(one);
                }
            }
        }
        every
    }

    #[test]
    fn who_can_do_less_gets_no_better_mode() {
        let is_at_most = |one: &Capabilities, other: &Capabilities| {
            one.transactions <= other.transactions
                && one.ordered_scan <= other.ordered_scan
                && one.conditional_write <= other.conditional_write
                && one.fence <= other.fence
                && one.change_capture <= other.change_capture
        };
        let every = every();
        for less in &every {
            for more in every.iter().filter(|more| is_at_most(less, more)) {
                for other in &every {
                    assert!(choose_move(less, other).mode <= choose_move(more, other).mode);
                    assert!(choose_move(other, less).mode <= choose_move(other, more).mode);
                }
            }
        }
        for source in &every {
            for target in &every {
                let choice = choose_move(source, target);
                assert_eq!(choice.reasons.is_empty(), choice.mode == MoveMode::OnlineFenced);
            }
        }
    }
}
