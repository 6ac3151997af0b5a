//! The load itself: what is loaded into, the clients, the steps, the end.

pub(crate) mod arrivals;
pub(crate) mod calls;
pub(crate) mod conductor;
pub(crate) mod place;
pub(crate) mod seats;
pub(crate) mod step;
pub(crate) mod stop;
pub(crate) mod worker;
