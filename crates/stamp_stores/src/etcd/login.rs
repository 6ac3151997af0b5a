//! User, password and the token that etcd gives for them.
//!
//! What always holds: neither password nor token is printed; at most one log-in is under way.

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
    pub(crate) async fn token(&self, member: &Service) -> Result<(u64, Option<HeaderValue>), String> {
        let held = self.token.lock().clone();
        if self.user.is_none() || held.1.is_some() {
            return Ok(held);
        }
        self.renew(member, held.0).await?;
        Ok(self.token.lock().clone())
    }

    /// The token of that number is refused: logs in anew, unless another request did so already.
    pub(crate) async fn renew(&self, member: &Service, refused: u64) -> Result<(), String> {
        let Some((name, password)) = &self.user else {
            return Err("etcd wants a user, and none is set".to_owned());
        };
        let _turn = self.turn.lock().await;
        if self.token.lock().0 != refused {
            return Ok(());
        }
        let body = json!({ "name": name, "password": password.reveal() }).to_string();
        let target = format!("{}/v3/auth/authenticate", member.endpoint().path);
        let outgoing = Outgoing { method: Method::POST, target, headers: Vec::new(), body: body.into() };
        let answer = member.send(outgoing, ANSWER_SIZE_BYTES_MAX).await;
        let answer = answer.map_err(|lost| format!("{name} can't log in: {}", lost.what()))?;
        if answer.status != 200 {
            let why = super::errors::error_of(answer.status, &answer.body).shown();
            return Err(format!("{name} can't log in: {why}"));
        }
        let token = login_answer(&answer.body)?;
        let token = hidden(&token).ok_or("the token can't be in a header")?;
        *self.token.lock() = (refused + 1, Some(token));
        Ok(())
    }
}
