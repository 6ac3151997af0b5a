//! What the admin side answers, without sockets: which request is let in, and what comes of it.
//!
//! What always holds: what changes something needs a token that opens it, wherever the request comes from,
//! and is a line of the audit log; beyond this machine everything needs one. No answer but that of a rotation
//! shows a token.

use super::api::{Api, Call};
use super::aside::{Aside, NotDone};
use super::audit::Audit;
use super::readiness::Readiness;
use super::route::{Addressed, Answer, Endpoint, OwnNames, Refused, Route};
use super::token_store::TokenStore;
use super::tokens::Role;
use super::tries::{Tries, WAITING_COUNT_MAX};
use super::{exposition, sampled};
use base::{Clock, Metrics};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// What the admin side answers from.
pub(crate) struct Admin {
    readiness: Arc<Readiness>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    version: &'static str,
    names: OwnNames,
    tokens: OnceLock<TokenStore>,
    api: OnceLock<Api>,
    tries: Tried,
    aside: Aside,
    audit: Audit,
}

/// Requests that were refused of late.
struct Tried {
    wrong: Mutex<Tries>,
    too_low: Mutex<Tries>,
    /// Held by those that wait for their refusal.
    waiting: Semaphore,
}

/// Figures of a disk that does not answer for so long are left as they were.
const DISK_FIGURES_FOR_MAX: Duration = Duration::from_secs(1);

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// What stands behind `?`, if anything does.
    pub(super) query: &'a str,
    pub(super) addressed: Addressed<'a>,
    /// What stands behind `Bearer`.
    pub(super) token: Option<&'a str>,
    pub(super) peer: SocketAddr,
}

/// A request that was let in.
#[derive(Clone, Debug)]
pub(super) struct Admitted {
    pub(super) endpoint: &'static Endpoint,
    pub(super) role: Option<Role>,
    peer: SocketAddr,
    query: Box<str>,
}

impl Admin {
    /// Answers from these, to requests for these names.
    pub(super) fn new(
        readiness: Arc<Readiness>,
        metrics: Metrics,
        clock: Arc<dyn Clock>,
        version: &'static str,
        names: OwnNames,
    ) -> Self {
        Admin {
            readiness,
            metrics,
            clock,
            version,
            names,
            tokens: OnceLock::new(),
            api: OnceLock::new(),
            tries: Tried {
                wrong: Mutex::default(),
                too_low: Mutex::default(),
                waiting: Semaphore::new(WAITING_COUNT_MAX),
            },
            aside: Aside::default(),
            audit: Audit::default(),
        }
    }

    /// From now on these tokens are taken.
    pub(crate) fn note_tokens(&self, tokens: TokenStore) {
        // The first ones hold.
        let _ = self.tokens.set(tokens);
    }

    /// Whether tokens are taken.
    pub(crate) fn tokens(&self) -> Option<&TokenStore> {
        self.tokens.get()
    }

    /// From now on the API is answered.
    pub(crate) fn note_serving(&self, api: Api) {
        let _ = self.api.set(api);
    }

    /// Whether a request is let in. One with a wrong token waits for its refusal.
    pub(super) async fn admit(&self, head: Head<'_>) -> Result<Admitted, Answer> {
        let refused = |refused: Refused| refused.answer(head.path);
        self.names.check(head.addressed).map_err(refused)?;
        let endpoint = Endpoint::find(head.method, head.path).map_err(refused)?;
        let needed = endpoint.role.or(self.names.given.is_some().then_some(Role::Read));
        let admitted = |role| Admitted { endpoint, role, peer: head.peer, query: head.query.into() };
        let Some(needed) = needed else { return Ok(admitted(None)) };
        let Some(tokens) = self.tokens.get() else {
            let why = "there are no tokens yet, or none could be made: the log says which";
            return Err(Answer::error(503, "not_ready", why));
        };
        let Some(token) = head.token else {
            let why = "give a token (Authorization: Bearer TOKEN), or use larimar admin, which finds it";
            return Err(Answer::error(401, "token_missing", why));
        };
        match tokens.role_of(token) {
            None => Err(self.slow_down(head).await),
            Some(role) if role < needed => {
                let (_, count) = self.tries.too_low.lock().note_wrong(self.clock.monotonic());
                let what = format!("{} {}", endpoint.method, endpoint.path);
                self.audit.note_low_role((role, needed), head.peer, &what, count);
                let why =
                    format!("this needs a token of role {}, this one has {}", needed.name(), role.name());
                Err(Answer::error(403, "role_too_low", &why))
            }
            Some(role) => Ok(admitted(Some(role))),
        }
    }

    /// The answer to a wrong token, after a while.
    async fn slow_down(&self, head: Head<'_>) -> Answer {
        let (wait, count) = self.tries.wrong.lock().note_wrong(self.clock.monotonic());
        self.audit.note_wrong_token(head.peer, &format!("{} {}", head.method, head.path), count);
        let Ok(_waiting) = self.tries.waiting.try_acquire() else {
            return Answer::error(429, "too_many_tries", "too many wrong tokens at the same time");
        };
        self.clock.sleep(wait).await;
        Answer::error(401, "token_wrong", "this token opens nothing here")
    }

    /// Answers a request that was let in.
    pub(super) async fn answer(self: &Arc<Self>, admitted: Admitted, body: &[u8]) -> Answer {
        match admitted.endpoint.route {
            Route::Health => Answer::text(200, "ok\n"),
            Route::Ready => match (self.readiness.reason(), self.readiness.limit()) {
                (Some(reason), _) => Answer::text(503, format!("{reason}\n")),
                (None, Some(limit)) => Answer::text(200, format!("ready, but {limit}\n")),
                (None, None) => Answer::text(200, "ready\n"),
            },
            Route::Version => Answer::json(200, &serde_json::json!({ "version": self.version })),
            Route::Metrics => self.metrics().await,
            route if route.may_wait_for_disk() => {
                let (admin, body) = (self.clone(), body.to_vec());
                let work = async move { admin.answer_of_api(&admitted, &body).await };
                self.aside.run(work).await.unwrap_or_else(NotDone::answer)
            }
            _ => self.answer_of_api(&admitted, body).await,
        }
    }

    async fn answer_of_api(&self, admitted: &Admitted, body: &[u8]) -> Answer {
        let Admitted { endpoint, role, peer, query } = admitted;
        let (role, peer) = (*role, *peer);
        let (Some(api), Some(tokens)) = (self.api.get(), self.tokens.get()) else {
            return Answer::error(503, "not_ready", "starting: the data folder is being read");
        };
        let (readiness, metrics) = (&*self.readiness, &self.metrics);
        let call = Call { body, query, readiness, metrics, tokens, version: self.version };
        let what = format!("{} {}", endpoint.method, endpoint.path);
        // Before it: whoever asked may be gone when it ends, and this with it.
        if let Some(role) = role.filter(|_| endpoint.method != "GET") {
            self.audit.note_change(role, peer, &what, "begins");
        }
        let (answer, words) = api.answer(endpoint.route, call).await;
        if let (Some(role), Some(words)) = (role, words) {
            self.audit.note_change(role, peer, &what, &words);
        }
        answer
    }

    async fn metrics(&self) -> Answer {
        if let Some(layers) = self.readiness.layers() {
            let into = self.metrics.clone();
            let sampled = self.aside.run(async move { sampled::sample_disk(&into, &layers).await });
            // Else the figures from before are shown.
            let _ = tokio::time::timeout(DISK_FIGURES_FOR_MAX, sampled).await;
        }
        sampled::sample(&self.metrics, &self.readiness, self.version);
        match exposition::text_of(&self.metrics.read()) {
            Ok(text) => Answer::new(200, exposition::CONTENT_TYPE, text),
            Err(error) => Refused::Failed(error).answer("/metrics"),
        }
    }
}
