//! What stored rows are called by who has stored them: tables, entities, queues, messages, containers, blobs.
//!
//! What always holds: a key leads to a place or to less of one, never to an error; a container whose name is
//! not known is named by its id.

pub(crate) mod container_names;
mod text;

use blob::{BlobPart, blob_name_of, container_name_of};
use partition::key::{KeyStart, parse_key_start, parse_row_key};
use partition::{KeyRange, ObjectTable};
use queue::{message_name_of, queue_name_of};
use service::container::is_container;
use service::{SERVICE_BLOB, SERVICE_QUEUE, SERVICE_TABLE};
use std::collections::BTreeMap;
use table::{entity_name_of, table_name_of};

/// Whose rows they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Table,
    Queue,
    Blob,
    /// The partition layer's own, or of a key that does not read.
    #[default]
    Other,
}

impl Service {
    /// As plans name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::Table => SERVICE_TABLE,
            Service::Queue => SERVICE_QUEUE,
            Service::Blob => SERVICE_BLOB,
            Service::Other => "other",
        }
    }

    /// What its containers hold.
    pub(crate) fn kind_of_objects(self) -> &'static str {
        match self {
            Service::Table => "entity",
            Service::Queue => "message",
            Service::Blob => "blob",
            Service::Other => "other",
        }
    }

    /// The service of this name.
    pub(crate) fn parse(name: &str) -> Service {
        let known = [Service::Table, Service::Queue, Service::Blob];
        known.into_iter().find(|service| service.name() == name).unwrap_or_default()
    }

    /// Whose objects are in this table; nobody's alone in that of containers.
    pub(crate) fn of_table(table: ObjectTable) -> Service {
        match table {
            ObjectTable::Entity => Service::Table,
            ObjectTable::Message => Service::Queue,
            ObjectTable::Blob => Service::Blob,
            ObjectTable::Container | ObjectTable::PartitionMap => Service::Other,
        }
    }
}

/// One object, or a part of them: the more is known, the smaller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) service: Service,
    pub(crate) account: Option<String>,
    /// Name of the table, queue or blob container, if it is known.
    pub(crate) container: Option<String>,
    /// Id of the container that the rows are in; `None` with a name: the container itself.
    pub(crate) container_id: Option<u64>,
    pub(crate) partition_key: Option<String>,
    pub(crate) row_key: Option<String>,
    /// How the message's id starts.
    pub(crate) message_id: Option<String>,
    pub(crate) blob: Option<String>,
    /// What of the blob, if it is not all of it.
    pub(crate) blob_part: Option<BlobPart>,
    /// The service's properties.
    pub(crate) is_properties: bool,
}

impl Place {
    /// Which kind of object it is, or objects in it are.
    pub(crate) fn kind(&self) -> &'static str {
        match (self.service, self.container_id) {
            _ if self.is_properties => "properties",
            (Service::Table, None) => "table",
            (Service::Queue, None) => "queue",
            (Service::Blob, None) => "container",
            (service, _) => service.kind_of_objects(),
        }
    }
}

/// Rows between two keys, as far as places tell them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceRange {
    /// The smallest place that all of them are in.
    pub(crate) within: Place,
    /// Where they begin, included; `None`: with the first in that place.
    pub(crate) from: Option<Place>,
    /// Where they end, included; `None`: with the last in that place.
    pub(crate) to: Option<Place>,
}

/// Names of containers by service, account and id.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerNames {
    names: BTreeMap<(Service, String, u64), String>,
}

/// The container in a row of the Container object table, if it is one that reads: service, account, id and
/// name.
fn container_of(key: &[u8], value: &[u8]) -> Option<(Service, String, u64, String)> {
    let parts = parse_row_key(key).filter(is_container)?;
    let service = Service::parse(&parts.partition_name);
    let (id, name) = match service {
        Service::Table => table_name_of(value),
        Service::Queue => queue_name_of(value),
        Service::Blob => container_name_of(value),
        Service::Other => None,
    }?;
    Some((service, parts.account, id, name))
}

/// Of such a container, where its objects are, the account and the id.
pub(crate) fn container_id_of(key: &[u8], value: &[u8]) -> Option<(ObjectTable, String, u64)> {
    let (service, account, id, _) = container_of(key, value)?;
    let objects = match service {
        Service::Table => ObjectTable::Entity,
        Service::Queue => ObjectTable::Message,
        Service::Blob => ObjectTable::Blob,
        Service::Other => return None,
    };
    Some((objects, account, id))
}

impl ContainerNames {
    /// Notes the container in a row of the Container object table, if it is one that reads.
    pub(crate) fn note(&mut self, key: &[u8], value: &[u8]) {
        if let Some((service, account, id, name)) = container_of(key, value) {
            self.names.insert((service, account, id), name);
        }
    }

    /// The name of a container, if it is known.
    pub(crate) fn name(&self, service: Service, account: &str, container_id: u64) -> Option<&str> {
        self.names.get(&(service, account.to_owned(), container_id)).map(String::as_str)
    }

    fn place_in(&self, service: Service, account: String, container_id: u64) -> Place {
        let container = self.names.get(&(service, account.clone(), container_id)).cloned();
        let (account, container_id) = (Some(account), Some(container_id));
        Place { service, account, container, container_id, ..Place::default() }
    }

    /// The object whose row has this key.
    pub(crate) fn of_row(&self, table: ObjectTable, key: &[u8]) -> Option<Place> {
        let service = Service::of_table(table);
        match table {
            ObjectTable::PartitionMap => None,
            ObjectTable::Container => {
                let parts = parse_row_key(key)?;
                let is_container = is_container(&parts);
                let place = Place {
                    service: Service::parse(&parts.partition_name),
                    account: Some(parts.account),
                    is_properties: !is_container,
                    ..Place::default()
                };
                Some(Place { container: is_container.then_some(parts.object_name), ..place })
            }
            ObjectTable::Entity => entity_name_of(key).map(|name| Place {
                partition_key: Some(name.partition_key),
                row_key: Some(name.row_key),
                ..self.place_in(service, name.account, name.table_id)
            }),
            ObjectTable::Message => message_name_of(key).map(|name| Place {
                message_id: name.id_start,
                ..self.place_in(service, name.account, name.messages_id)
            }),
            ObjectTable::Blob => blob_name_of(key).map(|name| Place {
                blob: Some(name.blob),
                blob_part: name.part,
                ..self.place_in(service, name.account, name.container_id)
            }),
        }
    }

    /// What all objects of the partition name of this row's key have in common.
    pub(crate) fn of_partition_name(&self, table: ObjectTable, key: &[u8]) -> Option<Place> {
        let place = self.of_row(table, key)?;
        Some(match table {
            ObjectTable::Container => Place { container: None, is_properties: false, ..place },
            _ => Place { row_key: None, message_id: None, blob_part: None, ..place },
        })
    }

    /// The rows between these keys.
    pub(crate) fn of_range(&self, table: ObjectTable, keys: &KeyRange) -> PlaceRange {
        let (within, all) = self.within(table, keys);
        let from = (keys.start > all.start).then(|| self.of_bound(table, &keys.start));
        let to = keys.end.as_ref().filter(|_| keys.end != all.end).map(|end| self.of_bound(table, end));
        PlaceRange { within, from, to }
    }

    /// The smallest place that all these keys are in, and its keys.
    fn within(&self, table: ObjectTable, keys: &KeyRange) -> (Place, KeyRange) {
        let service = Service::of_table(table);
        let everything = (Place { service, ..Place::default() }, KeyRange::all());
        let KeyStart { account: Some(account), container_id: Some(id), partition_name, .. } =
            parse_key_start(&keys.start)
        else {
            return everything;
        };
        if let Some(name) = partition_name {
            let all = KeyRange::partition(&account, id, &name);
            if all.covers(keys)
                && let Some(place) =
                    self.of_partition_name(table, &[&all.start[..], EMPTY_OBJECT_NAME].concat())
            {
                return (place, all);
            }
        }
        let all = KeyRange::container(&account, id);
        match table == ObjectTable::Container || !all.covers(keys) {
            true => everything,
            false => (self.place_in(service, account, id), all),
        }
    }

    /// The place at a bound of a range.
    fn of_bound(&self, table: ObjectTable, bound: &[u8]) -> Place {
        let row = bound.strip_suffix(&[0]).and_then(|key| self.of_row(table, key));
        if let Some(place) = row.or_else(|| self.of_row(table, bound)) {
            return place;
        }
        let start = parse_key_start(bound);
        let service = Service::of_table(table);
        let place = match (start.account, start.container_id) {
            (Some(account), Some(id)) if service != Service::Other => self.place_in(service, account, id),
            (account, _) => Place { service, account, ..Place::default() },
        };
        match table {
            ObjectTable::Entity => {
                Place { partition_key: start.partition_name, row_key: start.object_name, ..place }
            }
            ObjectTable::Blob => Place { blob: start.partition_name, ..place },
            ObjectTable::Container => {
                let service = start.partition_name.as_deref().map(Service::parse).unwrap_or_default();
                Place { service, container: start.object_name, ..place }
            }
            ObjectTable::Message | ObjectTable::PartitionMap => place,
        }
    }
}

/// What the key of a row with an empty object name has behind its partition name.
const EMPTY_OBJECT_NAME: &[u8] = &[0, 1];

#[cfg(test)]
mod tests;
