//! Small blobs whose content is damaged on the disk: what they say of themselves does not need it, their
//! bytes do.

use base::Environment;
use blob::{
    BlobAt, BlobError, BlobService, BlobType, Conditions, NewBlob, PartitionError, PublicAccess, Revision,
    VersionedAccounts,
};
use bytes::Bytes;
use partition::{PartitionSettings, Partitions};
use sim::World;
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

const ACCOUNT: &str = "acct";
const BLOBS: u8 = 40;
/// Small enough for the row, large enough to be kept apart from its head.
const SIZE_BYTES: usize = 4000;

/// Bytes that do not compress, other ones for each blob.
fn content(number: u8) -> Vec<u8> {
    let mut state = u32::from(number) + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    std::iter::repeat_with(&mut next).take(SIZE_BYTES).collect()
}

async fn open(env: &Environment) -> Result<(Arc<Streams>, Arc<Partitions>, BlobService), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let streams = Streams::open(env, StreamSettings::tiny()).await.map_err(|error| told(&error))?;
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::tiny()).await;
    let partitions = Arc::new(partitions.map_err(|error| told(&error))?);
    let service = BlobService::new(partitions.clone(), env.clock.clone(), VersionedAccounts::default());
    Ok((streams, partitions, service))
}

async fn at(service: &BlobService, number: u8) -> BlobAt {
    let container = service.container(ACCOUNT, "box").await.unwrap();
    service.blob(ACCOUNT, &container, &number.to_string()).unwrap()
}

async fn read(service: &BlobService, at: &BlobAt) -> Result<Vec<u8>, BlobError> {
    let (_, _, mut reader) = service.read(at, Revision::Current, &Conditions::default(), None).await?;
    let mut bytes = Vec::new();
    while let Some(part) = reader.next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

#[test]
fn properties_are_told_and_bytes_are_refused() {
    let world = World::new(1);
    let filled = world.run(|env, _| async move {
        let (streams, partitions, service) = open(&env).await.unwrap();
        let access = PublicAccess::None;
        service.create_container(ACCOUNT, "box", Vec::new(), access, Default::default()).await.unwrap();
        for number in 0..BLOBS {
            let at = at(&service, number).await;
            let mut upload = service.upload(&at, true, false);
            upload.write(Bytes::from(content(number))).await.unwrap();
            let uploaded = upload.finish().await.unwrap();
            service
                .put_blob(&at, BlobType::Block, uploaded, NewBlob::default(), Default::default())
                .await
                .unwrap();
        }
        env.clock.sleep(Duration::from_secs(5)).await;
        partitions.close().await;
        streams.close().await;
    });
    assert!(filled.is_some());
    let (mut damaged, mut whole) = (0, 0);
    for number in 0..BLOBS {
        let world = world.copy(u64::from(number));
        // Else the journal would restore what is damaged.
        ["journal/0", "journal/1", "journal/2"].iter().for_each(|path| world.disk.cut(path, None));
        let sought = &content(number)[SIZE_BYTES - 500..SIZE_BYTES - 484];
        for (path, _) in world.disk.files() {
            let bytes = world.disk.contents()[&path].clone();
            let places = bytes.windows(sought.len()).enumerate().filter(|(_, window)| *window == sought);
            for (at, _) in places {
                world.disk.garble(&path, at as u64);
            }
        }
        let outcome = world.run(|env, _| async move {
            // What the journal or a log needs to be whole is refused at the start.
            let (_streams, _partitions, service) = open(&env).await.ok()?;
            let at = at(&service, number).await;
            let found = service.find(&at, Revision::Current, &Conditions::default()).await;
            Some((found, read(&service, &at).await))
        });
        let Some((found, bytes)) = outcome.unwrap() else { continue };
        // It was in a log, without which nothing of the range is certain.
        if matches!(found, Err(BlobError::Partition(PartitionError::Storage(_)))) {
            continue;
        }
        assert_eq!(found.unwrap().record.size, SIZE_BYTES as u64, "{number}");
        match bytes {
            Ok(bytes) => {
                assert_eq!(bytes, content(number), "{number}: other bytes than were put");
                whole += 1;
            }
            Err(BlobError::Partition(PartitionError::Storage(_))) => damaged += 1,
            Err(other) => panic!("{number}: {other}"),
        }
    }
    assert!(damaged > 10, "{damaged} were damaged, {whole} were whole");
}
