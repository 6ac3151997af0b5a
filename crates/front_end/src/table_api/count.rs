//! Counts entities instead of sending them, on request.
//!
//! ```text
//! x-larimar-extensions: count          request, a query of entities
//!
//! x-larimar-rows-counted: 200000       answer: entities of this page that match
//! x-larimar-bytes-counted: 31415926    their sizes, as the limit of an entity counts them
//! ```
//!
//! The body is a list without entities. Pages end as those of entities do, but for `$top`; with a token more
//! may match, and the sums of all pages are the count.

use super::entity_read::{answer_context, parse_query, put_next, shown_next};
use super::errors::from_table;
use super::page_snapshot::PageSnapshot;
use super::request_context::RequestContext;
use super::statistics::QueryStatistics;
use crate::error::ApiError;
use crate::json::entity_writer::put_list_start;
use crate::reply::Reply;
use crate::reply::negotiation::MetadataLevel;
use crate::request::query_string::QueryParameters;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

const ROWS_COUNTED: HeaderName = HeaderName::from_static("x-larimar-rows-counted");
const BYTES_COUNTED: HeaderName = HeaderName::from_static("x-larimar-bytes-counted");

/// Counts a page of entities.
pub(crate) async fn count_entities(
    context: &RequestContext<'_>,
    table: String,
    query: &QueryParameters<'_>,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    let mut entity_query = parse_query(context, query)?;
    let snapshot = PageSnapshot::open(context, &table).await?;
    entity_query.reading.snapshot = snapshot.id;
    let count = context.service.count(context.account, &table, &entity_query).await;
    let count = count.map_err(from_table)?;
    let mut body = Vec::with_capacity(256);
    put_list_start(&mut body, &answer_context(context, level, &table, query));
    body.extend_from_slice(b"]}");
    let mut reply = Reply::json(StatusCode::OK, level.content_type(), body);
    reply.header(ROWS_COUNTED, HeaderValue::from(count.entities));
    reply.header(BYTES_COUNTED, HeaderValue::from(count.size_bytes));
    let is_reverse = context.extensions.reverse;
    let next = count.next.and_then(|next| shown_next(next, is_reverse, context.grant.bounds()));
    if let Some(next) = next {
        put_next(&mut reply, &next, is_reverse);
    }
    context.environment.operation.note_rows(Some(count.class.name()), count.rows_read, 0);
    if context.statistics {
        let statistics = QueryStatistics { class: count.class, rows_read: count.rows_read, rows_returned: 0 };
        statistics.put_into(&mut reply);
    }
    snapshot.finish(context, &table, &mut reply).await;
    Ok(reply)
}
