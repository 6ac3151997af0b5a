//! Which operation a request is for.

use super::headers::Headers;
use super::need::BlobNeed;
use super::target::Target;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use hyper::Method;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    ReadServiceProperties,
    WriteServiceProperties,
    ReadServiceStats,
    ListContainers,
    AccountInformation,
    UserDelegationKey,
    FindBlobs,
    Batch,
    CreateContainer,
    ReadContainer,
    SetContainerMetadata,
    ReadPolicies,
    WritePolicies,
    LeaseContainer,
    DeleteContainer,
    ListBlobs,
    ReadBlob,
    PutBlob,
    PutBlobFromUrl,
    CopyBlob,
    AbortCopy,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    ReadBlockList,
    AppendBlock,
    AppendBlockFromUrl,
    SealBlob,
    PutPages,
    PutPagesFromUrl,
    ReadPageRanges,
    SetBlobProperties,
    ReadBlobMetadata,
    SetBlobMetadata,
    ReadTags,
    WriteTags,
    SetTier,
    LeaseBlob,
    SnapshotBlob,
    DeleteBlob,
    UndeleteBlob,
    /// Known, but not served here.
    NotServed,
}

impl Route {
    /// Whether it is done to a snapshot, if one is named.
    pub(crate) fn takes_snapshot(self) -> bool {
        matches!(
            self,
            Route::ReadBlob
                | Route::ReadBlobMetadata
                | Route::ReadBlockList
                | Route::ReadPageRanges
                | Route::ReadTags
                | Route::WriteTags
                | Route::SetTier
                | Route::DeleteBlob
                | Route::AccountInformation
                // It says that it is not served, whatever it is about.
                | Route::NotServed
        )
    }

    /// Whether it reaches blobs of names that no new blob gets: what reads and what deletes, and the leases
    /// that may be in the way of a deletion.
    pub(crate) fn serves_former_names(self) -> bool {
        self.is_read() || matches!(self, Route::DeleteBlob | Route::UndeleteBlob | Route::LeaseBlob)
    }

    /// Finds the operation.
    pub(crate) fn find(
        method: &Method,
        target: &Target,
        query: &QueryParameters<'_>,
        headers: Headers<'_>,
    ) -> Result<Route, ApiError> {
        let comp = query.find("comp").unwrap_or_default();
        let restype = query.find("restype").unwrap_or_default();
        if restype == "account" && comp == "properties" && (method == Method::GET || method == Method::HEAD) {
            return Ok(Route::AccountInformation);
        }
        // Of Data Lake Storage, whose paths would be taken for those of blobs.
        let is_path_kind = |kind: &str| {
            ["account", "filesystem", "file", "directory"]
                .iter()
                .any(|known| kind.eq_ignore_ascii_case(known))
        };
        if query.find("resource").is_some_and(is_path_kind) {
            return Ok(Route::NotServed);
        }
        let found = match target {
            Target::Account => Self::of_account(method, comp, restype),
            Target::Container(_) if restype == "container" => Self::of_container(method, comp),
            // A blob whose name happens to be empty, perhaps: what was meant for it must not reach the
            // container.
            Target::Container(_) => None,
            Target::Blob { .. } => Self::of_blob(method, comp, headers),
        };
        let unknown = |name, value| ApiError::invalid_parameter(name, value, "");
        let names_container_only = matches!(target, Target::Container(_)) && restype != "container";
        found.ok_or_else(|| match *method {
            _ if names_container_only && restype.is_empty() && comp.is_empty() => {
                ApiError::new(ErrorCode::InvalidUri)
            }
            _ if names_container_only && !restype.is_empty() => unknown("restype", restype),
            _ if names_container_only => unknown("comp", comp),
            // A container without a name (recorded).
            _ if *target == Target::Account && !restype.is_empty() && comp.is_empty() => {
                unknown("comp", comp)
            }
            Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::POST if !comp.is_empty() => {
                unknown("comp", comp)
            }
            _ => ApiError::new(ErrorCode::UnsupportedHttpVerb),
        })
    }

    fn of_account(method: &Method, comp: &str, restype: &str) -> Option<Route> {
        Some(match (method.as_str(), comp) {
            ("GET", "properties") if restype == "service" => Route::ReadServiceProperties,
            ("PUT", "properties") if restype == "service" => Route::WriteServiceProperties,
            ("GET", "stats") if restype == "service" => Route::ReadServiceStats,
            ("GET", "list") => Route::ListContainers,
            ("GET", "blobs") => Route::FindBlobs,
            ("POST", "batch") => Route::Batch,
            ("POST", "userdelegationkey") => Route::UserDelegationKey,
            _ => return None,
        })
    }

    fn of_container(method: &Method, comp: &str) -> Option<Route> {
        Some(match (method.as_str(), comp) {
            ("PUT", "") => Route::CreateContainer,
            ("GET" | "HEAD", "" | "metadata") => Route::ReadContainer,
            ("PUT", "metadata") => Route::SetContainerMetadata,
            ("GET" | "HEAD", "acl") => Route::ReadPolicies,
            ("PUT", "acl") => Route::WritePolicies,
            ("PUT", "lease") => Route::LeaseContainer,
            ("DELETE", "") => Route::DeleteContainer,
            ("GET", "list") => Route::ListBlobs,
            ("GET", "blobs") => Route::FindBlobs,
            ("POST", "batch") => Route::Batch,
            ("PUT", "undelete" | "rename") => Route::NotServed,
            _ => return None,
        })
    }

    fn of_blob(method: &Method, comp: &str, headers: Headers<'_>) -> Option<Route> {
        let from_url = headers.contains_key("x-ms-copy-source");
        Some(match (method.as_str(), comp) {
            ("GET" | "HEAD", "") => Route::ReadBlob,
            ("PUT", "") if from_url && headers.contains_key("x-ms-blob-type") => Route::PutBlobFromUrl,
            ("PUT", "") if from_url => Route::CopyBlob,
            ("PUT", "") => Route::PutBlob,
            ("PUT", "copy") => Route::AbortCopy,
            ("PUT", "block") if from_url => Route::PutBlockFromUrl,
            ("PUT", "block") => Route::PutBlock,
            ("PUT", "blocklist") => Route::PutBlockList,
            ("GET", "blocklist") => Route::ReadBlockList,
            ("PUT", "appendblock") if from_url => Route::AppendBlockFromUrl,
            ("PUT", "appendblock") => Route::AppendBlock,
            ("PUT", "seal") => Route::SealBlob,
            ("PUT", "page") if from_url => Route::PutPagesFromUrl,
            ("PUT", "page") => Route::PutPages,
            ("GET", "pagelist") => Route::ReadPageRanges,
            ("PUT", "properties") => Route::SetBlobProperties,
            ("GET" | "HEAD", "metadata") => Route::ReadBlobMetadata,
            ("PUT", "metadata") => Route::SetBlobMetadata,
            ("GET", "tags") => Route::ReadTags,
            ("PUT", "tags") => Route::WriteTags,
            ("PUT", "tier") => Route::SetTier,
            ("PUT", "lease") => Route::LeaseBlob,
            ("PUT", "snapshot") => Route::SnapshotBlob,
            ("DELETE", "") => Route::DeleteBlob,
            ("PUT", "undelete") => Route::UndeleteBlob,
            ("PUT", "incrementalcopy" | "immutabilityPolicies" | "legalhold" | "expiry")
            | ("DELETE", "immutabilityPolicies")
            | ("POST", "query") => Route::NotServed,
            _ => return None,
        })
    }

    /// What a signature must grant.
    pub(crate) fn need(self) -> BlobNeed {
        match self {
            Route::ReadServiceProperties | Route::ReadServiceStats => BlobNeed::ReadService,
            Route::WriteServiceProperties => BlobNeed::WriteService,
            Route::ListContainers => BlobNeed::ListContainers,
            Route::AccountInformation => BlobNeed::AccountInformation,
            Route::UserDelegationKey | Route::ReadPolicies | Route::WritePolicies => BlobNeed::Never,
            Route::FindBlobs => BlobNeed::FindBlobs,
            Route::Batch => BlobNeed::Batch,
            Route::CreateContainer => BlobNeed::CreateContainer,
            Route::ReadContainer => BlobNeed::ReadContainer,
            Route::SetContainerMetadata => BlobNeed::WriteContainer,
            Route::LeaseContainer => BlobNeed::LeaseContainer,
            Route::DeleteContainer => BlobNeed::DeleteContainer,
            Route::ListBlobs => BlobNeed::ListBlobs,
            Route::ReadBlob | Route::ReadBlockList | Route::ReadPageRanges | Route::ReadBlobMetadata => {
                BlobNeed::ReadBlob
            }
            Route::PutBlob | Route::PutBlobFromUrl | Route::CopyBlob | Route::SnapshotBlob => {
                BlobNeed::CreateBlob
            }
            Route::AppendBlock | Route::AppendBlockFromUrl => BlobNeed::AppendBlob,
            Route::ReadTags | Route::WriteTags => BlobNeed::Tags,
            Route::LeaseBlob => BlobNeed::LeaseBlob,
            Route::DeleteBlob => BlobNeed::DeleteBlob,
            Route::PutBlock
            | Route::PutBlockFromUrl
            | Route::PutBlockList
            | Route::SealBlob
            | Route::PutPages
            | Route::PutPagesFromUrl
            | Route::AbortCopy
            | Route::SetBlobProperties
            | Route::SetBlobMetadata
            | Route::SetTier
            | Route::UndeleteBlob
            | Route::NotServed => BlobNeed::WriteBlob,
        }
    }

    /// Its name in Azure's logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Route::ReadServiceProperties => "GetBlobServiceProperties",
            Route::WriteServiceProperties => "SetBlobServiceProperties",
            Route::ReadServiceStats => "GetBlobServiceStats",
            Route::ListContainers => "ListContainers",
            Route::AccountInformation => "GetAccountInformation",
            Route::UserDelegationKey => "GetUserDelegationKey",
            Route::FindBlobs => "FindBlobsByTags",
            Route::Batch => "BlobBatch",
            Route::CreateContainer => "CreateContainer",
            Route::ReadContainer => "GetContainerProperties",
            Route::SetContainerMetadata => "SetContainerMetadata",
            Route::ReadPolicies => "GetContainerACL",
            Route::WritePolicies => "SetContainerACL",
            Route::LeaseContainer => "LeaseContainer",
            Route::DeleteContainer => "DeleteContainer",
            Route::ListBlobs => "ListBlobs",
            Route::ReadBlob => "GetBlob",
            Route::PutBlob => "PutBlob",
            Route::PutBlobFromUrl => "PutBlobFromURL",
            Route::CopyBlob => "CopyBlob",
            Route::AbortCopy => "AbortCopyBlob",
            Route::PutBlock => "PutBlock",
            Route::PutBlockFromUrl => "PutBlockFromURL",
            Route::PutBlockList => "PutBlockList",
            Route::ReadBlockList => "GetBlockList",
            Route::AppendBlock => "AppendBlock",
            Route::AppendBlockFromUrl => "AppendBlockFromURL",
            Route::SealBlob => "SealBlob",
            Route::PutPages => "PutPage",
            Route::PutPagesFromUrl => "PutPageFromURL",
            Route::ReadPageRanges => "GetPageRegions",
            Route::SetBlobProperties => "SetBlobProperties",
            Route::ReadBlobMetadata => "GetBlobMetadata",
            Route::SetBlobMetadata => "SetBlobMetadata",
            Route::ReadTags => "GetBlobTags",
            Route::WriteTags => "SetBlobTags",
            Route::SetTier => "SetBlobTier",
            Route::LeaseBlob => "LeaseBlob",
            Route::SnapshotBlob => "SnapshotBlob",
            Route::DeleteBlob => "DeleteBlob",
            Route::UndeleteBlob => "UndeleteBlob",
            Route::NotServed => "NotServed",
        }
    }

    /// Whether it makes a block blob bit by bit: a delegated signature that may create blobs may do it.
    pub(crate) fn makes_of_blocks(self) -> bool {
        matches!(self, Route::PutBlock | Route::PutBlockFromUrl | Route::PutBlockList)
    }

    /// Whether it changes nothing.
    pub(crate) fn is_read(self) -> bool {
        matches!(
            self,
            Route::ReadServiceProperties
                | Route::ReadServiceStats
                | Route::ListContainers
                | Route::AccountInformation
                | Route::FindBlobs
                | Route::ReadContainer
                | Route::ReadPolicies
                | Route::ListBlobs
                | Route::ReadBlob
                | Route::ReadBlockList
                | Route::ReadPageRanges
                | Route::ReadBlobMetadata
                | Route::ReadTags
        )
    }

    /// Whether a public blob, or a public container, serves it to anybody: `(blob, container)`.
    pub(crate) fn is_public(self) -> (bool, bool) {
        let of_blob = matches!(
            self,
            Route::ReadBlob | Route::ReadBlobMetadata | Route::ReadBlockList | Route::ReadPageRanges
        );
        (of_blob, of_blob || matches!(self, Route::ListBlobs | Route::ReadContainer))
    }
}
