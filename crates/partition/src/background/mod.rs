//! Background work of a partition server: the threads that flush, compact and collect, and when what failed
//! is tried again.

pub(crate) mod abandon;
pub(crate) mod maintenance;
pub(crate) mod range_work;
pub(crate) mod retries;
