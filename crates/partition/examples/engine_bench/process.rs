//! What the kernel says of this process: memory, processor time, bytes written.

use crate::Outcome;
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

/// Processor time used so far by everybody on the machine.
pub(crate) fn machine_processor_time() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().ok_or("the kernel does not tell the machine's processor time")?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
    // user nice system idle iowait irq softirq steal
    let busy: u64 = ticks.iter().take(8).sum::<u64>() - ticks.iter().skip(3).take(2).sum::<u64>();
    Ok(Duration::from_millis(busy * 1000 / TICKS_PER_SECOND))
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
