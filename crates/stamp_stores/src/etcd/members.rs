//! The members of an etcd: which one is next, and one request to them.
//!
//! What always holds: what may have been done is sent again, to the next member, only if doing it twice is
//! doing it once; a refused token is renewed once a request, because the refusal proves that nothing was
//! done; a member that does not answer, or whose answer the caller does not wait for, is not the first any
//! more.

use crate::etcd::errors::{AskError, EtcdError, error_of};
use crate::etcd::login::Login;
use crate::exchange::{Answer, Lost, OpenAnswer, Outgoing, Service};
use bytes::Bytes;
use hyper::Method;
use hyper::header::AUTHORIZATION;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One member.
pub(crate) struct Member {
    /// For requests with short answers.
    pub(crate) reads: Service,
    /// For transactions, which may wait for a new leader.
    pub(crate) commits: Service,
    /// For answers that go on and on.
    pub(crate) watches: Service,
}

/// All of them.
pub(crate) struct Members {
    members: Vec<Member>,
    first: AtomicUsize,
    login: Login,
}

/// What is sent, and where to.
pub(crate) struct Ask<'a> {
    /// Such as `/v3/kv/txn`.
    pub(crate) path: &'a str,
    pub(crate) body: Bytes,
    pub(crate) size_max: usize,
    /// Whether doing it twice is doing it once.
    pub(crate) is_repeatable: bool,
}

/// A request to the member that was first; unless it is kept the next one is first then.
struct Turn<'a> {
    members: &'a Members,
    index: usize,
    is_kept: bool,
}

impl Turn<'_> {
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let next = (self.index + 1) % self.members.members.len();
            // Another request may have moved on already.
            let _ =
                self.members.first.compare_exchange(self.index, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl Members {
    /// At least one.
    pub(crate) fn new(members: Vec<Member>, login: Login) -> Self {
        debug_assert!(!members.is_empty());
        Members { members, first: AtomicUsize::new(0), login }
    }

    fn turn(&self) -> (Turn<'_>, &Member) {
        let index = self.first.load(Ordering::Relaxed) % self.members.len();
        (Turn { members: self, index, is_kept: false }, &self.members[index])
    }

    /// Sends a request to one member after the other, as long as that is allowed, and gives the body of the
    /// answer.
    pub(crate) async fn ask(&self, ask: &Ask<'_>) -> Result<Bytes, AskError> {
        let mut last = AskError::Unsent("no member was tried".to_owned());
        for _ in 0..self.members.len() {
            let (turn, member) = self.turn();
            let service = if ask.is_repeatable { &member.reads } else { &member.commits };
            let failed = match self.ask_member(service, ask).await {
                Ok(body) => {
                    turn.keep();
                    return Ok(body);
                }
                Err(failed) => failed,
            };
            match &failed {
                AskError::Unsent(_) => {}
                AskError::MayBeDone(_) if ask.is_repeatable => {}
                AskError::MayBeDone(_) => return Err(failed),
                AskError::Nothing(_) => {
                    turn.keep();
                    return Err(failed);
                }
            }
            last = failed;
        }
        Err(last)
    }

    /// One member, and once more with a new token if it refuses the one that was sent.
    async fn ask_member(&self, service: &Service, ask: &Ask<'_>) -> Result<Bytes, AskError> {
        for is_last in [false, true] {
            let (number, outgoing) = self.outgoing(service, ask.path, ask.body.clone()).await?;
            let answer = service.send(outgoing, ask.size_max).await;
            let Answer { status, body, .. } = answer.map_err(|lost| match lost {
                Lost::Unsent(what) => AskError::Unsent(what),
                Lost::MayBeDone(what) => AskError::MayBeDone(what),
            })?;
            if status == 200 {
                return Ok(body);
            }
            match error_of(status, &body) {
                EtcdError::LogIn(_) if !is_last => self.login.renew(service, number).await?,
                EtcdError::Open(what) => return Err(AskError::MayBeDone(what)),
                error => return Err(AskError::Nothing(error)),
            }
        }
        Err(AskError::Unsent("no token was taken".to_owned()))
    }

    async fn outgoing(
        &self,
        service: &Service,
        path: &str,
        body: Bytes,
    ) -> Result<(u64, Outgoing), AskError> {
        let (number, token) = self.login.token(service).await?;
        let headers = token.map(|token| (AUTHORIZATION, token)).into_iter().collect();
        let target = format!("{}{path}", service.endpoint().path);
        Ok((number, Outgoing { method: Method::POST, target, headers, body }))
    }

    /// Sends a request whose answer goes on and on, to one member after the other.
    pub(crate) async fn open(&self, path: &str, body: &Bytes) -> Result<OpenAnswer, AskError> {
        let mut last = AskError::Unsent("no member was tried".to_owned());
        for _ in 0..self.members.len() {
            let (turn, member) = self.turn();
            match self.open_at(&member.watches, path, body).await {
                Ok(answer) => {
                    turn.keep();
                    return Ok(answer);
                }
                Err(failed) => last = failed,
            }
        }
        Err(last)
    }

    async fn open_at(&self, service: &Service, path: &str, body: &Bytes) -> Result<OpenAnswer, AskError> {
        /// Bytes of an answer with an error, at most.
        const ERROR_SIZE_BYTES_MAX: usize = 64 << 10;
        for is_last in [false, true] {
            let (number, outgoing) = self.outgoing(service, path, body.clone()).await?;
            let opened = service.open(outgoing).await;
            let answer = opened.map_err(|lost| AskError::MayBeDone(lost.what().to_owned()))?;
            if answer.status == 200 {
                return Ok(answer);
            }
            let status = answer.status;
            let body = answer.body.whole(ERROR_SIZE_BYTES_MAX).await.ok().flatten().unwrap_or_default();
            match error_of(status, &body) {
                EtcdError::LogIn(_) if !is_last => self.login.renew(service, number).await?,
                error => return Err(AskError::Nothing(error)),
            }
        }
        Err(AskError::Unsent("no token was taken".to_owned()))
    }

    /// The member that is first does not help: the next one is first from now on.
    pub(crate) fn skip_first(&self) {
        drop(self.turn());
    }
}
