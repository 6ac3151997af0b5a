//! What an access log may hold of each request: who asked for what, what came of it, how much was read, and
//! where the time went.
//!
//! Why here: only the front end knows all of it, and only the program knows files. What always holds: without
//! a log a request meets one branch at each place; no key, signature, token or value of an entity is in a
//! note, whatever a client sends; names that clients choose are bounded and hold no control characters.

mod key_class;
mod note;
mod request_notes;
mod texts;
mod trace_context;

pub(crate) use key_class::key_class_of;
pub use note::{Access, AccessLog, AccessOutcome, AccessTarget, AccessedRequest, AccessedRows, Phases};
pub(crate) use request_notes::{Phase, RequestNotes};
pub(crate) use texts::{container_of, shown_header};
pub use trace_context::TraceContext;
pub(crate) use trace_context::parse_trace_context;
