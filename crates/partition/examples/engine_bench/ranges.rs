//! Changes of ranges under load, and whether two ranges take more writes than one.

use crate::engine::{Engine, settings};
use crate::rows::{Insert, TABLE, key_in, partition_start, value};
use crate::verdicts::Verdicts;
use crate::{Arguments, Outcome, process};
use partition::PartitionSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SPLIT_COUNT: u64 = 10;
const BETWEEN_CHANGES: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_millis(50);
const COMPARED_FOR: Duration = Duration::from_secs(4);
/// Writers while one range is compared with two: so many that some are always ready while others wait for a
/// sync.
const COMPARED_WRITERS: u64 = 1024;
/// Syncs of a bare file beside which those of the journal are shown.
const BARE_SYNC_COUNT: usize = 300;

/// What writers did together.
struct Written {
    per_second: f64,
    slowest: Duration,
    cores_busy: f64,
    /// Those that anybody on the machine kept busy.
    all_cores_busy: f64,
    /// Share of the time in which the journal's thread wrote or synced.
    journal_busy: f64,
    syncs_per_second: f64,
    /// What the journal wrote at a time, on average.
    group_size_bytes: u64,
    /// Share of the time in which a range's serial section was held, for the range where it was held the
    /// longest.
    serial_section_held: f64,
}

/// Writes into the partitions that `choose` names until `done`.
async fn write_until(
    engine: &Engine,
    arguments: &Arguments,
    writers: u64,
    done: &Arc<AtomicBool>,
    series: &'static str,
    choose: fn(u64, u64, u64) -> u64,
) -> Outcome<Written> {
    let names = arguments.partitions;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let journal = engine.disk.journal();
    let (started, processor) = (engine.clock.monotonic(), process::processor_time()?);
    let machine = process::machine_time()?.busy;
    let ranges = engine.partitions.range_statistics(TABLE);
    let slowest = engine
        .gather(writers, |writer| {
            let (partitions, clock) = (engine.partitions.clone(), engine.clock.clone());
            let (done, acknowledged) = (done.clone(), acknowledged.clone());
            async move {
                let mut slowest = Duration::ZERO;
                let mut count = 0;
                while !done.load(Ordering::Relaxed) {
                    let name = format!("{series} {writer} {count}");
                    let insert =
                        Insert { key: key_in(choose(writer, count, names), &name), value: value(count) };
                    let begun = clock.monotonic();
                    partitions.execute(insert).await?;
                    slowest = slowest.max(clock.monotonic() - begun);
                    count += 1;
                }
                acknowledged.fetch_add(count, Ordering::Relaxed);
                Ok(slowest)
            }
        })
        .await?;
    let seconds = (engine.clock.monotonic() - started).as_secs_f64();
    let journal = engine.disk.journal().since(journal);
    let held = engine.partitions.range_statistics(TABLE).into_iter().map(|range| {
        let before = ranges.iter().find(|before| before.keys == range.keys);
        let held_before = before.map_or(Duration::ZERO, |before| before.serial_section_held_for);
        range.serial_section_held_for.saturating_sub(held_before)
    });
    Ok(Written {
        serial_section_held: held.max().unwrap_or_default().as_secs_f64() / seconds,
        per_second: acknowledged.load(Ordering::Relaxed) as f64 / seconds,
        slowest: slowest.into_iter().max().unwrap_or_default(),
        journal_busy: journal.busy_for.as_secs_f64() / seconds,
        syncs_per_second: journal.sync_count as f64 / seconds,
        group_size_bytes: journal.written_bytes / journal.sync_count.max(1),
        all_cores_busy: (process::machine_time()?.busy - machine).as_secs_f64() / seconds,
        cores_busy: (process::processor_time()? - processor).as_secs_f64() / seconds,
    })
}

pub(crate) async fn run(arguments: Arguments, verdicts: &mut Verdicts) -> Outcome<()> {
    println!("ranges");
    // Only what is asked for here changes ranges.
    let settings = PartitionSettings {
        range_size_bytes_max: u64::MAX,
        hot_requests_per_second: u64::MAX,
        cold_requests_per_second: 0,
        ..settings(&arguments)?
    };
    let engine = Engine::open(&arguments, settings).await?;
    split_and_merge(&engine, &arguments, verdicts).await?;
    one_against_two(&engine, &arguments, verdicts).await?;
    println!("  peak of resident memory: {} MiB", process::peak_resident_bytes()? >> 20);
    engine.close().await;
    Ok(())
}

async fn compact_all(engine: &Engine, pause: Duration) -> Outcome<()> {
    while engine.partitions.ranges(TABLE).len() > 1 {
        engine.clock.sleep(pause).await;
        engine.partitions.merge(TABLE, &partition_start(0)).await?;
    }
    Ok(())
}

async fn split_and_merge(engine: &Engine, arguments: &Arguments, verdicts: &mut Verdicts) -> Outcome<()> {
    compact_all(engine, Duration::ZERO).await?;
    let done = Arc::new(AtomicBool::new(false));
    let writers =
        write_until(engine, arguments, arguments.writers, &done, "split", |writer, count, names| {
            (writer * 31 + count * 7) % names
        });
    let changes = async {
        let outcome: Outcome<()> = async {
            for at in 1..=SPLIT_COUNT {
                engine.clock.sleep(BETWEEN_CHANGES).await;
                let key = partition_start(at * arguments.partitions / (SPLIT_COUNT + 1));
                engine.partitions.split(TABLE, &key).await?;
            }
            println!(
                "  {} ranges while {} writers write",
                engine.partitions.ranges(TABLE).len(),
                arguments.writers
            );
            compact_all(engine, BETWEEN_CHANGES).await
        }
        .await;
        done.store(true, Ordering::Relaxed);
        outcome
    };
    let (written, changed) = tokio::join!(writers, changes);
    changed?;
    let written = written?;
    let statistics = engine.partitions.statistics();
    println!(
        "  {} splits and {} merges under {:.0} writes/s, slowest write {:.0} ms",
        statistics.range_splits,
        statistics.range_merges,
        written.per_second,
        written.slowest.as_secs_f64() * 1000.0
    );
    let pause = statistics.longest_pause;
    let ms = |spent: Duration| spent.as_secs_f64() * 1000.0;
    verdicts.judge(
        "longest pause",
        &format!(
            "{:.1} ms: {:.1} until all was durable and the last {} KiB were copied, {:.1} until the map was changed, {:.1} until \
             the next owners served",
            ms(pause.total()),
            ms(pause.finished_for),
            pause.copied_bytes >> 10,
            ms(pause.map_changed_for),
            ms(pause.started_for),
        ),
        "under 50 ms",
        pause.total() < PAUSE_MAX,
    );
    Ok(())
}

async fn one_against_two(engine: &Engine, arguments: &Arguments, verdicts: &mut Verdicts) -> Outcome<()> {
    let middle = partition_start(arguments.partitions / 2);
    engine.partitions.split(TABLE, &middle).await?;
    let mut found = Vec::new();
    for (series, choose) in [
        ("one", (|_, count, names| count % (names / 2)) as fn(u64, u64, u64) -> u64),
        ("two", |writer, count, names| count % (names / 2) + writer % 2 * (names / 2)),
    ] {
        engine.settle().await;
        let done = Arc::new(AtomicBool::new(false));
        let stop = async {
            engine.clock.sleep(COMPARED_FOR).await;
            done.store(true, Ordering::Relaxed);
        };
        let (written, ()) =
            tokio::join!(write_until(engine, arguments, COMPARED_WRITERS, &done, series, choose), stop);
        let written = written?;
        println!(
            "  {series} of the ranges written by {COMPARED_WRITERS}: {:.0} writes/s, serial section held {:.0} % of the time, {:.2} cores busy \
             ({:.2} with all else on the machine), journal writing or syncing {:.0} % of the time in {:.0} groups/s of {} KiB",
            written.per_second,
            written.serial_section_held * 100.0,
            written.cores_busy,
            written.all_cores_busy,
            written.journal_busy * 100.0,
            written.syncs_per_second,
            written.group_size_bytes >> 10,
        );
        found.push(written);
    }
    let (one, two) = (&found[0], &found[1]);
    let gain = two.per_second / one.per_second;
    let cores = std::thread::available_parallelism()?.get() as f64;
    let bare = bare_syncs_per_second(&arguments.folder, two.group_size_bytes)?;
    println!(
        "  a bare file of this disk takes {bare:.0} writes and syncs/s of {} KiB while nothing else runs",
        two.group_size_bytes >> 10
    );
    let (limit, serial_section_is_limit) = limit_of_one(one, cores);
    let busy = |written: &Written| 100.0 * written.all_cores_busy / cores;
    verdicts.judge(
        "two ranges against one",
        &format!(
            "{gain:.2} times; with one range its serial section was held {:.0} % of the time, {:.0} % of all cores were busy \
             (with two {:.0} %) and the journal {:.0} % of the time (with two {:.0} %): {limit} is the limit of one range",
            one.serial_section_held * 100.0,
            busy(one),
            busy(two),
            one.journal_busy * 100.0,
            two.journal_busy * 100.0
        ),
        "1.5 times, if the serial section is the limit",
        gain >= 1.5 || !serial_section_is_limit,
    );
    Ok(())
}

/// What holds up writers of one range: of all that it may be, what was busy the largest part of the time.
/// Tells also whether it is the serial section, the one that a second range has for itself.
fn limit_of_one(one: &Written, cores: f64) -> (&'static str, bool) {
    let others = [
        (one.all_cores_busy / cores, "the processor"),
        (one.journal_busy, "syncing the journal, which all ranges share,"),
    ];
    let (busiest, name) =
        others.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default();
    if one.serial_section_held > busiest { ("the serial section", true) } else { (name, false) }
}

/// Writes groups of this size to a file that is there in full, and syncs each, as the journal does.
fn bare_syncs_per_second(folder: &std::path::Path, group_size_bytes: u64) -> Outcome<f64> {
    use std::os::unix::fs::FileExt;
    const FILE_SIZE_BYTES: u64 = 32 << 20;
    let path = folder.join("bare-syncs");
    let size = group_size_bytes.next_multiple_of(4096).clamp(4096, FILE_SIZE_BYTES);
    let file = std::fs::File::create(&path)?;
    file.write_all_at(&vec![1; FILE_SIZE_BYTES as usize], 0)?;
    file.sync_all()?;
    let group = vec![2; size as usize];
    let started = std::time::Instant::now();
    for count in 0..BARE_SYNC_COUNT as u64 {
        file.write_all_at(&group, count % (FILE_SIZE_BYTES / size) * size)?;
        file.sync_data()?;
    }
    let took = started.elapsed();
    std::fs::remove_file(&path)?;
    Ok(BARE_SYNC_COUNT as f64 / took.as_secs_f64())
}
