//! Marks of deleted containers stay as long as a request may last, whatever the wall clock does.

use crate::rows::{ACCOUNT, Everything, TABLE, key, open, put, value};
use base::clock::TICKS_PER_SECOND;
use partition::PartitionSettings;
use sim::World;
use std::time::Duration;

const HOUR_TICKS: i64 = 3600 * TICKS_PER_SECOND as i64;

/// Marks that were made under a clock that was ahead stayed until it was there again, and once there were
/// many of them no further one was taken. Under a clock that jumps ahead they went while requests might still
/// write.
#[test]
fn marks_go_two_minutes_later_by_whatever_clock_they_were_made() {
    for (jump_ticks, with_restart) in
        [(0, false), (-HOUR_TICKS, false), (-HOUR_TICKS, true), (HOUR_TICKS, false)]
    {
        let world = World::new(1);
        let case = format!("jump of {jump_ticks}, with a restart: {with_restart}");
        let retired = world.run(|env, clock| async move {
            let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            put(&partitions, &mut Everything::new(), key(7, "p", "r"), Some(value(1, 100))).await.unwrap();
            partitions.retire_container(TABLE, ACCOUNT, 7).await.unwrap();
            clock.move_wall(jump_ticks);
            if !with_restart {
                env.clock.sleep(Duration::from_secs(100)).await;
                assert_eq!(partitions.retired_container_count(), 1, "{case}: after 100 s");
                env.clock.sleep(Duration::from_secs(100)).await;
            }
            partitions.close().await;
            streams.close().await;
            (partitions.retired_container_count(), case)
        });
        let (mut left, case) = retired.unwrap();
        if with_restart {
            let opened = world.run(|env, _| async move {
                let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
                assert_eq!(partitions.retired_container_count(), 1);
                env.clock.sleep(Duration::from_secs(200)).await;
                partitions.retired_container_count()
            });
            left = opened.unwrap();
        }
        assert_eq!(left, 0, "{case}: after 200 s");
    }
}
