//! What one front end takes on at most, before a request costs anything.

use std::time::Duration;

/// The bounds of a front end. All are settings; the defaults suit one machine.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; more wait in the listener's backlog.
    pub connections_max: usize,
    /// Requests at once; more get 503 `ServerBusy`.
    pub requests_in_flight_max: usize,
    /// Bytes of a request's header section.
    pub header_size_bytes_max: usize,
    /// Bytes of a request's body. The protocol allows 4 MiB for a batch.
    pub body_size_bytes_max: usize,
    /// Bytes of all larger bodies that are being read or worked on at once; more wait.
    pub bodies_size_bytes_max: usize,
    /// Bytes of all larger answers in memory that clients are taking at once; a read whose answer has no
    /// memory gets 503 `ServerBusy`.
    pub answers_size_bytes_max: usize,
    /// How long a client may take to send a request's headers, and how long a connection may be without
    /// requests.
    pub header_read_for_max: Duration,
    /// How long a request may take, body included; a client may ask for less.
    pub request_for_max: Duration,
    /// How long a client may take nothing of an answer, or send nothing of a request that has begun.
    pub reply_taken_for_max: Duration,
    /// How long requests in flight may go on after a stop.
    pub drain_for_max: Duration,
}

/// Bodies up to this size do not count towards [`Limits::bodies_size_bytes_max`], nor answers towards
/// [`Limits::answers_size_bytes_max`].
pub(crate) const SMALL_BODY_SIZE_BYTES_MAX: usize = 64 * 1024;

impl Limits {
    /// Room for large bodies: there is always some for one of the largest size, or it would wait for ever.
    pub(crate) fn all_bodies_size_bytes_max(&self) -> usize {
        self.bodies_size_bytes_max.max(self.body_size_bytes_max)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 4096,
            requests_in_flight_max: 4096,
            header_size_bytes_max: 64 * 1024,
            body_size_bytes_max: 4 * 1024 * 1024,
            bodies_size_bytes_max: 256 * 1024 * 1024,
            answers_size_bytes_max: 512 * 1024 * 1024,
            header_read_for_max: Duration::from_secs(120),
            request_for_max: Duration::from_secs(30),
            // The service ends reads that take longer than two minutes for each MiB.
            reply_taken_for_max: Duration::from_secs(10 * 60),
            drain_for_max: Duration::from_secs(10),
        }
    }
}
