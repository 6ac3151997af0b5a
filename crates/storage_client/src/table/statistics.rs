//! A page of a query with what it cost, as far as the service says that.
//!
//! ```text
//! x-larimar-query-statistics: true        request
//! x-larimar-query-class: row-range        answer of Larimar; other services leave these out
//! x-larimar-rows-read: 1000
//! x-larimar-rows-returned: 12
//! ```
//!
//! What always holds: it is the same query, with the same retries, as one without statistics; a service that
//! does not know the header answers it all the same.

use super::json::count_entities;
use super::query::{Continuation, Query, continuation_of, page_operation, unless_repeated};
use super::table_client::TableClient;
use crate::error::Error;
use crate::wire::address_text::encode;
use crate::wire::header_text::text;
use hyper::header::HeaderMap;

/// What the service says of a page's cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryStatistics {
    /// How much of the table the query can touch: `point`, `row-range`, `partition-range` or `table-scan`.
    pub class: String,
    /// Rows that were examined for the page.
    pub rows_read: u64,
    /// Entities in the page, as the service counts them.
    pub rows_returned: u64,
}

/// A page whose entities were counted and not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredPage {
    /// Its entities.
    pub count: usize,
    /// Bytes of its body.
    pub size_bytes: usize,
    /// Where the next page begins; none at the end.
    pub continuation: Option<Continuation>,
    /// None of a service that does not say it.
    pub statistics: Option<QueryStatistics>,
}

impl TableClient {
    /// One page of a query, whose entities are counted, and its cost.
    pub async fn measured_page(&self, query: &Query) -> Result<MeasuredPage, Error> {
        let operation = page_operation(&format!("/{}", encode(&self.name)), query)
            .fixed("x-larimar-query-statistics", "true");
        let answer = self.client.send(&operation).await?;
        let count = count_entities(&answer.body).map_err(|why| Error::unreadable(operation.name, why))?;
        let continuation = continuation_of(&answer.headers);
        unless_repeated(query, &continuation)?;
        let statistics = statistics_of(&answer.headers);
        Ok(MeasuredPage { count, size_bytes: answer.body.len(), continuation, statistics })
    }
}

/// All three, or none.
fn statistics_of(headers: &HeaderMap) -> Option<QueryStatistics> {
    let class = text(headers, "x-larimar-query-class");
    let number = |name: &str| text(headers, name).parse().ok();
    Some(QueryStatistics {
        class: (!class.is_empty()).then(|| class.to_owned())?,
        rows_read: number("x-larimar-rows-read")?,
        rows_returned: number("x-larimar-rows-returned")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn a_service_says_all_or_nothing_is_taken() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            statistics_of(&pairs.iter().map(pair).collect::<HeaderMap>())
        };
        let all = [
            ("x-larimar-query-class", "point"),
            ("x-larimar-rows-read", "5"),
            ("x-larimar-rows-returned", "1"),
        ];
        let expected = QueryStatistics { class: "point".to_owned(), rows_read: 5, rows_returned: 1 };
        assert_eq!(of(&all), Some(expected));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&all[..2]), None);
        assert_eq!(of(&[all[0], all[1], ("x-larimar-rows-returned", "many")]), None);
    }
}
