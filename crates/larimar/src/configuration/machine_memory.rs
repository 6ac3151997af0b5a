//! The memory budget that nobody chose: a part of what the process may use, which is the machine's memory, or
//! less if a control group (of a container, of a service) limits it. What always holds: there is a budget,
//! within what can be asked for, whatever the system tells.

use std::path::{Path, PathBuf};

/// The budget is one part in so many.
const BUDGET_DIVISOR: u64 = 4;
/// It is not more than this; larger ones are chosen by whoever knows what else runs there.
const BUDGET_SIZE_BYTES_MAX: u64 = 4 << 30;

/// The budget for this machine. Where nothing can be learned of its memory, it is the engine's default.
pub(crate) fn default_budget() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|file| parse_limit(&read(&file)?));
    let total = read(Path::new("/proc/meminfo")).and_then(|text| parse_total(&text));
    limits.chain(total).min().map_or(partition::MEMORY_BUDGET_SIZE_BYTES, budget_of)
}

/// The budget of a process that may use so much memory.
fn budget_of(memory: u64) -> u64 {
    (memory / BUDGET_DIVISOR).clamp(partition::MEMORY_BUDGET_SIZE_BYTES_MIN, BUDGET_SIZE_BYTES_MAX)
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn parse_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Where limits of the control groups stand that `/proc/self/cgroup` names, and of those around them, for
/// both hierarchies there are. Inside a container only the outermost folders are there.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let folders = Path::new(path).ancestors();
        files.extend(
            folders.map(|folder| Path::new(root).join(folder.strip_prefix("/").unwrap_or(folder)).join(name)),
        );
    }
    files
}

/// A limit in bytes; `None`: there is none.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_within_bounds() {
        for (memory, budget) in [
            (0, 64 << 20),
            (128 << 20, 64 << 20),
            (512 << 20, 128 << 20),
            (4 << 30, 1 << 30),
            (16 << 30, 4 << 30),
            (u64::MAX, 4 << 30),
        ] {
            assert_eq!(budget_of(memory), budget, "{memory}");
        }
        assert!((64 << 20..=4 << 30).contains(&default_budget()));
    }

    #[test]
    fn the_machine_and_its_limits_are_read() {
        assert_eq!(parse_total("MemFree: 1 kB\nMemTotal:       16384 kB\n"), Some(16 << 20));
        assert_eq!(parse_total("MemTotal: many kB\n"), None);
        assert_eq!(parse_total(""), None);
        assert_eq!((parse_limit("536870912\n"), parse_limit("max\n")), (Some(512 << 20), None));
        let files = |groups: &str| -> Vec<String> {
            limit_files(groups).iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(
            files("0::/system.slice/larimar.service\n"),
            [
                "/sys/fs/cgroup/system.slice/larimar.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            files("9:cpu,memory:/docker\n8:pids:/\nnonsense\n"),
            [
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
    }
}
