//! List, get, create and delete tables.

use super::entity_read::{check_options, parse_top};
use super::entity_write::Preference;
use super::errors::from_table;
use super::request_context::RequestContext;
use super::route::WRONG_KEY_COUNT;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::json::entity_reader::{read_entity, read_table_name};
use crate::json::entity_writer::{AnswerContext, put_list_start, put_table};
use crate::reply::continuation::{decode_token, encode_token};
use crate::reply::negotiation::MetadataLevel;
use crate::reply::{DATA_SERVICE_ID, DATA_SERVICE_VERSION, PREFERENCE_APPLIED, Reply};
use crate::request::query_string::QueryParameters;
use crate::simulate::ListedPage;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue, LOCATION};
use table::{TableError, TableListQuery};

const NEXT_TABLE_NAME: HeaderName = HeaderName::from_static("x-ms-continuation-nexttablename");

fn answer_context<'a>(context: &RequestContext<'a>, level: MetadataLevel) -> AnswerContext<'a> {
    AnswerContext { level, base: context.base, account: context.account, table: "Tables", select: None }
}

/// Gets a page of tables.
pub(crate) async fn list_tables(
    context: &RequestContext<'_>,
    query: &QueryParameters<'_>,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    check_options(query)?;
    context.extensions.check_for_tables()?;
    let filter = query.find("$filter");
    let start = query.find("NextTableName").filter(|token| !token.is_empty());
    let top = parse_top(query)?;
    let list = TableListQuery {
        filter: filter.map(|text| context.parse_filter(text)).transpose()?,
        top: context.environment.simulated.map_or(top, |simulated| simulated.list_page(top)),
        start: start.map(decode_token).transpose()?,
    };
    let page = context.service.list_tables(context.account, &list).await.map_err(from_table)?;
    let answer = answer_context(context, level);
    let mut body = Vec::with_capacity(128 + page.names.len() * 48);
    put_list_start(&mut body, &answer);
    for (index, name) in page.names.iter().take(list.top).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        put_table(&mut body, &answer, name, false);
    }
    body.extend_from_slice(b"]}");
    let mut reply = Reply::json(StatusCode::OK, level.content_type(), body);
    let next = page.next.as_ref().filter(|_| list.top > 0);
    if let Some(next) = next {
        reply.header_bytes(NEXT_TABLE_NAME, encode_token(next).into_bytes());
    }
    if let Some(simulated) = context.environment.simulated {
        let (count, has_next) = (page.names.len().min(list.top), next.is_some());
        let listed = ListedPage { requested_max: top, count_max: list.top, count, has_next };
        simulated.note_list_end(&mut reply, listed);
    }
    Ok(reply)
}

/// Gets one table.
pub(crate) async fn read_table(
    context: &RequestContext<'_>,
    name: &str,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    let name = context.service.table(context.account, name).await.map_err(from_table)?;
    let mut body = Vec::with_capacity(256);
    put_table(&mut body, &answer_context(context, level), &name, true);
    Ok(Reply::json(StatusCode::OK, level.content_type(), body))
}

/// Creates a table.
pub(crate) async fn create_table(
    context: &RequestContext<'_>,
    body: Bytes,
    preference: Option<Preference>,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    let name = read_table_name(&body)?;
    context.service.create_table(context.account, &name).await.map_err(from_table)?;
    let location = HeaderValue::from_maybe_shared(Bytes::from(format!("{}/Tables('{name}')", context.base)));
    let mut reply = if preference == Some(Preference::NoContent) {
        let mut reply = Reply::new(StatusCode::NO_CONTENT);
        reply.header(DATA_SERVICE_VERSION, HeaderValue::from_static("3.0;"));
        if let Ok(location) = &location {
            reply.header(DATA_SERVICE_ID, location.clone());
        }
        reply
    } else {
        let mut body = Vec::with_capacity(256);
        put_table(&mut body, &answer_context(context, level), &name, true);
        Reply::json(StatusCode::CREATED, level.content_type(), body)
    };
    if let Some(preference) = preference {
        reply.header(PREFERENCE_APPLIED, preference.applied());
    }
    if let Ok(location) = location {
        reply.header(LOCATION, location);
    }
    Ok(reply)
}

/// Deletes a table.
pub(crate) async fn delete_table(context: &RequestContext<'_>, name: &str) -> Result<Reply, ApiError> {
    context.service.delete_table(context.account, name).await.map_err(from_table)?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

/// Why nothing can be done below a table. Clients tell from the code that their account address names a
/// table: an insert into what they take for a table arrives here, `body` being what they insert.
pub(crate) async fn refuse_below_table(
    context: &RequestContext<'_>,
    table: &str,
    body: Option<&[u8]>,
) -> ApiError {
    match context.service.table(context.account, table).await {
        Err(TableError::ResourceNotFound) => return ErrorCode::TableNotFound.into(),
        Err(error) => return from_table(error),
        Ok(_) => {}
    }
    match body.map(read_entity) {
        Some(Err(error)) => error,
        Some(Ok(entity)) if entity.partition_key.is_none() || entity.row_key.is_none() => {
            ErrorCode::PropertiesNeedValue.into()
        }
        _ => ApiError::with_message(ErrorCode::InvalidInput, WRONG_KEY_COUNT),
    }
}
