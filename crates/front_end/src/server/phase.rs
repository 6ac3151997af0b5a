//! The phase of a stopping server: the listener sets it, connections follow it. It only ever goes forward.

/// The phase of the server, which its connections follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Serve.
    Serving,
    /// Finish what is under way, then close.
    Draining,
    /// Close now.
    Closed,
}
