//! What the admin side answers, without sockets.
//!
//! What always holds: an answer changes nothing but the metrics that are sampled for it, and shows no secret.

use super::readiness::Readiness;
use super::route::{Answer, Refused, Route};
use super::{exposition, sampled};
use base::Metrics;
use std::sync::Arc;

/// What the admin side answers from.
pub(crate) struct Admin {
    readiness: Arc<Readiness>,
    metrics: Metrics,
    version: &'static str,
}

impl Admin {
    /// Answers from these.
    pub(crate) fn new(readiness: Arc<Readiness>, metrics: Metrics, version: &'static str) -> Self {
        Admin { readiness, metrics, version }
    }

    /// Answers a request of this verb and path; `host` is its `Host` header, `crosses` whether a page of
    /// another origin sent it.
    pub(super) fn answer(&self, method: &str, path: &str, host: Option<&str>, crosses: bool) -> Answer {
        match Route::find(method, path, host, crosses) {
            Ok(Route::Health) => Answer::text(200, "ok\n"),
            Ok(Route::Ready) => match self.readiness.reason() {
                None => Answer::text(200, "ready\n"),
                Some(reason) => Answer::text(503, format!("{reason}\n")),
            },
            Ok(Route::Version) => {
                Answer::json(200, serde_json::json!({ "version": self.version }).to_string() + "\n")
            }
            Ok(Route::Metrics) => self.metrics(),
            Err(refused) => refused.answer(),
        }
    }

    fn metrics(&self) -> Answer {
        sampled::sample(&self.metrics, &self.readiness, self.version);
        match exposition::text_of(&self.metrics.read()) {
            Ok(text) => Answer {
                status: 200,
                content_type: exposition::CONTENT_TYPE,
                body: text.into(),
                allows: false,
            },
            Err(error) => Refused::Failed(error).answer(),
        }
    }
}
