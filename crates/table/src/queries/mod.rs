//! Queries: what a client can request, the scans that fill a page, when a page ends, and the page itself.

pub(crate) mod entity_count;
pub(crate) mod entity_page;
pub(crate) mod entity_query;
pub(crate) mod entity_scan;
pub(crate) mod page_budget;
pub(crate) mod page_walk;
pub(crate) mod projection;
pub(crate) mod query_class;
pub(crate) mod table_list;
pub(crate) mod table_scan;
