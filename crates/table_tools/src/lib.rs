//! Work on whole tables of any endpoint: the live service, its emulators, Larimar.
//!
//! Messages of queues are moved and copied, too ([`queues`]), and blobs copied ([`blobs`]).
//!
//! Reading is one machine ([`scan`]) with a sink for each command; writing is another one, with batches of a
//! partition each. Entities go through as the text that JSON has for them ([`lines`]): their values are
//! looked at only where that is what is wanted.
//!
//! What always holds: memory is bounded, whatever is in the table or the file; work that changes or writes
//! much can be gone on with after a kill, and does nothing twice; an error is one line that names what there
//! is of the work. Absent: command lines and terminals, which are the binary's.

mod access;
mod blobs;
mod commands;
mod conversion;
mod csv;
mod environment;
mod error;
mod export;
mod files;
mod import;
mod lines;
mod mapping;
#[cfg(feature = "parquet")]
mod parquet;
mod place;
mod queues;
mod scan;

pub use blobs::{BlobCopyPlan, BlobsCopied, ContainerPlace, copy_blobs};
pub use commands::Selection;
pub use commands::copy::{Copied, CopyPlan, copy};
pub use commands::count::count;
pub use commands::delete::{Deleted, delete};
pub use commands::diff::{Difference, Differences, diff};
pub use commands::explain::{PageCost, QueryCost, QueryRun, TableSize, explain};
pub use commands::sample::{Drawn, SamplePlan, SampleSource, sample};
pub use commands::schema::{Beyond, PropertySchema, Schema, schema};
pub use environment::{Locks, Progress, Rest, Stop, ToolEnvironment};
pub use error::ToolError;
pub use export::{ExportPlan, Exported, export};
pub use files::format::Format;
pub use import::run::{ImportPlan, Imported, import};
pub use import::writer::OnConflict;
pub use mapping::{Mapping, MappingError};
pub use place::TablePlace;
pub use queues::copy::copy_messages;
pub use queues::{Drained, QueuePlace, Taking, drain, message_line, peek, requeue};
