//! What each operation of the Blob service needs of a signature.

use crate::auth::grant::Need;

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlobNeed {
    ReadService,
    WriteService,
    ListContainers,
    CreateContainer,
    DeleteContainer,
    ReadContainer,
    WriteContainer,
    LeaseContainer,
    /// Access policies of a container, user delegation keys: never by signature.
    Never,
    AccountInformation,
    ListBlobs,
    FindBlobs,
    ReadBlob,
    /// Make a blob that may or may not be there.
    CreateBlob,
    WriteBlob,
    AppendBlob,
    DeleteBlob,
    /// A former version of a blob.
    DeleteVersion,
    LeaseBlob,
    Tags,
    /// Its parts have needs of their own.
    Batch,
}

impl Need for BlobNeed {
    const SERVICE: char = 'b';

    fn resource_types(self) -> &'static [char] {
        match self {
            BlobNeed::ReadService | BlobNeed::WriteService | BlobNeed::ListContainers => &['s'],
            BlobNeed::CreateContainer
            | BlobNeed::DeleteContainer
            | BlobNeed::ReadContainer
            | BlobNeed::WriteContainer
            | BlobNeed::LeaseContainer
            | BlobNeed::ListBlobs => &['c'],
            BlobNeed::FindBlobs => &['o', 'c', 's'],
            BlobNeed::Never => &[],
            BlobNeed::AccountInformation | BlobNeed::Batch => &['s', 'c', 'o'],
            _ => &['o'],
        }
    }

    fn account_permissions(self) -> &'static [&'static str] {
        match self {
            BlobNeed::ReadService | BlobNeed::ReadContainer | BlobNeed::ReadBlob => &["r"],
            BlobNeed::WriteService | BlobNeed::WriteContainer | BlobNeed::WriteBlob => &["w"],
            BlobNeed::ListContainers | BlobNeed::ListBlobs => &["l"],
            BlobNeed::CreateContainer | BlobNeed::CreateBlob => &["c", "w"],
            BlobNeed::DeleteContainer => &["d"],
            BlobNeed::DeleteBlob => &["d"],
            BlobNeed::DeleteVersion => &["x"],
            BlobNeed::LeaseContainer | BlobNeed::LeaseBlob => &["w", "d"],
            BlobNeed::Never => &[],
            BlobNeed::AccountInformation | BlobNeed::Batch => &[""],
            BlobNeed::FindBlobs => &["f"],
            BlobNeed::AppendBlob => &["a", "w"],
            BlobNeed::Tags => &["t"],
        }
    }

    fn service_permissions(self) -> Option<&'static [&'static str]> {
        let is_possible = matches!(
            self,
            BlobNeed::ListBlobs
                | BlobNeed::FindBlobs
                | BlobNeed::ReadBlob
                | BlobNeed::CreateBlob
                | BlobNeed::WriteBlob
                | BlobNeed::AppendBlob
                | BlobNeed::DeleteBlob
                | BlobNeed::DeleteVersion
                | BlobNeed::LeaseBlob
                | BlobNeed::Tags
                | BlobNeed::Batch
                | BlobNeed::AccountInformation
        );
        is_possible.then(|| self.account_permissions())
    }
}
