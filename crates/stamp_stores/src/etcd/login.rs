//! User, password and the token that etcd gives for them.
//!
//! What always holds: neither password nor token is printed; at most one log-in is under way.

use crate::etcd::errors::{AskError, EtcdError, error_of};
use crate::etcd::json::login_answer;
use crate::exchange::{Outgoing, Service, hidden};
use crate::secret::Secret;
use hyper::Method;
use hyper::header::HeaderValue;
use parking_lot::Mutex;
use serde_json::json;

/// Bytes of the answer to a log-in, at most.
const ANSWER_SIZE_BYTES_MAX: usize = 64 << 10;

/// A user of etcd, and the token if there is one.
pub(crate) struct Login {
    user: Option<(String, Secret)>,
    /// With its number: who was refused with an older one takes the newer.
    token: Mutex<(u64, Option<HeaderValue>)>,
    turn: tokio::sync::Mutex<()>,
}

impl Login {
    pub(crate) fn new(user: Option<(String, Secret)>) -> Self {
        Login { user, token: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// The token and its number: none without a user.
    pub(crate) async fn token(&self, member: &Service) -> Result<(u64, Option<HeaderValue>), AskError> {
        let held = self.token.lock().clone();
        if self.user.is_none() || held.1.is_some() {
            return Ok(held);
        }
        self.renew(member, held.0).await?;
        Ok(self.token.lock().clone())
    }

    /// The token of that number is refused: logs in anew, unless another request did so already.
    pub(crate) async fn renew(&self, member: &Service, refused: u64) -> Result<(), AskError> {
        let Some((name, password)) = &self.user else {
            return Err(refusal("etcd wants a user, and none is set".to_owned()));
        };
        let _turn = self.turn.lock().await;
        if self.token.lock().0 != refused {
            return Ok(());
        }
        let body = json!({ "name": name, "password": password.reveal() }).to_string();
        let target = format!("{}/v3/auth/authenticate", member.endpoint().path);
        let outgoing = Outgoing { method: Method::POST, target, headers: Vec::new(), body: body.into() };
        let answer = member.send(outgoing, ANSWER_SIZE_BYTES_MAX).await;
        let answer =
            answer.map_err(|lost| AskError::Unsent(format!("{name} can't log in: {}", lost.what())))?;
        if answer.status != 200 {
            let error = error_of(answer.status, &answer.body);
            let why = format!("{name} can't log in: {}", error.shown());
            return Err(match error {
                EtcdError::Refused(_) => refusal(why),
                _ => AskError::Unsent(why),
            });
        }
        let token = login_answer(&answer.body).map_err(AskError::Unsent)?;
        let token = hidden(&token).ok_or_else(|| refusal("the token can't be in a header".to_owned()))?;
        *self.token.lock() = (refused + 1, Some(token));
        Ok(())
    }
}

/// Logging in is of no use, and nothing else was sent.
fn refusal(why: String) -> AskError {
    AskError::Nothing(EtcdError::Refused(why))
}
