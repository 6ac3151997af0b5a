//! A part, a document or a value of another stamp, of a newer format, cut or damaged is an error that names
//! it; a range is never read as empty or shorter instead.

use crate::application::{LoadError, Served};
use crate::world::{STAMP, World};
use base::checksum::crc64;
use stamp::{Key, PART_HEADER_SIZE, PartHeader, PartPath, StampId, decode_document, encode_document};
use stamp_streams::{Life, RangeWatch, StampError, StampSnapshot, Surroundings, Taken, parse_key};
use std::sync::Arc;

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(test);
}

/// Takes all ranges and reads them; the first error that a stored thing is the reason of.
async fn read_all(surroundings: &Surroundings) -> Result<(), String> {
    let life = Life::join(surroundings).await.map_err(|error| error.to_string())?;
    let watch = RangeWatch::new(&life);
    let mut failed = Ok(());
    let ranges = watch.look().await.map_err(|error| error.to_string())?;
    for range in ranges.into_keys() {
        let owned = match watch.take(range).await {
            Ok(Taken::Range(owned)) => owned,
            Ok(_) => return Err("the range is not free".to_owned()),
            Err(error) => {
                failed = failed.and(Err(error.to_string()));
                continue;
            }
        };
        match Served::load(&owned).await {
            Ok(_) => owned.release().await.map_err(|error| error.to_string())?,
            Err(LoadError::Wrong(wrong)) => return Err(wrong),
            Err(LoadError::Stamp(error)) => {
                let error = owned.broken(error).await;
                assert!(matches!(error, StampError::Stored(_)), "{error}");
                failed = failed.and(Err(error.to_string()));
                owned.release().await.map_err(|error| error.to_string())?;
            }
        }
    }
    life.leave().await;
    failed
}

/// A stamp with a part in the log of its first range, which nobody has.
async fn stamp_with_a_part() -> (Arc<World>, Surroundings, PartPath) {
    let world = World::new(1, None, false).await;
    world.hosts.lock().iter().for_each(|host| host.gate.kill());
    let operator = world.operator();
    let life = Life::join(&operator).await.expect("joined");
    let watch = RangeWatch::new(&life);
    let range = *watch.look().await.expect("ranges").keys().next().expect("a range");
    let Ok(Taken::Range(owned)) = watch.take(range).await else { panic!("it is not free") };
    let document = owned.document();
    let log = document.streams.iter().find(|(_, entry)| entry.purpose == crate::application::LOG);
    let record = crate::record::State::default().decide(0, 1);
    let body = crate::record::encode_records(&[record]);
    let appended = owned.log(*log.expect("a log").0).append(body.into()).await.expect("appended");
    let path = PartPath { extent: appended.header().place.extent, offset: 0 };
    appended.durable().await.expect("durable");
    owned.release().await.expect("released");
    life.leave().await;
    (world, operator, path)
}

/// The same bytes as a newer format has them: format and checksum are where they are in all formats.
fn newer(bytes: &[u8], checksum_at: usize) -> Vec<u8> {
    let mut newer = bytes.to_vec();
    newer[4] = 2;
    let checksum = crc64(&[&newer[..checksum_at]]).to_le_bytes();
    newer[checksum_at..checksum_at + 8].copy_from_slice(&checksum);
    newer
}

#[test]
fn a_bad_part_is_an_error_that_names_it() {
    run(async {
        let (world, operator, path) = stamp_with_a_part().await;
        read_all(&operator).await.expect("it is whole");
        let name = path.format(STAMP);
        let good = world.objects.read(&name).expect("an answer").expect("a part");
        let mut header = PartHeader::decode(&good, STAMP, path.extent, 0).expect("a header");
        header.life.stamp = StampId(9);
        let other_stamp = [&header.encode()[..], &good[PART_HEADER_SIZE..]].concat();
        let flipped = |at: usize| {
            let mut flipped = good.to_vec();
            flipped[at] ^= 4;
            flipped
        };
        let cases = [
            (other_stamp, "two stamps use the same place"),
            (newer(&good, PART_HEADER_SIZE - 8), "start a newer version"),
            (good[..100].to_vec(), "is cut"),
            (good[..PART_HEADER_SIZE + 3].to_vec(), "is cut"),
            (Vec::new(), "is cut"),
            (flipped(200), "the checksum of its header differs"),
            (flipped(PART_HEADER_SIZE + 1), "the checksum of its body differs"),
        ];
        for (bad, why) in cases {
            world.objects.replace(&name, bad.into());
            let error = read_all(&operator).await.expect_err(why);
            assert!(error.contains(&path.extent.to_string()) && error.contains(why), "{error}");
        }
        world.objects.replace(&name, good);
        read_all(&operator).await.expect("it is whole again");
    });
}

#[test]
fn a_bad_document_or_key_is_an_error_that_names_it() {
    run(async {
        let (world, operator, _) = stamp_with_a_part().await;
        let document = world.keys.documents()[0].clone();
        let range = document.range.to_string();
        let is_it = |folder: &str| {
            let end = format!("/{folder}/{range}");
            move |key: &str| key.ends_with(&end)
        };
        type Harm = fn(&mut Vec<u8>);
        let of_documents: [(Harm, &str); 4] = [
            (|bytes| bytes.truncate(bytes.len() / 2), "checksum"),
            (|bytes| bytes.clear(), "is cut"),
            (|bytes| bytes[30] ^= 1, "checksum"),
            (|bytes| *bytes = newer(bytes, bytes.len() - 8), "start a newer version"),
        ];
        let of_own_entries: [(Harm, &str); 3] = [
            (|bytes| bytes.truncate(9), "is cut"),
            (|bytes| bytes[2] ^= 1, "checksum"),
            (|bytes| bytes.clear(), "is cut"),
        ];
        let cases = of_documents.map(|case| ("document", case)).into_iter();
        for (folder, (harm, why)) in cases.chain(of_own_entries.map(|case| ("own", case))) {
            let kept = parking_lot::Mutex::new(Vec::new());
            world.keys.replace(is_it(folder), |bytes| {
                *kept.lock() = bytes.clone();
                harm(bytes);
            });
            let error = read_all(&operator).await.expect_err(why);
            assert!(error.contains(&range) && error.contains(why), "{folder}: {error}");
            world.keys.replace(is_it(folder), |bytes| *bytes = kept.lock().clone());
        }
        let other = |bytes: &mut Vec<u8>| {
            let document = decode_document(bytes, STAMP, document.range).expect("a document");
            *bytes = encode_document(&document, StampId(9));
        };
        world.keys.replace(is_it("document"), other);
        let error = read_all(&operator).await.expect_err("another stamp");
        assert!(error.contains("two stamps use the same place"), "{error}");
        assert!(matches!(parse_key(&format!("{:032x}/own/{range}", 1)), Some(Key::Own(_))));
    });
}

/// A process that was given another object store once took the stamp, found no part of any extent, and
/// recorded all that was open as empty.
#[test]
fn a_process_with_another_object_store_changes_nothing() {
    run(async {
        let (world, operator, _) = stamp_with_a_part().await;
        let documents = world.keys.documents();
        // It has a stamp of the same name.
        let elsewhere = World::new(2, None, false).await;
        elsewhere.hosts.lock().iter().for_each(|host| host.gate.kill());
        let lost = Surroundings { objects: elsewhere.operator().objects, ..operator.clone() };
        let refused = [
            Life::join(&lost).await.err().expect("it is refused"),
            StampSnapshot::read(&lost).await.err().expect("it is refused"),
        ];
        for error in refused {
            assert!(matches!(error, StampError::Setup(_)), "{error}");
            assert!(error.to_string().contains("is not that of stamp"), "{error}");
        }
        assert_eq!(world.keys.documents(), documents);
        read_all(&operator).await.expect("it is as it was");
    });
}
