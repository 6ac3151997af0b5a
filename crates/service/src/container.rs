//! Where containers (tables, blob containers, queues) and service settings lie in the Container object table.
//!
//! ```text
//! container row = (account, 0, service, lower-cased name)
//! settings row  = (account, 1, service, "properties")
//! ```
//!
//! Why: all container rows of one account and service share a partition name, so their row versions never
//! repeat and the version of a container's creation serves as its id; listing is one range in name order.

use partition::key::put_text_open;
use partition::{KeyRange, RowKey, RowKeyParts};

/// Partition name of the Table service's rows.
pub const SERVICE_TABLE: &str = "table";
/// Partition name of the Blob service's rows.
pub const SERVICE_BLOB: &str = "blob";
/// Partition name of the Queue service's rows.
pub const SERVICE_QUEUE: &str = "queue";

const CONTAINERS: u64 = 0;
const SETTINGS: u64 = 1;

/// The key of a container's row; names match whatever their case.
pub fn container_key(account: &str, service: &str, name: &str) -> RowKey {
    RowKey::new(account, CONTAINERS, service, &name.to_ascii_lowercase())
}

/// All container rows of one account and service.
pub fn containers_range(account: &str, service: &str) -> KeyRange {
    KeyRange::partition(account, CONTAINERS, service)
}

/// The container rows of one account and service whose lower-case names start with `prefix`.
pub fn containers_with_prefix(account: &str, service: &str, prefix: &str) -> KeyRange {
    let mut start = containers_range(account, service).start.to_vec();
    put_text_open(&mut start, prefix);
    KeyRange::prefix(start)
}

/// Whether these are the parts of a container row's key; the partition name is the service then.
pub fn is_container(parts: &RowKeyParts) -> bool {
    parts.container_id == CONTAINERS
}

/// The key of the row that holds a service's properties.
pub fn settings_key(account: &str, service: &str) -> RowKey {
    RowKey::new(account, SETTINGS, service, "properties")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_sees_the_containers_and_not_the_settings() {
        let range = containers_range("acct", SERVICE_TABLE);
        assert!(range.contains(container_key("acct", SERVICE_TABLE, "People").as_bytes()));
        assert!(!range.contains(container_key("acct", SERVICE_QUEUE, "people").as_bytes()));
        assert!(!range.contains(container_key("acct2", SERVICE_TABLE, "people").as_bytes()));
        assert!(!range.contains(settings_key("acct", SERVICE_TABLE).as_bytes()));
    }

    #[test]
    fn a_prefix_is_that_of_names() {
        let range = containers_with_prefix("acct", SERVICE_QUEUE, "ab");
        let contains = |name| range.contains(container_key("acct", SERVICE_QUEUE, name).as_bytes());
        assert!(contains("ab") && contains("abc") && !contains("a") && !contains("ac"));
        let all = containers_with_prefix("acct", SERVICE_QUEUE, "");
        assert_eq!(all, containers_range("acct", SERVICE_QUEUE));
    }

    #[test]
    fn case_does_not_matter() {
        assert_eq!(container_key("a", SERVICE_TABLE, "People"), container_key("a", SERVICE_TABLE, "pEOPLE"));
    }
}
