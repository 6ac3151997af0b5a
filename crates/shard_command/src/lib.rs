//! What `larimar shard` does with a shard map, without a command line: descriptions of maps, operations over
//! a home, the lint of shard keys, and the map over HTTP for other languages.
//!
//! What always holds: an operation that is tried only (`Run::is_dry`) changes nothing; no answer over HTTP
//! shows a secret or changes anything; connections, waiting requests and their time have bounds.
//!
//! Absent: arguments, and how homes and shards are opened (crate `larimar`).
//!
//! | file | content |
//! |---|---|
//! | `description.rs` | a map in TOML, as a person writes it |
//! | `home_address.rs` | where a home is, as it is typed |
//! | `keys.rs` | keys as they are typed |
//! | `operation.rs`, `recover.rs` | an operation over a home, and its outcome |
//! | `keys_stay.rs` | whether a change leaves rows behind |
//! | `run.rs` | what they run on, and their errors |
//! | `outcome.rs` | outcomes as text and JSON |
//! | `moves/` | plans, moves and rules of integrity |
//! | `fan_out/` | one question to all shards |
//! | `lint.rs`, `sample.rs` | advice about shard keys |
//! | `serve/` | the map over HTTP |

mod description;
mod fan_out;
mod home_address;
mod keys;
mod keys_stay;
mod lint;
mod moves;
mod operation;
mod outcome;
mod recover;
mod run;
mod sample;
mod serve;

pub use description::{Description, MapDescription};
pub use fan_out::operation::{FanOutFailure, FanOutRun};
pub use fan_out::outcome::FanOutOutcome;
pub use fan_out::request::{
    AggregateFunction, AggregateRequest, FAN_OUT_ROWS_MAX, FAN_OUT_SORTED_ROWS_MAX, FanOutMistake,
    FanOutRequest,
};
pub use home_address::{HomeAddress, HomeAddressError};
pub use keys::key_of;
pub use lint::{Advice, lint};
pub use moves::document::{PlanDocument, PlanDocumentError};
pub use moves::operation::{MoveOperation, MoveRun, Sinks, status};
pub use moves::outcome::{MoveOutcome, Planned};
pub use moves::progress_text::progress_text;
pub use moves::request::PlanRequest;
pub use operation::Operation;
pub use outcome::Outcome;
pub use run::{OperationError, Run};
pub use sample::{Sample, SampleError};
pub use serve::listener::{Listening, serve_map};
