//! The body of an answer, read in parts.
//!
//! What always holds: once its end was seen, its connection serves the next request; a part that does not
//! come in time is an error; nothing but the part at hand is kept.

use crate::pool::{Lease, with_causes};
use crate::time_out::within;
use base::Clock;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use retry::Outcome;
use std::sync::Arc;
use std::time::Duration;

/// A body, and the connection that it comes on.
pub struct AnswerBody {
    incoming: Incoming,
    lease: Option<Lease>,
    clock: Arc<dyn Clock>,
    part_for: Duration,
}

/// A body that ended too early.
#[derive(Debug)]
pub struct BrokenBody {
    /// What may have become of the request.
    pub outcome: Outcome,
    /// What is wrong, for people.
    pub what: String,
}

impl AnswerBody {
    /// A body that comes on that connection; each part within `part_for`.
    pub fn new(incoming: Incoming, lease: Lease, clock: Arc<dyn Clock>, part_for: Duration) -> Self {
        let mut body = AnswerBody { incoming, lease: Some(lease), clock, part_for };
        if body.incoming.is_end_stream() {
            body.end();
        }
        body
    }

    /// The next part; none at the end.
    pub async fn part(&mut self) -> Result<Option<Bytes>, BrokenBody> {
        loop {
            if self.lease.is_none() {
                return Ok(None);
            }
            match within(&*self.clock, self.part_for, self.incoming.frame()).await {
                None => {
                    self.lease = None;
                    let what = format!("nothing more of the answer in {} s", self.part_for.as_secs_f32());
                    return Err(BrokenBody { outcome: Outcome::TimedOut, what });
                }
                Some(None) => self.end(),
                Some(Some(Ok(frame))) => {
                    let is_end = self.incoming.is_end_stream();
                    let data = frame.into_data();
                    if is_end {
                        self.end();
                    }
                    if let Ok(data) = data
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
                Some(Some(Err(error))) => {
                    self.lease = None;
                    let what = format!("the answer breaks off: {}", with_causes(&error));
                    return Err(BrokenBody { outcome: Outcome::Broken, what });
                }
            }
        }
    }

    /// All of it, at most `size_max` bytes; none is a longer one.
    pub async fn whole(mut self, size_max: usize) -> Result<Option<Bytes>, BrokenBody> {
        let Some(first) = self.part().await? else { return Ok(Some(Bytes::new())) };
        let Some(second) = self.part().await? else { return Ok((first.len() <= size_max).then_some(first)) };
        let mut whole = BytesMut::from(&first[..]);
        let mut next = Some(second);
        while let Some(part) = next {
            if whole.len() + part.len() > size_max {
                return Ok(None);
            }
            whole.extend_from_slice(&part);
            next = self.part().await?;
        }
        Ok(Some(whole.freeze()))
    }

    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.put_back();
        }
    }
}
