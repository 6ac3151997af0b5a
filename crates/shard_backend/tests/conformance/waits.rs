//! In Postgres, what opens a mapping or ends a claim waits for the writes that these let pass.

use crate::stage::{Home, Stage, key};
use shard_backend::{BackendError, FenceHold};
use shard_map::{Epoch, State};
use shard_store::LocalCopy;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_postgres::NoTls;

/// A batch of a copy that is late must not be committed after the publish that lets clients write.
pub(crate) async fn a_publish_and_a_claim_wait_for_the_write_of_a_copy(stage: &mut Stage) {
    let Home::Postgres(server) = &stage.home else { panic!("Postgres is needed here") };
    let config = server.config("shard");
    let socket = TcpStream::connect(("127.0.0.1", config.get_ports()[0])).await.expect("a socket");
    let (mut holder, connection) = config.connect_raw(socket, NoTls).await.expect("a connection");
    tokio::spawn(async move { drop(connection.await) });
    let pin = key("ab", &[0, 0]);
    stage.set(&pin, State::Offline).await;
    let mapping = stage.map().route(&pin).expect("a route").mapping;
    let shardlet = stage.shardlet(&mapping);
    stage.backend.claim(&shardlet, Epoch(100)).await.expect("a claim");
    let row = stage.row("ab", &[0, 0], 5);
    let (table, hold) = (stage.table("all_kinds").clone(), FenceHold::Closed(Epoch(100)));
    stage.backend.write(&table, &shardlet, hold, std::slice::from_ref(&row)).await.expect("a write");
    // The write of the copy passes the fence, and then waits for a row that another transaction holds.
    let lock = holder.transaction().await.expect("a transaction");
    let select = "SELECT 1 FROM all_kinds WHERE a = 'ab' AND b = '\\x0000' FOR UPDATE";
    assert!(!lock.query(select, &[]).await.expect("rows").is_empty());
    let other = stage.second();
    let write = {
        let (backend, table, shardlet) = (stage.backend.clone(), table.clone(), shardlet.clone());
        tokio::spawn(async move { backend.write(&table, &shardlet, hold, &[row]).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    let local = stage.local.clone();
    let copy = LocalCopy::of(&stage.catalog, "here").expect("the shard");
    let there = local.read().await.expect("an answer").expect("a copy").revision;
    let publish = tokio::spawn(async move { local.replace(Some(&there), Some(&copy)).await });
    let claim = {
        let shardlet = shardlet.clone();
        tokio::spawn(async move { other.claim(&shardlet, Epoch(101)).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!write.is_finished() && !publish.is_finished() && !claim.is_finished());
    lock.commit().await.expect("a commit");
    write.await.expect("no panic").expect("a write");
    publish.await.expect("no panic").expect("a publish");
    claim.await.expect("no panic").expect("a claim");
    let late = stage.backend.write(&table, &shardlet, hold, &[]).await;
    assert!(matches!(late, Err(BackendError::Claimed { .. })), "{late:?}");
}
