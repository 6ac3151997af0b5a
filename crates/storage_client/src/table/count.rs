//! Counts of entities that the service makes, instead of entities that are counted here.
//!
//! ```text
//! x-larimar-extensions: count          request
//! x-larimar-rows-counted: 200000       answer of Larimar; other services send entities instead
//! x-larimar-bytes-counted: 31415926
//! ```
//!
//! What always holds: a service that does not count is known as such by its answer; a page of it has one
//! entity.

use super::query::{Continuation, Query, continuation_of, page_operation, unless_repeated};
use super::table_client::TableClient;
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::text;
use hyper::header::HeaderMap;

/// What the service has counted for one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityCount {
    /// Entities that match.
    pub entities: u64,
    /// Their sizes, as the service's limit of an entity counts them.
    pub size_bytes: u64,
    /// Where the next page begins; none at the end.
    pub continuation: Option<Continuation>,
}

impl TableClient {
    /// Has the service count the entities of a page of a query, which may be many more than a page of
    /// entities has; `None`: this service does not count. What the query says of properties and of the size
    /// of a page means nothing.
    pub async fn counted_by_service(&self, query: &Query) -> Result<Option<EntityCount>, Error> {
        // For a service that does not know what is wanted.
        let select = vec!["PartitionKey".to_owned()];
        let query = Query { select, page_size_max: Some(1), ..query.clone() };
        let operation = page_operation(&format!("/{}", encode(&self.name)), &query);
        let operation = operation.extensions(query.extensions.headers(&["count"]));
        let answer = match self.client.send(&operation).await {
            // An earlier version, which knows of other extensions.
            Err(error) if error.code() == "InvalidHeaderValue" => return Ok(None),
            answer => answer?,
        };
        let Some(counted) = count_of(&answer.headers) else { return Ok(None) };
        unless_repeated(&query, &counted.continuation)?;
        Ok(Some(counted))
    }
}

fn count_of(headers: &HeaderMap) -> Option<EntityCount> {
    let number = |name: &str| text(headers, name).parse().ok();
    Some(EntityCount {
        entities: number("x-larimar-rows-counted")?,
        size_bytes: number("x-larimar-bytes-counted")?,
        continuation: continuation_of(headers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn a_service_has_counted_all_or_nothing() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            count_of(&pairs.iter().map(pair).collect::<HeaderMap>())
        };
        let both = [("x-larimar-rows-counted", "5"), ("x-larimar-bytes-counted", "120")];
        let expected = EntityCount { entities: 5, size_bytes: 120, continuation: None };
        assert_eq!(of(&both), Some(expected));
        assert_eq!(of(&both[..1]), None);
        assert_eq!(of(&[both[0], ("x-larimar-bytes-counted", "")]), None);
        assert_eq!(of(&[("x-ms-continuation-nextpartitionkey", "1!4!YQ--")]), None);
    }
}
