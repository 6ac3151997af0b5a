//! Leases of containers and blobs: a state table in the time that is handed in.
//!
//! ```text
//! lease = u8 kind: 0 none
//!                  1 leased    bytes(id) u32 seconds (0: without end) u64 ends at (ticks; 0: never)
//!                  2 breaking  bytes(id) u64 until (ticks)
//!                  3 broken    bytes(id)
//! ```
//!
//! What always holds: a lease that ran out is *expired*, one whose break period is over is *broken*, whether
//! or not anybody has written that down.

use crate::error::LeaseError;
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use std::time::Duration;

/// Seconds of a lease that ends, at least.
pub const LEASE_SECONDS_MIN: u32 = 15;
/// Seconds of a lease that ends, at most.
pub const LEASE_SECONDS_MAX: u32 = 60;

/// What is stored of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// Never leased, or released.
    #[default]
    None,
    /// Leased, or expired.
    Leased {
        /// Who has it: a GUID in lower case.
        id: String,
        /// How long each time; `None`: without end.
        seconds: Option<u32>,
        /// When it runs out.
        ends_at: Option<Ticks>,
    },
    /// Being broken, or broken.
    Breaking {
        /// Who has it.
        id: String,
        /// When it is broken.
        until: Ticks,
    },
    /// Broken.
    Broken {
        /// Who had it.
        id: String,
    },
}

/// The state at one moment, as the protocol names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Can be leased.
    Available,
    /// Somebody has it.
    Leased,
    /// It ran out.
    Expired,
    /// Somebody has it, and it can't be renewed.
    Breaking,
    /// It was broken.
    Broken,
}

impl LeaseState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            LeaseState::Available => "available",
            LeaseState::Leased => "leased",
            LeaseState::Expired => "expired",
            LeaseState::Breaking => "breaking",
            LeaseState::Broken => "broken",
        }
    }

    /// Whether it guards the resource.
    pub fn is_locked(self) -> bool {
        matches!(self, LeaseState::Leased | LeaseState::Breaking)
    }
}

/// What is asked of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Take it.
    Acquire {
        /// `None`: without end.
        seconds: Option<u32>,
        /// The id that it gets.
        id: String,
    },
    /// Start its time anew.
    Renew {
        /// Who has it.
        id: String,
    },
    /// Give it another id.
    Change {
        /// Who has it.
        id: String,
        /// Who has it then.
        proposed: String,
    },
    /// Give it back.
    Release {
        /// Who has it.
        id: String,
    },
    /// End it, whoever has it.
    Break {
        /// After so many seconds; `None`: when it runs out, or at once.
        seconds: Option<u32>,
    },
}

impl LeaseAction {
    /// Whether it ends the lease: what that guards can be deleted then, on a full disk as well.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            LeaseAction::Release { .. } | LeaseAction::Break { .. } => true,
            LeaseAction::Acquire { .. } | LeaseAction::Renew { .. } | LeaseAction::Change { .. } => false,
        }
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOutcome {
    /// The lease from now on.
    pub lease: Lease,
    /// Its id, if the protocol tells it.
    pub id: Option<String>,
    /// Seconds until a broken lease is free.
    pub break_seconds: Option<u64>,
}

/// A GUID in one of its usual forms, as 36 lower-case characters.
pub fn parse_lease_id(text: &str) -> Option<String> {
    let bare = text.trim();
    let bare = bare.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(bare);
    let bare = bare.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(bare);
    let digits: String = bare.chars().filter(|char| *char != '-').collect();
    let is_plain = bare.len() == 32;
    let is_hyphened = bare.len() == 36 && [8, 13, 18, 23].iter().all(|&at| bare.as_bytes()[at] == b'-');
    if digits.len() != 32
        || !(is_plain || is_hyphened)
        || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return None;
    }
    let digits = digits.to_ascii_lowercase();
    Some([&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

impl Lease {
    /// The state at `now`.
    pub fn state(&self, now: Ticks) -> LeaseState {
        match self {
            Lease::None => LeaseState::Available,
            Lease::Leased { ends_at: Some(at), .. } if *at <= now => LeaseState::Expired,
            Lease::Leased { .. } => LeaseState::Leased,
            Lease::Breaking { until, .. } if *until <= now => LeaseState::Broken,
            Lease::Breaking { .. } => LeaseState::Breaking,
            Lease::Broken { .. } => LeaseState::Broken,
        }
    }

    /// Whether it has no end; `None`: nobody has it.
    pub fn is_infinite(&self, now: Ticks) -> Option<bool> {
        match self {
            Lease::Leased { seconds, .. } if self.state(now) == LeaseState::Leased => Some(seconds.is_none()),
            _ => None,
        }
    }

    fn id(&self) -> Option<&str> {
        match self {
            Lease::None => None,
            Lease::Leased { id, .. } | Lease::Breaking { id, .. } | Lease::Broken { id } => Some(id),
        }
    }

    /// Applies an action, or refuses it.
    pub fn act(&self, action: &LeaseAction, now: Ticks) -> Result<LeaseOutcome, LeaseError> {
        use LeaseState::{Available, Breaking, Broken, Expired, Leased};
        let state = self.state(now);
        let is_mine = |id: &str| self.id() == Some(id);
        let done = |lease: Lease, id: Option<&str>| {
            Ok(LeaseOutcome { lease, id: id.map(str::to_owned), break_seconds: None })
        };
        match action {
            LeaseAction::Acquire { seconds, id } => match state {
                Leased if !is_mine(id) => Err(LeaseError::AlreadyPresent),
                Breaking if is_mine(id) => Err(LeaseError::IsBreakingAndCannotBeAcquired),
                Breaking => Err(LeaseError::AlreadyPresent),
                _ => done(leased(id, *seconds, now), Some(id)),
            },
            LeaseAction::Renew { id } => match (state, self) {
                _ if !is_mine(id) => Err(LeaseError::IdMismatchWithLeaseOperation),
                (Breaking | Broken, _) => Err(LeaseError::IsBrokenAndCannotBeRenewed),
                (_, Lease::Leased { seconds, .. }) => done(leased(id, *seconds, now), Some(id)),
                _ => Err(LeaseError::IdMismatchWithLeaseOperation),
            },
            LeaseAction::Change { id, proposed } => match (state, self) {
                (Leased, Lease::Leased { seconds, ends_at, .. }) if is_mine(id) || is_mine(proposed) => {
                    let lease = Lease::Leased { id: proposed.clone(), seconds: *seconds, ends_at: *ends_at };
                    done(lease, Some(proposed))
                }
                (Leased, _) => Err(LeaseError::IdMismatchWithLeaseOperation),
                (Breaking, _) if is_mine(id) => Err(LeaseError::IsBreakingAndCannotBeChanged),
                (Breaking, _) => Err(LeaseError::IdMismatchWithLeaseOperation),
                _ => Err(LeaseError::NotPresentWithLeaseOperation),
            },
            LeaseAction::Release { id } if is_mine(id) => done(Lease::None, None),
            LeaseAction::Release { .. } => Err(LeaseError::IdMismatchWithLeaseOperation),
            LeaseAction::Break { seconds } => {
                let id = self.id().unwrap_or_default().to_owned();
                let asked = seconds.map(|asked| now.plus(Duration::from_secs(u64::from(asked))));
                let until = match (state, self) {
                    (Available, _) => return Err(LeaseError::NotPresentWithLeaseOperation),
                    (Leased, Lease::Leased { ends_at: Some(at), .. })
                    | (Breaking, Lease::Breaking { until: at, .. }) => {
                        asked.map_or(*at, |asked| asked.min(*at))
                    }
                    (Leased, _) => asked.unwrap_or(now),
                    (Broken | Expired | Breaking, _) => now,
                };
                let break_seconds = Some(seconds_until(now, until));
                let lease = match until {
                    until if until <= now => Lease::Broken { id },
                    until => Lease::Breaking { id, until },
                };
                Ok(LeaseOutcome { lease, id: None, break_seconds })
            }
        }
    }

    /// Whether something may be written with this id, and the lease after that: one that is over is
    /// forgotten.
    pub fn check_write(&self, given: Option<&str>, now: Ticks) -> Result<Lease, LeaseError> {
        match (given, self.state(now)) {
            (Some(_), _) => self.check_read(given, now).map(|()| self.clone()),
            (None, LeaseState::Leased | LeaseState::Breaking) => Err(LeaseError::IdMissing),
            (None, _) => Ok(Lease::None),
        }
    }

    /// Whether an id that was given is that of the lease.
    pub fn check_read(&self, given: Option<&str>, now: Ticks) -> Result<(), LeaseError> {
        let Some(given) = given else { return Ok(()) };
        match self.state(now) {
            LeaseState::Available => Err(LeaseError::NotPresentWithOperation),
            LeaseState::Leased | LeaseState::Breaking if self.id() == Some(given) => Ok(()),
            LeaseState::Leased | LeaseState::Breaking => Err(LeaseError::IdMismatchWithOperation),
            LeaseState::Expired | LeaseState::Broken if self.id() == Some(given) => Err(LeaseError::Lost),
            LeaseState::Expired | LeaseState::Broken => Err(LeaseError::NotPresentWithOperation),
        }
    }

    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Lease::None => out.put_u8_field(0),
            Lease::Leased { id, seconds, ends_at } => {
                out.put_u8_field(1);
                out.put_bytes_field(id.as_bytes());
                out.put_u32_field(seconds.unwrap_or(0));
                out.put_u64_field(ends_at.map_or(0, |at| at.0));
            }
            Lease::Breaking { id, until } => {
                out.put_u8_field(2);
                out.put_bytes_field(id.as_bytes());
                out.put_u64_field(until.0);
            }
            Lease::Broken { id } => {
                out.put_u8_field(3);
                out.put_bytes_field(id.as_bytes());
            }
        }
    }

    /// Reads the stored form.
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.u8("lease kind")? {
            0 => Lease::None,
            1 => {
                let id = decoder.text("lease id")?.to_owned();
                let seconds = Some(decoder.u32("lease seconds")?).filter(|seconds| *seconds != 0);
                let ends_at = Some(Ticks(decoder.u64("lease end")?)).filter(|at| at.0 != 0);
                Lease::Leased { id, seconds, ends_at }
            }
            2 => {
                let id = decoder.text("lease id")?.to_owned();
                Lease::Breaking { id, until: Ticks(decoder.u64("lease break")?) }
            }
            3 => Lease::Broken { id: decoder.text("lease id")?.to_owned() },
            _ => return Err(DecodeError("lease kind")),
        })
    }
}

fn leased(id: &str, seconds: Option<u32>, now: Ticks) -> Lease {
    let ends_at = seconds.map(|seconds| now.plus(Duration::from_secs(u64::from(seconds))));
    Lease::Leased { id: id.to_owned(), seconds, ends_at }
}

/// Whole seconds, to the nearest, and 1 until it is over: what is left is returned to clients, never counted
/// from.
fn seconds_until(now: Ticks, at: Ticks) -> u64 {
    let nearest =
        (at.0.saturating_sub(now.0) + base::clock::TICKS_PER_SECOND / 2) / base::clock::TICKS_PER_SECOND;
    nearest.max(u64::from(at > now))
}

#[cfg(test)]
mod tests;
