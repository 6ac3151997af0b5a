//! What a query cost, in headers, on request.
//!
//! ```text
//! x-larimar-query-statistics: true        request
//!
//! x-larimar-query-class: row-range        answer: point, row-range, partition-range or table-scan
//! x-larimar-rows-read: 1000               rows examined for this page
//! x-larimar-rows-returned: 12             entities in this page
//! ```
//!
//! The class says how much of the table the query *can* touch, whatever is stored. What always holds: an
//! answer that did not request these headers has none of them.

use crate::reply::Reply;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use table::QueryClass;

const ASK: HeaderName = HeaderName::from_static("x-larimar-query-statistics");
const CLASS: HeaderName = HeaderName::from_static("x-larimar-query-class");
const ROWS_READ: HeaderName = HeaderName::from_static("x-larimar-rows-read");
const ROWS_RETURNED: HeaderName = HeaderName::from_static("x-larimar-rows-returned");

/// Whether a request wants statistics of its query.
pub(crate) fn are_requested(headers: &HeaderMap) -> bool {
    headers.get(ASK).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// What a query cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryStatistics {
    /// How much of the table it can touch.
    pub(crate) class: QueryClass,
    /// Rows examined.
    pub(crate) rows_read: u64,
    /// Entities in the answer.
    pub(crate) rows_returned: u64,
}

impl QueryStatistics {
    /// Adds the headers.
    pub(crate) fn put_into(self, reply: &mut Reply) {
        reply.header(CLASS, HeaderValue::from_static(self.class.name()));
        reply.header(ROWS_READ, HeaderValue::from(self.rows_read));
        reply.header(ROWS_RETURNED, HeaderValue::from(self.rows_returned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_requests_statistics() {
        let ask = |value| are_requested(&HeaderMap::from_iter([(ASK, HeaderValue::from_static(value))]));
        assert!(ask("true") && ask("True"));
        assert!(!ask("false") && !ask("") && !ask("1"));
        assert!(!are_requested(&HeaderMap::new()));
    }
}
