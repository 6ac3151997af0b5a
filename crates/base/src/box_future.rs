//! Futures whose type is not named, as traits and facades return them.
//!
//! Why a file of its own: clock, disk and spawner use it, and the environment uses all three.

/// A boxed future, for traits that must be objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
