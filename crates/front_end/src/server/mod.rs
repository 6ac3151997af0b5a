//! Sockets: accepting connections and serving HTTP on them, bounded and stoppable.

mod connection;
mod listener;
mod preface;

pub(crate) use listener::serve;
