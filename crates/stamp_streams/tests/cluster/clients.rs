//! Clients: writes and reads of any key through any process, several at a time.

use crate::ledger::Ending;
use crate::record::WriteId;
use crate::server::Server;
use crate::world::World;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// Keys are below it.
pub(crate) const KEYS: u64 = 8;
/// How long a client waits.
const WAIT: Duration = Duration::from_secs(30);

/// Writes and reads until the world is over.
pub(crate) async fn client(world: Arc<World>) {
    while !world.is_over() {
        let key = world.random.below(KEYS) as u8;
        if world.random.one_in(3) {
            read(&world, key).await;
        } else {
            write(&world, key).await;
        }
        sleep(Duration::from_millis(world.random.below(400))).await;
    }
}

/// A process that says it serves the key, if any does.
fn find(world: &World, key: u8) -> Option<Arc<Server>> {
    let mut servers = world.servers();
    let first = world.random.below(servers.len() as u64) as usize;
    servers.rotate_left(first);
    servers.into_iter().find(|server| server.serving(key).is_some())
}

/// Writes once; whether it was acknowledged.
pub(crate) async fn write(world: &Arc<World>, key: u8) -> bool {
    let Some(server) = find(world, key) else { return false };
    let id = world.ledger.lock().begin(key);
    let (reply, outcome) = oneshot::channel();
    let of_server = server.clone();
    server.gate.spawn(async move {
        let ending = match of_server.serving(key) {
            Some(served) => served.write(key, id).await,
            None => Ending::Refused,
        };
        // A client that went away does not need to know.
        let _ = reply.send(ending);
    });
    let ending = match timeout(WAIT, outcome).await {
        Ok(Ok(ending)) => ending,
        _ => Ending::Unknown,
    };
    world.ledger.lock().end(key, id, ending);
    ending == Ending::Acknowledged
}

/// Reads once; whether there was an answer.
pub(crate) async fn read(world: &Arc<World>, key: u8) -> bool {
    let Some(server) = find(world, key) else { return false };
    let floor = world.ledger.lock().floor(key);
    let (reply, outcome) = oneshot::channel();
    let of_server = server.clone();
    let clock = server.surroundings.clock.clone();
    let think = Duration::from_millis(world.random.below(5));
    server.gate.spawn(async move {
        let Some(served) = of_server.serving(key) else { return };
        let Some(writes) = served.read(key) else { return };
        clock.sleep(think).await;
        // Asked again just before the answer leaves.
        if served.owned.admits_reads() {
            drop(reply.send(writes));
        }
    });
    let Ok(Ok(writes)) = timeout(WAIT, outcome).await else { return false };
    checked(world, key, &writes, &floor);
    true
}

fn checked(world: &World, key: u8, writes: &[WriteId], floor: &crate::ledger::Floor) {
    let mut ledger = world.ledger.lock();
    ledger.reads += 1;
    if world.checks_reads()
        && let Err(wrong) = ledger.check(key, writes, floor)
    {
        drop(ledger);
        world.found(format!("a read: {wrong}"));
    }
}
