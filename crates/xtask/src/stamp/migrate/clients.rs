//! Clients of one server, side by side, and digests of what they see. What always holds: each client has
//! connections of its own; the first error of any is everyone's.

use super::served::Served;
use crate::Outcome;
use crate::stamp::groups::BATCH;
use crate::stamp::router::{Router, Service};

/// Clients of each service side by side.
pub(super) const CLIENT_COUNT: usize = 8;

/// A client of a server.
pub(super) fn client(service: Service, server: &Served) -> Router {
    let address = match service {
        Service::Table => server.tables,
        Service::Blob => server.blobs,
        Service::Queue => server.queues,
    };
    Router::new(service, &[address], 0)
}

/// The same for group transactions.
pub(super) fn batches(server: &Served) -> Router {
    client(Service::Table, server).with_table_content_type(BATCH)
}

/// Runs clients side by side, each with its number, and answers what each of them has.
pub(super) fn side_by_side<T: Send>(work: impl Fn(usize) -> Outcome<T> + Sync) -> Outcome<Vec<T>> {
    let outcomes: Vec<Result<T, String>> = std::thread::scope(|scope| {
        let work = &work;
        let clients: Vec<_> = (0..CLIENT_COUNT)
            .map(|number| scope.spawn(move || work(number).map_err(|error| error.to_string())))
            .collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    Ok(outcomes.into_iter().collect::<Result<_, _>>()?)
}

/// A digest of a text, so that a million of them can be kept.
pub(super) fn digest(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}
