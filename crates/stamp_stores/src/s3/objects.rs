//! A bucket as a store of objects.
//!
//! What always holds: an object is put with `If-None-Match: *` and its length, in one request; the answer
//! to that is [`stamp::put_answer`] of its status, but for credentials that ended on the way, which prove
//! nothing about the object and are unknown.

use crate::s3::answers::{
    ERROR_SIZE_BYTES_MAX, delete_answer, error_code, is_expired, list_page, read_error, read_lost, shown,
};
use crate::s3::bucket::{Bucket, BucketRequest};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::Method;
use hyper::header::{CONTENT_RANGE, HeaderMap};
use stamp::{PutAnswer, put_answer};
use stamp_streams::{LIST_PAGE_NAMES_MAX, ListPage, ObjectStore, StoreError};
use std::sync::Arc;

/// Bytes of a page of a listing, at most: 1,000 names of 1,024 bytes, three letters each, and what is said of
/// them.
const LIST_SIZE_BYTES_MAX: usize = 8 << 20;

/// Objects of a bucket, below a prefix.
pub(crate) struct BucketObjects {
    bucket: Arc<Bucket>,
    /// Empty, or with a slash at its end.
    base: String,
}

impl BucketObjects {
    pub(crate) fn new(bucket: Arc<Bucket>, prefix: &str) -> Self {
        let base = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        BucketObjects { bucket, base }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.base)
    }

    /// The code of an unsuccessful answer.
    fn code(&self, status: u16, body: &[u8]) -> String {
        let code = error_code(body);
        self.bucket.note(&code);
        tracing::debug!(status, code, bucket = self.bucket.name, "the object store refuses");
        code
    }
}

#[async_trait]
impl ObjectStore for BucketObjects {
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer {
        let key = self.key(name);
        let headers = [("if-none-match", "*")];
        let request =
            BucketRequest { method: Method::PUT, key: &key, query: &[], headers: &headers, body: content };
        let answer = match self.bucket.open_answer(request).await {
            Ok(answer) => answer,
            Err(lost) => {
                tracing::debug!(what = lost.what(), "no answer to a creation");
                return put_answer(None);
            }
        };
        let outcome = put_answer(Some(answer.status));
        // The head decides. The body is read so that the connection can be used again, and for its code.
        let body = answer.body.whole(ERROR_SIZE_BYTES_MAX).await;
        if matches!(outcome, PutAnswer::Created | PutAnswer::Refused) {
            return outcome;
        }
        let body = body.ok().flatten().unwrap_or_default();
        let code = self.code(answer.status, &body);
        if is_expired(&code) || code == "RequestTimeTooSkewed" {
            return PutAnswer::Unknown;
        }
        if let PutAnswer::Failed { status } = outcome {
            tracing::warn!(bucket = self.bucket.name, "a creation fails: {}", shown(status, &code));
        }
        outcome
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let key = self.key(name);
        // A range has at least one byte.
        let last = offset.saturating_add(length.max(1) - 1);
        let range = format!("bytes={offset}-{last}");
        let headers = [("range", range.as_str())];
        let body = Bytes::new();
        let request = BucketRequest { method: Method::GET, key: &key, query: &[], headers: &headers, body };
        let answer = self.bucket.open_answer(request).await.map_err(|lost| read_lost(&lost))?;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (status, skipped) = (answer.status, if answer.status == 200 { offset } else { 0 });
        if status == 206 {
            check_range(&answer.headers, offset)?;
        }
        let size_max = match status {
            200 | 206 => size(skipped.saturating_add(length.max(1))),
            _ => ERROR_SIZE_BYTES_MAX,
        };
        let whole = answer.body.whole(size_max).await;
        let whole = whole.map_err(|error| StoreError::Unavailable(error.what))?;
        let Some(whole) = whole else {
            return Err(StoreError::Refused("it answers a range with more than the range".to_owned()));
        };
        match status {
            200 | 206 => {
                let from = size(skipped).min(whole.len());
                let to = from.saturating_add(size(length)).min(whole.len());
                Ok(whole.slice(from..to))
            }
            // The object ends before.
            416 => Ok(Bytes::new()),
            _ => Err(read_error(status, &self.code(status, &whole))),
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        let (prefix, after) = (self.key(prefix), after.map(|after| self.key(after)));
        let count = LIST_PAGE_NAMES_MAX.to_string();
        let mut query = vec![
            ("list-type", "2"),
            ("encoding-type", "url"),
            ("max-keys", count.as_str()),
            ("prefix", prefix.as_str()),
        ];
        query.extend(after.as_deref().map(|after| ("start-after", after)));
        let body = Bytes::new();
        let request = BucketRequest { method: Method::GET, key: "", query: &query, headers: &[], body };
        let answer = self.bucket.send(request, LIST_SIZE_BYTES_MAX).await.map_err(|lost| read_lost(&lost))?;
        if answer.status != 200 {
            return Err(match read_error(answer.status, &self.code(answer.status, &answer.body)) {
                StoreError::NotThere => StoreError::Refused(shown(answer.status, "NoSuchKey")),
                error => error,
            });
        }
        list_page(&answer.body, &self.base)
            .map_err(|why| StoreError::Refused(format!("a listing can't be read: {why}")))
    }

    async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let (key, body) = (self.key(name), Bytes::new());
        let request = BucketRequest { method: Method::DELETE, key: &key, query: &[], headers: &[], body };
        match self.bucket.open_answer(request).await {
            Ok(answer) => {
                let body = answer.body.whole(ERROR_SIZE_BYTES_MAX).await.ok().flatten().unwrap_or_default();
                let is_done = matches!(answer.status, 200 | 204);
                let code = if is_done { String::new() } else { self.code(answer.status, &body) };
                delete_answer(answer.status, &code)
            }
            Err(crate::exchange::Lost::Unsent(what)) => Err(StoreError::Unavailable(what)),
            Err(crate::exchange::Lost::MayBeDone(what)) => Err(StoreError::UnknownOutcome(what)),
        }
    }
}

/// Whether a partial answer begins where it was asked to.
fn check_range(headers: &HeaderMap, offset: u64) -> Result<(), StoreError> {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = range.strip_prefix("bytes ").and_then(|range| range.split('-').next()?.parse::<u64>().ok());
    if first == Some(offset) {
        return Ok(());
    }
    Err(StoreError::Unavailable(format!("it answers another range than the one from {offset} on")))
}
