//! The course of a move: what is seen, what follows from it, and doing it.

pub(crate) mod begin;
pub(crate) mod choose_action;
pub(crate) mod delete;
pub(crate) mod map_changes;
pub(crate) mod mover;
pub(crate) mod observe;
pub(crate) mod perform;
pub(crate) mod run;
pub(crate) mod transfer;
