//! The published limits of the Queue service.

use std::time::Duration;

/// Bytes of a message's text in UTF-8.
pub const MESSAGE_SIZE_BYTES_MAX: usize = 64 * 1024;

/// Messages that one request can get or peek.
pub const MESSAGES_TAKEN_MAX: usize = 32;

/// How long a message can be invisible.
pub const INVISIBLE_FOR_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long a get hides a message if the request does not say.
pub const INVISIBLE_FOR_DEFAULT: Duration = Duration::from_secs(30);

/// How long a message lives if the request does not say.
pub const LIVES_FOR_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Queues on a page of a list.
pub const PAGE_QUEUES_MAX: usize = 5000;

/// Bytes of a queue's metadata, names and values together.
pub const METADATA_SIZE_BYTES_MAX: usize = 8 * 1024;
