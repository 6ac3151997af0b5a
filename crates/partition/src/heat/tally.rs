//! Counts of reads and writes.

/// What a request does to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only looks.
    Read,
    /// It may change some, or append blob data.
    Write,
}

/// Sampled requests: each stands for as many as one was taken of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gets and spans of scans.
    pub reads: u64,
    /// Operations, and appends of blob data.
    pub writes: u64,
}

impl Tally {
    /// Counts one.
    pub(crate) fn note(&mut self, access: Access) {
        match access {
            Access::Read => self.reads += 1,
            Access::Write => self.writes += 1,
        }
    }

    /// Both together.
    pub fn total(self) -> u64 {
        self.reads + self.writes
    }

    /// Adds another count.
    pub(crate) fn add(&mut self, other: Tally) {
        self.reads += other.reads;
        self.writes += other.writes;
    }

    /// The part `of / out_of` of this count, rounded down; nothing of nothing.
    pub(crate) fn part(self, of: Tally, out_of: Tally) -> Tally {
        let part = |all: u64, of: u64, out_of: u64| {
            let part = u128::from(all) * u128::from(of) / u128::from(out_of.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        Tally {
            reads: part(self.reads, of.reads, out_of.reads),
            writes: part(self.writes, of.writes, out_of.writes),
        }
    }
}
