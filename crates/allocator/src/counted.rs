//! The allocator of tests that measure: it counts what is allocated, and the most that ever was.
//!
//! Why not what the system says is resident: that depends on when the allocator returns memory, and a test of
//! what the code holds must not. What always holds: the counts are those of all threads; memory comes from
//! [`crate::Allocator`].

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Counts what is allocated. For tests: threads that allocate at the same time slow each other.
pub struct CountedAllocator;

/// Bytes that are allocated now.
pub fn allocated_bytes() -> usize {
    ALLOCATED_BYTES.load(Ordering::Relaxed)
}

/// The most that ever were, since the start or [`reset_peak`].
pub fn peak_allocated_bytes() -> usize {
    PEAK_BYTES.load(Ordering::Relaxed)
}

/// From now on the peak is that of what comes.
pub fn reset_peak() {
    PEAK_BYTES.store(allocated_bytes(), Ordering::Relaxed);
}

fn note_allocated(size_bytes: usize) {
    let allocated = ALLOCATED_BYTES.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes;
    PEAK_BYTES.fetch_max(allocated, Ordering::Relaxed);
}

fn note_freed(size_bytes: usize) {
    ALLOCATED_BYTES.fetch_sub(size_bytes, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "the trait is")]
// SAFETY: each call is handed on as it is, and counting allocates nothing.
unsafe impl GlobalAlloc for CountedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_allocated(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { crate::Allocator.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note_allocated(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { crate::Allocator.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note_freed(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { crate::Allocator.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        note_allocated(size_bytes);
        note_freed(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { crate::Allocator.realloc(place, layout, size_bytes) }
    }
}
