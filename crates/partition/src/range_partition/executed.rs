//! How an operation on a range ended: an operation that met a hand-over is no error, it comes again.
//!
//! What always holds: `Moved` means that nothing was done.

/// What became of an operation.
pub(crate) enum Executed<R, O = ()> {
    /// It was decided; durable and visible.
    Done(R),
    /// Nothing was done: other ranges take over. With what is theirs to do.
    Moved(O),
}
