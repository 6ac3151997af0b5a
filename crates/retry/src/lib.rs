//! When a request to a storage service is sent again, where, and after what wait.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no randomness, no runtime. The
//! caller sends, waits and measures; after each failure it calls [`Policy::decide`] with the attempt, its
//! outcome, the time since the first attempt began and 64 random bits:
//!
//! ```
//! use retry::{Attempt, Decision, Outcome, Policy, Request};
//! use std::time::Duration;
//!
//! let policy = Policy::named("storage-11").expect("a profile");
//! // A read of an account with a secondary endpoint.
//! let mut attempt = Attempt::first(Request { is_idempotent: true, has_secondary: true });
//! let mut elapsed = Duration::ZERO;
//! let answers = [503, 404, 200];
//! let mut sent_to = Vec::new();
//! for status in answers {
//!     sent_to.push(attempt.location);
//!     if status == 200 {
//!         break;
//!     }
//!     let draw = 0x5bd1_e995_0000_0000; // in a program: 64 random bits
//!     match policy.decide(&attempt, &Outcome::status(status), elapsed, draw) {
//!         Decision::Retry { after, next } => {
//!             elapsed += after; // in a program: sleep
//!             attempt = next;
//!         }
//!         Decision::GiveUp(reason) => panic!("{reason}"),
//!     }
//! }
//! // The busy primary was left for the secondary at once, and its 404 sent the request back.
//! use retry::Location::{Primary, Secondary};
//! assert_eq!(sent_to, [Primary, Secondary, Primary]);
//! ```
//!
//! What always holds:
//!
//! * a wait is never longer than its policy's cap, unless the service itself named a longer one;
//! * a request that is not idempotent is sent again only if nothing of it can have been done, or if the
//!   policy asks for it;
//! * a retry that would begin at or after the end of the budget is not made;
//! * the same arguments give the same decision.
//!
//! | file | content |
//! |---|---|
//! | `backoff.rs` | how long to wait before the retry of a number |
//! | `classify.rs` | which outcomes are retried at all |
//! | `retry_after.rs` | the wait that an answer's headers name |
//! | `policy.rs` | the decision |
//! | `profiles.rs` | named policies, each with its source |

mod backoff;
mod classify;
mod policy;
mod profiles;
mod retry_after;

pub use backoff::Backoff;
pub use classify::{Location, Outcome, RETRIED_STATUSES};
pub use policy::{Attempt, Decision, Policy, RETRY_AFTER_FOR_MAX, Reason, Request, Secondary};
pub use profiles::PROFILES;
pub use retry_after::retry_after;
