//! Futures whose type is not named, as traits and facades return them.

/// A boxed future, for traits that must be objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
