//! The one table from error codes to status and message.
//!
//! Every error that leaves the front end is a row of this table, with the message of the row unless the place
//! that found the error has a better one.

use hyper::StatusCode;

macro_rules! error_codes {
    ($($name:ident $status:ident $message:literal)*) => {
        /// What went wrong, as the protocol names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = $message] $name,)*
        }

        impl ErrorCode {
            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    ErrorCode::NotModified => "ConditionNotMet",
                    ErrorCode::InvalidToken => "InvalidAuthenticationInfo",
                    $(#[allow(unreachable_patterns)] ErrorCode::$name => stringify!($name),)*
                }
            }

            /// The status it is answered with.
            pub fn status(self) -> StatusCode {
                match self { $(ErrorCode::$name => StatusCode::$status,)* }
            }

            /// The message unless there is a better one.
            pub fn message(self) -> &'static str {
                match self { $(ErrorCode::$name => $message,)* }
            }
        }
    };
}

error_codes! {
    InvalidInput BAD_REQUEST "One of the request inputs is not valid."
    OutOfRangeInput BAD_REQUEST "One of the request inputs is out of range."
    InvalidResourceName BAD_REQUEST "The specified resource name contains invalid characters."
    InvalidUri BAD_REQUEST "The requested URI does not represent any resource on the server."
    InvalidHeaderValue BAD_REQUEST "The value for one of the HTTP headers is not in the correct format."
    InvalidQueryParameterValue BAD_REQUEST "Value for one of the query parameters specified in the request URI is invalid."
    InvalidAuthenticationInfo BAD_REQUEST "Authentication information is not given in the correct format. Check the value of Authorization header."
    InvalidXmlDocument BAD_REQUEST "XML specified is not syntactically valid."
    InvalidMarker BAD_REQUEST "The specified marker is invalid."
    InvalidMetadata BAD_REQUEST "The specified metadata is invalid. It includes characters that are not permitted."
    MetadataTooLarge BAD_REQUEST "The size of the specified metadata exceeds the maximum size permitted."
    MissingRequiredQueryParameter BAD_REQUEST "A query parameter that's mandatory for this request is not specified."
    OutOfRangeQueryParameterValue BAD_REQUEST "One of the query parameters specified in the request URI is outside the permissible range."
    InvalidXmlNodeValue BAD_REQUEST "The value for one of the XML nodes is not in the correct format."
    AccountRequiresHttps BAD_REQUEST "The account being accessed does not support http. This port speaks TLS: use https in the address, or DefaultEndpointsProtocol=https in the connection string."
    HostInformationNotPresent BAD_REQUEST "The required host information is not present in the request. You must send one non-empty Host header or include the absolute URI in the request line."
    PropertiesNeedValue BAD_REQUEST "The values are not specified for all properties in the entity."
    PrimaryKeyPropertyIsInvalidType BAD_REQUEST "PartitionKey and RowKey must be of type Edm.String."
    PropertyNameInvalid BAD_REQUEST "The property name is invalid."
    PropertyNameTooLong BAD_REQUEST "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge BAD_REQUEST "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    TooManyProperties BAD_REQUEST "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
    EntityTooLarge BAD_REQUEST "The entity is larger than the maximum allowed size (1MB)."
    DuplicatePropertiesSpecified BAD_REQUEST "A property is specified more than one time."
    InvalidDuplicateRow BAD_REQUEST "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    CommandsInBatchActOnDifferentPartitions BAD_REQUEST "All commands in a batch must operate on same entity group."
    XMethodIncorrectCount BAD_REQUEST "More than one X-HTTP-Method is specified."
    XMethodIncorrectValue BAD_REQUEST "The specified X-HTTP-Method is invalid."
    XMethodNotUsingPost BAD_REQUEST "The request uses X-HTTP-Method with an HTTP verb other than POST."
    InvalidToken UNAUTHORIZED "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    NoAuthenticationInformation UNAUTHORIZED "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    AuthenticationFailed FORBIDDEN "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure FORBIDDEN "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch FORBIDDEN "This request is not authorized to perform this operation using this permission."
    AuthorizationServiceMismatch FORBIDDEN "This request is not authorized to perform this operation using this service."
    AuthorizationResourceTypeMismatch FORBIDDEN "This request is not authorized to perform this operation using this resource type."
    AuthorizationProtocolMismatch FORBIDDEN "This request is not authorized to perform this operation using this protocol."
    AuthorizationSourceIPMismatch FORBIDDEN "This request is not authorized to perform this operation using this source IP."
    InsufficientAccountPermissions FORBIDDEN "The account being accessed does not have sufficient permissions to execute this operation."
    CorsPreflightFailure FORBIDDEN "CORS not enabled or no matching rule found for this request."
    TableNotFound NOT_FOUND "The table specified does not exist."
    QueueNotFound NOT_FOUND "The specified queue does not exist."
    MessageNotFound NOT_FOUND "The specified message does not exist."
    ResourceNotFound NOT_FOUND "The specified resource does not exist."
    MethodNotAllowed METHOD_NOT_ALLOWED "The requested method is not allowed on the specified resource."
    UnsupportedHttpVerb METHOD_NOT_ALLOWED "The resource doesn't support specified Http Verb."
    TableAlreadyExists CONFLICT "The table specified already exists."
    QueueAlreadyExists CONFLICT "The specified queue already exists."
    EntityAlreadyExists CONFLICT "The specified entity already exists."
    SnapshotExpired GONE "The pinned snapshot is gone: its time was over, the server had no room for it, or was started anew. Begin again with another one."
    UpdateConditionNotSatisfied PRECONDITION_FAILED "The update condition specified in the request was not satisfied."
    RequestBodyTooLarge PAYLOAD_TOO_LARGE "The request body is too large and exceeds the maximum permissible limit."
    AtomFormatNotSupported UNSUPPORTED_MEDIA_TYPE "Atom format is not supported."
    JsonVerboseFormatNotSupported UNSUPPORTED_MEDIA_TYPE "JSON Verbose format is not supported."
    MediaTypeNotSupported UNSUPPORTED_MEDIA_TYPE "None of the provided media types are supported."
    NotModified NOT_MODIFIED "The condition specified using HTTP conditional header(s) is not met."
    UnsatisfiableCondition BAD_REQUEST "The request includes an unsatisfiable condition for this operation."
    MissingRequiredHeader BAD_REQUEST "An HTTP header that's mandatory for this request is not specified."
    MissingContentLengthHeader LENGTH_REQUIRED "Content-Length HTTP header is missing."
    ExceedsMaxBatchRequestCount BAD_REQUEST "The batch operation exceeds maximum number of allowed subrequests."
    MultipleConditionHeadersNotSupported BAD_REQUEST "Multiple condition headers are not supported."
    EmptyMetadataKey BAD_REQUEST "The key for one of the metadata key-value pairs is empty."
    InvalidMd5 BAD_REQUEST "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    Md5Mismatch BAD_REQUEST "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    Crc64Mismatch BAD_REQUEST "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    BothCrc64AndMd5HeaderPresent BAD_REQUEST "Both x-ms-content-crc64 header and Content-MD5 header are present."
    InvalidBlobOrBlock BAD_REQUEST "The specified blob or block content is invalid."
    InvalidBlockId BAD_REQUEST "The specified block ID is invalid. The block ID must be Base64-encoded."
    InvalidBlockList BAD_REQUEST "The specified block list is invalid."
    BlockListTooLong BAD_REQUEST "The block list may not contain more than 50,000 blocks."
    InvalidBlobTier BAD_REQUEST "The specified blob tier is invalid."
    AccessTierNotSupportedForBlobType BAD_REQUEST "The access tier is not supported for this blob type."
    PreviousSnapshotCannotBeNewer BAD_REQUEST "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
    TagsTooLarge BAD_REQUEST "The tags specified exceed the maximum permissible limit."
    EmptyTagName BAD_REQUEST "The name of one of the tag key-value pairs is empty."
    DuplicateTagNames BAD_REQUEST "The tags specified contain duplicate names."
    InvalidTag BAD_REQUEST "The tags specified are invalid. They contain characters that are not permitted."
    BothUserTagsAndSourceTagsCopyPresentException CONFLICT "A copy has the tags of its source, which x-ms-copy-source-tag-option asks for, or those of x-ms-tags, not both."
    UnsupportedHeader BAD_REQUEST "One of the HTTP headers specified in the request is not supported."
    CopyAcrossAccountsNotSupported BAD_REQUEST "The copy source account and destination account must be the same."
    UnauthorizedBlobOverwrite FORBIDDEN "This request is not authorized to perform blob overwrites."
    ContainerNotFound NOT_FOUND "The specified container does not exist."
    BlobNotFound NOT_FOUND "The specified blob does not exist."
    CannotVerifyCopySource NOT_FOUND "The specified blob does not exist."
    ContainerAlreadyExists CONFLICT "The specified container already exists."
    BlobAlreadyExists CONFLICT "The specified blob already exists."
    InvalidBlobType CONFLICT "The blob type is invalid for this operation."
    BlockCountExceedsLimit CONFLICT "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks, nor the committed one 50,000."
    BlobIsSealed CONFLICT "The specified blob is sealed, and its contents can't be modified unless the blob is re-created after a delete."
    BlobUsesCustomerSpecifiedEncryption CONFLICT "The blob is encrypted with customer specified encryption, but it was not provided in the request."
    BlobDoesNotUseCustomerSpecifiedEncryption CONFLICT "The blob does not use customer specified encryption."
    BlobCustomerSpecifiedEncryptionMismatch CONFLICT "The given customer specified encryption does not match the encryption used to encrypt the blob."
    BlobDoesNotMatchEncryptionScope CONFLICT "The encryption scope of the request is not that of the blob."
    RequestForbiddenByContainerEncryptionPolicy FORBIDDEN "The request is forbidden by the encryption policy of the container."
    OperationNotAllowedOnRootBlob FORBIDDEN "The operation is not allowed on the root blob, which is the current version."
    BlobArchived CONFLICT "This operation is not permitted on an archived blob."
    BlobBeingRehydrated CONFLICT "This operation is not permitted because the blob is being rehydrated."
    BlobOverwritten CONFLICT "The blob has been recreated since the previous snapshot was taken."
    SnapshotsPresent CONFLICT "This operation is not permitted while the blob has snapshots."
    PreviousSnapshotNotFound CONFLICT "The previous snapshot is not found."
    NoPendingCopyOperation CONFLICT "There is currently no pending copy operation."
    SequenceNumberIncrementTooLarge CONFLICT "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    LeaseAlreadyPresent CONFLICT "There is already a lease present."
    LeaseIsBreakingAndCannotBeAcquired CONFLICT "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."
    LeaseIsBreakingAndCannotBeChanged CONFLICT "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    LeaseIsBrokenAndCannotBeRenewed CONFLICT "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    LeaseIdMismatchWithLeaseOperation CONFLICT "The lease ID specified did not match the lease ID for the resource with the specified lease operation."
    LeaseNotPresentWithLeaseOperation CONFLICT "There is currently no lease on the resource."
    ConditionNotMet PRECONDITION_FAILED "The condition specified using HTTP conditional header(s) is not met."
    SourceConditionNotMet PRECONDITION_FAILED "The source condition specified using HTTP conditional header(s) is not met."
    TargetConditionNotMet PRECONDITION_FAILED "The target condition specified using HTTP conditional header(s) is not met."
    AppendPositionConditionNotMet PRECONDITION_FAILED "The append position condition specified was not met."
    MaxBlobSizeConditionNotMet PRECONDITION_FAILED "The max blob size condition specified was not met."
    SequenceNumberConditionNotMet PRECONDITION_FAILED "The sequence number condition specified was not met."
    LeaseIdMissing PRECONDITION_FAILED "There is currently a lease on the blob and no lease ID was specified in the request."
    LeaseIdMismatchWithBlobOperation PRECONDITION_FAILED "The lease ID specified did not match the lease ID for the blob."
    LeaseIdMismatchWithContainerOperation PRECONDITION_FAILED "The lease ID specified did not match the lease ID for the container."
    LeaseNotPresentWithBlobOperation PRECONDITION_FAILED "There is currently no lease on the blob."
    LeaseNotPresentWithContainerOperation PRECONDITION_FAILED "There is currently no lease on the container."
    LeaseLost PRECONDITION_FAILED "A lease ID was specified, but the lease for the blob has expired."
    InvalidRange RANGE_NOT_SATISFIABLE "The range specified is invalid for the current size of the resource."
    InvalidPageRange RANGE_NOT_SATISFIABLE "The page range specified is invalid."
    InternalError INTERNAL_SERVER_ERROR "The server encountered an internal error. Please retry the request."
    OperationTimedOut INTERNAL_SERVER_ERROR "Operation could not be completed within the specified time."
    NotImplemented NOT_IMPLEMENTED "The requested operation is not implemented on the specified resource."
    ServerBusy SERVICE_UNAVAILABLE "The server is currently unable to receive requests. Please retry your request."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_name_and_status() {
        assert_eq!(ErrorCode::TableNotFound.as_str(), "TableNotFound");
        assert_eq!(ErrorCode::TableNotFound.status(), StatusCode::NOT_FOUND);
        assert!(ErrorCode::TableNotFound.message().ends_with("does not exist."));
    }
}
