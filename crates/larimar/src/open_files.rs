//! How many files and connections the process may have open, and how they are shared out.
//!
//! What always holds: connections leave the stream layer half of the descriptors. Each extent keeps one, and
//! a service that took the last for its connections would stop the writes of all.

/// Services that listen.
const SERVICE_COUNT: u64 = 3;
/// Connections of all services together get this part of the descriptors.
const CONNECTIONS_DIVISOR: u64 = 2;

/// Connections that each service takes at once: as many as it wants, if the process may open enough files.
pub(crate) fn choose_connections_max(open_files_max: u64, wanted: usize) -> usize {
    let share = open_files_max / CONNECTIONS_DIVISOR / SERVICE_COUNT;
    usize::try_from(share).unwrap_or(usize::MAX).clamp(1, wanted.max(1))
}

/// What is said behind a failure whose text has the operating system's words for a process that may open no
/// more files. Most layers hand up no more than these words.
pub(crate) fn advice(failure: &str) -> &'static str {
    let words = std::io::Error::from(rustix::io::Errno::MFILE).to_string();
    if failure.contains(&words) { "; let the process open more of them (ulimit -n)" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_of_descriptors_is_advised_about() {
        let error = std::io::Error::from_raw_os_error(24);
        assert!(advice(&format!("reading extents/7 failed: {error}")).contains("ulimit -n"));
        assert_eq!(advice("reading extents/7 failed: Permission denied (os error 13)"), "");
    }

    #[test]
    fn connections_leave_half_of_the_descriptors() {
        let cases = [
            (1024, 4096, 170),
            (20_000, 4096, 3333),
            (24_576, 4096, 4096),
            (u64::MAX, 4096, 4096),
            (0, 4096, 1),
            (1024, 10, 10),
        ];
        for (open_files_max, wanted, expected) in cases {
            assert_eq!(choose_connections_max(open_files_max, wanted), expected, "{open_files_max} files");
        }
    }
}
