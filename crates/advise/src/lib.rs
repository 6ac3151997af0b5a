//! Advice about filters and keys of tables.
//!
//! [`explain`] says in words what a filter makes a query read, and which change would make it read less.
//!
//! What always holds: everything here is a pure function of what is given; the same input gives the same
//! text. Absent: I/O, clock, requests, command lines. The class of a filter comes from the server's own
//! parser and planner (crate `table`), so it can't differ from what an answer says.

pub mod explain;
