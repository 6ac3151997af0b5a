//! Leases of containers and blobs.

use super::blob_request::BlobRequest;
use super::errors::{from_blob, from_container};
use super::headers::reply_headers::{put, put_version};
use super::headers::request_headers::{invalid, required, text, write_conditions};
use crate::error::ApiError;
use crate::reply::Reply;
use crate::request::request_id::RequestId;
use base::Ticks;
use blob::{LEASE_SECONDS_MAX, LEASE_SECONDS_MIN, LeaseAction, LeaseOutcome, parse_lease_id};
use hyper::StatusCode;

/// Longest break period, in seconds.
const BREAK_SECONDS_MAX: u32 = 60;

fn action(context: &BlobRequest<'_>) -> Result<LeaseAction, ApiError> {
    let headers = context.headers();
    let id_in = |name: &str| -> Result<String, ApiError> {
        let text = required(headers, name)?;
        parse_lease_id(text).ok_or_else(|| invalid(name, text))
    };
    let name = required(headers, "x-ms-lease-action")?;
    Ok(match name.to_ascii_lowercase().as_str() {
        "acquire" => {
            let text_of = required(headers, "x-ms-lease-duration")?;
            let seconds = match text_of.trim().parse::<i64>() {
                Ok(-1) => None,
                Ok(seconds)
                    if (i64::from(LEASE_SECONDS_MIN)..=i64::from(LEASE_SECONDS_MAX)).contains(&seconds) =>
                {
                    Some(seconds as u32)
                }
                _ => return Err(invalid("x-ms-lease-duration", text_of)),
            };
            let id = match text(headers, "x-ms-proposed-lease-id") {
                Some(_) => id_in("x-ms-proposed-lease-id")?,
                None => RequestId::new(context.request.environment.random).as_str().to_owned(),
            };
            LeaseAction::Acquire { seconds, id }
        }
        "renew" => LeaseAction::Renew { id: id_in("x-ms-lease-id")? },
        "change" => {
            LeaseAction::Change { id: id_in("x-ms-lease-id")?, proposed: id_in("x-ms-proposed-lease-id")? }
        }
        "release" => LeaseAction::Release { id: id_in("x-ms-lease-id")? },
        "break" => {
            let seconds = match text(headers, "x-ms-lease-break-period") {
                None => None,
                Some(period) => match period.trim().parse::<u32>() {
                    Ok(seconds) if seconds <= BREAK_SECONDS_MAX => Some(seconds),
                    _ => return Err(invalid("x-ms-lease-break-period", period)),
                },
            };
            LeaseAction::Break { seconds }
        }
        _ => return Err(invalid("x-ms-lease-action", name)),
    })
}

/// `version`: ETag and date of what is leased, if it has them.
fn reply(action: &LeaseAction, outcome: &LeaseOutcome, version: Option<(u64, Ticks)>) -> Reply {
    let mut reply = Reply::new(match action {
        LeaseAction::Acquire { .. } => StatusCode::CREATED,
        LeaseAction::Break { .. } => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    });
    if let Some((etag, modified_at)) = version {
        put_version(&mut reply, etag, modified_at);
    }
    if let Some(id) = &outcome.id {
        put(&mut reply, "x-ms-lease-id", id);
    }
    if let Some(seconds) = outcome.break_seconds {
        put(&mut reply, "x-ms-lease-time", &seconds.to_string());
    }
    reply
}

/// The id in `x-ms-lease-id` belongs to the action, not to the conditions.
fn other_conditions(context: &BlobRequest<'_>) -> Result<blob::Conditions, ApiError> {
    Ok(blob::Conditions { lease_id: None, ..write_conditions(context.headers())? })
}

pub(crate) async fn lease_container(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let action = action(context)?;
    let (account, name) = (context.request.account, context.container_name()?);
    let done =
        context.service.lease_container(account, name, action.clone(), other_conditions(context)?).await;
    let (row, outcome) = done.map_err(from_container)?;
    Ok(reply(&action, &outcome, Some((row.etag, row.modified_at))))
}

pub(crate) async fn lease_blob(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    context.refuse_snapshot()?;
    let action = action(context)?;
    let at = context.blob().await?;
    let done = context.service.lease(&at, action.clone(), other_conditions(context)?).await;
    let (outcome, written) = done.map_err(from_blob)?;
    Ok(reply(&action, &outcome, written.map(|written| (written.etag, written.modified_at))))
}
