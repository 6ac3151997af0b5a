//! How an operation on a range ended.

/// What became of an operation.
pub(crate) enum Executed<R, O = ()> {
    /// It was decided; durable and visible.
    Done(R),
    /// Nothing was done: other ranges take over. With what is theirs to do.
    Moved(O),
}
