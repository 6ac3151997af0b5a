//! The document of a stamp that is full: writes are refused before its bound, deletions go on, and it comes
//! back by them.

use crate::network::Weather;
use crate::partitions::{Put, Server, serve, value};
use crate::world::World;
use base::memory_disk::MemoryDisk;
use partition::{ObjectTable, PartitionError, RowKey, put_pieces};
use stamp::{Change, DOCUMENT_RESERVE_BYTES, DOCUMENT_SIZE_BYTES_MAX, StreamId, encode_document};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are left for blobs before the reserve.
const LEFT_FOR_BLOBS: usize = 4 << 10;
/// How long the way back may take, in virtual time.
const BACK_WITHIN: Duration = Duration::from_secs(1800);

fn size(server: &Server) -> usize {
    encode_document(&server.range.document(), server.life.life().stamp).len()
}

/// Streams that nobody uses take most of the document.
async fn fill(server: &Server) {
    let free =
        || (DOCUMENT_SIZE_BYTES_MAX - DOCUMENT_RESERVE_BYTES - LEFT_FOR_BLOBS).checked_sub(size(server));
    for round in 0.. {
        let at_once = match free() {
            Some(free) if free > 10 << 10 => 60,
            Some(free) if free > 200 => 1,
            _ => return,
        };
        let create = |at| Change::CreateStream {
            stream: StreamId(server.life.next_name()),
            purpose: format!("ballast/{:0>60}", format!("{round}-{at}")),
        };
        let changes: Vec<Change> = (0..at_once).map(create).collect();
        server.range.change(&changes).await.expect("there is room");
    }
}

fn blob(at: usize) -> RowKey {
    RowKey::new("acct", 2, &format!("b{at:04}"), "b")
}

/// A blob with extents of its own.
async fn put_blob(server: &Server, at: usize) -> Result<(), PartitionError> {
    let content = value(at as u64, 9000);
    let (piece, _pin) = server.partitions.append_data(ObjectTable::Blob, &blob(at), content).await?;
    let mut named = Vec::new();
    put_pieces(&mut named, std::slice::from_ref(&piece));
    let put = Put { table: ObjectTable::Blob, key: blob(at), value: Some(named.into()) };
    server.partitions.execute(put).await.map(drop)
}

async fn put_row(server: &Server) -> Result<(), PartitionError> {
    let key = RowKey::new("acct", 1, "p", "r");
    let put = Put { table: ObjectTable::Entity, key, value: Some(value(1, 100)) };
    server.partitions.execute(put).await.map(drop)
}

/// Once the document was full nothing could be written any more, nor flushed, nor deleted.
#[test]
fn a_full_document_comes_back_by_deletion() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let world = World::new(7, None, false).await;
        world.hosts.lock().iter().for_each(|host| host.gate.kill());
        *world.weather.lock() = Weather::CALM;
        let server = serve(&world, &Arc::new(MemoryDisk::new()), 7).await;
        put_row(&server).await.expect("there is room");
        fill(&server).await;
        assert_eq!(server.range.missing_document_bytes(), 0);
        let mut count = 0;
        let refused = loop {
            match put_blob(&server, count).await {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(refused == PartitionError::DiskFull && count > 20, "{count} blobs: {refused}");
        assert!(server.range.missing_document_bytes() > 0 && size(&server) < DOCUMENT_SIZE_BYTES_MAX);
        assert_eq!(put_row(&server).await, Err(PartitionError::DiskFull));
        for at in 0..count {
            let delete = Put { table: ObjectTable::Blob, key: blob(at), value: None };
            server.partitions.execute(delete).await.expect("deletions go on");
        }
        let began_at = tokio::time::Instant::now();
        while let Err(error) = put_row(&server).await {
            assert_eq!(error, PartitionError::DiskFull);
            let (waited, size) = (began_at.elapsed(), size(&server));
            assert!(waited < BACK_WITHIN, "it does not come back: {size} bytes");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(server.range.missing_document_bytes(), 0);
        put_blob(&server, count).await.expect("and blobs");
        server.gate.kill();
        world.forget();
    });
}
