//! What went wrong with an operation, and what helps.
//!
//! What always holds: an error says which operation failed on what, after how many attempts, and whether an
//! earlier attempt may have done it; neither a key nor a signature is in it.

use hyper::StatusCode;
use retry::Reason;
use std::fmt;
use std::time::Duration;

/// The kind of a failure, for decisions of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The service answered with an error; see [`Error::status`] and [`Error::code`].
    Service,
    /// No connection, or one that broke.
    Connection,
    /// No answer in time.
    TimedOut,
    /// An answer came that this client can't read.
    UnreadableAnswer,
    /// The settings or the arguments can't be used; nothing was sent.
    Invalid,
}

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
pub struct Error(Box<Failure>);

/// All that is known of a failure.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// What was to be done: `insert entity`, and the path.
    pub(crate) operation: String,
    pub(crate) status: Option<StatusCode>,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) request_id: String,
    pub(crate) client_request_id: String,
    pub(crate) attempts: u32,
    /// An attempt ended so that it may have been done.
    pub(crate) may_be_done: bool,
    pub(crate) gave_up: Option<Reason>,
    /// The operation of an entity group that failed.
    pub(crate) batch_index: Option<usize>,
    /// How far this clock is behind the service's (ahead if negative), in seconds.
    pub(crate) clock_behind_s: i64,
}

/// A clock that is further off than this is refused by the service.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

impl Error {
    pub(crate) fn new(failure: Failure) -> Self {
        Error(Box::new(failure))
    }

    /// Settings or arguments that can't be used.
    pub(crate) fn invalid(operation: &str, message: impl Into<String>) -> Self {
        Error::new(Failure { message: message.into(), ..Failure::of(ErrorKind::Invalid, operation) })
    }

    /// An answer that can't be read.
    pub(crate) fn unreadable(operation: &str, message: impl Into<String>) -> Self {
        Error::new(Failure { message: message.into(), ..Failure::of(ErrorKind::UnreadableAnswer, operation) })
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The status of the answer, if one came.
    pub fn status(&self) -> Option<u16> {
        self.0.status.map(|status| status.as_u16())
    }
    /// The service's code, such as `EntityAlreadyExists`; empty without one.
    pub fn code(&self) -> &str {
        &self.0.code
    }
    /// What the service, or this client, says.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The service's id of the last attempt; empty without an answer.
    pub fn request_id(&self) -> &str {
        &self.0.request_id
    }
    /// This client's id, the same in all attempts.
    pub fn client_request_id(&self) -> &str {
        &self.0.client_request_id
    }
    /// How often it was tried.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }
    /// Whether it was tried more than once.
    pub fn is_retried(&self) -> bool {
        self.0.attempts > 1
    }
    /// An attempt may have been done though its answer was lost, or said that the service failed (5xx,
    /// `ServerBusy`, too, or 408). Of a later attempt `EntityAlreadyExists` of
    /// an insert, `ResourceNotFound` of a deletion or an unmet condition may be this operation's own success.
    pub fn may_be_done(&self) -> bool {
        self.0.may_be_done
    }
    /// Why it was not tried again.
    pub fn gave_up(&self) -> Option<Reason> {
        self.0.gave_up
    }
    /// Which operation of an entity group failed, from 0.
    pub fn batch_index(&self) -> Option<usize> {
        self.0.batch_index
    }
    /// Whether the service says that the thing is not there.
    pub fn is_not_found(&self) -> bool {
        self.0.status == Some(StatusCode::NOT_FOUND)
    }

    /// What helps, if that is known.
    pub fn remedy(&self) -> Option<String> {
        let failure = &*self.0;
        if failure.code == "AuthenticationFailed" || failure.code == "AuthorizationFailure" {
            return Some(failure.authentication_remedy());
        }
        let fixed = match failure.code.as_str() {
            "TableNotFound" => "create the table first, and check its name",
            "ContainerNotFound" => "create the container first, and check its name",
            "QueueNotFound" => "create the queue first, and check its name",
            "ResourceNotFound" | "BlobNotFound" | "EntityNotFound" => "check the name or the keys",
            "MessageNotFound" => {
                "the message was deleted, or its receipt is no longer the newest: get it again"
            }
            "EntityAlreadyExists" if failure.may_be_done => {
                "an earlier attempt may have inserted it: read it and compare"
            }
            "EntityAlreadyExists" => "use another key, or upsert",
            "TableAlreadyExists" | "ContainerAlreadyExists" | "QueueAlreadyExists" => {
                "it is there: use create_if_absent"
            }
            "TableBeingDeleted" | "ContainerBeingDeleted" | "QueueBeingDeleted" => {
                "the name is free again in about a minute; or use another"
            }
            "UpdateConditionNotSatisfied" | "ConditionNotMet" => {
                "it has changed meanwhile: read it again, and repeat the change"
            }
            "ServerBusy" => "send less at a time, or spread the load over more partitions",
            "AuthorizationPermissionMismatch" => "the signature lacks the permission (sp) for this operation",
            "AuthorizationResourceTypeMismatch" => "the signature lacks the resource type (srt)",
            "AuthorizationServiceMismatch" => "the signature is for another service (ss)",
            "AuthorizationProtocolMismatch" => "the signature is for HTTPS only (spr)",
            "AuthorizationSourceIPMismatch" => "the signature is for other addresses (sip)",
            "NoAuthenticationInformation" => "give a key or a signature",
            "RequestBodyTooLarge" => "send it in smaller parts",
            _ => failure.remedy_of_kind()?,
        };
        Some(fixed.to_owned())
    }
}

impl Failure {
    /// A failure before anything is known of it.
    pub(crate) fn of(kind: ErrorKind, operation: &str) -> Self {
        Failure {
            kind,
            operation: operation.to_owned(),
            status: None,
            code: String::new(),
            message: String::new(),
            request_id: String::new(),
            client_request_id: String::new(),
            attempts: 0,
            may_be_done: false,
            gave_up: None,
            batch_index: None,
            clock_behind_s: 0,
        }
    }

    fn authentication_remedy(&self) -> String {
        if self.clock_behind_s.unsigned_abs() > CLOCK_SKEW_MAX.as_secs() {
            let minutes = self.clock_behind_s.unsigned_abs() / 60;
            let way = if self.clock_behind_s > 0 { "behind" } else { "ahead of" };
            return format!("this machine's clock is {minutes} min {way} the service's: set it");
        }
        "check the account's name and key, or that the signature has not expired and fits the resource"
            .to_owned()
    }

    fn remedy_of_kind(&self) -> Option<&'static str> {
        if self.kind != ErrorKind::Connection {
            return None;
        }
        if self.message.contains("UnknownIssuer") || self.message.contains("invalid peer certificate") {
            return Some("give the file of the authority that signed the server's certificate");
        }
        (self.gave_up != Some(Reason::NotIdempotent))
            .then_some("check the endpoint, that the server runs, and the proxy settings")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failure = &*self.0;
        write!(f, "{} failed: ", failure.operation)?;
        if let Some(status) = failure.status {
            write!(f, "{} ", status.as_u16())?;
        }
        // One line, whatever the service says.
        let message = failure.message.replace('\r', "").replace('\n', "\\n");
        match (failure.code.as_str(), message.as_str()) {
            ("", message) => f.write_str(message)?,
            (code, "") => f.write_str(code)?,
            (code, message) => write!(f, "{code}: {message}")?,
        }
        if let Some(index) = failure.batch_index {
            write!(f, " (operation {index} of the group)")?;
        }
        if failure.attempts > 1 {
            write!(f, "; {} attempts", failure.attempts)?;
        }
        if let Some(reason) = failure.gave_up.filter(|reason| *reason != Reason::Final) {
            write!(f, "; {reason}")?;
        }
        if !failure.request_id.is_empty() {
            write!(f, "; request id {}", failure.request_id)?;
        }
        if let Some(remedy) = self.remedy() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Failure {
        Failure {
            status: Some(StatusCode::FORBIDDEN),
            code: code.to_owned(),
            message: "text".to_owned(),
            attempts: 1,
            gave_up: Some(Reason::Final),
            ..Failure::of(ErrorKind::Service, "get /t")
        }
    }

    #[test]
    fn a_skewed_clock_is_named() {
        let text = |clock_behind_s| {
            Error::new(Failure { clock_behind_s, ..refused("AuthenticationFailed") }).to_string()
        };
        let head = "get /t failed: 403 AuthenticationFailed: text; ";
        assert_eq!(text(3600), format!("{head}this machine's clock is 60 min behind the service's: set it"));
        assert_eq!(
            text(-1200),
            format!("{head}this machine's clock is 20 min ahead of the service's: set it")
        );
        assert!(text(60).starts_with(&format!("{head}check the account's name and key")));
    }

    #[test]
    fn attempts_and_ids_are_in_the_text() {
        let failure = Failure {
            attempts: 3,
            may_be_done: true,
            request_id: "r".to_owned(),
            batch_index: Some(2),
            gave_up: Some(Reason::RetriesExhausted),
            ..refused("EntityAlreadyExists")
        };
        let error = Error::new(failure);
        assert!(error.is_retried() && error.may_be_done());
        assert_eq!(
            error.to_string(),
            "get /t failed: 403 EntityAlreadyExists: text (operation 2 of the group); 3 attempts; all retries were made; \
             request id r; an earlier attempt may have inserted it: read it and compare"
        );
        assert_eq!(Error::invalid("x", "y").to_string(), "x failed: y");
    }
}
