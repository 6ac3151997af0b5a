//! What each operation of the Queue service needs of a signature.

use crate::auth::grant::Need;

/// What an operation of the Queue service needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueNeed {
    /// Get service properties or stats.
    ReadService,
    /// Set service properties.
    WriteService,
    /// List queues.
    ListQueues,
    /// Create a queue.
    CreateQueue,
    /// Delete a queue.
    DeleteQueue,
    /// Get a queue's metadata.
    ReadMetadata,
    /// Set a queue's metadata.
    WriteMetadata,
    /// Put a message.
    PutMessage,
    /// Get messages, or delete one: both are what a consumer does.
    ProcessMessages,
    /// Peek at messages.
    PeekMessages,
    /// Update a message.
    UpdateMessage,
    /// Delete all messages.
    ClearMessages,
    /// Get or set stored access policies: never by signature.
    Policies,
    /// Get a user delegation key: never by signature.
    UserDelegationKey,
}

impl Need for QueueNeed {
    const SERVICE: char = 'q';

    fn resource_types(self) -> &'static [char] {
        match self {
            QueueNeed::ReadService | QueueNeed::WriteService | QueueNeed::ListQueues => &['s'],
            QueueNeed::CreateQueue
            | QueueNeed::DeleteQueue
            | QueueNeed::ReadMetadata
            | QueueNeed::WriteMetadata => &['c'],
            QueueNeed::Policies | QueueNeed::UserDelegationKey => &[],
            _ => &['o'],
        }
    }

    fn account_permissions(self) -> &'static [&'static str] {
        match self {
            QueueNeed::ReadService | QueueNeed::ReadMetadata | QueueNeed::PeekMessages => &["r"],
            QueueNeed::WriteService | QueueNeed::WriteMetadata => &["w"],
            QueueNeed::ListQueues => &["l"],
            QueueNeed::CreateQueue => &["c", "w"],
            QueueNeed::DeleteQueue | QueueNeed::ClearMessages => &["d"],
            QueueNeed::PutMessage => &["a"],
            QueueNeed::ProcessMessages => &["p"],
            QueueNeed::UpdateMessage => &["u"],
            QueueNeed::Policies | QueueNeed::UserDelegationKey => &[],
        }
    }

    fn service_permissions(self) -> Option<&'static [&'static str]> {
        let is_granted = matches!(
            self,
            QueueNeed::ReadMetadata
                | QueueNeed::PutMessage
                | QueueNeed::ProcessMessages
                | QueueNeed::PeekMessages
                | QueueNeed::UpdateMessage
        );
        is_granted.then(|| self.account_permissions())
    }
}
