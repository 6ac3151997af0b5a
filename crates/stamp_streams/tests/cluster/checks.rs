//! What must hold at the end: the world is well again, every range has an owner that takes writes, all that
//! was acknowledged is there once, and nothing stays in the store that no document names.

use crate::clients::{KEYS, read, write};
use crate::nemesis::start;
use crate::network::{LATE_MS_MAX, Weather};
use crate::objects::Health;
use crate::world::{HOSTS, STAMP, World};
use stamp::{BundlePath, ExtentName, PartPath};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// How long a well stamp may need until each range takes writes.
const RECOVERY_SECONDS_MAX: u64 = 120;

/// Everything is as it should be from now on.
pub(crate) fn make_well(world: &Arc<World>) {
    *world.weather.lock() = Weather::CALM;
    {
        let mut state = world.objects.state.lock();
        (state.health, state.stuck) = (Health::Well, None);
    }
    for host in 0..HOSTS {
        {
            let hosts = world.hosts.lock();
            hosts[host].gate.resume();
            hosts[host].to_objects.is_cut.store(false, Ordering::Relaxed);
            hosts[host].to_keys.is_cut.store(false, Ordering::Relaxed);
        }
        start(world, host);
    }
}

/// Checks the end of a run.
pub(crate) async fn check_end(world: &Arc<World>) -> Result<(), String> {
    make_well(world);
    sleep(Duration::from_millis(LATE_MS_MAX + 5000)).await;
    make_well(world);
    for key in 0..KEYS as u8 {
        wait_until_served(world, key).await?;
    }
    sleep(Duration::from_secs(40)).await;
    if let Some(wrong) = world.wrong() {
        return Err(wrong);
    }
    check_all_writes(world).await?;
    check_store(world).await
}

async fn wait_until_served(world: &Arc<World>, key: u8) -> Result<(), String> {
    for _ in 0..RECOVERY_SECONDS_MAX {
        if let Some(wrong) = world.wrong() {
            return Err(wrong);
        }
        if write(world, key).await && read(world, key).await {
            return Ok(());
        }
        sleep(Duration::from_secs(1)).await;
    }
    Err(format!("key {key} takes no writes {RECOVERY_SECONDS_MAX} s after all is well"))
}

/// Every key as its owner serves it.
async fn check_all_writes(world: &Arc<World>) -> Result<(), String> {
    for key in 0..KEYS as u8 {
        let floor = world.ledger.lock().floor(key);
        let served = world.servers().into_iter().find_map(|server| server.serving(key)?.read(key));
        let writes = served.ok_or_else(|| format!("key {key} is not served in the end"))?;
        world.ledger.lock().check(key, &writes, &floor).map_err(|wrong| format!("in the end: {wrong}"))?;
    }
    Ok(())
}

/// Of an extent that no document names nothing is left but a tombstone, no bundle either.
async fn check_store(world: &Arc<World>) -> Result<(), String> {
    let mut left = BTreeMap::new();
    for _ in 0..30 {
        left = unnamed(world);
        if left.is_empty() {
            return world.wrong().map_or(Ok(()), Err);
        }
        sleep(Duration::from_secs(2)).await;
    }
    Err(format!("extents stay that no document names: {left:?}"))
}

fn unnamed(world: &World) -> BTreeMap<ExtentName, usize> {
    let mut extents: BTreeMap<ExtentName, usize> = BTreeMap::new();
    for path in world.objects.names().iter().filter_map(|name| PartPath::parse(name, STAMP)) {
        *extents.entry(path.extent).or_default() += 1;
    }
    for path in world.objects.names().iter().filter_map(|name| BundlePath::parse(name, STAMP)) {
        *extents.entry(path.extent).or_default() += 2;
    }
    extents.retain(|extent, objects| *objects > 1 && !world.keys.names(*extent));
    extents
}
