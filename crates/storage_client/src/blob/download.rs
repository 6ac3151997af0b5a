//! A blob, or a range of it, as its bytes come.
//!
//! What always holds: all bytes are of one version, because a download that broke goes on with the ETag of
//! its first answer; each break that brings no byte counts against the retry policy, so it ends.

use super::blob_client::BlobClient;
use super::properties::{BlobProperties, read_properties};
use crate::client::{OpenAnswer, Operation};
use crate::error::{Error, ErrorKind, Failure};
use crate::retry_observer::RepeatedAttempt;
use crate::settings::ANSWER_SIZE_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use http_client::{AnswerBody, BrokenBody};
use hyper::{Method, StatusCode};
use retry::{Attempt, Decision};
use std::ops::Range;
use std::time::Duration;

const NAME: &str = "get blob";
/// Breaks of one download that are observed.
const BREAKS_OBSERVED_MAX: usize = 64;

/// Bytes of a blob that are coming.
pub struct Download {
    blob: BlobClient,
    properties: BlobProperties,
    /// Where the next byte is, and the end of what is read.
    next: u64,
    end: u64,
    body: Option<AnswerBody>,
    /// The breaks since the last byte.
    attempt: Attempt,
    broken_since: Duration,
    /// Those after which it went on, if they are observed, the first [`BREAKS_OBSERVED_MAX`].
    repeated: Vec<RepeatedAttempt>,
}

const READ: retry::Request = retry::Request { is_idempotent: true, has_secondary: false };

impl BlobClient {
    /// Starts to read the blob, all of it or from `range.start` up to `range.end`; the bytes come as
    /// [`Download::part`] is called. A download that breaks goes on where it broke, in the same version.
    pub async fn download(&self, range: Option<Range<u64>>) -> Result<Download, Error> {
        Download::start(self.clone(), range).await
    }

    /// Reads the blob, or a range of it, into memory: at most 64 MiB.
    pub async fn read(&self, range: Option<Range<u64>>) -> Result<Bytes, Error> {
        let mut download = self.download(range).await?;
        let mut whole = BytesMut::new();
        while let Some(part) = download.part().await? {
            if whole.len() + part.len() > ANSWER_SIZE_BYTES_MAX {
                let why = format!("it is longer than {ANSWER_SIZE_BYTES_MAX} bytes: download it in parts");
                return Err(Error::invalid("read blob", why));
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole.freeze())
    }
}

impl Download {
    pub(crate) async fn start(blob: BlobClient, range: Option<Range<u64>>) -> Result<Self, Error> {
        let operation = operation(&blob, range.as_ref(), None)?;
        if range.as_ref().is_some_and(Range::is_empty) {
            let properties = blob.properties().await?;
            return Ok(Download::of(blob, properties, 0..0, None));
        }
        let answer = blob.client.open(&operation).await?;
        let properties = read_properties(&answer.headers);
        let Some(properties) = properties else { return Err(Error::unreadable(NAME, "it has no size")) };
        let range = match range {
            Some(range) if answer.status == StatusCode::PARTIAL_CONTENT => {
                range.start..range.end.min(properties.size_bytes)
            }
            Some(_) => return Err(Error::unreadable(NAME, "it is the whole blob, not the range")),
            None => 0..properties.size_bytes,
        };
        Ok(Download::of(blob, properties, range, Some(answer.body)))
    }

    fn of(blob: BlobClient, properties: BlobProperties, range: Range<u64>, body: Option<AnswerBody>) -> Self {
        let (next, end) = (range.start, range.end);
        let attempt = Attempt::first(READ);
        let (broken_since, repeated) = (Duration::ZERO, Vec::new());
        Download { blob, properties, next, end, body, attempt, broken_since, repeated }
    }

    /// The blob's properties when the download began.
    pub fn properties(&self) -> &BlobProperties {
        &self.properties
    }

    /// The next bytes; none at the end.
    pub async fn part(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.next >= self.end {
                // Reads the end of the answer, so that the connection can be used again.
                if let Some(mut body) = self.body.take() {
                    let _ = body.part().await;
                }
                self.blob.client.settings.observe(NAME, &std::mem::take(&mut self.repeated), Ok(()));
                return Ok(None);
            }
            let broken = match &mut self.body {
                None => {
                    self.body = Some(self.resume().await?);
                    continue;
                }
                Some(body) => match body.part().await {
                    Ok(Some(part)) => {
                        self.next += part.len() as u64;
                        self.attempt = Attempt::first(READ);
                        if self.next > self.end {
                            return Err(Error::unreadable(NAME, "it has more bytes than it says"));
                        }
                        return Ok(Some(part));
                    }
                    Ok(None) => BrokenBody {
                        outcome: retry::Outcome::Broken,
                        what: "the answer ends before the blob does".to_owned(),
                    },
                    Err(broken) => broken,
                },
            };
            self.body = None;
            self.wait(broken).await?;
        }
    }

    /// Waits before the download goes on, unless it has broken too often.
    async fn wait(&mut self, broken: BrokenBody) -> Result<(), Error> {
        let client = &self.blob.client;
        let now = client.surroundings.clock.monotonic();
        if self.attempt.number == 1 {
            self.broken_since = now;
        }
        let elapsed = now.saturating_sub(self.broken_since);
        let draw = client.surroundings.random.next_u64();
        match client.settings.retry.decide(&self.attempt, &broken.outcome, elapsed, draw) {
            Decision::Retry { after, next } => {
                if client.settings.observer.is_some() && self.repeated.len() < BREAKS_OBSERVED_MAX {
                    self.repeated.push(RepeatedAttempt::of(Failure::of(ErrorKind::Connection, NAME)));
                }
                client.surroundings.clock.sleep(after).await;
                self.attempt = next;
                Ok(())
            }
            Decision::GiveUp(reason) => {
                let error = Error::new(Failure {
                    message: broken.what,
                    attempts: self.attempt.number,
                    gave_up: Some(reason),
                    ..Failure::of(ErrorKind::Connection, NAME)
                });
                client.settings.observe(NAME, &self.repeated, Err(&error));
                Err(error)
            }
        }
    }

    async fn resume(&self) -> Result<AnswerBody, Error> {
        let range = self.next..self.end;
        let operation = operation(&self.blob, Some(&range), Some(&self.properties.etag))?;
        let OpenAnswer { status, body, .. } = self.blob.client.open(&operation).await?;
        if status != StatusCode::PARTIAL_CONTENT {
            return Err(Error::unreadable(NAME, "it is the whole blob, not the range"));
        }
        Ok(body)
    }
}

fn operation(blob: &BlobClient, range: Option<&Range<u64>>, etag: Option<&str>) -> Result<Operation, Error> {
    let mut operation = blob.operation(NAME, Method::GET);
    if let Some(range) = range.filter(|range| !range.is_empty()) {
        let header = if range.end == u64::MAX {
            format!("bytes={}-", range.start)
        } else {
            format!("bytes={}-{}", range.start, range.end - 1)
        };
        operation = operation.header("x-ms-range", &header)?;
    }
    match etag {
        Some(etag) => operation.header("if-match", etag),
        None => Ok(operation),
    }
}
