//! The journal: the extent node's early durable copy of small appends, and the authority for every extent's
//! facts.
//!
//! Three preallocated files take turns. Each use of a file is a segment with a generation number; its first
//! record holds the whole table of extents, the others hold groups of entries (see `state.rs`), one group a
//! sync. The table is kept twice more in files of its own (see `table_copies.rs`): at the start of each
//! segment, and after a clean stop. How far the journal was synced is noted besides (see `synced_mark.rs`).
//!
//! ```text
//! record body = u8 kind
//!   0 segment header: u64 oldest generation needed, table      (of format 1: no extent in it has a digest)
//!   1 group:          entry*          (empty: marks that all before it was durable)
//!   2 segment header: as 0, of format 2
//! ```
//!
//! What always holds: when a segment of generation n starts, every byte of generations up to n - 2 is synced
//! in its extent, or that was deleted. So recovery needs the newest segment and the one before it, and the
//! third file is free. A start that finds no space for bytes that are not in their extents begins no segment:
//! it goes on in the newest one.

mod go_on;
mod journal_metrics;
mod layout;
mod record_memory;
mod recover;
mod replay;
mod synced_mark;
mod table_copies;
mod writer;

pub(crate) use journal_metrics::JournalMetrics;
pub(crate) use layout::{SEGMENT_COUNT, segment_path};
pub(crate) use record_memory::RecordMemory;
pub(crate) use recover::{Finding, JournalContents, JournalRecovery, OpenSegment, recover};
pub(crate) use synced_mark::{SYNCED_PATH, SyncedMark};
pub(crate) use table_copies::{TABLE_PATHS, TableCopies};
pub(crate) use writer::{JournalFiles, JournalWriter, NewestSegment, Request};
