//! Which operation a request is for: from its verb, its resource and its parameters.

use super::need::QueueNeed;
use super::queue_path::QueueResource;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use hyper::Method;

/// The operation of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    ReadServiceProperties,
    WriteServiceProperties,
    ReadServiceStats,
    GetUserDelegationKey,
    ListQueues,
    CreateQueue(String),
    DeleteQueue(String),
    ReadMetadata(String),
    WriteMetadata(String),
    ReadPolicies(String),
    WritePolicies(String),
    PutMessage(String),
    GetMessages(String),
    PeekMessages(String),
    ClearMessages(String),
    UpdateMessage(String, String),
    DeleteMessage(String, String),
}

impl Route {
    /// Finds the operation.
    pub(crate) fn find(
        method: &Method,
        resource: QueueResource,
        query: &QueryParameters<'_>,
    ) -> Result<Route, ApiError> {
        let is_read = method == Method::GET || method == Method::HEAD;
        let unsupported = || Err(ErrorCode::UnsupportedHttpVerb.into());
        let comp = query.find("comp");
        let restype = query.find("restype");
        let unknown = || {
            let (name, value) = comp.map_or(("restype", restype), |comp| ("comp", Some(comp)));
            Err(ApiError::invalid_parameter(name, value.unwrap_or_default(), "There is no such operation."))
        };
        if resource != QueueResource::Service
            && let Some(restype) = restype
        {
            // The request of another service's client, such as one that creates a blob container.
            return Err(ApiError::invalid_parameter(
                "restype",
                restype,
                "Only the service has a kind of resource.",
            ));
        }
        match resource {
            QueueResource::Service => match (restype, comp) {
                (None, Some("list")) if is_read => Ok(Route::ListQueues),
                (Some("service"), Some("properties")) if is_read => Ok(Route::ReadServiceProperties),
                (Some("service"), Some("properties")) if method == Method::PUT => {
                    Ok(Route::WriteServiceProperties)
                }
                (Some("service"), Some("stats")) if is_read => Ok(Route::ReadServiceStats),
                (Some("service"), Some("userdelegationkey")) if method == Method::POST => {
                    Ok(Route::GetUserDelegationKey)
                }
                (None, Some("list"))
                | (Some("service"), Some("properties" | "stats" | "userdelegationkey")) => unsupported(),
                // A queue without a name.
                (None, None) if method == Method::PUT || method == Method::DELETE => {
                    Err(ErrorCode::InvalidResourceName.into())
                }
                (None, None) => Err(ErrorCode::InvalidUri.into()),
                _ => unknown(),
            },
            QueueResource::Queue(queue) => match comp {
                None if method == Method::PUT => Ok(Route::CreateQueue(queue)),
                None if method == Method::DELETE => Ok(Route::DeleteQueue(queue)),
                Some("metadata") if is_read => Ok(Route::ReadMetadata(queue)),
                Some("metadata") if method == Method::PUT => Ok(Route::WriteMetadata(queue)),
                Some("acl") if is_read => Ok(Route::ReadPolicies(queue)),
                Some("acl") if method == Method::PUT => Ok(Route::WritePolicies(queue)),
                None | Some("metadata" | "acl") => unsupported(),
                _ => unknown(),
            },
            _ if comp.is_some() => unknown(),
            QueueResource::Messages(queue) => match *method {
                Method::POST => Ok(Route::PutMessage(queue)),
                Method::GET if peeks(query)? => Ok(Route::PeekMessages(queue)),
                Method::GET => Ok(Route::GetMessages(queue)),
                Method::DELETE => Ok(Route::ClearMessages(queue)),
                _ => unsupported(),
            },
            QueueResource::Message(queue, id) => match *method {
                Method::PUT => Ok(Route::UpdateMessage(queue, id)),
                Method::DELETE => Ok(Route::DeleteMessage(queue, id)),
                _ => unsupported(),
            },
        }
    }

    /// What a shared access signature must grant.
    pub(crate) fn need(&self) -> QueueNeed {
        match self {
            Route::ReadServiceProperties | Route::ReadServiceStats => QueueNeed::ReadService,
            Route::WriteServiceProperties => QueueNeed::WriteService,
            Route::GetUserDelegationKey => QueueNeed::UserDelegationKey,
            Route::ListQueues => QueueNeed::ListQueues,
            Route::CreateQueue(_) => QueueNeed::CreateQueue,
            Route::DeleteQueue(_) => QueueNeed::DeleteQueue,
            Route::ReadMetadata(_) => QueueNeed::ReadMetadata,
            Route::WriteMetadata(_) => QueueNeed::WriteMetadata,
            Route::ReadPolicies(_) | Route::WritePolicies(_) => QueueNeed::Policies,
            Route::PutMessage(_) => QueueNeed::PutMessage,
            Route::GetMessages(_) | Route::DeleteMessage(..) => QueueNeed::ProcessMessages,
            Route::PeekMessages(_) => QueueNeed::PeekMessages,
            Route::ClearMessages(_) => QueueNeed::ClearMessages,
            Route::UpdateMessage(..) => QueueNeed::UpdateMessage,
        }
    }

    /// Its name in Azure's logs.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Route::ReadServiceProperties => "GetQueueServiceProperties",
            Route::WriteServiceProperties => "SetQueueServiceProperties",
            Route::ReadServiceStats => "GetQueueServiceStats",
            Route::GetUserDelegationKey => "GetUserDelegationKey",
            Route::ListQueues => "ListQueues",
            Route::CreateQueue(_) => "CreateQueue",
            Route::DeleteQueue(_) => "DeleteQueue",
            Route::ReadMetadata(_) => "GetQueueMetadata",
            Route::WriteMetadata(_) => "SetQueueMetadata",
            Route::ReadPolicies(_) => "GetQueueACL",
            Route::WritePolicies(_) => "SetQueueACL",
            Route::PutMessage(_) => "PutMessage",
            Route::GetMessages(_) => "GetMessages",
            Route::PeekMessages(_) => "PeekMessages",
            Route::ClearMessages(_) => "ClearMessages",
            Route::UpdateMessage(..) => "UpdateMessage",
            Route::DeleteMessage(..) => "DeleteMessage",
        }
    }

    /// Whether it changes nothing, and so may go to the secondary.
    pub(crate) fn is_read(&self) -> bool {
        matches!(
            self,
            Route::ReadServiceProperties
                | Route::ReadServiceStats
                | Route::GetUserDelegationKey
                | Route::ListQueues
                | Route::ReadMetadata(_)
                | Route::ReadPolicies(_)
                | Route::PeekMessages(_)
        )
    }

    /// Whether the request's body is read.
    pub(crate) fn has_body(&self) -> bool {
        matches!(
            self,
            Route::WriteServiceProperties
                | Route::GetUserDelegationKey
                | Route::WritePolicies(_)
                | Route::PutMessage(_)
                | Route::UpdateMessage(..)
        )
    }
}

/// `peekonly`, if it is there, is a boolean.
fn peeks(query: &QueryParameters<'_>) -> Result<bool, ApiError> {
    match query.find("peekonly") {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => Err(ApiError::invalid_parameter("peekonly", text, "It must be true or false.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, path: &str, query: &str) -> Result<Route, ErrorCode> {
        let query = QueryParameters::parse(Some(query)).expect("query");
        let resource = QueueResource::parse(path).expect("path");
        Route::find(&method, resource, &query).map_err(|error| error.code)
    }

    #[test]
    fn operations_are_found() {
        let tasks = || "tasks".to_owned();
        assert_eq!(route(Method::GET, "/", "comp=list&prefix=a"), Ok(Route::ListQueues));
        assert_eq!(route(Method::GET, "/", "restype=service&comp=stats"), Ok(Route::ReadServiceStats));
        assert_eq!(route(Method::PUT, "/tasks", "timeout=5"), Ok(Route::CreateQueue(tasks())));
        assert_eq!(route(Method::HEAD, "/tasks", "comp=metadata"), Ok(Route::ReadMetadata(tasks())));
        assert_eq!(route(Method::PUT, "/tasks", "comp=acl"), Ok(Route::WritePolicies(tasks())));
        assert_eq!(route(Method::GET, "/tasks/messages", "peekonly=True"), Ok(Route::PeekMessages(tasks())));
        assert_eq!(route(Method::GET, "/tasks/messages", "peekonly=false"), Ok(Route::GetMessages(tasks())));
        assert_eq!(
            route(Method::DELETE, "/tasks/messages/1", "popreceipt=x"),
            Ok(Route::DeleteMessage(tasks(), "1".into()))
        );
        assert_eq!(route(Method::POST, "/tasks", ""), Err(ErrorCode::UnsupportedHttpVerb));
        assert_eq!(route(Method::PUT, "/", ""), Err(ErrorCode::InvalidResourceName));
        for path in ["/box", "/box/messages", "/box/messages/1"] {
            let refused = route(Method::PUT, path, "restype=container");
            assert_eq!(refused, Err(ErrorCode::InvalidQueryParameterValue), "{path}");
        }
        assert_eq!(route(Method::GET, "/", ""), Err(ErrorCode::InvalidUri));
        assert_eq!(route(Method::GET, "/tasks", "comp=x"), Err(ErrorCode::InvalidQueryParameterValue));
        assert_eq!(
            route(Method::GET, "/tasks/messages", "peekonly=x"),
            Err(ErrorCode::InvalidQueryParameterValue)
        );
    }
}
