//! In which shares operations are done, and of which sizes.
//!
//! | service | name | shares |
//! |---|---|---|
//! | table | insert, get, batch, query, update | that operation alone |
//! | table | mixed | get 80, insert 10, update 5, query 4, batch 1 |
//! | queue | put, get, peek | that operation alone |
//! | queue | delete | put 1, get 1, delete 1: with what is to be deleted |
//! | queue | mixed | put 3, get 2, peek 1, delete 2 |
//! | blob | put, get, range | that operation alone |
//! | blob | mixed | get 6, range 2, put 2 |
//!
//! What always holds: a mix has at least one operation with a weight, and only operations of its service.

use super::chance::Chance;
use super::operation::{OperationKind, operation_named};
use storage_client::{GROUP_OPERATIONS_MAX, Service};

/// Shares of operations by name, and sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// As reports show it: a name, or a file.
    pub name: String,
    /// Operations with their weights, of which none is 0.
    weights: Vec<(OperationKind, u64)>,
    /// How much an operation reads or writes.
    pub sizes: Sizes,
}

/// How much an operation reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of an item: an entity's JSON, a message's text, a blob. Several are taken in turn.
    pub item_size_bytes: Vec<u64>,
    /// Entities that a batch inserts.
    pub batch_entities: u64,
    /// Entities that a query reads, at most.
    pub query_rows: u64,
    /// Messages that are received or looked at together, at most.
    pub messages: u64,
    /// How long received messages are invisible, in seconds. If 0: 30 with deletions, else 1.
    pub invisible_s: u64,
    /// Bytes of a range that is read.
    pub range_size_bytes: u64,
}

/// What an item of the service has by default: 1 KiB is what the published targets speak of.
fn usual_item_size_bytes(service: Service) -> u64 {
    match service {
        Service::Table | Service::Queue => 1 << 10,
        Service::Blob => 4 << 10,
    }
}

/// What the sizes of an item may be.
pub(crate) fn item_size_range(service: Service) -> std::ops::RangeInclusive<u64> {
    match service {
        // Its keys and properties are there in any case; a text property has 32,768 characters at most.
        Service::Table => 256..=32 << 10,
        // As text in XML; the service takes 64 KiB.
        Service::Queue => 1..=60 << 10,
        // A client has some of them in memory.
        Service::Blob => 1..=64 << 20,
    }
}

/// Different sizes of items, at most.
pub(crate) const ITEM_SIZES_MAX: usize = 32;

/// Bytes of an entity group's body that are certainly taken: the service's bound is 4 MiB.
const BATCH_SIZE_BYTES_MAX: u64 = 3 << 20;

impl Sizes {
    /// The usual sizes of a service.
    pub fn usual(service: Service) -> Self {
        Sizes {
            item_size_bytes: vec![usual_item_size_bytes(service)],
            batch_entities: GROUP_OPERATIONS_MAX as u64,
            query_rows: 100,
            messages: 1,
            invisible_s: 0,
            range_size_bytes: 1 << 10,
        }
    }

    /// The size of the item of that number.
    pub(crate) fn of_item(&self, number: u64) -> u64 {
        match self.item_size_bytes.len() as u64 {
            0 => 0,
            count => self.item_size_bytes[(number % count) as usize],
        }
    }

    pub(crate) fn largest_item(&self) -> u64 {
        self.item_size_bytes.iter().copied().max().unwrap_or_default()
    }

    /// Why a service would not take them.
    fn check(&self, service: Service) -> Result<(), String> {
        let range = item_size_range(service);
        let wrong = self.item_size_bytes.iter().find(|size| !range.contains(size));
        if let Some(size) = wrong {
            let (from, to) = (range.start(), range.end());
            return Err(format!(
                "a size of {size} bytes is not possible; give {from} to {to} for a {}",
                service.label()
            ));
        }
        if self.item_size_bytes.is_empty() || self.item_size_bytes.len() > ITEM_SIZES_MAX {
            return Err(format!("give 1 to {ITEM_SIZES_MAX} sizes"));
        }
        Ok(())
    }

    /// Why a batch would be too large.
    fn check_batch(&self) -> Result<(), String> {
        if self.batch_entities * self.largest_item() > BATCH_SIZE_BYTES_MAX {
            return Err(format!(
                "{} entities of {} bytes are more than a batch can hold: give a smaller size, or batch_entities in a file",
                self.batch_entities,
                self.largest_item()
            ));
        }
        Ok(())
    }
}

impl Mix {
    /// A mix of these weights; none if all are 0.
    pub(crate) fn new(name: String, weights: Vec<(OperationKind, u64)>, sizes: Sizes) -> Option<Self> {
        let weights: Vec<_> = weights.into_iter().filter(|(_, weight)| *weight > 0).collect();
        (!weights.is_empty()).then_some(Mix { name, weights, sizes })
    }

    /// A mix of a service by its name.
    pub fn named(service: Service, name: &str) -> Option<Self> {
        use OperationKind::{Batch, Delete, Get, Insert, Peek, Put, Query, Range, Update};
        let weights: Vec<(OperationKind, u64)> = match (service, name) {
            (Service::Table, "mixed") => vec![(Get, 80), (Insert, 10), (Update, 5), (Query, 4), (Batch, 1)],
            (Service::Queue, "mixed") => vec![(Put, 3), (Get, 2), (Peek, 1), (Delete, 2)],
            (Service::Blob, "mixed") => vec![(Get, 6), (Range, 2), (Put, 2)],
            (Service::Queue, "delete") => vec![(Put, 1), (Get, 1), (Delete, 1)],
            _ => vec![(operation_named(service, name)?, 1)],
        };
        Mix::new(name.to_owned(), weights, Sizes::usual(service))
    }

    /// Why its service would not take these sizes.
    pub fn check(&self, service: Service) -> Result<(), String> {
        self.sizes.check(service)?;
        if self.has(OperationKind::Batch) { self.sizes.check_batch() } else { Ok(()) }
    }

    /// The names of a service's mixes.
    pub fn names(service: Service) -> Vec<&'static str> {
        let names = super::operation::operations_of(service).iter().map(|kind| kind.name());
        names.chain(["mixed"]).collect()
    }

    /// The operations and their weights.
    pub fn weights(&self) -> &[(OperationKind, u64)] {
        &self.weights
    }

    pub(crate) fn has(&self, kind: OperationKind) -> bool {
        self.weights.iter().any(|(one, _)| *one == kind)
    }

    /// The next operation.
    pub(crate) fn draw(&self, chance: &mut Chance) -> OperationKind {
        // A mix of one operation draws nothing.
        if let [(kind, _)] = self.weights[..] {
            return kind;
        }
        let all: u64 = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut left = chance.below(all.max(1));
        for (kind, weight) in &self.weights {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        self.weights[0].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_weights() {
        let mix = Mix::named(Service::Table, "mixed").expect("a mix");
        let mut chance = Chance::of(5, 0);
        let mut counts = [0u64; crate::workload::operation::OPERATION_KINDS];
        for _ in 0..100_000 {
            counts[mix.draw(&mut chance).index()] += 1;
        }
        for (kind, weight) in mix.weights() {
            let share = counts[kind.index()] as f64 / 1000.0;
            assert!((share - *weight as f64).abs() < 1.0, "{kind:?}: {share} % of {weight}");
        }
    }

    #[test]
    fn each_service_has_its_names() {
        for service in [Service::Table, Service::Queue, Service::Blob] {
            for name in Mix::names(service) {
                assert!(Mix::named(service, name).is_some(), "{service:?} {name}");
            }
        }
        assert_eq!(Mix::named(Service::Blob, "peek"), None);
        assert_eq!(Mix::named(Service::Table, ""), None);
    }

    #[test]
    fn sizes_that_no_service_takes_are_refused() {
        let sizes = |service, sizes: &[u64]| {
            Sizes { item_size_bytes: sizes.to_vec(), ..Sizes::usual(service) }.check(service)
        };
        assert_eq!(sizes(Service::Table, &[1024]), Ok(()));
        assert!(sizes(Service::Table, &[100]).expect_err("small").contains("give 256 to 32768"));
        let large = |name| {
            let mut mix = Mix::named(Service::Table, name).expect("a mix");
            mix.sizes.item_size_bytes = vec![32 << 10];
            mix.check(Service::Table)
        };
        assert_eq!(large("get"), Ok(()));
        assert!(large("batch").expect_err("large").contains("batch_entities"));
        assert_eq!(sizes(Service::Blob, &[1, 64 << 20]), Ok(()));
        assert!(sizes(Service::Blob, &[0]).is_err() && sizes(Service::Blob, &[]).is_err());
        assert!(sizes(Service::Queue, &[64 << 10]).is_err());
    }
}
