//! How much of a container an operation may touch, where its query does not say so: a pure choice by its
//! name.

/// The class of an operation by its name: `none`, `container`, `list`, `queue`, `batch` or `point`.
pub(crate) fn key_class_of(operation: &str) -> &'static str {
    let has = |part: &str| operation.contains(part);
    if has("Service")
        || matches!(operation, "unknown" | "NotServed" | "GetAccountInformation" | "GetUserDelegationKey")
    {
        "none"
    } else if operation.starts_with("List") || matches!(operation, "QueryTables" | "FindBlobsByTags") {
        "list"
    } else if operation.ends_with("Batch") || operation.ends_with("Transaction") {
        "batch"
    } else if operation.ends_with("Messages") || operation == "PutMessage" {
        "queue"
    } else if has("Container") || has("Queue") || has("Table") {
        "container"
    } else {
        "point"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_classes() {
        for (class, operations) in [
            (
                "none",
                &["unknown", "GetTableServiceProperties", "GetBlobServiceStats", "GetUserDelegationKey"][..],
            ),
            ("list", &["ListBlobs", "ListQueues", "QueryTables", "FindBlobsByTags"]),
            ("batch", &["EntityGroupTransaction", "BlobBatch"]),
            ("queue", &["GetMessages", "PeekMessages", "ClearMessages", "PutMessage"]),
            ("container", &["CreateTable", "DeleteContainer", "GetQueueACL", "LeaseContainer"]),
            ("point", &["GetEntity", "InsertOrMergeEntity", "DeleteMessage", "PutBlock", "GetBlobTags"]),
        ] {
            for operation in operations {
                assert_eq!(key_class_of(operation), class, "{operation}");
            }
        }
    }
}
