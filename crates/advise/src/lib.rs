//! Advice about filters and keys of tables.
//!
//! [`explain`] says in words what a filter makes a query read, and which change would make it read less.
//! [`advise`] proposes designs of keys for entities of which a [`Sample`] is known, and for what is done with
//! them (a [`Mix`]): it tries many candidates, predicts what each would do, and keeps the best of each kind.
//! [`emit`] writes the functions that make the keys of a design, in several languages.
//!
//! What always holds: everything here is a pure function of what is given; the same input gives the same
//! text; every prediction is made as [`METHODS`] says. The class of a filter comes from the server's own
//! parser and planner (crate `table`), so it can't differ from what an answer says. Absent: I/O, clock,
//! requests, command lines.

mod answers;
mod design;
pub mod emit;
pub mod explain;
mod mix;
mod predict;
mod proposals;
mod report;
mod sample;

pub use answers::{Answers, QUESTIONS, Question};
pub use design::{KeyDesign, Kind, Part, Period};
pub use mix::{AccessLogError, Mix, Query, Write, mix_of_access_log, parse_mix};
pub use predict::{METHODS, Prediction, QueryPrediction, Second, Share, Warning};
pub use proposals::{AdviseError, PROPOSALS_MAX, Report, advise};
pub use report::{report_json, report_text};
pub use sample::{SAMPLE_ENTITIES_MAX, Sample, SampleEntity};
