//! A drained message's line survives a power loss, because the message is deleted.

use super::*;
use sim::World;

const LINE: &[u8] = b"{\"id\":\"1\"}\n";

/// The folder of a new file was never synced: after a power loss the file was gone, and the messages in it
/// were deleted.
#[test]
fn a_drained_line_survives_a_power_loss() {
    for seed in 0..20 {
        for is_killed_first in [false, true] {
            let world = World::new(seed);
            if is_killed_first {
                // A run that made the file and was killed before anything else.
                world.run_until_killed(async |environment, _| {
                    environment.disk.create_folder("out").await.expect("a folder");
                    environment.disk.open("out/file", OpenMode::CreateNew).await.expect("a file");
                });
            }
            world.run(async |environment, _| {
                environment.disk.create_folder("out").await.expect("a folder");
                let mut output = open_end(&*environment.disk, "out/file").await.expect("a file");
                output.append(LINE.to_vec()).await.expect("written");
                output.sync().await.expect("synced");
            });
            let found = world.run(async |environment, _| {
                let file = environment.disk.open("out/file", OpenMode::Read).await.ok()?;
                file.read_at(0, LINE.len()).await.ok()
            });
            assert_eq!(found.flatten().as_deref(), Some(LINE), "seed {seed}, {is_killed_first}");
        }
    }
}
