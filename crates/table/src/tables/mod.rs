//! Tables: their stored row and the operations that change it.

pub(crate) mod create_table;
pub(crate) mod set_table_policies;
pub(crate) mod table_row;
