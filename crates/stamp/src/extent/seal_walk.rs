//! Finding the end of an extent and sealing it there: a pure machine for an owner that closes its own tail
//! and for a successor that takes a range.
//!
//! The walk reads the object at the end that it knows. A part counts and moves the end; a seal ends the walk;
//! where nothing is, the seal is created. If a part got there first, it counts, and the seal is tried behind
//! it. Sealing needs no epoch: a range is taken by sealing, and whoever seals, the extent ends where the
//! store says.
//!
//! ```text
//!            part, counts                       refused
//!           +-----------+              +-----------------------+
//!           v           |              v                       |
//! start -> read --------+--nothing--> create ---created--> sealed at the end
//!           |                          ^   |
//!           +--seal--> sealed there    +---+ unknown: the same again
//! ```
//!
//! What always holds: the walk ends only with a seal that the store has, at the end of an unbroken chain; the
//! same walk sends the same bytes for the same end.

use crate::error::StoredError;
use crate::extent::append_window::AppendWindow;
use crate::extent::chain::{Chain, Link};
use crate::extent::choose_after_append::Found;
use crate::extent::part_header::{ExtentPlace, PartHeader, PartKind, StampLife};
use crate::extent::put_answer::PutAnswer;
use crate::extent::seal_body::{LISTED_PARTS_MAX, seal_body};
use crate::ids::Owner;
use base::checksum::crc64;

/// What the caller does next for a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// Read the header of the object at this offset.
    Read {
        /// Bytes of body before it.
        offset: u64,
    },
    /// Create the seal of this header, with the body of [`SealWalk::body`].
    Create(PartHeader),
    /// The extent is sealed and has so many bytes.
    Sealed {
        /// Bytes of body.
        length: u64,
    },
    /// The walk can't go on.
    Stopped(WalkStop),
}

/// Why a walk can't go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum WalkStop {
    /// The extent was deleted while it was being sealed: it is not ours any more.
    #[error("the extent was deleted")]
    Deleted,
    /// The chain is broken. It is damage only if the range is still ours: see `choose_after_broken`.
    #[error("{0}")]
    Broken(String),
    /// The store refuses seals for certain.
    #[error("the store refused a seal with status {0}")]
    Failed(u16),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum WalkState {
    Reading,
    Creating,
    /// A seal was refused: what is there must be read.
    ReadingRefused,
    Sealed,
    Stopped(WalkStop),
}

/// The sealing of one extent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SealWalk {
    life: StampLife,
    place: ExtentPlace,
    sealer: Owner,
    chain: Chain,
    part_lengths: Vec<u64>,
    state: WalkState,
}

impl SealWalk {
    /// Seals the extent at `place` as `sealer`, from its beginning on.
    pub fn new(life: StampLife, place: ExtentPlace, sealer: Owner) -> Self {
        let chain = Chain::new(place.extent);
        SealWalk { life, place, sealer, chain, part_lengths: Vec::new(), state: WalkState::Reading }
    }

    /// The writer seals its own extent, of which nothing is under way: nothing is read, the seal goes behind
    /// what is acknowledged.
    pub fn of_own(life: StampLife, window: &AppendWindow) -> Self {
        let part_lengths = window.acknowledged_lengths().to_vec();
        let (place, sealer, chain) = (window.place(), window.writer(), window.chain());
        SealWalk { life, place, sealer, chain, part_lengths, state: WalkState::Creating }
    }

    /// Which extent is being sealed.
    pub fn place(&self) -> ExtentPlace {
        self.place
    }

    /// The next step.
    pub fn step(&self) -> WalkStep {
        match &self.state {
            WalkState::Reading | WalkState::ReadingRefused => WalkStep::Read { offset: self.chain.end() },
            WalkState::Creating => WalkStep::Create(self.header()),
            WalkState::Sealed => WalkStep::Sealed { length: self.chain.end() },
            WalkState::Stopped(stop) => WalkStep::Stopped(stop.clone()),
        }
    }

    /// The body of the seal at the end that is known now.
    pub fn body(&self) -> Vec<u8> {
        // One more than is listed: the body is then empty.
        seal_body(&self.part_lengths)
    }

    fn header(&self) -> PartHeader {
        let body = self.body();
        PartHeader {
            kind: PartKind::Seal,
            life: self.life,
            place: self.place,
            offset: self.chain.end(),
            body_length: body.len() as u64,
            writer: self.sealer,
            body_checksum: crc64(&[&body]),
            previous: self.chain.previous(),
        }
    }

    /// The read at the end found this.
    pub fn found(&mut self, found: &Found) {
        let is_refused = match self.state {
            WalkState::Reading => false,
            WalkState::ReadingRefused => true,
            _ => return,
        };
        self.state = match found {
            Found::Unknown => return,
            Found::NotThere if is_refused => WalkState::Stopped(WalkStop::Deleted),
            Found::NotThere => WalkState::Creating,
            Found::Damaged(error) => self.broken(error),
            Found::Header(header) => match self.chain.extend(header) {
                Ok(Link::Seal) => WalkState::Sealed,
                Ok(Link::Part) => {
                    if self.part_lengths.len() <= LISTED_PARTS_MAX {
                        self.part_lengths.push(header.body_length);
                    }
                    // Behind a part that got there first there is likely nothing.
                    if is_refused { WalkState::Creating } else { WalkState::Reading }
                }
                Err(error) => self.broken(&error),
            },
        };
    }

    fn broken(&self, error: &StoredError) -> WalkState {
        WalkState::Stopped(WalkStop::Broken(error.to_string()))
    }

    /// The creation of the seal was answered.
    pub fn answered(&mut self, answer: PutAnswer) {
        if self.state != WalkState::Creating {
            return;
        }
        self.state = match answer {
            PutAnswer::Created => WalkState::Sealed,
            PutAnswer::Refused => WalkState::ReadingRefused,
            PutAnswer::Unknown => return,
            PutAnswer::Failed { status } => WalkState::Stopped(WalkStop::Failed(status)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::append_window::WindowBounds;
    use crate::extent::fixtures::{life, part, place, seal, writer};

    const CREATED: PutAnswer = PutAnswer::Created;
    const REFUSED: PutAnswer = PutAnswer::Refused;

    fn walk() -> SealWalk {
        SealWalk::new(life(), place(), writer(2, 2))
    }

    fn offset_of_seal(walk: &SealWalk) -> u64 {
        match walk.step() {
            WalkStep::Create(header) => header.offset,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_writer_seals_its_own_extent_without_a_read_and_with_the_same_bytes() {
        let mut window = AppendWindow::new(life(), place(), writer(1, 1), WindowBounds::default());
        let sent: Vec<_> = (1..4).map(|length| window.push(length * 10, length).unwrap()).collect();
        for part in &sent {
            window.answered(part.offset, CREATED, None, true);
        }
        window.acknowledge(true);
        let mut own = SealWalk::of_own(life(), &window);
        let mut read = SealWalk::new(life(), place(), writer(1, 1));
        sent.iter().for_each(|part| read.found(&Found::Header(*part)));
        read.found(&Found::NotThere);
        assert_eq!((own.step(), own.body()), (read.step(), read.body()));
        // A part that arrives late and a seal of another count there, too.
        own.answered(REFUSED);
        own.found(&Found::Header(seal(writer(2, 2), 60, sent[2].checksum())));
        assert_eq!(own.step(), WalkStep::Sealed { length: 60 });
        let stray = part(writer(3, 3), 60, 10, sent[2].checksum());
        read.answered(REFUSED);
        read.found(&Found::Header(stray));
        assert!(matches!(read.step(), WalkStep::Stopped(WalkStop::Broken(_))));
    }

    #[test]
    fn an_empty_extent_is_sealed_too() {
        let mut walk = walk();
        assert_eq!(walk.step(), WalkStep::Read { offset: 0 });
        walk.found(&Found::NotThere);
        assert_eq!(offset_of_seal(&walk), 0);
        walk.answered(CREATED);
        assert_eq!(walk.step(), WalkStep::Sealed { length: 0 });
    }

    #[test]
    fn a_part_that_got_there_first_counts() {
        let first = part(writer(1, 1), 0, 10, 0);
        let second = part(writer(1, 1), 10, 10, first.checksum());
        let mut walk = walk();
        walk.found(&Found::Header(first));
        walk.found(&Found::NotThere);
        assert_eq!(offset_of_seal(&walk), 10);
        walk.answered(REFUSED);
        assert_eq!(walk.step(), WalkStep::Read { offset: 10 });
        walk.found(&Found::Header(second));
        assert_eq!(offset_of_seal(&walk), 20);
        walk.answered(CREATED);
        assert_eq!(walk.step(), WalkStep::Sealed { length: 20 });
        assert_eq!(walk.body(), seal_body(&[10, 10]));
    }

    #[test]
    fn any_seal_at_the_end_ends_the_walk() {
        let first = part(writer(1, 1), 0, 10, 0);
        for sealer in [writer(1, 1), writer(2, 2), writer(3, 3)] {
            let mut walk = walk();
            walk.found(&Found::Header(first));
            walk.found(&Found::Header(seal(sealer, 10, first.checksum())));
            assert_eq!(walk.step(), WalkStep::Sealed { length: 10 });
        }
    }

    #[test]
    fn unknown_outcomes_change_nothing_and_the_same_bytes_are_sent() {
        let mut walk = walk();
        walk.found(&Found::Unknown);
        assert_eq!(walk.step(), WalkStep::Read { offset: 0 });
        walk.found(&Found::NotThere);
        let sent = walk.step();
        walk.answered(PutAnswer::Unknown);
        assert_eq!(walk.step(), sent);
        walk.answered(REFUSED);
        walk.found(&Found::Unknown);
        assert_eq!(walk.step(), WalkStep::Read { offset: 0 });
    }

    #[test]
    fn broken_chains_deleted_extents_and_refusals_stop_the_walk() {
        let mut deleted = walk();
        deleted.found(&Found::NotThere);
        deleted.answered(REFUSED);
        deleted.found(&Found::NotThere);
        assert_eq!(deleted.step(), WalkStep::Stopped(WalkStop::Deleted));
        let mut failed = walk();
        failed.found(&Found::NotThere);
        failed.answered(PutAnswer::Failed { status: 403 });
        assert_eq!(failed.step(), WalkStep::Stopped(WalkStop::Failed(403)));
        for found in [
            Found::Header(part(writer(1, 1), 0, 10, 5)),
            Found::Damaged(StoredError::Missing { what: "it".to_owned() }),
        ] {
            let mut broken = walk();
            broken.found(&found);
            assert!(matches!(broken.step(), WalkStep::Stopped(WalkStop::Broken(_))), "{found:?}");
        }
    }
}
