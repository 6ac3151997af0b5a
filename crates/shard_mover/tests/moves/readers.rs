//! Clients that read the source by a signature which they made while the mapping was read-only.

use crate::gate::{EXPIRES_AFTER, Gate};
use crate::shards::{Setting, name};
use base::Environment;
use futures_util::future::join;
use shard_backend::Capabilities;
use shard_map::{MappingId, State};
use shard_mover::{MoveState, Planted};
use sim::World;
use std::time::Duration;

/// Between two looks at the map.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long after the map had the mapping on the source for the last time it was open on the target.
async fn closed_for(env: Environment, capabilities: [Capabilities; 3]) -> Duration {
    let setting = Setting::new(&env, capabilities).await;
    let gate = Gate::new((env.clock.clone(), env.random.clone()), None, 0);
    let mover = setting.mover(&gate, Planted::default());
    let catalog = setting.home().load().await.expect("a catalog");
    let id = mover.begin(&setting.planned(&catalog, 0, "b")).await.expect("begun");
    let looks = async {
        let mut on_source_at = setting.clock.monotonic();
        loop {
            let catalog = setting.home().load().await.expect("a catalog");
            let map = catalog.map("m").expect("it");
            let there = map.placement(&MappingId::Virtual(0)).expect("it");
            let now = setting.clock.monotonic();
            if there.shard == name("a") {
                on_source_at = now;
            } else if there.state == State::Online {
                return now - on_source_at;
            }
            setting.clock.sleep(LOOK_EVERY).await;
        }
    };
    let (ended, closed_for) = join(mover.finish(&id, &|_| {}), looks).await;
    assert!(matches!(ended.expect("an end").state(), MoveState::Done { .. }));
    closed_for
}

/// Found by the histories of `sharding`: from a source that is fenced by signatures a client read rows without
/// a write that the target, with a fence that is held, had acknowledged meanwhile.
#[test]
fn signatures_of_the_sources_readers_end_before_the_target_is_open() {
    let (held, signed) = (Capabilities::POSTGRES, Capabilities::STORAGE_TABLES);
    for (capabilities, is_waited_for) in [([signed, held, held], true), ([held, held, held], false)] {
        let found = World::new(1).run(|env, _| closed_for(env, capabilities)).expect("no crash");
        assert_eq!(found >= EXPIRES_AFTER, is_waited_for, "{found:?}");
    }
}
