//! The allocator of programs of ours, and for how long it keeps memory that nobody uses.
//!
//! What always holds: only programs use it, and no layer below them but in tests; what is unsafe are two
//! calls of C functions, and the allocator of tests that counts (`counted.rs`).
//!
//! Why a crate: mimalloc takes the setting from the environment, which a program can't change for itself, or
//! from a C function, and everywhere else in the workspace unsafe code is forbidden.
//!
//! Why another span than mimalloc's second: all that is free when it is over goes back to the system, also
//! what was in use a millisecond before. A load of small blobs turns over 100 MiB a second (rows in memory,
//! buffers of flushes and merges), so each second most of that went back and was touched anew, at 10,000 page
//! faults a second and a tenth of all processor time. A few times as long it is mostly in use again.
//!
//! mimalloc looks at what is over its time only when a thread frees a page of its own, and a program that
//! rests does not. So a program calls [`release_free_memory`] from time to time, and more often while it has
//! more memory than it should have.

mod counted;

use std::time::Duration;

pub use counted::{CountedAllocator, allocated_bytes, peak_allocated_bytes, reset_peak};
pub use mimalloc::MiMalloc as Allocator;

/// Memory that nobody uses goes back to the system after about so long.
pub const FREE_MEMORY_KEPT_FOR: Duration = Duration::from_secs(3);

/// mimalloc's number of the option, which its bindings don't name (`mi_option_purge_delay` in its header).
const PURGE_DELAY_MS: libmimalloc_sys::mi_option_t = 15;
/// How its environment variable is called. Who sets it knows better.
const PURGE_DELAY_VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

/// Has the allocator keep free memory for [`FREE_MEMORY_KEPT_FOR`], unless the environment says for how long.
/// To be called at the start of `main`, before there are other threads.
pub fn keep_free_memory() {
    if std::env::var_os(PURGE_DELAY_VARIABLE).is_none() {
        set(PURGE_DELAY_MS, FREE_MEMORY_KEPT_FOR.as_millis() as std::ffi::c_long);
    }
}

/// Which free memory goes back to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// What nobody has used for [`FREE_MEMORY_KEPT_FOR`].
    Expired,
    /// All but what threads keep for their next small allocations.
    All,
}

/// Returns free memory of the whole process to the system.
#[expect(unsafe_code, reason = "a C function")]
pub fn release_free_memory(release: Release) {
    // SAFETY: it may be called at any time by any thread: of this thread's memory and of what all threads
    // share it frees what is not in use.
    unsafe { libmimalloc_sys::mi_collect(release == Release::All) }
}

#[expect(unsafe_code, reason = "a C function")]
fn set(option: libmimalloc_sys::mi_option_t, value: std::ffi::c_long) {
    // SAFETY: it stores a number in a table that has this option. Another thread that allocates meanwhile may
    // read the old one or the new one, which are both fine.
    unsafe { libmimalloc_sys::mi_option_set(option, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    #[expect(unsafe_code, reason = "a C function")]
    fn get(option: libmimalloc_sys::mi_option_t) -> std::ffi::c_long {
        // SAFETY: it reads a number of a table that has this option.
        unsafe { libmimalloc_sys::mi_option_get(option) }
    }

    /// Free memory stays resident for as long as nothing happens: a compaction left hundreds of mebibytes
    /// behind.
    #[test]
    fn free_memory_is_released_when_it_is_asked_for() {
        const SIZE_BYTES: usize = 256 << 20;
        let resident_bytes = || {
            let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
            let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
            pages.expect("a number") * 4096
        };
        keep_free_memory();
        let parts: Vec<Vec<u8>> = (0..SIZE_BYTES >> 20).map(|_| vec![1; 1 << 20]).collect();
        let in_use = resident_bytes();
        assert!(in_use > SIZE_BYTES, "{in_use} bytes are resident");
        drop(parts);
        release_free_memory(Release::Expired);
        let kept = resident_bytes();
        assert!(kept > SIZE_BYTES / 2, "{kept} bytes are resident, and none of them is old");
        release_free_memory(Release::All);
        let released = resident_bytes();
        assert!(released < SIZE_BYTES / 4, "{released} bytes are resident");
    }

    /// A number that means another option in the next mimalloc would set that one: its default tells which
    /// one it is.
    #[test]
    fn the_option_is_the_delay_and_is_set() {
        const DEFAULT_MS: std::ffi::c_long = 1000;
        assert_eq!(get(PURGE_DELAY_MS), DEFAULT_MS, "no option beside it has this default");
        for other in [PURGE_DELAY_MS - 1, PURGE_DELAY_MS + 1] {
            assert_ne!(get(other), DEFAULT_MS);
        }
        keep_free_memory();
        assert_eq!(get(PURGE_DELAY_MS), 3000);
    }
}
