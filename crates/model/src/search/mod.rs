//! The search: every state that can be reached, breadth first.
//!
//! | file | content |
//! |---|---|
//! | `interned.rs` | states as short lists of numbers |
//! | `explore.rs` | the breadth-first search, and the shortest way to a state |
//! | `goes_on.rs` | whether from every state one is reached in which the stamp goes on |

pub(crate) mod explore;
pub(crate) mod goes_on;
pub(crate) mod interned;
