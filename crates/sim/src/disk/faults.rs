//! How the simulated disk misbehaves. Each fault is off by default; a test sets those that it needs.

/// How often the disk misbehaves, each as "one in"; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A sync fails.
    pub sync_fails_one_in: u64,
    /// An operation takes some milliseconds of virtual time.
    pub slow_one_in: u64,
    /// Making a file finds no file descriptor.
    pub create_refused_one_in: u64,
    /// Bytes that all files may hold together; 0 is no limit.
    pub capacity_bytes: u64,
    /// From this operation on there is no space for more bytes; 0: never.
    pub full_at_operation: u64,
    /// The disk dies at the operation with this number (see
    /// [`SimDisk::operation_count`](crate::SimDisk::operation_count)); 0 is never.
    pub crash_at_operation: u64,
    /// A fault planted on purpose: syncs of paths with this prefix do nothing and report success.
    pub skip_sync_of: Option<&'static str>,
}
