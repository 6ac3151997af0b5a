//! What goes wrong on purpose: hosts, links, stores; and what an operator does meanwhile.

use crate::application::is_within;
use crate::clients::KEYS;
use crate::faults::Fault;
use crate::network::Weather;
use crate::objects::Health;
use crate::server::Server;
use crate::world::{HOSTS, World};
use stamp::{ExtentPlace, Incarnation, Owner, OwnerEpoch, PartHeader, PartPath, SealWalk, WalkStep};
use stamp_streams::{Breach, StampError, restore};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const TTL_MS: u64 = 10_000;
/// Tries of a restore.
const RESTORES_MAX: usize = 20;

/// Troubles the world for so long.
pub(crate) async fn trouble(world: Arc<World>, lasts: Duration) {
    let ends_at = Instant::now() + lasts;
    // What is deleted at once is not in any backup: then none may be needed.
    let loses = world.random.one_in(3) || world.fault == Some(Fault::RestoreSameGeneration);
    let has_loss = loses && !world.has(Breach::DeleteAtOnce);
    let loss_at = Instant::now() + lasts / 2;
    let mut is_lost = false;
    while Instant::now() < ends_at && !world.is_over() {
        let weather = weather(&world);
        *world.weather.lock() = weather;
        if has_loss && !is_lost && Instant::now() >= loss_at {
            is_lost = true;
            lose_metadata(&world).await;
        }
        happen(&world);
        sleep(Duration::from_millis(500 + world.random.below(5000))).await;
    }
}

fn weather(world: &World) -> Weather {
    let random = &world.random;
    match random.below(3) {
        0 => Weather::CALM,
        1 => Weather { slow_one_in: 20, late_one_in: 40, lost_one_in: 40, answer_lost_one_in: 40 },
        _ => Weather { slow_one_in: 6, late_one_in: 8, lost_one_in: 10, answer_lost_one_in: 8 },
    }
}

/// Something happens, and ends by itself.
fn happen(world: &Arc<World>) {
    let random = &world.random;
    let host = random.below(HOSTS as u64) as usize;
    let releases_often = matches!(world.fault, Some(Fault::ReleaseThenRead | Fault::ReleaseBelievedNotDone));
    match if releases_often && random.one_in(2) { 11 } else { random.below(17) } {
        0 | 1 => drop(tokio::spawn(pause(world.clone(), host))),
        2 | 3 => drop(tokio::spawn(kill(world.clone(), host))),
        4..=6 => drop(tokio::spawn(cut(world.clone(), host))),
        7 => world.keys.change_leader(Duration::from_millis(1000 + random.below(1500))),
        8 => world.keys.end_a_live_lease(|count| random.below(count as u64) as usize),
        9 => drop(tokio::spawn(sick(world.clone()))),
        10 => stray_seal(world),
        11 | 12 => with_served(world, |server, _| Served::Release(server)),
        13 => with_served(world, Served::Split),
        14 => with_served(world, |_, _| Served::Hang),
        _ => with_served(world, |server, _| Served::Checkpoint(server)),
    }
    if random.one_in(6) {
        let ticks = random.below(600_000_000) as i64 - 300_000_000;
        world.hosts.lock()[host].clock.move_wall(ticks);
    }
}

async fn pause(world: Arc<World>, host: usize) {
    let gate = world.hosts.lock()[host].gate.clone();
    let ms = match world.random.below(4) {
        0 => world.random.below(6 * TTL_MS),
        1 => world.random.below(2 * TTL_MS),
        _ => world.random.below(2000),
    };
    world.counts.pauses.fetch_add(1, Ordering::Relaxed);
    gate.pause();
    sleep(Duration::from_millis(ms)).await;
    gate.resume();
}

async fn kill(world: Arc<World>, host: usize) {
    world.hosts.lock()[host].gate.kill();
    world.counts.kills.fetch_add(1, Ordering::Relaxed);
    sleep(Duration::from_millis(world.random.below(2 * TTL_MS))).await;
    start(&world, host);
}

/// Starts a process on a host whose process was killed.
pub(crate) fn start(world: &Arc<World>, host: usize) {
    let mut hosts = world.hosts.lock();
    if hosts[host].gate.is_killed() {
        let started = world.new_host(Some(&hosts[host]));
        hosts[host] = started;
    }
}

async fn cut(world: Arc<World>, host: usize) {
    let (objects, keys) = {
        let hosts = world.hosts.lock();
        (hosts[host].to_objects.clone(), hosts[host].to_keys.clone())
    };
    let which = world.random.below(3);
    world.counts.cuts.fetch_add(1, Ordering::Relaxed);
    objects.is_cut.store(which != 0, Ordering::Relaxed);
    keys.is_cut.store(which != 1, Ordering::Relaxed);
    sleep(Duration::from_millis(1000 + world.random.below(3 * TTL_MS))).await;
    objects.is_cut.store(false, Ordering::Relaxed);
    keys.is_cut.store(false, Ordering::Relaxed);
}

async fn sick(world: Arc<World>) {
    let random = &world.random;
    match random.below(3) {
        0 => world.objects.state.lock().health = Health::Down,
        1 => world.objects.state.lock().health = Health::Full,
        _ => {
            let names: Vec<String> =
                world.objects.names().into_iter().filter(|name| name.contains("/x/")).collect();
            if !names.is_empty() {
                let name = &names[random.below(names.len() as u64) as usize];
                let extent = name.rsplit_once('/').map_or("", |(extent, _)| extent).to_owned();
                let until = Instant::now() + Duration::from_millis(random.below(60_000));
                world.objects.state.lock().stuck = Some((extent, until));
            }
        }
    }
    sleep(Duration::from_millis(random.below(8000))).await;
    world.objects.state.lock().health = Health::Well;
}

/// A seal of a take that was given up arrives at the end of an open extent.
fn stray_seal(world: &World) {
    let documents = world.keys.documents();
    let open = documents.iter().flat_map(|document| {
        document.unsealed().map(move |(stream, entry)| ExtentPlace {
            extent: entry.name,
            range: document.range,
            stream,
            ordinal: entry.ordinal,
        })
    });
    let open: Vec<ExtentPlace> = open.collect();
    if open.is_empty() {
        return;
    }
    let place = open[world.random.below(open.len() as u64) as usize];
    let Some(life) = world.servers().iter().find_map(|server| server.life()) else { return };
    let sealer = Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(1) };
    let mut walk = SealWalk::new(life.life(), place, sealer);
    let name = |offset| PartPath { extent: place.extent, offset }.format(crate::world::STAMP);
    loop {
        match walk.step() {
            WalkStep::Read { offset } => walk.found(&match world.objects.read(&name(offset)) {
                None => return,
                Some(Err(_)) => stamp::Found::NotThere,
                Some(Ok(bytes)) => {
                    match PartHeader::decode(&bytes, crate::world::STAMP, place.extent, offset) {
                        Ok(header) => stamp::Found::Header(header),
                        Err(error) => stamp::Found::Damaged(error),
                    }
                }
            }),
            WalkStep::Create(header) => {
                let content = [header.encode().as_slice(), &walk.body()].concat();
                match world.objects.create(&name(header.offset), content.into()) {
                    Some(answer) => walk.answered(answer),
                    None => return,
                }
            }
            WalkStep::Sealed { .. } | WalkStep::Stopped(_) => return,
        }
    }
}

enum Served {
    Release(Arc<Server>),
    Split(Arc<Server>, u8),
    Checkpoint(Arc<Server>),
    Hang,
}

/// Something is done with a range that is served.
fn with_served(world: &Arc<World>, what: impl FnOnce(Arc<Server>, u8) -> Served) {
    let key = world.random.below(KEYS) as u8;
    let server = world.servers().into_iter().find(|server| server.serving(key).is_some());
    let Some((server, served)) = server.and_then(|server| server.serving(key).map(|served| (server, served)))
    else {
        return;
    };
    let counts = &world.counts;
    let gate = server.gate.clone();
    match what(server, key) {
        Served::Release(server) => {
            counts.releases.fetch_add(1, Ordering::Relaxed);
            gate.spawn(server.release(served));
        }
        Served::Split(server, at) => {
            let has_both = at > 0 && is_within(at - 1, &served.keys);
            if has_both && world.keys.ranges().len() < 4 {
                counts.splits.fetch_add(1, Ordering::Relaxed);
                gate.spawn(server.split(served, at));
            }
        }
        Served::Hang => {
            counts.hangs.fetch_add(1, Ordering::Relaxed);
            served.hang();
        }
        Served::Checkpoint(server) => {
            counts.checkpoints.fetch_add(1, Ordering::Relaxed);
            gate.spawn(server.checkpoint(served));
        }
    }
}

/// The metadata store is lost, and restored from the object store.
async fn lose_metadata(world: &Arc<World>) {
    let server = world.servers().into_iter().find(|server| server.life().is_some());
    if let Some(server) = server {
        server.gate.clone().spawn(server.back_up());
    }
    let as_of = world.keys.keep();
    sleep(Duration::from_millis(world.random.below(6000))).await;
    drop(world.keys.lose());
    let silent_for = world.keys.silent_for();
    // A new host in the place of the store; the object store is well again before anybody restores from it.
    sleep(Duration::from_millis(world.random.below(5000))).await;
    {
        let mut state = world.objects.state.lock();
        (state.health, state.stuck) = (Health::Well, None);
    }
    let all_stopped = world.has(Breach::RestoreWhileLive);
    let keeps_numbers = world.has(Breach::RestoreSameGeneration);
    world.keys.renew(if keeps_numbers { as_of.revision } else { 1 });
    if !all_stopped {
        sleep(world.objects.list_lag()).await;
    }
    restore_until_done(world, all_stopped, silent_for).await;
    if keeps_numbers {
        world.keys.renumber(&as_of);
    }
}

/// Restores, again if a store does not answer.
async fn restore_until_done(world: &Arc<World>, all_stopped: bool, silent_for: Duration) {
    let is_rough = world.random.one_in(2) && !world.has(Breach::RestoreSameGeneration);
    let operator = if is_rough { world.operator_in(&world.weather) } else { world.operator() };
    for _ in 0..RESTORES_MAX {
        match restore(&operator, all_stopped, silent_for).await {
            Ok(_) => break,
            Err(StampError::Stored(error)) => return world.found(format!("the restore fails: {error}")),
            // Also: one that was cut off had an outcome that is not known.
            Err(_) => sleep(Duration::from_secs(1)).await,
        }
        if !world.keys.documents().is_empty() {
            break;
        }
    }
    // It was lost before anything was: a stamp of which nothing has a backup is made anew.
    if world.keys.documents().is_empty() && !world.objects.names().iter().any(|name| name.contains("/x/")) {
        assert_eq!(world.ledger.lock().acknowledged, 0, "without a part");
        world.found_stamp().await;
    }
    if world.keys.documents().is_empty() {
        world.found("the restore does not come to an end".to_owned());
    }
    world.counts.restores.fetch_add(1, Ordering::Relaxed);
}
