//! How long a process may serve: a deadline that beats move forward, and that never comes back.
//!
//! A beat is a transaction that fails once the process's key has gone. Its deadline is counted from before it
//! was sent, so a process that was paused knows the end of its lease from its own clocks. Two clocks count:
//! one that goes on in suspend, and the wall clock; whichever says first that the deadline has passed is
//! believed. What always holds: a lease that has ended once has ended, whatever a later beat or clock says.

use base::Ticks;
use std::time::Duration;

/// How long a process is taken to live after its last beat.
pub const LEASE_TTL: Duration = Duration::from_secs(10);
/// How much earlier the process itself stops: for clocks that differ, within a lease, by less than this.
pub const LEASE_MARGIN: Duration = Duration::from_secs(1);
/// Beats in the time of a lease.
pub const BEATS_PER_TTL: u32 = 3;

/// An instant by both clocks of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instants {
    /// Time since the machine started, suspend included.
    pub boot: Duration,
    /// The wall clock.
    pub wall: Ticks,
}

/// The lease of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    ttl: Duration,
    margin: Duration,
    deadline: Option<Instants>,
    has_ended: bool,
}

impl Lease {
    /// A lease that does not hold before its first beat.
    pub fn new(ttl: Duration, margin: Duration) -> Self {
        Lease { ttl, margin, deadline: None, has_ended: false }
    }

    /// When the next beat is due after one that was sent.
    pub fn beat_interval(&self) -> Duration {
        self.ttl / BEATS_PER_TTL
    }

    /// A beat that was sent at `sent_at` is committed, and the clocks say `now`. A beat whose answer comes
    /// after the deadline revives nothing.
    pub fn beat_committed(&mut self, sent_at: Instants, now: Instants) {
        if self.deadline.is_some() && !self.holds(now) {
            return;
        }
        let serves_for = self.ttl.saturating_sub(self.margin);
        let deadline =
            Instants { boot: sent_at.boot.saturating_add(serves_for), wall: sent_at.wall.plus(serves_for) };
        if self.deadline.is_none_or(|known| deadline.boot > known.boot) {
            self.deadline = Some(deadline);
        }
    }

    /// The process's key is gone: a beat failed, or the metadata store said so.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// How long the process may still serve; nothing before the first beat and once the lease has ended.
    pub fn left(&self, now: Instants) -> Duration {
        match self.deadline.filter(|_| !self.has_ended) {
            None => Duration::ZERO,
            Some(deadline) => {
                let by_wall = deadline.wall.since_unix().saturating_sub(now.wall.since_unix());
                deadline.boot.saturating_sub(now.boot).min(by_wall)
            }
        }
    }

    /// Whether the process may admit and acknowledge now. Once it may not, it never may again.
    pub fn holds(&mut self, now: Instants) -> bool {
        let is_before = |deadline: Instants| now.boot < deadline.boot && now.wall < deadline.wall;
        match self.deadline {
            None => false,
            Some(deadline) => {
                self.has_ended |= !is_before(deadline);
                !self.has_ended
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_seconds: u64, wall_seconds: u64) -> Instants {
        let wall = Ticks::from_unix(Duration::from_secs(1_000_000 + wall_seconds));
        Instants { boot: Duration::from_secs(boot_seconds), wall }
    }

    fn beaten(sent: Instants) -> Lease {
        let mut lease = Lease::new(LEASE_TTL, LEASE_MARGIN);
        lease.beat_committed(sent, sent);
        lease
    }

    #[test]
    fn a_lease_holds_from_its_first_beat_to_its_deadline() {
        let mut lease = Lease::new(LEASE_TTL, LEASE_MARGIN);
        assert!(!lease.holds(at(0, 0)));
        lease.beat_committed(at(10, 10), at(11, 11));
        for (boot, wall, holds) in [(11, 11, true), (18, 18, true), (19, 18, false)] {
            assert_eq!(lease.clone().holds(at(boot, wall)), holds, "{boot}, {wall}");
        }
        let left = |boot, wall| lease.left(at(boot, wall)).as_secs();
        assert_eq!((left(11, 11), left(11, 13), left(18, 11), left(19, 11), left(11, 30)), (8, 6, 1, 0, 0));
        lease.beat_committed(at(15, 15), at(16, 16));
        assert!(lease.clone().holds(at(23, 23)) && !lease.holds(at(24, 24)));
    }

    #[test]
    fn whichever_clock_is_first_ends_it() {
        assert!(!beaten(at(0, 0)).holds(at(3, 9)), "the wall clock went on in suspend");
        assert!(!beaten(at(0, 0)).holds(at(9, 3)), "the wall clock was set back");
        assert!(beaten(at(0, 0)).holds(at(8, 8)));
    }

    #[test]
    fn an_ended_lease_is_never_revived() {
        let mut lease = beaten(at(0, 0));
        assert!(!lease.holds(at(9, 9)));
        lease.beat_committed(at(8, 8), at(10, 10));
        assert!(!lease.holds(at(10, 10)));
        assert!(!lease.holds(at(1, 1)), "clocks that go back do not help");
        let mut late = beaten(at(0, 0));
        late.beat_committed(at(8, 8), at(10, 10));
        assert!(!late.holds(at(10, 10)), "the answer came after the deadline");
        let mut gone = beaten(at(0, 0));
        gone.end();
        assert!(!gone.holds(at(1, 1)));
    }

    #[test]
    fn answers_of_beats_may_come_out_of_order() {
        let mut lease = beaten(at(3, 3));
        lease.beat_committed(at(1, 1), at(5, 5));
        assert!(lease.holds(at(11, 11)));
    }
}
