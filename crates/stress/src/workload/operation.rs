//! The operations that a load is made of.

use storage_client::Service;

/// One kind of operation. Each service has some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// Inserts an entity of a new key.
    Insert,
    /// Replaces one of the loaded entities.
    Update,
    /// Reads one of the loaded entities or blobs; receives messages of a queue.
    Get,
    /// Inserts entities of new keys in one entity group transaction.
    Batch,
    /// Reads neighbouring entities by a range of keys, all pages of it.
    Query,
    /// Puts a message, or a whole blob.
    Put,
    /// Looks at messages and changes nothing.
    Peek,
    /// Deletes a message that this client has received; receives some if it holds none.
    Delete,
    /// Reads a part of a blob.
    Range,
}

/// How many kinds there are.
pub(crate) const OPERATION_KINDS: usize = 9;

const NAMES: [(OperationKind, &str); OPERATION_KINDS] = [
    (OperationKind::Insert, "insert"),
    (OperationKind::Update, "update"),
    (OperationKind::Get, "get"),
    (OperationKind::Batch, "batch"),
    (OperationKind::Query, "query"),
    (OperationKind::Put, "put"),
    (OperationKind::Peek, "peek"),
    (OperationKind::Delete, "delete"),
    (OperationKind::Range, "range"),
];

impl OperationKind {
    /// Its name in mixes and reports.
    pub fn name(self) -> &'static str {
        NAMES[self.index()].1
    }

    /// Its place in lists of all kinds.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The kind at a place.
    pub(crate) fn at(index: usize) -> Self {
        NAMES[index].0
    }
}

/// The operations of a service.
pub(crate) fn operations_of(service: Service) -> &'static [OperationKind] {
    use OperationKind::{Batch, Delete, Get, Insert, Peek, Put, Query, Range, Update};
    match service {
        Service::Table => &[Insert, Update, Get, Batch, Query],
        Service::Queue => &[Put, Get, Peek, Delete],
        Service::Blob => &[Put, Get, Range],
    }
}

/// The operation of a service that has that name.
pub(crate) fn operation_named(service: Service, name: &str) -> Option<OperationKind> {
    operations_of(service).iter().copied().find(|kind| kind.name() == name)
}

/// What the published targets of a service count: the plural.
pub(crate) fn items_of(service: Service) -> &'static str {
    match service {
        Service::Table => "entities",
        Service::Queue => "messages",
        Service::Blob => "blobs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_at_their_places() {
        for (index, (kind, name)) in NAMES.iter().enumerate() {
            assert_eq!((kind.index(), OperationKind::at(index), kind.name()), (index, *kind, *name));
        }
        assert_eq!(operation_named(Service::Queue, "peek"), Some(OperationKind::Peek));
        assert_eq!(operation_named(Service::Table, "peek"), None);
    }
}
