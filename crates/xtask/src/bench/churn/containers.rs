//! Many queues, empty ones and full ones, are deleted: whether their space comes back, also if the server is
//! started again meanwhile.

use super::calls::call_all;
use super::{Stage, Verdict};
use crate::Outcome;
use std::time::{Duration, Instant};

const CONTENT_TYPE: &str = "application/xml";
const MESSAGE_SIZE: usize = 8 << 10;
const MESSAGES: usize = 2;
/// Of what the queues took so much may stay.
const LEFT_SHARE_MAX: f64 = 0.25;
/// A queue's marks go two minutes after it was deleted, and then its rows are compacted away.
const BACK_AFTER: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(crate) struct ContainersArguments {
    /// Empty queues that are made and deleted.
    #[arg(long, default_value_t = 9_000)]
    pub(super) empty_queues: u64,
    /// Queues with messages that are made and deleted.
    #[arg(long, default_value_t = 25_000)]
    pub(super) full_queues: u64,
}

fn message(of: u64) -> String {
    let mut state = of;
    let mut text = String::with_capacity(MESSAGE_SIZE);
    while text.len() < MESSAGE_SIZE {
        text.push_str(&format!("{:016x}", base::random::splitmix64(&mut state)));
    }
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

pub(super) fn run(stage: &mut Stage<'_>) -> Outcome<Vec<Verdict>> {
    let ContainersArguments { empty_queues, full_queues } = stage.arguments.size.containers;
    let queues = |stage: &Stage<'_>| stage.server.queue_address.ok_or("the server has no Queue service");
    let address = queues(stage)?;
    let empty_mib = stage.empty_mib()?;
    let name = |number: u64| format!("churn-{number:08}");
    // The empty ones come first, so that marks of theirs are older.
    let rate = call_all((address, CONTENT_TYPE), empty_queues + full_queues, |client, number| {
        client.expect("PUT", &name(number), &[], &[], b"", &[201])?;
        if number >= empty_queues {
            for at in 0..MESSAGES {
                let body = message(number * MESSAGES as u64 + at as u64);
                let path = format!("{}/messages", name(number));
                client.expect("POST", &path, &[], &[], body.as_bytes(), &[201])?;
            }
        }
        Ok(())
    })?;
    std::thread::sleep(Duration::from_secs(stage.arguments.waits.quiet_seconds));
    let full_mib = stage.stored_mib()? - empty_mib;
    let resident_mib = stage.resident_mib()?;
    let delete_rate = call_all((address, CONTENT_TYPE), empty_queues + full_queues, |client, number| {
        client.expect("DELETE", &name(number), &[], &[], b"", &[204]).map(drop)
    })?;
    let deleted_at = Instant::now();
    println!(
        "  {empty_queues} empty queues and {full_queues} with messages: made {rate:.0}/s, {full_mib:.0} MiB; deleted \
         {delete_rate:.0}/s"
    );
    stage.restart()?;
    let most_mib = full_mib * LEFT_SHARE_MAX;
    let mut left_mib = stage.stored_mib()? - empty_mib;
    // Twice as long as it may take, so that a miss says by how much.
    while left_mib > most_mib && deleted_at.elapsed() < 2 * BACK_AFTER {
        std::thread::sleep(LOOK_EVERY);
        left_mib = stage.stored_mib()? - empty_mib;
    }
    let back_after = deleted_at.elapsed().as_secs_f64();
    println!(
        "  {left_mib:.0} MiB left after {back_after:.0} s and a restart, {:.0} MiB resident ({resident_mib:.0} before)",
        stage.resident_mib()?
    );
    Ok(vec![
        Verdict::at_most("space of deleted queues", left_mib, most_mib, "MiB"),
        Verdict::at_most("until it was back", back_after, BACK_AFTER.as_secs_f64(), "s"),
    ])
}
