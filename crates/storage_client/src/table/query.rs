//! Queries of entities, page by page.
//!
//! A page may be short, or empty, and yet not be the last one: only a page without continuation is. What
//! always holds: no page is asked for twice in a row, which a service that repeats its token would make
//! endless.

use super::entity::Entity;
use super::json::read_entities;
use super::snapshot_token::{SNAPSHOT, SnapshotToken};
use super::table_client::{TableClient, table_operation};
use crate::client::Operation;
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::text;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

pub(super) const NAME: &str = "query entities";
/// The header that names what is wanted beyond the protocol.
const EXTENSIONS: &str = "x-larimar-extensions";

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The `$filter`; all entities without one. [`crate::Value::literal`] writes its constants.
    pub filter: Option<String>,
    /// Properties to return; all if it is empty.
    pub select: Vec<String>,
    /// Entities in a page, at most; the service has 1,000 as its own bound.
    pub page_size_max: Option<u32>,
    /// Where to start: a former page's continuation.
    pub from: Option<Continuation>,
    /// What is wanted beyond the protocol; nothing by default.
    pub extensions: QueryExtensions,
}

/// What a query wants of Larimar beyond the protocol. Other services do not know the header, and answer as
/// they do without it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryExtensions {
    /// `startswith(property,'text')` may be in the filter. Other services refuse such a filter.
    pub starts_with: bool,
    /// From the last key to the first. Other services know no such order, and answer in that of keys.
    pub reverse: bool,
    /// Entities as they were when this snapshot was pinned. For the service that gave it only: others answer
    /// with what is there now.
    pub snapshot: Option<SnapshotToken>,
}

impl QueryExtensions {
    /// The headers that ask for it, and for `others` by their names.
    pub(super) fn headers(&self, others: &[&'static str]) -> Vec<(&'static str, String)> {
        let own = [(self.starts_with, "startswith"), (self.reverse, "reverse")];
        let own = own.into_iter().filter_map(|(is_wanted, name)| is_wanted.then_some(name));
        let names: Vec<&str> = own.chain(others.iter().copied()).collect();
        let extensions = (!names.is_empty()).then(|| (EXTENSIONS, names.join(",")));
        let snapshot = self.snapshot.as_ref().map(|token| (SNAPSHOT, token.to_string()));
        extensions.into_iter().chain(snapshot).collect()
    }
}

impl Query {
    /// All entities.
    pub fn all() -> Self {
        Query::default()
    }

    /// Those that match.
    pub fn matching(filter: impl Into<String>) -> Self {
        Query { filter: Some(filter.into()), ..Query::default() }
    }
}

/// Where the next page begins: the service's own text, to be kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// `NextPartitionKey`
    pub partition_key: String,
    /// `NextRowKey`; the service may leave it out.
    pub row_key: Option<String>,
}

/// A part of a query's result.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityPage {
    /// Its entities, perhaps none, in the order of their keys.
    pub entities: Vec<Entity>,
    /// Where the next page begins; none at the end.
    pub continuation: Option<Continuation>,
}

/// The pages of a query.
pub struct QueryPages {
    table: TableClient,
    query: Query,
    is_done: bool,
}

/// The entities of a query.
pub struct QueryEntities {
    pages: QueryPages,
    page: std::vec::IntoIter<Entity>,
}

impl TableClient {
    /// The pages of a query, none of which has been requested yet.
    pub fn query(&self, query: Query) -> QueryPages {
        QueryPages { table: self.clone(), query, is_done: false }
    }

    /// One page of a query.
    pub async fn query_page(&self, query: &Query) -> Result<EntityPage, Error> {
        let operation = page_operation(&format!("/{}", encode(&self.name)), query);
        let answer = self.client.send(&operation).await?;
        let entities = read_entities(&answer.body).map_err(|why| Error::unreadable(operation.name, why))?;
        Ok(EntityPage { entities, continuation: continuation_of(&answer.headers) })
    }
}

/// Where the next page begins, as the headers of an answer say.
pub(super) fn continuation_of(headers: &HeaderMap) -> Option<Continuation> {
    let partition_key = text(headers, "x-ms-continuation-nextpartitionkey");
    let row_key = text(headers, "x-ms-continuation-nextrowkey");
    // Of the partition with the empty key some services name the row only.
    (!partition_key.is_empty() || !row_key.is_empty()).then(|| Continuation {
        partition_key: partition_key.to_owned(),
        row_key: (!row_key.is_empty()).then(|| row_key.to_owned()),
    })
}

/// An error if the page that a query gave continues where it began.
pub(super) fn unless_repeated(query: &Query, continuation: &Option<Continuation>) -> Result<(), Error> {
    if continuation.is_some() && *continuation == query.from {
        return Err(Error::unreadable(NAME, "the page continues where it began"));
    }
    Ok(())
}

/// The request of a page; the table's path is encoded.
pub(super) fn page_operation(table_path: &str, query: &Query) -> Operation {
    let mut operation = table_operation(NAME, Method::GET, format!("{table_path}()"));
    if let Some(filter) = &query.filter {
        operation = operation.query("$filter", filter);
    }
    if !query.select.is_empty() {
        operation = operation.query("$select", query.select.join(","));
    }
    if let Some(count) = query.page_size_max {
        operation = operation.query("$top", count.to_string());
    }
    if let Some(from) = &query.from {
        operation = operation.query("NextPartitionKey", &from.partition_key);
        if let Some(row_key) = &from.row_key {
            operation = operation.query("NextRowKey", row_key);
        }
    }
    operation.extensions(query.extensions.headers(&[]))
}

impl Operation {
    /// With headers of extensions.
    pub(super) fn extensions(mut self, headers: Vec<(&'static str, String)>) -> Self {
        // Names and tokens are of letters and digits, so they are values of a header.
        let values =
            headers.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)));
        values.for_each(|(name, value)| drop(self.headers.insert(HeaderName::from_static(name), value)));
        self
    }
}

impl QueryPages {
    /// The next page, which may be empty; none after the last one. After an error the same page is requested
    /// again.
    pub async fn next_page(&mut self) -> Result<Option<EntityPage>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let page = self.table.query_page(&self.query).await?;
        unless_repeated(&self.query, &page.continuation)?;
        self.is_done = page.continuation.is_none();
        self.query.from = page.continuation.clone();
        Ok(Some(page))
    }

    /// Its entities, one after the other, over all pages.
    pub fn entities(self) -> QueryEntities {
        QueryEntities { pages: self, page: Vec::new().into_iter() }
    }
}

impl QueryEntities {
    /// The next entity; none after the last one.
    pub async fn next(&mut self) -> Result<Option<Entity>, Error> {
        loop {
            if let Some(entity) = self.page.next() {
                return Ok(Some(entity));
            }
            match self.pages.next_page().await? {
                Some(page) => self.page = page.entities.into_iter(),
                None => return Ok(None),
            }
        }
    }

    /// All that are left, at most `count_max`.
    pub async fn take(&mut self, count_max: usize) -> Result<Vec<Entity>, Error> {
        let mut taken = Vec::new();
        while taken.len() < count_max {
            match self.next().await? {
                Some(entity) => taken.push(entity),
                None => break,
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    /// A scan ended silently within the partition "".
    #[test]
    fn a_token_with_either_part_is_one() {
        let of = |partition: &'static str, row: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-ms-continuation-nextpartitionkey", HeaderValue::from_static(partition));
            headers.insert("x-ms-continuation-nextrowkey", HeaderValue::from_static(row));
            continuation_of(&headers).map(|token| (token.partition_key, token.row_key))
        };
        let some = |partition: &str, row: Option<&str>| Some((partition.to_owned(), row.map(str::to_owned)));
        assert_eq!(of("", ""), None);
        assert_eq!(of("p", ""), some("p", None));
        assert_eq!(of("", "r"), some("", Some("r")));
    }
}
