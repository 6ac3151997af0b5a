//! Which objects of the store may be deleted.
//!
//! `choose_sweep.rs` chooses. What always holds: nothing is deleted but by a sweep, and a sweep deletes
//! nothing that a document names.

pub(crate) mod choose_sweep;
