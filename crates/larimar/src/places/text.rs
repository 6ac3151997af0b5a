//! Places in words.

use super::{Place, PlaceRange, Service};
use blob::BlobPart;
use std::fmt;

impl Place {
    /// The container, and whose it is: "table people of account acct".
    fn container_text(&self) -> String {
        let kind = match self.service {
            Service::Table => "table",
            Service::Queue => "queue",
            Service::Blob | Service::Other => "container",
        };
        let container = match (&self.container, self.container_id) {
            (Some(name), _) => format!("{kind} {name}"),
            (None, Some(id)) => format!("the {kind} with the id {id} (its name was not found)"),
            (None, None) => match self.service {
                Service::Other => "all services".to_owned(),
                service => format!("the {} service", service.name()),
            },
        };
        match &self.account {
            Some(account) => format!("{container} of account {account}"),
            None => container,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let container = self.container_text();
        match (&self.partition_key, &self.row_key, &self.blob, &self.message_id) {
            _ if self.is_properties => write!(f, "the properties of {container}"),
            (Some(partition), Some(row), ..) => write!(f, "entity ({partition:?}, {row:?}) of {container}"),
            (Some(partition), None, ..) => {
                write!(f, "all entities of PartitionKey {partition:?} of {container}")
            }
            (.., Some(blob), _) => {
                match &self.blob_part {
                    Some(BlobPart::Snapshot(time)) => write!(f, "the snapshot {time} of ")?,
                    Some(BlobPart::Version(id)) => write!(f, "the version {id} of ")?,
                    Some(BlobPart::StagedBlock(id)) => {
                        write!(f, "the staged block with the id {id} (in hexadecimal) of ")?
                    }
                    None => {}
                }
                write!(f, "blob {blob:?} of {container}")
            }
            (.., Some(id)) => write!(f, "the message whose id starts with {id} of {container}"),
            _ if self.container_id.is_none() && self.container.is_some() => write!(f, "{container} itself"),
            _ => match self.service {
                Service::Table => write!(f, "entities of {container}"),
                Service::Queue => write!(f, "messages of {container}"),
                Service::Blob => write!(f, "blobs of {container}"),
                Service::Other => write!(f, "tables, queues and containers of {container}"),
            },
        }
    }
}

impl fmt::Display for PlaceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.within.fmt(f)?;
        match (&self.from, &self.to) {
            (None, None) => Ok(()),
            (from, to) => {
                let end = |place: &Option<Place>, otherwise: &str| {
                    place.as_ref().map_or_else(|| otherwise.to_owned(), |place| place.name_in(&self.within))
                };
                write!(f, ", from {} to {}", end(from, "the first"), end(to, "the last"))
            }
        }
    }
}

impl Place {
    /// What tells this place from others in `within`.
    fn name_in(&self, within: &Place) -> String {
        let is_inside = self.container_id.is_some() && self.container_id == within.container_id;
        let names: Vec<String> = [&self.partition_key, &self.row_key, &self.blob, &self.message_id]
            .into_iter()
            .flatten()
            .map(|name| format!("{name:?}"))
            .collect();
        match names.is_empty() || !is_inside {
            true => self.to_string(),
            false => format!("({})", names.join(", ")),
        }
    }
}
