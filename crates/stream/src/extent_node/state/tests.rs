//! Entries are applied whole or not at all, and tables and entries come back.

use super::*;
use crate::block::put_block;
use base::random::splitmix64;

const E: ExtentId = ExtentId(9);

fn owner(epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(77), epoch: OwnerEpoch(epoch) }
}

/// One encoded block of 5 bytes at the offset, 37 bytes in all.
fn block_at(offset: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_block(&mut out, E, offset, b"12345");
    out
}

fn table() -> ExtentTable {
    let mut table = ExtentTable::default();
    table.apply(&Entry::Create { extent: E, owner: owner(2) }).unwrap();
    table.apply(&Entry::Append { extent: E, epoch: OwnerEpoch(2), offset: 0, blocks: &block_at(0) }).unwrap();
    table
}

#[test]
fn longer_extents_and_missing_ones_are_what_entries_can_say() {
    let before = table();
    let state = before.extents[&E];
    let longer = ExtentState { length: 99, digest: Some(ExtentDigest(7)), ..state };
    let length =
        Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 37, size: 62, digest: longer.digest };
    for (next, expected) in [
        (Some(state), Some(vec![])),
        (Some(longer), Some(vec![length])),
        (None, Some(vec![Entry::Delete { extent: E }])),
        (Some(ExtentState { length: 36, ..state }), None),
        (Some(ExtentState { frozen: true, ..state }), None),
        (Some(ExtentState { frozen: true, ..longer }), None),
        (Some(ExtentState { in_doubt: true, ..longer }), None),
    ] {
        let next = ExtentTable { extents: next.map(|state| (E, state)).into_iter().collect() };
        assert_eq!(before.changes_to(&next), expected, "{next:?}");
    }
    assert_eq!(ExtentTable::default().changes_to(&before), None, "one that the journal does not know");
    let frozen = ExtentTable { extents: [(E, ExtentState { frozen: true, ..state })].into() };
    let longer = ExtentTable { extents: [(E, ExtentState { frozen: true, ..longer })].into() };
    assert_eq!(frozen.changes_to(&longer), None, "a frozen one does not grow");
}

#[test]
fn refusals_change_nothing() {
    let before = table();
    let (next, gap, elsewhere) = (block_at(37), block_at(38), block_at(0));
    fn append(extent: ExtentId, epoch: u64, offset: u64, blocks: &[u8]) -> Entry<'_> {
        Entry::Append { extent, epoch: OwnerEpoch(epoch), offset, blocks }
    }
    let refused = [
        (append(E, 1, 37, &next), "old epoch"),
        (append(E, 2, 38, &gap), "gap"),
        (Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 36, size: 1, digest: None }, "overlap"),
        (append(ExtentId(1), 2, 0, &next), "no extent"),
        (append(E, 2, 37, b"x"), "no block"),
        (append(E, 2, 37, &next[..36]), "half a block"),
        (append(E, 2, 37, &elsewhere), "a block of another place"),
        (Entry::Create { extent: E, owner: owner(2) }, "twice"),
        (Entry::Fence { extent: E, owner: owner(1), freeze: true }, "old fence"),
    ];
    for (entry, why) in refused {
        let mut after = before.clone();
        assert!(after.apply(&entry).is_err(), "{why}");
        assert_eq!(after, before, "{why}");
    }
}

#[test]
fn a_fence_stops_the_former_owner_and_a_freeze_everyone() {
    let mut table = table();
    table.apply(&Entry::Fence { extent: E, owner: owner(3), freeze: false }).unwrap();
    assert!(matches!(table.check_append(E, owner(2)), Err(StreamError::OldEpoch { .. })));
    assert!(table.check_append(E, owner(3)).is_ok());
    table.apply(&Entry::Fence { extent: E, owner: owner(3), freeze: true }).unwrap();
    assert_eq!(table.check_append(E, owner(4)), Err(StreamError::Sealed(E)));
}

/// Appends of either kind, encoded, cut off by a new segment now and then: the digest is that of the
/// whole content, and the freeze reports it.
#[test]
fn the_digest_is_carried_on_through_whatever_happens() {
    let by = owner(2);
    for seed in 0..50 {
        let mut state = seed;
        let mut random = |bound: u64| splitmix64(&mut state) % bound;
        let mut table = ExtentTable::default();
        table.apply(&Entry::Create { extent: E, owner: by }).unwrap();
        let mut content = Vec::new();
        for _ in 0..random(20) {
            let offset = content.len() as u64;
            for _ in 0..1 + random(3) {
                let (at, payload) = (content.len() as u64, vec![random(256) as u8; random(50) as usize]);
                put_block(&mut content, E, at, &payload);
            }
            let blocks = &content[offset as usize..];
            let entry = if random(2) == 0 {
                Entry::Append { extent: E, epoch: by.epoch, offset, blocks }
            } else {
                let before = table.extents[&E].digest;
                let digest = before.map(|digest| digest.then_blocks(E, offset, blocks).unwrap());
                Entry::Length { extent: E, epoch: by.epoch, offset, size: blocks.len() as u64, digest }
            };
            let mut encoded = Vec::new();
            entry.encode(&mut encoded);
            table.apply(&Entry::decode(&mut Decoder::new(&encoded)).unwrap()).unwrap();
            if random(4) == 0 {
                let mut encoded = Vec::new();
                table.encode(&mut encoded);
                table = ExtentTable::decode(&mut Decoder::new(&encoded)).unwrap();
            }
        }
        table.apply(&Entry::Fence { extent: E, owner: by, freeze: true }).unwrap();
        let whole = ExtentDigest::EMPTY.then_blocks(E, 0, &content).unwrap();
        let expected = Seal { length: content.len() as u64, digest: Some(whole) };
        assert_eq!(table.extents[&E].sealed(), expected, "seed {seed}");
    }
}

/// Once unknown, a digest stays so: a guess would name healthy data damaged.
#[test]
fn an_extent_of_format_1_gets_no_digest() {
    let mut table = table().without_digests();
    table
        .apply(&Entry::Append { extent: E, epoch: OwnerEpoch(2), offset: 37, blocks: &block_at(37) })
        .unwrap();
    let digest = Some(ExtentDigest(7));
    table.apply(&Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 74, size: 40, digest }).unwrap();
    assert_eq!(table.extents[&E].sealed(), Seal { length: 114, digest: None });
    // And a length of format 1 ends what was known.
    let mut table = self::table();
    assert!(table.extents[&E].digest.is_some());
    table
        .apply(&Entry::Length { extent: E, epoch: OwnerEpoch(2), offset: 37, size: 40, digest: None })
        .unwrap();
    assert_eq!(table.extents[&E].digest, None);
    let mut encoded = Vec::new();
    table.encode(&mut encoded);
    assert_eq!(ExtentTable::decode(&mut Decoder::new(&encoded)), Ok(table));
    // Flags of a later format are no flags of this one.
    encoded[25] = 32;
    assert!(ExtentTable::decode(&mut Decoder::new(&encoded)).is_err());
}

#[test]
fn tables_and_entries_come_back() {
    let table = table();
    let mut out = Vec::new();
    table.encode(&mut out);
    assert_eq!(ExtentTable::decode(&mut Decoder::new(&out)), Ok(table));
    let entries = [
        Entry::Append { extent: E, epoch: OwnerEpoch(7), offset: 1 << 40, blocks: b"abc" },
        Entry::Length { extent: E, epoch: OwnerEpoch(7), offset: 5, size: 1 << 33, digest: None },
        Entry::Length {
            extent: E,
            epoch: OwnerEpoch(7),
            offset: 5,
            size: 1 << 33,
            digest: Some(ExtentDigest(u64::MAX)),
        },
        Entry::Create { extent: E, owner: owner(7) },
        Entry::Fence { extent: E, owner: owner(7), freeze: true },
        Entry::Delete { extent: E },
        Entry::AcceptEnd { extent: E },
    ];
    let mut out = Vec::new();
    entries.iter().for_each(|entry| entry.encode(&mut out));
    let mut decoder = Decoder::new(&out);
    for entry in entries {
        assert_eq!(Entry::decode(&mut decoder), Ok(entry));
    }
    assert!(decoder.is_empty());
}

/// Most extents of a folder were made by few processes.
#[test]
fn each_incarnation_is_in_a_table_once() {
    let owner = |incarnation| Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(1) };
    let mut table = ExtentTable::default();
    for (at, incarnation) in [7, 0, 7, 9, 7, 9, u128::MAX].into_iter().enumerate() {
        let create = Entry::Create { extent: ExtentId(at as u64), owner: owner(incarnation) };
        table.apply(&create).unwrap();
    }
    let mut encoded = Vec::new();
    table.encode(&mut encoded);
    assert_eq!(ExtentTable::decode(&mut Decoder::new(&encoded)), Ok(table));
    // Each has id, epoch, length, flags and digest; three of them an incarnation, three a number.
    assert_eq!(encoded.len(), 1 + 7 * (8 + 8 + 8 + 1 + 8) + 3 * 16 + 3);
}
