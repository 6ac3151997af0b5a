//! What a loop has to show that it goes round, for who has to know: the lease of a process that is one of
//! several, say.

use crate::box_future::BoxFuture;

/// What a loop has to show that it goes round. One that is dropped without [`LoopSign::end`] counts as one
/// that hangs.
pub trait LoopSign: Send + Sync + 'static {
    /// It goes round. Cheap: it may say so as often as it likes.
    fn turned(&self);
    /// Returns once the loop should show that again: for one that has nothing to do.
    fn asked(&self) -> BoxFuture<'_, ()>;
    /// It ends, as it should.
    fn end(self: Box<Self>);
}
