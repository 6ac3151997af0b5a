//! One request under simulation: asks for its admission, waits and refuses as decided, and applies afterwards
//! what is to happen once the work is done. All that is simulated is logged here and marked in the answer.
//!
//! A request inside another one, such as a part of a blob batch, has an admission of its own.
//!
//! What always holds: a request that is refused was not begun; what is to happen after the work happens
//! whatever came of it; an admission decides about the answer of its own request only.

use super::boundaries::{KeyPair, PageEnd};
use super::fault_rule::{Disturbance, When};
use super::operation::{OPERATIONS, Operation, Target};
use super::settings::SimulationSettings;
use super::simulation::{Bucket, Fault, Moved, Refusal, Requester, Simulation};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::error::injected::{Injected, X_LARIMAR_SIMULATED};
use crate::reply::{Reply, ReplyFault};
use base::Clock;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;

/// What a place says that has no tokens, and an account of each kind.
const BUSY: &str = "The server is busy.";
const ACCOUNT_BUSY: &str = "Operations per second is over the account limit.";
const INGRESS_BUSY: &str = "Ingress is over the account limit.";
const EGRESS_BUSY: &str = "Egress is over the account limit.";

const THROTTLED: HeaderValue = HeaderValue::from_static("throttled");
const BALANCING: HeaderValue = HeaderValue::from_static("balancing");
const BOUNDARY: HeaderValue = HeaderValue::from_static("boundary");

/// The header of replies about blobs that says what kind they are.
const X_MS_BLOB_TYPE: &str = "x-ms-blob-type";
const PAGE_BLOB: &[u8] = b"PageBlob";

/// A request that is simulated.
pub(crate) struct SimulatedRequest<'a> {
    simulation: &'a Simulation,
    clock: &'a dyn Clock,
    requester: Requester<'a>,
    /// Bytes of its body.
    ingress_bytes: u64,
    admitted: Mutex<Option<Admitted>>,
}

/// A page of a list, of which less may be shown than was requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedPage {
    /// Entries that the request wants at most.
    pub(crate) requested_max: usize,
    /// Entries that it was given at most: [`SimulatedRequest::list_page`].
    pub(crate) count_max: usize,
    /// Entries that it has.
    pub(crate) count: usize,
    /// Whether there are more behind it.
    pub(crate) has_next: bool,
}

impl ListedPage {
    /// Whether it would have more entries, were it not for the simulation.
    fn ends_early(self) -> bool {
        self.has_next && self.count_max < self.requested_max && self.count >= self.count_max
    }
}

/// What was admitted, and what is to happen to its answer.
struct Admitted {
    what: String,
    name: &'static str,
    key: Vec<String>,
    target: Target,
    fault: Option<Fault>,
}

impl<'a> SimulatedRequest<'a> {
    /// A request whose operation is not known yet.
    pub(crate) fn new(
        simulation: &'a Simulation,
        clock: &'a dyn Clock,
        requester: Requester<'a>,
        ingress_bytes: u64,
    ) -> Self {
        SimulatedRequest { simulation, clock, requester, ingress_bytes, admitted: Mutex::new(None) }
    }

    /// A request inside this one, whose bytes are counted with this one's.
    pub(crate) fn part(&self) -> Self {
        SimulatedRequest::new(self.simulation, self.clock, self.requester, 0)
    }

    /// Returns when the operation may begin, or why it may not.
    pub(crate) async fn admit(&self, operation: Operation<'_>) -> Result<(), ApiError> {
        debug_assert!(OPERATIONS.contains(&operation.name), "a rule can't name {}", operation.name);
        let key = operation.key.join("/");
        let admission = self.simulation.admit(self.clock.monotonic(), &self.requester, &operation, &key);
        let Requester { account, .. } = self.requester;
        let what = format!("{} of {account}: {key}", operation.name);
        if let Some(away_for) = admission.move_begins {
            tracing::info!("simulated: a place is moved for {away_for:?}, {what}");
        }
        if let Some(fault) = &admission.fault {
            self.disturb_before(fault, &what).await?;
        }
        if let Some(refusal) = admission.refusal {
            tracing::info!("simulated: {}, {what}", refusal_text(&refusal));
            return Err(refusal_error(&refusal));
        }
        *self.admitted.lock() = Some(Admitted {
            what,
            name: operation.name,
            key: operation.key.iter().map(|part| (*part).to_owned()).collect(),
            target: operation.target,
            fault: admission.fault,
        });
        Ok(())
    }

    async fn disturb_before(&self, fault: &Fault, what: &str) -> Result<(), ApiError> {
        if let Some(delay) = fault.delay {
            tracing::info!("simulated: {}, {delay:?} of delay, {what}", fault_name(fault));
            self.clock.sleep(delay).await;
        }
        match &fault.disturbance {
            Some(disturbance) if disturbance.is_before() => Err(disturbed(fault, disturbance, what)),
            _ => Ok(()),
        }
    }

    /// Where a page of entities ends, if before it has to.
    pub(crate) fn choose_page_end<'k>(
        &self,
        table: &str,
        start: Option<(&str, Option<&str>)>,
        keys: impl IntoIterator<Item = KeyPair<'k>>,
    ) -> Option<PageEnd<'k>> {
        let settings = self.simulation.settings();
        if settings.boundaries.are_none() {
            return None;
        }
        let name = table.to_lowercase();
        let names = [self.requester.account, name.as_str()];
        let end = settings.boundaries.choose_page_end(settings.seed, &names, start, keys)?;
        let before = [end.partition_key, end.row_key.as_deref().unwrap_or_default()].join("/");
        tracing::info!("simulated: a page ends with {} rows before {name}/{before}", end.row_count);
        Some(end)
    }

    /// Marks the answer as one whose page ended early.
    pub(crate) fn mark_boundary(reply: &mut Reply) {
        reply.header(X_LARIMAR_SIMULATED, BOUNDARY);
    }

    /// What is simulated.
    pub(crate) fn settings(&self) -> Arc<SimulationSettings> {
        self.simulation.settings()
    }

    /// Entries of a page of a list at most.
    pub(crate) fn list_page(&self, count_max: usize) -> usize {
        self.simulation.settings().boundaries.page_rows.map_or(count_max, |rows| rows.min(count_max))
    }

    /// Marks the answer with a page of a list if that ended early.
    pub(crate) fn note_list_end(&self, reply: &mut Reply, page: ListedPage) {
        if !page.ends_early() {
            return;
        }
        if let Some(Admitted { what, .. }) = &*self.admitted.lock() {
            tracing::info!("simulated: a page ends with {} entries, {what}", page.count);
        }
        Self::mark_boundary(reply);
    }

    /// Charges for the rows of a page, which are in the order of their keys.
    pub(crate) fn admit_rows<'k>(
        &self,
        table: &'k str,
        partition_keys: impl IntoIterator<Item = &'k str>,
    ) -> Result<(), ApiError> {
        let mut runs: Vec<([&str; 2], u64)> = Vec::new();
        for partition_key in partition_keys {
            match runs.last_mut() {
                Some((key, rows)) if key[1] == partition_key => *rows += 1,
                _ => runs.push(([table, partition_key], 1)),
            }
        }
        let operation = |key| Operation { name: "QueryEntities", key, target: Target::Partition, cost: 0 };
        let runs: Vec<_> = runs.iter().map(|(key, rows)| (operation(&key[..]), *rows)).collect();
        self.simulation.admit_rows(self.clock.monotonic(), &self.requester, &runs).map_err(|refusal| {
            let first = runs.first().map_or_else(String::new, |(operation, _)| operation.key.join("/"));
            tracing::info!(
                "simulated: {}, QueryEntities of {}: {first}",
                refusal_text(&refusal),
                self.requester.account
            );
            refusal_error(&refusal)
        })
    }

    /// The operation was about so many messages, not one.
    pub(crate) fn charge_messages(&self, count: usize) {
        if let (Some(admitted), Some(more)) = (&*self.admitted.lock(), count.checked_sub(1)) {
            let key: Vec<&str> = admitted.key.iter().map(String::as_str).collect();
            let Admitted { name, target, .. } = *admitted;
            let operation = Operation { name, key: &key, target, cost: 0 };
            self.simulation.charge_more(self.clock.monotonic(), &self.requester, &operation, more as u64);
        }
    }

    /// What is answered, now that the work is done.
    pub(crate) fn finish(&self, result: Result<Reply, ApiError>) -> Result<Reply, ApiError> {
        let egress_bytes = result
            .as_ref()
            .map_or(0, |reply| reply.stream.as_ref().map_or(reply.body.len() as u64, |stream| stream.size));
        self.settle(result, Moved { ingress_bytes: self.ingress_bytes, egress_bytes })
    }

    /// What a part answers, now that its work is done. Its bytes are counted with the whole answer's.
    pub(crate) fn finish_part(&self, result: Result<Reply, ApiError>) -> Result<Reply, ApiError> {
        self.settle(result, Moved { ingress_bytes: 0, egress_bytes: 0 })
    }

    fn settle(&self, mut result: Result<Reply, ApiError>, moved: Moved) -> Result<Reply, ApiError> {
        let Some(admitted) = self.admitted.lock().take() else { return result };
        let now = self.clock.monotonic();
        self.simulation.charge_bytes(now, self.requester.account_number, moved);
        if let Target::Blob { is_page } = admitted.target
            && (is_page || result.as_ref().is_ok_and(is_about_page_blob))
        {
            let key: Vec<&str> = admitted.key.iter().map(String::as_str).collect();
            let operation = Operation { name: admitted.name, key: &key, target: admitted.target, cost: 0 };
            self.simulation.charge_page_blob(now, &self.requester, &operation, moved);
        }
        let Some(fault) = &admitted.fault else { return result };
        if result.as_ref().is_ok_and(|reply| reply.fault == Some(ReplyFault::Reset)) {
            // A part of it resets the connection, so nothing of this answer is sent.
            return result;
        }
        match &fault.disturbance {
            Some(Disturbance::CutBody(size)) => {
                if let Ok(reply) = &mut result {
                    tracing::info!(
                        "simulated: {}, the body is cut after {size} bytes, {}",
                        fault_name(fault),
                        admitted.what
                    );
                    reply.header(X_LARIMAR_SIMULATED, fault_mark(fault));
                    reply.fault = Some(ReplyFault::CutBody(*size));
                }
                result
            }
            Some(disturbance) => Err(disturbed(fault, disturbance, &admitted.what)),
            None => {
                if let Ok(reply) = &mut result {
                    reply.header(X_LARIMAR_SIMULATED, fault_mark(fault));
                }
                result
            }
        }
    }
}

fn is_about_page_blob(reply: &Reply) -> bool {
    reply.headers.iter().any(|(name, value)| name == X_MS_BLOB_TYPE && value.as_bytes() == PAGE_BLOB)
}

fn fault_name(fault: &Fault) -> String {
    format!("fault {} #{}", fault.rule, fault.nth)
}

fn fault_mark(fault: &Fault) -> HeaderValue {
    HeaderValue::from_str(&format!("fault {}", fault.rule)).unwrap_or(HeaderValue::from_static("fault"))
}

/// The answer of a disturbed request, which is logged.
fn disturbed(fault: &Fault, disturbance: &Disturbance, what: &str) -> ApiError {
    let (mut injected, message, done) = match disturbance {
        Disturbance::Answer { status, code, message, when } => {
            (injected(*status, code.clone().into(), fault_mark(fault)), message.clone(), *when)
        }
        Disturbance::Reset(when) => {
            (injected(StatusCode::INTERNAL_SERVER_ERROR, "".into(), fault_mark(fault)), None, *when)
        }
        Disturbance::CutBody(_) => {
            (injected(StatusCode::INTERNAL_SERVER_ERROR, "".into(), fault_mark(fault)), None, When::After)
        }
    };
    injected.resets = !matches!(disturbance, Disturbance::Answer { .. });
    let done = match done {
        When::Before => "before",
        When::After => "after",
    };
    let name = fault_name(fault);
    match injected.resets {
        true => tracing::info!("simulated: {name}, the connection is reset {done} the work, {what}"),
        false => {
            let status = injected.status.as_u16();
            tracing::info!("simulated: {name}, {status} {} {done} the work, {what}", injected.code);
        }
    }
    let message = message.map_or_else(|| usual_message(injected.status), Cow::Owned);
    ApiError::with_message(ErrorCode::InternalError, message).injected(injected)
}

fn usual_message(status: StatusCode) -> Cow<'static, str> {
    match status {
        StatusCode::SERVICE_UNAVAILABLE => BUSY.into(),
        StatusCode::INTERNAL_SERVER_ERROR => ErrorCode::InternalError.message().into(),
        other => other.canonical_reason().unwrap_or("A simulated fault.").into(),
    }
}

fn injected(status: StatusCode, code: Cow<'static, str>, mark: HeaderValue) -> Injected {
    Injected { status, code, mark, resets: false }
}

fn refusal_text(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Throttled(Bucket::Place) => "throttled by the target's limit",
        Refusal::Throttled(Bucket::Account) => "throttled by the account's limit",
        Refusal::Throttled(Bucket::Ingress) => "throttled by the account's ingress",
        Refusal::Throttled(Bucket::Egress) => "throttled by the account's egress",
        Refusal::Away { timed_out: true } => "timed out while its place is moved",
        Refusal::Away { timed_out: false } => "refused while its place is moved",
    }
}

fn refusal_error(refusal: &Refusal) -> ApiError {
    let (code, message, mark) = match refusal {
        Refusal::Throttled(bucket) => {
            let message = match bucket {
                Bucket::Place => BUSY,
                Bucket::Account => ACCOUNT_BUSY,
                Bucket::Ingress => INGRESS_BUSY,
                Bucket::Egress => EGRESS_BUSY,
            };
            (ErrorCode::ServerBusy, message, THROTTLED)
        }
        Refusal::Away { timed_out: true } => {
            (ErrorCode::OperationTimedOut, ErrorCode::OperationTimedOut.message(), BALANCING)
        }
        Refusal::Away { timed_out: false } => (ErrorCode::ServerBusy, BUSY, BALANCING),
    };
    let answer = injected(code.status(), code.as_str().into(), mark);
    ApiError::with_message(code, message).injected(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_early_only_where_the_simulation_shortened_it() {
        for (requested_max, count_max, count, has_next, expected) in [
            (5000, 2, 2, true, true),
            // The request wants no more.
            (2, 2, 2, true, false),
            (1, 1, 1, true, false),
            // There is no more.
            (5000, 2, 2, false, false),
            (5000, 2, 1, false, false),
            // It ended before for a reason of its own, such as many deleted entries.
            (5000, 2, 1, true, false),
            (5000, 2, 0, true, false),
        ] {
            let page = ListedPage { requested_max, count_max, count, has_next };
            assert_eq!(page.ends_early(), expected, "{page:?}");
        }
    }
}
