//! Entity group transactions: one table, one PartitionKey, all or nothing.
//!
//! Once a batch is authenticated and parsed the outer answer is 202; what goes wrong inside is reported by
//! one part for the operation that failed, with its index before the message. A lone get outside a change set
//! is a batch too. The shortest `timeout` of an operation of a change set bounds all of it, as they are done
//! together.

use super::admit::{admit_change_set, admit_route};
use super::entity_read::read_entity;
use super::entity_write::{PlannedAnswer, PlannedWrite, Preference, WriteHeaders, plan_write};
use super::errors::{TOO_MANY_OPERATIONS, from_table};
use super::request_context::RequestContext;
use super::route::{Route, Verb};
use super::{TableApi, TableResource};
use crate::batch::{
    BatchPart, BatchRequest, OPERATIONS_READ_MAX, PartReply, boundary_of, read_batch, write_change_set_reply,
    write_direct_reply,
};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{ServiceApi, check_timeout, timeout_of, within};
use crate::reply::negotiation::{MetadataLevel, choose_level};
use crate::reply::{DATA_SERVICE_VERSION, PREFERENCE_APPLIED, Reply};
use crate::request::addressing::{Address, AddressStyle};
use crate::request::query_string::QueryParameters;
use crate::request::request_id::RequestId;
use crate::table_api::entity_path::EntityAddress;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use std::borrow::Cow;
use std::time::Duration;
use table::EntityOperation;

/// An operation that failed, and how it wanted its answer.
struct FailedOperation {
    index: usize,
    error: ApiError,
    level: MetadataLevel,
    preference: Option<Preference>,
}

/// Executes a batch.
pub(crate) async fn execute_batch(
    context: &RequestContext<'_>,
    content_type: Option<&str>,
    body: Bytes,
) -> Result<Reply, ApiError> {
    let boundary =
        content_type.and_then(boundary_of).ok_or_else(|| ApiError::new(ErrorCode::InvalidInput))?;
    let batch_id = RequestId::new(context.environment.random);
    let body = match read_batch(&body, boundary)? {
        BatchRequest::Direct(part) => {
            let reply = execute_direct(context, &part).await?;
            let content_id = part.content_id;
            write_direct_reply(batch_id.as_str(), &PartReply { content_id, reply })
        }
        BatchRequest::ChangeSet(_) if context.secondary => return Err(ApiError::write_at_secondary()),
        BatchRequest::ChangeSet(parts) => {
            if let Some(simulated) = context.environment.simulated {
                // What can't be understood has its own answer.
                if let Some(Ok((first, _))) = parts.first().map(|part| plan_part(context, part)) {
                    Box::pin(admit_change_set(simulated, &first.table, &first.operation, parts.len()))
                        .await?;
                }
            }
            let replies = match execute_change_set(context, &parts).await {
                Ok(replies) => replies,
                Err(failed) => {
                    let content_id = parts.get(failed.index).and_then(|part| part.content_id);
                    let reply = failure_reply(context, failed);
                    vec![PartReply { content_id, reply }]
                }
            };
            let change_set_id = RequestId::new(context.environment.random);
            write_change_set_reply(batch_id.as_str(), change_set_id.as_str(), &replies)
        }
    };
    let mut reply = Reply::new(StatusCode::ACCEPTED);
    let content_type = format!("multipart/mixed; boundary=batchresponse_{}", batch_id.as_str());
    reply.header_bytes(CONTENT_TYPE, content_type.into_bytes());
    reply.body = body;
    Ok(reply)
}

/// A lone get. Its own failure is inside the answer, also when it has a key that no entity can have;
/// anything else is no batch.
async fn execute_direct(context: &RequestContext<'_>, part: &BatchPart<'_>) -> Result<Reply, ApiError> {
    let target = Target::find(context, part)?;
    let query = QueryParameters::parse(target.query).map_err(|_| ApiError::new(ErrorCode::InvalidInput))?;
    let level = level_of(part, &query)?;
    let is_get = target.verb == Verb::Get;
    let route = target.route();
    if let (Some(simulated), Ok(route @ Route::ReadEntity(_))) = (context.environment.simulated, &route) {
        Box::pin(admit_route(simulated, route)).await?;
    }
    let result = match route {
        Ok(Route::ReadEntity(address)) => read_direct(context, address, &query, level).await,
        Err(error) if is_get => Err(error),
        _ => return Err(ErrorCode::InvalidInput.into()),
    };
    Ok(result.unwrap_or_else(|error| {
        let body = error.json_body(context.request_id, context.now, Some(0));
        Reply::json(error.code.status(), level.content_type(), body)
    }))
}

async fn read_direct(
    context: &RequestContext<'_>,
    address: EntityAddress,
    query: &QueryParameters<'_>,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    let need = Route::ReadEntity(address.clone()).need(false);
    context.grant.check(need, Some(&address.table))?;
    check_timeout(query)?;
    let read = read_entity(context, address, query, level);
    match timeout_of(query) {
        Some(requested) => {
            within(context.environment.clock, context.environment.clock.monotonic() + requested, read).await
        }
        None => read.await,
    }
}

async fn execute_change_set<'p>(
    context: &RequestContext<'_>,
    parts: &[BatchPart<'p>],
) -> Result<Vec<PartReply<'p>>, FailedOperation> {
    let fail = |index, error| FailedOperation {
        index,
        error,
        level: MetadataLevel::Minimal,
        preference: parts.get(index).and_then(preference_of),
    };
    if parts.len() == OPERATIONS_READ_MAX {
        let error = ApiError::with_message(ErrorCode::InvalidInput, TOO_MANY_OPERATIONS);
        return Err(fail(OPERATIONS_READ_MAX - 2, error));
    }
    let mut operations: Vec<EntityOperation> = Vec::with_capacity(parts.len());
    let mut answers: Vec<PlannedAnswer> = Vec::with_capacity(parts.len());
    let mut table: Option<String> = None;
    let mut shortest: Option<(Duration, usize)> = None;
    for (index, part) in parts.iter().enumerate() {
        let (planned, requested) = plan_part(context, part).map_err(|error| fail(index, error))?;
        shortest = shortest.into_iter().chain(requested.map(|requested| (requested, index))).min();
        match &table {
            Some(first) if !first.eq_ignore_ascii_case(&planned.table) => {
                let error = ErrorCode::CommandsInBatchActOnDifferentPartitions.into();
                return Err(fail(index, error));
            }
            Some(_) => {}
            None => table = Some(planned.table),
        }
        operations.push(planned.operation);
        answers.push(planned.answer);
    }
    // A change set without operations changes nothing, as in Azure.
    let Some(table) = table else { return Ok(Vec::new()) };
    let done = async { Ok(context.service.execute_group(context.account, &table, operations).await) };
    let done = match shortest {
        None => done.await,
        Some((requested, _)) => {
            within(context.environment.clock, context.environment.clock.monotonic() + requested, done).await
        }
    };
    let outcomes = done
        .map_err(|error| fail(shortest.map_or(0, |(_, index)| index), error))?
        .map_err(|failed| fail(failed.index, from_table(failed.error)))?;
    let replies = parts.iter().zip(answers).zip(outcomes).map(|((part, answer), outcome)| PartReply {
        content_id: part.content_id,
        reply: answer.finish(context, outcome),
    });
    Ok(replies.collect())
}

/// Where an operation points to.
struct Target<'a> {
    verb: Verb,
    /// What is below the account; the error is that of a missing resource.
    resource: Result<TableResource, ApiError>,
    query: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// The account in an operation's address must be that of the batch. Some clients leave it out, also where
    /// it is a part of the path: what is no address of its own is then one below the account.
    fn find(context: &RequestContext<'_>, part: &BatchPart<'a>) -> Result<Self, ApiError> {
        let invalid = || ApiError::new(ErrorCode::InvalidInput);
        let (host, path_and_query, is_whole) = match part.target.split_once("://") {
            Some((_, rest)) => {
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Cow::Owned(host.to_ascii_lowercase()), path, true)
            }
            None => (Cow::Borrowed(context.host), part.target, false),
        };
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let address = Address::parse(&host, path, TableApi::LABEL);
        let resource = match address.style {
            _ if address.account == context.account => address.resource,
            AddressStyle::Path if !is_whole => path,
            _ => return Err(invalid()),
        };
        let resource = TableResource::parse(resource);
        let verb = Verb::parse(part.method);
        let verb = match part.header("x-http-method") {
            Some(value) => Verb::tunnelled(verb, value)?,
            None => verb.ok_or_else(invalid)?,
        };
        Ok(Target { verb, resource, query })
    }

    /// What it does there.
    fn route(self) -> Result<Route, ApiError> {
        Route::find(self.verb, self.resource?, &QueryParameters::default())
    }
}

/// A write, and its time-out if it has one.
fn plan_part(
    context: &RequestContext<'_>,
    part: &BatchPart<'_>,
) -> Result<(PlannedWrite, Option<Duration>), ApiError> {
    let target = Target::find(context, part)?;
    let query = QueryParameters::parse(target.query).map_err(|_| ApiError::new(ErrorCode::InvalidInput))?;
    let route = target.route()?;
    let headers = WriteHeaders {
        if_match: part.header("if-match"),
        has_if_none_match: part.header("if-none-match").is_some(),
        preference: preference_of(part),
        level: level_of(part, &QueryParameters::default())?,
    };
    context.grant.check(route.need(headers.if_match.is_some()), route.table())?;
    check_timeout(&query)?;
    Ok((plan_write(context, route, &headers, part.body)?, timeout_of(&query)))
}

fn preference_of(part: &BatchPart<'_>) -> Option<Preference> {
    part.header("prefer").and_then(Preference::parse)
}

fn level_of(part: &BatchPart<'_>, query: &QueryParameters<'_>) -> Result<MetadataLevel, ApiError> {
    match query.find("$format").or_else(|| part.header("accept")) {
        Some(list) => choose_level(list),
        None => Ok(MetadataLevel::Minimal),
    }
}

fn failure_reply(context: &RequestContext<'_>, failed: FailedOperation) -> Reply {
    let mut reply = Reply::new(failed.error.code.status());
    if let Some(preference) = failed.preference {
        reply.header(PREFERENCE_APPLIED, preference.applied());
    }
    reply.header(DATA_SERVICE_VERSION, HeaderValue::from_static("3.0;"));
    reply.header(CONTENT_TYPE, failed.level.content_type());
    reply.body = failed.error.json_body(context.request_id, context.now, Some(failed.index));
    reply
}
