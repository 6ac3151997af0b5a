//! Loads one partition of a table, a queue or some blobs of any endpoint that speaks the protocol, and
//! reports rates, latencies and errors (`larimar stress`, `docs/stress.md`).
//!
//! Vocabulary: a *place* is the table, queue or container that a run makes for itself; an *item* is an
//! entity, a message or a blob; a *client* has at most one request under way; a *worker* runs some clients on
//! one thread; a *step* is a part of the run with the same load; under a *closed loop* a client sends its
//! next request when the last one is answered, under an *open loop* requests are due at a steady rate.
//!
//! What is done ([`Mix`], [`KeyPlan`]), when requests are due, what is measured and what the report says are
//! pure functions under a seed; the run acts, over `storage_client`.
//!
//! What always holds:
//!
//! * under an open loop a latency counts from when its request was due, also if no client was free then;
//! * requests that were due and never begun, or have no answer at the end, are in the percentiles with the
//!   time that they have waited;
//! * memory does not grow with the number of requests;
//! * the place is dropped at the end, whatever happened; what could not be dropped is named.
//!
//! Absent: threads, signals and files, which the program hands in or writes.

mod measure;
mod plan;
mod progress;
mod report;
mod run;
mod workload;

pub use measure::errors::{ErrorCode, ErrorCount};
pub use measure::key_pattern::KeyPattern;
pub use measure::latency::Percentiles;
pub use plan::{Load, Pace, Plan, StepRole};
pub use progress::{Progress, Watcher};
pub use report::data::{End, ErrorRow, OperationRow, Report, StepRow};
pub use report::findings::{Ceiling, TargetRow};
pub use report::html::html;
pub use report::json::json;
pub use report::text::text;
pub use run::conductor::{RunEnvironment, StressError, run};
pub use run::seats::{Seats, Work};
pub use run::step::{OwnTime, Second};
pub use run::stop::{Stop, StopSender, stop_channel};
pub use workload::key_space::{Distribution, KeyPlan, LOADED_MAX, ZIPF_EXPONENT};
pub use workload::mix::{Mix, Sizes};
pub use workload::mix_file::parse_mix_file;
pub use workload::operation::OperationKind;
