//! The access log: a line of JSON for each request, to a file or standard output, and the slow requests of
//! late.
//!
//! A worker formats a line into memory of its thread and copies it into a bounded buffer; a thread of its own
//! writes what gathers there (`writer`). What always holds: requests never wait for the log: what the buffer
//! has no place for, and what can't be written, is counted and left out.
#![allow(clippy::disallowed_methods)] // A log is a file of the system: appended, renamed, a device or none.

mod buffer;
mod line;
mod settings;
mod slow;
mod writer;

pub use settings::{AccessSettings, AccessTarget, Announce};
pub use slow::SlowRequests;

use base::Metrics;
use buffer::{LineBuffer, LineCounts};
use front_end::{Access, AccessLog};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use writer::WriterThread;

/// Bytes that a line begins with in memory; most are shorter.
const LINE_SIZE_BYTES: usize = 1 << 10;

/// Both logs of a server that runs.
#[derive(Debug)]
pub struct AccessLogs {
    recorder: Arc<Recorder>,
    writer: Option<WriterThread>,
}

/// Takes what the front end tells.
#[derive(Debug)]
struct Recorder {
    buffer: Option<Arc<LineBuffer>>,
    slow_from: Option<Duration>,
    slow: Arc<SlowRequests>,
    /// Notes go there, too.
    also: Option<Arc<dyn AccessLog>>,
}

thread_local! {
    static LINE: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(LINE_SIZE_BYTES));
}

/// Whether the file that lines go to can be written; it is made unless it is there.
pub fn check(settings: &AccessSettings) -> io::Result<()> {
    match &settings.target {
        Some(AccessTarget::File(path)) => writer::check(path),
        _ => Ok(()),
    }
}

impl AccessLogs {
    /// Starts the thread that writes, if lines go anywhere. `also` gets each note, too. An error says
    /// that there is no thread to be had.
    pub fn start(
        settings: &AccessSettings,
        metrics: &Metrics,
        announce: Announce,
        also: Option<Arc<dyn AccessLog>>,
    ) -> io::Result<Self> {
        let counts = LineCounts::new(metrics);
        let started = settings.target.clone().map(|target| {
            let buffer = Arc::new(LineBuffer::new(counts));
            let writer = WriterThread::start(buffer.clone(), target, settings.file_size_bytes_max, announce)?;
            Ok::<_, io::Error>((buffer, writer))
        });
        let (buffer, writer) = started.transpose()?.unzip();
        let slow = Arc::<SlowRequests>::default();
        let recorder = Arc::new(Recorder { buffer, slow_from: settings.slow_from, slow, also });
        Ok(AccessLogs { recorder, writer })
    }

    /// Who takes notes of requests; `None`: nobody wants to know.
    pub fn recorder(&self) -> Option<Arc<dyn AccessLog>> {
        let Recorder { buffer, slow_from, also, .. } = &*self.recorder;
        let is_wanted = buffer.is_some() || slow_from.is_some() || also.is_some();
        is_wanted.then(|| self.recorder.clone() as Arc<dyn AccessLog>)
    }

    /// The slow requests of late.
    pub fn slow(&self) -> Arc<SlowRequests> {
        self.recorder.slow.clone()
    }

    /// Has the file opened again: somebody has moved it.
    pub fn reopen(&self) {
        if let Some(writer) = &self.writer {
            writer.reopen();
        }
    }

    /// Writes what is left, for a short time at most.
    pub fn close(self) {
        if let Some(writer) = self.writer {
            writer.close();
        }
    }
}

impl AccessLog for Recorder {
    fn note(&self, access: &Access<'_>) {
        if let Some(also) = &self.also {
            also.note(access);
        }
        let is_slow = self.slow_from.is_some_and(|slow_from| access.phases.total >= slow_from);
        if self.buffer.is_none() && !is_slow {
            return;
        }
        LINE.with_borrow_mut(|bytes| {
            bytes.clear();
            line::put(bytes, access);
            if is_slow {
                self.slow.note(bytes);
            }
            bytes.push(b'\n');
            if let Some(buffer) = &self.buffer {
                buffer.push(bytes);
            }
        });
    }
}
