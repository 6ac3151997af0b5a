//! Rows in memory: memory tables, the budget that they share, and which of them is flushed.

pub(crate) mod choose_flush;
pub(crate) mod memory_budget;
pub(crate) mod memory_table;
