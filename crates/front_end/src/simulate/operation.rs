//! What a request does, as the simulation sees it, and the names of operations, which are those that Azure
//! writes to its logs.

use super::chance::hash;

/// What of the published targets a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The account's alone.
    Account,
    /// A partition of a table: the first two parts of the key.
    Partition,
    /// A queue: the first part of the key.
    Queue,
    /// A blob: the first two parts of the key.
    Blob {
        /// Whether it is known to be a page blob.
        is_page: bool,
    },
}

/// What a request does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    /// One of [`OPERATIONS`].
    pub(crate) name: &'static str,
    /// Table, PartitionKey and RowKey; container and blob; queue and message. What is not named is left out.
    pub(crate) key: &'a [&'a str],
    pub(crate) target: Target,
    /// Entities or messages, as far as they are known before the work is done.
    pub(crate) cost: u64,
}

impl Operation<'_> {
    /// Which place it is at; `None`: it counts against the account alone.
    pub(crate) fn place(&self, service: &str, account: &str) -> Option<u64> {
        let depth = match self.target {
            Target::Account => return None,
            Target::Queue => 1,
            Target::Partition | Target::Blob { .. } => 2,
        };
        let mut key = self.key.iter().take(depth);
        // Names of tables are the same in any case; those of queues and containers have one.
        let container = key.next().copied().unwrap_or_default().to_lowercase();
        let inner = key.next().copied().unwrap_or_default();
        Some(hash(0, &[service, account, &container, inner]))
    }
}

/// The names that a rule may give, sorted.
pub(crate) const OPERATIONS: [&str; 75] = [
    "AbortCopyBlob",
    "AppendBlock",
    "AppendBlockFromURL",
    "BlobBatch",
    "ClearMessages",
    "CopyBlob",
    "CreateContainer",
    "CreateQueue",
    "CreateTable",
    "DeleteBlob",
    "DeleteContainer",
    "DeleteEntity",
    "DeleteMessage",
    "DeleteQueue",
    "DeleteTable",
    "EntityGroupTransaction",
    "FindBlobsByTags",
    "GetAccountInformation",
    "GetBlob",
    "GetBlobMetadata",
    "GetBlobServiceProperties",
    "GetBlobServiceStats",
    "GetBlobTags",
    "GetBlockList",
    "GetContainerACL",
    "GetContainerProperties",
    "GetEntity",
    "GetMessages",
    "GetPageRegions",
    "GetQueueACL",
    "GetQueueMetadata",
    "GetQueueServiceProperties",
    "GetQueueServiceStats",
    "GetTable",
    "GetTableACL",
    "GetTableServiceProperties",
    "GetTableServiceStats",
    "GetUserDelegationKey",
    "InsertEntity",
    "InsertOrMergeEntity",
    "InsertOrReplaceEntity",
    "LeaseBlob",
    "LeaseContainer",
    "ListBlobs",
    "ListContainers",
    "ListQueues",
    "MergeEntity",
    "PeekMessages",
    "PutBlob",
    "PutBlobFromURL",
    "PutBlock",
    "PutBlockFromURL",
    "PutBlockList",
    "PutMessage",
    "PutPage",
    "PutPageFromURL",
    "QueryEntities",
    "QueryTables",
    "SealBlob",
    "SetBlobMetadata",
    "SetBlobProperties",
    "SetBlobServiceProperties",
    "SetBlobTags",
    "SetBlobTier",
    "SetContainerACL",
    "SetContainerMetadata",
    "SetQueueACL",
    "SetQueueMetadata",
    "SetQueueServiceProperties",
    "SetTableACL",
    "SetTableServiceProperties",
    "SnapshotBlob",
    "UndeleteBlob",
    "UpdateEntity",
    "UpdateMessage",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &[&str], target: Target) -> Option<u64> {
        Operation { name: "GetEntity", key, target, cost: 1 }.place("table", "one")
    }

    #[test]
    fn places_are_told_apart_as_far_as_targets_do() {
        let partition = place(&["Tasks", "p", "r"], Target::Partition);
        assert_eq!(partition, place(&["tasks", "p", "other"], Target::Partition));
        assert_ne!(partition, place(&["tasks", "q", "r"], Target::Partition));
        assert_ne!(partition, place(&["tasks", "P", "r"], Target::Partition));
        assert_eq!(place(&["jobs", "1"], Target::Queue), place(&["jobs", "2"], Target::Queue));
        assert_eq!(place(&["jobs"], Target::Account), None);
        let blob = Operation {
            name: "GetBlob",
            key: &["box", "b"],
            target: Target::Blob { is_page: true },
            cost: 1,
        };
        assert_ne!(blob.place("blob", "one"), blob.place("blob", "two"));
    }
}
