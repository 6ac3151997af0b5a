//! What the kernel says of this process: memory, processor time, bytes written.

use crate::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// Clock ticks a second of `/proc/self/stat`: fixed by the kernel's interface.
const TICKS_PER_SECOND: u64 = 100;

fn number_after(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(label))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The most resident memory so far, in bytes.
pub(crate) fn peak_resident_bytes() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = number_after(&status, "VmHWM:").ok_or("the kernel does not tell the peak of memory")?;
    Ok(kib * 1024)
}

/// Bytes handed to the kernel for writing so far.
pub(crate) fn written_bytes() -> Outcome<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    Ok(number_after(&io, "wchar:").ok_or("the kernel does not tell the bytes written")?)
}

/// Processor time used so far, by all threads.
pub(crate) fn processor_time() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("the kernel does not tell the processor time")?.1;
    let fields: Vec<u64> = after_name.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let ticks = fields.get(11).zip(fields.get(12)).map(|(user, system)| user + system);
    let ticks = ticks.ok_or("the kernel does not tell the processor time")?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Processor time used so far by the process's threads that are there, by their names.
pub(crate) fn processor_time_by_thread() -> Outcome<BTreeMap<String, Duration>> {
    let mut by_name = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task")? {
        let folder = task?.path();
        // A thread may end meanwhile.
        let (Ok(name), Ok(scheduled)) =
            (std::fs::read_to_string(folder.join("comm")), std::fs::read_to_string(folder.join("schedstat")))
        else {
            continue;
        };
        let spent_ns = scheduled.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0);
        *by_name.entry(name.trim().to_owned()).or_default() += Duration::from_nanos(spent_ns);
    }
    Ok(by_name)
}

/// What the machine's cores did so far, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineTime {
    /// Somebody kept them busy, or the host took them.
    pub(crate) busy: Duration,
    /// Nothing was ready to run.
    pub(crate) idle: Duration,
    /// The host gave them to other machines.
    pub(crate) stolen: Duration,
}

/// What the machine's cores did so far.
pub(crate) fn machine_time() -> Outcome<MachineTime> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().ok_or("the kernel does not tell the machine's processor time")?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
    // user nice system idle iowait irq softirq steal
    let [user, nice, system, idle, waiting, irq, softirq, stolen, ..] = ticks[..] else {
        return Err("the kernel does not tell what the processor's time went into".into());
    };
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    let busy = user + nice + system + irq + softirq + stolen;
    Ok(MachineTime { busy: time(busy), idle: time(idle + waiting), stolen: time(stolen) })
}

/// Asks the kernel to forget the pages of every file of `folder`; what is dirty stays.
pub(crate) fn drop_cached_files(folder: &std::path::Path) -> Outcome<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_cached_files(&path)?;
        } else {
            let file = std::fs::File::open(&path)?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}
