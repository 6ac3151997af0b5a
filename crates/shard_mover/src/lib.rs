//! Moves of rows between shards: planned, verified, resumable; and rules of integrity over all shards.
//!
//! A plan ([`plan_move`], [`plan_drain`], [`plan_split`], [`plan_add`], [`plan_rebalance`]) says what would
//! be changed and moved. A [`Mover`] begins a planned move and drives it to its end: mark the mapping, drain
//! its writers, claim the target, copy, verify, switch. A mover that is killed anywhere is followed by
//! another that goes on; the end is a [`Certificate`]. [`Mover::check_integrity`] checks [`Rules`] over all
//! shards, and [`Mover::repair`] deletes copies of rows that are on a wrong shard.
//!
//! What always holds:
//!
//! * at each moment a mapping's rows are complete on the shard that the map names; an acknowledged write is
//!   never lost, and is on one shard that clients reach;
//! * each state of a move is a record that is put once: of two movers one wins each step;
//! * a late write of a former move fails, by its claim, or has ended by the time that its signature had;
//! * while writes or deletes of a move or a repair may arrive, its mapping is frozen: it has the same keys;
//! * rows are deleted only where the map does not have the mapping, under a claim newer than any copy's;
//! * every loop, batch, queue and wait has a bound; clock and chance are handed in.
//!
//! Absent: moves while writers go on; routed connections; drivers of databases.
//!
//! | folder | content |
//! |---|---|
//! | `plan/` | plans: pure functions over what is known |
//! | `log/` | the states of moves, as records beside the map |
//! | `course/` | what a move needs next (pure), and doing it |
//! | `integrity/` | rules over all shards: rows where the map has them, keys once, references; repair |
//! | `rows/` | reading, copying, comparing and deleting rows of two sides |

mod certificate;
mod course;
mod error;
mod integrity;
mod limits;
mod log;
mod plan;
mod progress;
mod rows;
mod settings;

pub use certificate::{Certificate, CertificateEpochs, CertificateSubject, CertificateTimes};
pub use course::choose_action::Wish;
pub use course::mover::{Backends, Mover, Shards, moves_beside, unreached_beside};
pub use error::MoveError;
pub use integrity::finding::{Finding, FindingKind, ForeignPlace, ForeignRows, IntegrityReport};
pub use integrity::progress::{CheckProgress, CheckSink};
pub use integrity::repair_plan::{RepairPlan, RepairReport, RepairStep, plan_repair};
pub use integrity::rules::Rules;
pub use limits::{
    ATTEMPTS_MAX, CLOCK_BOUND, EXPIRES_AFTER, FINDINGS_MAX, PARENT_KEYS_MAX, PROGRESS_EVERY_ROWS,
    SEARCH_MAPPINGS_MAX, SEARCH_NODES_MAX,
};
pub use log::id::MoveId;
pub use log::state::{Move, MoveOrder, MoveState, StateRecord};
pub use plan::add_shard::{is_added, plan_add};
pub use plan::drain::plan_drain;
pub use plan::facts::{Facts, MappingOf, MappingSize, PlanSettings};
pub use plan::move_mapping::plan_move;
pub use plan::plan::{Balance, Plan, PlannedMove, RefusedMove};
pub use plan::rebalance::plan_rebalance;
pub use plan::refusal::Refusal;
pub use plan::split::plan_split;
pub use progress::{Phase, Progress, ProgressSink};
pub use rows::report::TableReport;
pub use settings::{MoverSettings, NamedDigestKey, Planted, PlantedFault};
