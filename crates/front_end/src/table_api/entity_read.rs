//! Get one entity, and query entities.

use super::errors::from_table;
use super::page_snapshot::PageSnapshot;
use super::request_context::RequestContext;
use super::statistics::QueryStatistics;
use crate::auth::grant::KeyBounds;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::json::entity_writer::{
    AnswerContext, EntityFields, Selection, put_list_start, put_listed_entity, put_single_entity,
};
use crate::reply::Reply;
use crate::reply::continuation::{decode_scan_token, encode_scan_token};
use crate::reply::negotiation::MetadataLevel;
use crate::request::query_string::QueryParameters;
use crate::simulate::{PageEnd, SimulatedRequest};
use crate::table_api::entity_path::EntityAddress;
use base::Ticks;
use base::codec::DecodeError;
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderName};
use service::{DateTimeText, format_etag};
use std::cmp::Ordering;
use table::limits::PAGE_ROWS_MAX;
use table::{
    EntityPage, EntityQuery, EntityRef, EntityToken, Filter, PropertyIterator, QueryClass, Reading,
    TableError, check_property_name,
};

/// Names in a `$select` at most.
const SELECTED_MAX: usize = 255;

/// Bytes that keys, time, ETag and the names of types take in the answer to a get, roughly: it is written
/// into one buffer.
const MEMBERS_LEN: usize = 512;

const NEXT_PARTITION_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextpartitionkey");
const NEXT_ROW_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");

/// Gets one entity.
pub(crate) async fn read_entity(
    context: &RequestContext<'_>,
    address: EntityAddress,
    query: &QueryParameters<'_>,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    check_options(query)?;
    let select = parse_select(query)?;
    // Outside a signature's range of keys there is nothing, as in queries.
    if context.grant.check_keys(&address.partition_key, &address.row_key).is_err() {
        return Err(ErrorCode::ResourceNotFound.into());
    }
    let entity = context
        .service
        .get_entity(context.account, &address.table, &address.partition_key, &address.row_key)
        .await
        .map_err(|error| match error {
            // No entity has such a key.
            TableError::KeyCharacters { .. } => ErrorCode::ResourceNotFound.into(),
            other => from_table(other),
        })?;
    let entity = entity.as_ref();
    let timestamp = timestamp(&entity);
    let mut etag = Vec::with_capacity(64);
    format_etag(&timestamp, &mut etag);
    let answer = answer_context(context, level, &address.table, query);
    let mut body = Vec::with_capacity(entity.stored_len() + MEMBERS_LEN);
    let selection = Selection::new(select.as_deref());
    put_single_entity(&mut body, &answer, fields(&entity, &timestamp, &etag), &selection)
        .map_err(from_stored)?;
    let mut reply = Reply::json(StatusCode::OK, level.content_type(), body);
    reply.header_bytes(ETAG, etag);
    context.environment.operation.note_rows(Some(QueryClass::Point.name()), 1, 1);
    if context.statistics {
        let statistics = QueryStatistics { class: QueryClass::Point, rows_read: 1, rows_returned: 1 };
        statistics.put_into(&mut reply);
    }
    Ok(reply)
}

/// Gets a page of entities.
pub(crate) async fn query_entities(
    context: &RequestContext<'_>,
    table: String,
    query: &QueryParameters<'_>,
    level: MetadataLevel,
) -> Result<Reply, ApiError> {
    let mut entity_query = parse_query(context, query)?;
    let snapshot = PageSnapshot::open(context, &table).await?;
    entity_query.reading.snapshot = snapshot.id;
    let page = context.service.query(context.account, &table, &entity_query).await;
    let page = page.map_err(from_table)?;
    let next = page.next.clone().filter(|_| entity_query.top > 0);
    let is_reverse = context.extensions.reverse;
    let next = next.and_then(|next| shown_next(next, is_reverse, context.grant.bounds()));
    // Simulated boundaries are of the live service, whose scans are in the order of keys.
    let (row_count, next, ends_early) = match context.environment.simulated {
        None => (entity_query.top, next, false),
        Some(simulated) if is_reverse => {
            let rows = page.entities().take(entity_query.top).map(|entity| entity.partition_key());
            simulated.admit_rows(&table, rows)?;
            (entity_query.top, next, false)
        }
        Some(simulated) => simulated_end(simulated, &table, &entity_query, &page, next)?,
    };
    let answer = answer_context(context, level, &table, query);
    let selection = Selection::new(entity_query.select.as_deref());
    let mut body = Vec::with_capacity(256 + page.len() * 256);
    put_list_start(&mut body, &answer);
    let mut etag = Vec::with_capacity(64);
    for (index, entity) in page.entities().take(row_count).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        let timestamp = timestamp(&entity);
        etag.clear();
        if level != MetadataLevel::None {
            format_etag(&timestamp, &mut etag);
        }
        put_listed_entity(&mut body, &answer, fields(&entity, &timestamp, &etag), &selection)
            .map_err(from_stored)?;
    }
    body.extend_from_slice(b"]}");
    let mut reply = Reply::json(StatusCode::OK, level.content_type(), body);
    if let Some(next) = next {
        put_next(&mut reply, &next, is_reverse);
    }
    if ends_early {
        SimulatedRequest::mark_boundary(&mut reply);
    }
    let rows_returned = page.len().min(row_count) as u64;
    let rows_read = page.rows_read;
    context.environment.operation.note_rows(Some(page.class.name()), rows_read, rows_returned);
    if context.statistics {
        QueryStatistics { class: page.class, rows_read, rows_returned }.put_into(&mut reply);
    }
    snapshot.finish(context, &table, &mut reply).await;
    Ok(reply)
}

/// What is asked for.
pub(super) fn parse_query(
    context: &RequestContext<'_>,
    query: &QueryParameters<'_>,
) -> Result<EntityQuery, ApiError> {
    check_options(query)?;
    Ok(EntityQuery {
        filter: parse_filter(context, query)?,
        select: parse_select(query)?,
        top: parse_top(query)?,
        start: parse_start(query, context.extensions.reverse)?,
        examined_rows_max: context
            .environment
            .simulated
            .and_then(|simulated| simulated.settings().examined_rows()),
        reading: Reading { is_reverse: context.extensions.reverse, ..Reading::default() },
    })
}

/// Adds the token of the next page.
pub(super) fn put_next(reply: &mut Reply, next: &EntityToken, is_reverse: bool) {
    reply.header_bytes(NEXT_PARTITION_KEY, encode_scan_token(&next.partition_key, is_reverse).into_bytes());
    if let Some(row_key) = &next.row_key {
        reply.header_bytes(NEXT_ROW_KEY, encode_scan_token(row_key, is_reverse).into_bytes());
    }
}

/// Where a page ends that may end early, charged with its rows: how many it shows, where the next one starts,
/// and whether it ended early.
fn simulated_end(
    simulated: &SimulatedRequest<'_>,
    table: &str,
    query: &EntityQuery,
    page: &EntityPage,
    next: Option<EntityToken>,
) -> Result<(usize, Option<EntityToken>, bool), ApiError> {
    let start = query.start.as_ref().map(|token| (token.partition_key.as_str(), token.row_key.as_deref()));
    let keys = page.entities().take(query.top).map(|entity| (entity.partition_key(), entity.row_key()));
    let end = simulated.choose_page_end(table, start, keys);
    let row_count = end.as_ref().map_or(query.top, |end| end.row_count);
    let rows = page.entities().take(row_count).map(|entity| entity.partition_key());
    simulated.admit_rows(table, rows)?;
    Ok(match end {
        None => (row_count, next, false),
        Some(PageEnd { partition_key, row_key, .. }) => {
            (row_count, Some(EntityToken { partition_key: partition_key.to_owned(), row_key }), true)
        }
    })
}

fn timestamp(entity: &EntityRef<'_>) -> DateTimeText {
    DateTimeText::new(Ticks(entity.version().0))
}

fn fields<'a>(
    entity: &EntityRef<'a>,
    timestamp: &'a DateTimeText,
    etag: &'a [u8],
) -> EntityFields<'a, PropertyIterator<'a>> {
    EntityFields {
        partition_key: entity.partition_key(),
        row_key: entity.row_key(),
        timestamp,
        etag,
        properties: entity.properties(),
    }
}

/// A stored entity that can't be read.
fn from_stored(error: DecodeError) -> ApiError {
    from_table(error.into())
}

pub(super) fn answer_context<'a>(
    context: &RequestContext<'a>,
    level: MetadataLevel,
    table: &'a str,
    query: &'a QueryParameters<'_>,
) -> AnswerContext<'a> {
    AnswerContext {
        level,
        base: context.base,
        account: context.account,
        table,
        select: query.find("$select").filter(|select| !select.is_empty()),
    }
}

/// Refuses options that queries do not have.
pub(crate) fn check_options(query: &QueryParameters<'_>) -> Result<(), ApiError> {
    for (name, _) in query.iter() {
        let known =
            ["$filter", "$select", "$top", "$format"].iter().any(|known| name.eq_ignore_ascii_case(known));
        if name.starts_with('$') && !known {
            return Err(ErrorCode::NotImplemented.into());
        }
    }
    Ok(())
}

/// `$top`: rows of a page, not of the answer in all. It may be 0.
pub(crate) fn parse_top(query: &QueryParameters<'_>) -> Result<usize, ApiError> {
    match query.find("$top") {
        None => Ok(PAGE_ROWS_MAX),
        Some(text) => match text.parse::<usize>() {
            Ok(top) if top <= PAGE_ROWS_MAX => Ok(top),
            _ => Err(ErrorCode::InvalidInput.into()),
        },
    }
}

/// `$filter`, narrowed to the keys that a signature allows.
fn parse_filter(
    context: &RequestContext<'_>,
    query: &QueryParameters<'_>,
) -> Result<Option<Filter>, ApiError> {
    let text = query.find("$filter");
    // The client's own text is read first, so that errors speak of it alone.
    let own = text.map(|text| context.parse_filter(text)).transpose()?;
    let text = text.filter(|_| own.as_ref().is_some_and(|own| !own.is_empty()));
    let Some(bounds) = context.grant.bounds() else {
        return Ok(own);
    };
    let bounds = bounds.filter_text();
    let narrowed = match text {
        Some(text) => format!("({text}) and {bounds}"),
        None => bounds,
    };
    context.parse_filter(&narrowed).map(Some)
}

/// `$select`: names of properties; `None` or a `*` among them: all. Metadata may be selected, and comes or
/// not as its level says.
fn parse_select(query: &QueryParameters<'_>) -> Result<Option<Vec<String>>, ApiError> {
    let Some(text) = query.find("$select").filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let mut names = Vec::new();
    for (index, name) in text.split(',').map(str::trim).enumerate() {
        if name.is_empty() || index == SELECTED_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        if name.starts_with("odata.") {
            continue;
        }
        if !matches!(name, "*" | "PartitionKey" | "RowKey" | "Timestamp") {
            check_property_name(name).map_err(|error| {
                ApiError::with_message(
                    ErrorCode::InvalidInput,
                    format!("No property can be selected with $select: {error}."),
                )
            })?;
        }
        names.push(name.to_owned());
    }
    Ok(Some(names))
}

/// Where the next page starts. A page may end at a row that a signature does not show: its key is not
/// returned.
pub(super) fn shown_next(
    next: EntityToken,
    is_reverse: bool,
    bounds: Option<&KeyBounds>,
) -> Option<EntityToken> {
    let Some(bounds) = bounds else {
        return Some(next);
    };
    let at = |(partition_key, row_key)| EntityToken { partition_key, row_key };
    match bounds.place(&next.partition_key, next.row_key.as_deref().unwrap_or_default()) {
        Ordering::Equal => Some(next),
        Ordering::Greater if is_reverse => bounds.end.clone().map(at),
        Ordering::Less if !is_reverse => bounds.start.clone().map(at),
        // Pages are in the order of the scan: no row of the range is left.
        Ordering::Greater | Ordering::Less => None,
    }
}

fn parse_start(query: &QueryParameters<'_>, is_reverse: bool) -> Result<Option<EntityToken>, ApiError> {
    let find = |name| query.find(name).filter(|token| !token.is_empty());
    let decode = |token| decode_scan_token(token, is_reverse);
    let row_key = find("NextRowKey").map(decode).transpose()?;
    match find("NextPartitionKey") {
        Some(partition_key) => Ok(Some(EntityToken { partition_key: decode(partition_key)?, row_key })),
        None if row_key.is_some() => Err(ErrorCode::InvalidInput.into()),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> QueryParameters<'_> {
        QueryParameters::parse(Some(text)).expect("query")
    }

    #[test]
    fn options() {
        assert!(check_options(&query("$filter=x&$top=1&other=2")).is_ok());
        let error = check_options(&query("$orderby=x")).expect_err("not served");
        assert_eq!(error.code, ErrorCode::NotImplemented);
        assert_eq!(parse_top(&query("")), Ok(1000));
        assert_eq!(parse_top(&query("$top=7")), Ok(7));
        assert_eq!(parse_top(&query("$top=0")), Ok(0));
        for wrong in ["", "1001", "-1", "x"] {
            assert!(parse_top(&query(&format!("$top={wrong}"))).is_err(), "{wrong}");
        }
        assert_eq!(parse_select(&query("$select=a,%20b")), Ok(Some(vec!["a".into(), "b".into()])));
        assert_eq!(parse_select(&query("$select=")), Ok(None));
        assert!(parse_select(&query("$select=a,,b")).is_err());
    }

    #[test]
    fn what_can_be_selected() {
        let select = |names: &str| {
            let text = format!("$select={names}");
            parse_select(&query(&text)).map(|names| names.map(|names| names.join(" ")))
        };
        assert_eq!(select("*"), Ok(Some("*".into())));
        let system = "PartitionKey,RowKey,Timestamp,Name";
        assert_eq!(select(system), Ok(Some(system.replace(',', " "))));
        assert_eq!(select("odata.etag,Name,odata.type"), Ok(Some("Name".into())));
        assert_eq!(select("odata.etag"), Ok(Some(String::new())), "not everything");
        assert_eq!(select("%C3%A9t%C3%A9,_x"), Ok(Some("été _x".into())));
        for wrong in ["a-b", "1a", "a.b", "a%20b", "Name/Length", &"x".repeat(256)] {
            let error = select(wrong).expect_err(wrong);
            assert_eq!(error.code, ErrorCode::InvalidInput, "{wrong}");
        }
        assert!(select(&["a"; SELECTED_MAX].join(",")).is_ok());
        assert!(select(&["a"; SELECTED_MAX + 1].join(",")).is_err());
    }

    /// The key of a row outside a signature's range once stood in the token.
    #[test]
    fn a_token_names_no_row_outside_the_range() {
        let token = |partition_key: &str, row_key: Option<&str>| EntityToken {
            partition_key: partition_key.to_owned(),
            row_key: row_key.map(str::to_owned),
        };
        let bounds = KeyBounds {
            start: Some(("b".to_owned(), Some("5".to_owned()))),
            end: Some(("d".to_owned(), Some("7".to_owned()))),
        };
        for (next, expected) in [
            (token("a", Some("9")), Some(token("b", Some("5")))),
            (token("b", Some("4")), Some(token("b", Some("5")))),
            (token("b", None), Some(token("b", Some("5")))),
            (token("b", Some("5")), Some(token("b", Some("5")))),
            (token("c", None), Some(token("c", None))),
            (token("d", Some("7")), Some(token("d", Some("7")))),
            (token("d", Some("8")), None),
            (token("e", None), None),
        ] {
            assert_eq!(shown_next(next.clone(), false, Some(&bounds)), expected, "{next:?}");
            assert_eq!(shown_next(next.clone(), false, None), Some(next));
        }
        // The same from the other end.
        for (next, expected) in [
            (token("e", None), Some(token("d", Some("7")))),
            (token("d", Some("8")), Some(token("d", Some("7")))),
            (token("d", Some("7")), Some(token("d", Some("7")))),
            (token("b", Some("5")), Some(token("b", Some("5")))),
            (token("b", Some("4")), None),
            (token("a", None), None),
        ] {
            assert_eq!(shown_next(next.clone(), true, Some(&bounds)), expected, "{next:?}");
        }
        let partitions = KeyBounds { start: Some(("b".to_owned(), None)), end: None };
        assert_eq!(shown_next(token("a", Some("9")), false, Some(&partitions)), Some(token("b", None)));
        assert_eq!(shown_next(token("z", Some("9")), false, Some(&partitions)), Some(token("z", Some("9"))));
    }

    #[test]
    fn starts() {
        let start = parse_start(&query("NextPartitionKey=1!8!U21pdGg-&NextRowKey="), false).expect("start");
        assert_eq!(start.map(|start| (start.partition_key, start.row_key)), Some(("Smith".into(), None)));
        assert!(parse_start(&query("NextRowKey=1!8!U21pdGg-"), false).is_err());
        assert!(parse_start(&query("NextPartitionKey=Smith"), false).is_err());
        assert_eq!(parse_start(&query(""), true), Ok(None));
    }
}
