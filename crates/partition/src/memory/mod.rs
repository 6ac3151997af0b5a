//! Rows in memory: memory tables, the budget that they share, which of them is flushed, and how writers are
//! slowed when flushes lag.

pub(crate) mod choose_flush;
pub(crate) mod choose_write_delay;
pub(crate) mod memory_budget;
pub(crate) mod memory_table;
pub(crate) mod write_pace;
