//! Plans as text and JSON.

use super::*;
use partition::{KeyRange, ObjectTable, RowKey};

fn loss(table: ObjectTable, keys: LostKeys, outcome: LossOutcome) -> RowLoss {
    RowLoss { table, keys, outcome, reason: "why".to_owned() }
}

fn plan() -> Plan {
    let entity = RowKey::new("acct", u64::MAX, "p", "r");
    let message = RowKey::new("acct", 7, "", "m00000000000000051122334455667788");
    let blob = RowKey::new("acct", 7, "a/b", "2h");
    let part = |row| RowKey::new("acct", 7, "a/b", row).as_bytes().clone();
    let container = RowKey::new("acct", 0, "blob", "box");
    let from_blob = KeyRange { start: blob.as_bytes().clone(), end: None };
    let repair = FolderRepair {
        actions: vec!["range 2 of table entity: its log is written anew".to_owned()],
        losses: vec![
            loss(ObjectTable::Entity, LostKeys::Row(entity.as_bytes().clone()), LossOutcome::Lost),
            loss(ObjectTable::Entity, LostKeys::PartitionName(entity.as_bytes().clone()), LossOutcome::Older),
            loss(ObjectTable::Message, LostKeys::Row(message.as_bytes().clone()), LossOutcome::Uncertain),
            loss(ObjectTable::Blob, LostKeys::PartitionName(blob.as_bytes().clone()), LossOutcome::Lost),
            loss(ObjectTable::Blob, LostKeys::Unknown(from_blob), LossOutcome::Lost),
            loss(ObjectTable::Container, LostKeys::Row(container.as_bytes().clone()), LossOutcome::Lost),
            loss(ObjectTable::Container, LostKeys::Unknown(KeyRange::all()), LossOutcome::Lost),
            loss(ObjectTable::Entity, LostKeys::Row("no key".into()), LossOutcome::Lost),
            loss(ObjectTable::Blob, LostKeys::Row(part("1s0000000000000001")), LossOutcome::Lost),
            loss(ObjectTable::Blob, LostKeys::Row(part("1v0000000000000001")), LossOutcome::Lost),
            loss(ObjectTable::Blob, LostKeys::Row(part("5u6964")), LossOutcome::Lost),
        ],
        needed_bytes: 5,
        replaced_rows: Vec::new(),
    };
    let mut plan = Plan { folder: "dir".to_owned(), needed_bytes: 2048, ..Plan::default() };
    plan.put(&repair, &ContainerNames::default());
    plan
}

#[test]
fn a_plan_comes_back_from_its_json() {
    let mut plan = plan();
    plan.add_unfinished("repair/x", &plan.losses.clone());
    assert_eq!(plan.losses.len(), 11, "what is listed already is not listed twice");
    plan.still_damaged.push("extents/1: gone".to_owned());
    let json = plan.to_json();
    assert_eq!(Plan::from_json(json.as_bytes()), Ok(plan));
    assert!(Plan::from_json(b"{}").is_err() && Plan::from_json(b"?").is_err());
    let newer = json.replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(newer != json && Plan::from_json(newer.as_bytes()).is_err());
}

#[test]
fn json_has_the_documented_fields() {
    let json: serde_json::Value = serde_json::from_str(&plan().to_json()).unwrap();
    let losses = &json["losses"];
    assert_eq!(json["needed_bytes"], 2048);
    assert_eq!(losses[0]["container_id"], u64::MAX.to_string());
    assert!(
        losses[0]["container"].is_null() && losses[0]["partition_key"] == "p" && losses[0]["row_key"] == "r"
    );
    assert!(losses[1]["outcome"] == "older" && losses[1].get("row_key").is_none());
    assert_eq!(losses[2]["message_id"], "11223344-5566-7788");
    assert_eq!((&losses[3]["blob"], &losses[3]["service"]), (&"a/b".into(), &"blob".into()));
    let kinds: Vec<_> = (0..8).map(|index| losses[index]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["entity", "entity", "message", "blob", "blob", "container", "other", "table"]);
    let time = "1601-01-01T00:00:00.0000001Z";
    for (index, name, expected) in [(8, "snapshot", time), (9, "version", time), (10, "staged_block", "6964")]
    {
        assert_eq!((&losses[index]["blob"], &losses[index][name]), (&"a/b".into(), &expected.into()));
    }
    assert!(losses[3].get("snapshot").is_none());
    assert!(losses[4]["keys"]["from"]["blob"] == "a/b" && losses[4]["keys"]["to"].is_null());
    assert!(losses[5]["container"] == "box" && losses[5].get("container_id").is_none());
    assert_eq!((&losses[6]["service"], &losses[7]["service"]), (&"other".into(), &"table".into()));
}

#[test]
fn a_plan_is_printed_in_words() {
    let mut plan = plan();
    let printed = plan.text(false);
    for part in [
        "dir: what is to be done:\n  range 2 of table entity: its log is written anew\n",
        "\n  lost: entity (\"p\", \"r\") of the table with the id 18446744073709551615 ",
        "\n  lost: any blobs of the blob service, from blob \"a/b\" of",
        "\n  lost: container box of account acct itself (why)\n",
        "\ndir: 2 KiB must be free for it\n",
    ] {
        assert!(printed.contains(part), "{part:?} in {printed}");
    }
    let again = plan.losses[0].clone();
    plan.add_losses([again.clone()]);
    assert_eq!(plan.losses.len(), 11, "each is listed once");
    plan.losses = vec![again; LOSSES_PRINTED_MAX + 2];
    assert!(plan.text(false).contains("\n  and 2 more; --json FILE lists all of them\n"));
    assert_eq!(plan.text(true).matches("lost: entity").count(), LOSSES_PRINTED_MAX + 2);
    let empty = Plan { folder: "dir".to_owned(), ..Plan::default() };
    assert_eq!(empty.text(true), "dir: nothing is to be done\ndir: nothing is lost\n");
}
