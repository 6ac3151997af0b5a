//! Keys and what they are called.

use super::*;
use partition::RowKey;
use service::container::{container_key, settings_key};

fn names() -> ContainerNames {
    let mut names = ContainerNames::default();
    // See `table_row.rs`, `queue_row.rs`.
    names.note(
        container_key("acct", SERVICE_TABLE, "People").as_bytes(),
        b"\x01\x06People\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0",
    );
    names.note(
        container_key("acct", SERVICE_QUEUE, "tasks").as_bytes(),
        b"\x01\x05tasks\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0",
    );
    // None that reads, and no container.
    names.note(container_key("acct", SERVICE_BLOB, "box").as_bytes(), b"?");
    names.note(settings_key("acct", SERVICE_BLOB).as_bytes(), b"?");
    names.note(b"?", b"?");
    names
}

const ENTITY: ObjectTable = ObjectTable::Entity;

#[test]
fn rows_are_called_as_their_users_call_them() {
    let names = names();
    let message = "m00000000000000051122334455667788";
    for (table, key, expected) in [
        (ENTITY, RowKey::new("acct", 7, "p", "r"), "entity (\"p\", \"r\") of table People of account acct"),
        (
            ENTITY,
            RowKey::new("acct", 8, "p", "r"),
            "entity (\"p\", \"r\") of the table with the id 8 (its name was not found) of account acct",
        ),
        (
            ObjectTable::Message,
            RowKey::new("acct", 7, "", message),
            "the message whose id starts with 11223344-5566-7788 of queue tasks of account acct",
        ),
        (ObjectTable::Message, RowKey::new("acct", 7, "", "h"), "messages of queue tasks of account acct"),
        (
            ObjectTable::Blob,
            RowKey::new("acct", 7, "a/b", "2h"),
            "blob \"a/b\" of the container with the id 7 (its name was not found) of account acct",
        ),
        (
            ObjectTable::Blob,
            RowKey::new("acct", 7, "a/b", "1s0000000000000001"),
            "the snapshot 1601-01-01T00:00:00.0000001Z of blob \"a/b\" of the container with the id 7 (its name was not \
             found) of account acct",
        ),
        (
            ObjectTable::Container,
            container_key("acct", SERVICE_BLOB, "box"),
            "container box of account acct itself",
        ),
        (
            ObjectTable::Container,
            settings_key("acct", SERVICE_QUEUE),
            "the properties of the queue service of account acct",
        ),
    ] {
        let place = names.of_row(table, key.as_bytes()).unwrap();
        assert_eq!(place.to_string(), expected);
    }
    assert_eq!(names.of_row(ENTITY, b"?"), None);
    assert_eq!(names.of_row(ObjectTable::PartitionMap, RowKey::new("", 0, "", "").as_bytes()), None);
}

#[test]
fn partition_names_are_what_their_rows_share() {
    let names = names();
    let entity = names.of_partition_name(ENTITY, RowKey::new("acct", 7, "p", "r").as_bytes()).unwrap();
    assert_eq!(entity.to_string(), "all entities of PartitionKey \"p\" of table People of account acct");
    let queue = RowKey::new("acct", 7, "", "m00000000000000051122334455667788");
    let queue = names.of_partition_name(ObjectTable::Message, queue.as_bytes()).unwrap();
    assert_eq!(queue.to_string(), "messages of queue tasks of account acct");
}

#[test]
fn ranges_name_the_smallest_place_they_are_in() {
    let names = names();
    let row = |partition, row| RowKey::new("acct", 7, partition, row);
    let between = |from: &RowKey, to: &RowKey| KeyRange {
        start: from.as_bytes().clone(),
        end: Some(to.as_bytes().clone()),
    };
    let to_successor = KeyRange { start: KeyRange::all().start, end: Some(row("p", "r").successor()) };
    for (keys, expected) in [
        (KeyRange::all(), "entities of the table service"),
        (KeyRange::container("acct", 7), "entities of table People of account acct"),
        (
            KeyRange::partition("acct", 7, "p"),
            "all entities of PartitionKey \"p\" of table People of account acct",
        ),
        (
            between(&row("p", "a"), &row("p", "b")),
            "all entities of PartitionKey \"p\" of table People of account acct, from (\"p\", \"a\") to (\"p\", \"b\")",
        ),
        (
            between(&row("p", "a"), &row("q", "b")),
            "entities of table People of account acct, from (\"p\", \"a\") to (\"q\", \"b\")",
        ),
        (
            to_successor,
            "entities of the table service, from the first to entity (\"p\", \"r\") of table People of account acct",
        ),
    ] {
        assert_eq!(names.of_range(ENTITY, &keys).to_string(), expected);
    }
    let containers = names.of_range(ObjectTable::Container, &KeyRange::all());
    assert_eq!(containers.to_string(), "tables, queues and containers of all services");
}
