//! Which operation a request is for: from its verb, its resource and its parameters.

use super::TableResource;
use super::need::TableNeed;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use crate::table_api::entity_path::EntityAddress;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName};

/// The operation of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    ReadServiceProperties,
    WriteServiceProperties,
    ReadServiceStats,
    ListTables,
    ReadTable(String),
    CreateTable,
    DeleteTable(String),
    ReadPolicies(String),
    WritePolicies(String),
    QueryEntities(String),
    InsertEntity(String),
    ReadEntity(EntityAddress),
    /// Replace, or insert or replace.
    ReplaceEntity(EntityAddress),
    /// Merge, or insert or merge.
    MergeEntity(EntityAddress),
    DeleteEntity(EntityAddress),
    Batch,
    /// Something below a table: refused, but it matters whether the table is there.
    BelowTable {
        table: String,
        is_insert: bool,
    },
}

impl Route {
    /// The operation's name, as the protocol's logs have it; `conditional`: the request names a version.
    pub(crate) fn name(&self, conditional: bool) -> &'static str {
        match self {
            Route::ReadServiceProperties => "GetTableServiceProperties",
            Route::WriteServiceProperties => "SetTableServiceProperties",
            Route::ReadServiceStats => "GetTableServiceStats",
            Route::ListTables => "QueryTables",
            Route::ReadTable(_) => "GetTable",
            Route::CreateTable => "CreateTable",
            Route::DeleteTable(_) => "DeleteTable",
            Route::ReadPolicies(_) => "GetTableACL",
            Route::WritePolicies(_) => "SetTableACL",
            Route::QueryEntities(_) => "QueryEntities",
            Route::InsertEntity(_) => "InsertEntity",
            Route::ReadEntity(_) => "GetEntity",
            Route::ReplaceEntity(_) if conditional => "UpdateEntity",
            Route::ReplaceEntity(_) => "InsertOrReplaceEntity",
            Route::MergeEntity(_) if conditional => "MergeEntity",
            Route::MergeEntity(_) => "InsertOrMergeEntity",
            Route::DeleteEntity(_) => "DeleteEntity",
            Route::Batch => "EntityGroupTransaction",
            Route::BelowTable { .. } => "NotServed",
        }
    }
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Merge,
    Delete,
}

/// The message of what stands below a table.
pub(crate) const WRONG_KEY_COUNT: &str =
    "The number of keys specified in the URI does not match number of key properties for the resource.";

/// The header that tunnels a verb through `POST`.
const X_HTTP_METHOD: HeaderName = HeaderName::from_static("x-http-method");

impl Verb {
    /// A verb by its name; `MERGE` and `PATCH` are one.
    pub(crate) fn parse(name: &str) -> Option<Verb> {
        Some(match name {
            "GET" => Verb::Get,
            "POST" => Verb::Post,
            "PUT" => Verb::Put,
            "MERGE" | "PATCH" => Verb::Merge,
            "DELETE" => Verb::Delete,
            _ => return None,
        })
    }

    /// The verb of a request, which may be tunnelled.
    pub(crate) fn of_request(method: &Method, headers: &HeaderMap) -> Result<Verb, ApiError> {
        let mut tunnelled = headers.get_all(X_HTTP_METHOD).iter();
        let verb = Verb::parse(method.as_str());
        let Some(value) = tunnelled.next() else {
            return verb.ok_or_else(|| ErrorCode::UnsupportedHttpVerb.into());
        };
        if tunnelled.next().is_some() {
            return Err(ErrorCode::XMethodIncorrectCount.into());
        }
        Verb::tunnelled(verb, value.to_str().unwrap_or_default())
    }

    /// The verb that `X-HTTP-Method: value` names.
    pub(crate) fn tunnelled(verb: Option<Verb>, value: &str) -> Result<Verb, ApiError> {
        // One client says it twice in group transactions: `MERGE` with `X-HTTP-Method: MERGE`.
        if let Some(named @ (Verb::Merge | Verb::Put | Verb::Delete)) = Verb::parse(value)
            && verb == Some(named)
        {
            return Ok(named);
        }
        if verb != Some(Verb::Post) {
            return Err(ErrorCode::XMethodNotUsingPost.into());
        }
        match Verb::parse(value) {
            Some(verb @ (Verb::Merge | Verb::Put | Verb::Delete)) => Ok(verb),
            _ => Err(ErrorCode::XMethodIncorrectValue.into()),
        }
    }
}

impl Route {
    /// Finds the operation.
    pub(crate) fn find(
        verb: Verb,
        resource: TableResource,
        query: &QueryParameters<'_>,
    ) -> Result<Route, ApiError> {
        let comp = query.find("comp");
        match resource {
            TableResource::Service => match (query.find("restype"), comp, verb) {
                (Some("service"), Some("properties"), Verb::Get) => Ok(Route::ReadServiceProperties),
                (Some("service"), Some("properties"), Verb::Put) => Ok(Route::WriteServiceProperties),
                (Some("service"), Some("stats"), Verb::Get) => Ok(Route::ReadServiceStats),
                (Some("service"), Some("properties" | "stats"), _) => {
                    Err(ErrorCode::UnsupportedHttpVerb.into())
                }
                (None, None, _) => Err(ErrorCode::InvalidUri.into()),
                _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
            },
            TableResource::Entities(table) => match (comp, verb) {
                (None, Verb::Get) => Ok(Route::QueryEntities(table)),
                (None, Verb::Post) => Ok(Route::InsertEntity(table)),
                (Some("acl"), Verb::Get) => Ok(Route::ReadPolicies(table)),
                (Some("acl"), Verb::Put) => Ok(Route::WritePolicies(table)),
                (None | Some("acl"), _) => Err(ErrorCode::UnsupportedHttpVerb.into()),
                _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
            },
            _ if comp.is_some() => Err(ErrorCode::InvalidQueryParameterValue.into()),
            TableResource::Tables => match verb {
                Verb::Get => Ok(Route::ListTables),
                Verb::Post => Ok(Route::CreateTable),
                _ => Err(ErrorCode::MethodNotAllowed.into()),
            },
            TableResource::Table(table) => match verb {
                Verb::Get => Ok(Route::ReadTable(table)),
                Verb::Delete => Ok(Route::DeleteTable(table)),
                _ => Err(ErrorCode::MethodNotAllowed.into()),
            },
            TableResource::Entity(entity) => match verb {
                Verb::Get => Ok(Route::ReadEntity(entity)),
                Verb::Put => Ok(Route::ReplaceEntity(entity)),
                Verb::Merge => Ok(Route::MergeEntity(entity)),
                Verb::Delete => Ok(Route::DeleteEntity(entity)),
                Verb::Post => Err(ErrorCode::MethodNotAllowed.into()),
            },
            TableResource::BelowTable { table, has_keys } => {
                Ok(Route::BelowTable { table, is_insert: verb == Verb::Post && !has_keys })
            }
            TableResource::Batch => match verb {
                Verb::Post => Ok(Route::Batch),
                _ => Err(ErrorCode::MethodNotAllowed.into()),
            },
        }
    }

    /// What a shared access signature must grant. `conditional`: an update, not an upsert.
    pub(crate) fn need(&self, conditional: bool) -> TableNeed {
        match self {
            Route::ReadServiceProperties | Route::ReadServiceStats => TableNeed::ReadService,
            Route::WriteServiceProperties => TableNeed::WriteService,
            Route::ListTables | Route::ReadTable(_) => TableNeed::ListTables,
            Route::CreateTable => TableNeed::CreateTable,
            Route::DeleteTable(_) => TableNeed::DeleteTable,
            Route::ReadPolicies(_) | Route::WritePolicies(_) => TableNeed::Policies,
            Route::QueryEntities(_) | Route::ReadEntity(_) => TableNeed::ReadEntities,
            Route::BelowTable { is_insert: false, .. } => TableNeed::ReadEntities,
            Route::InsertEntity(_) | Route::BelowTable { .. } => TableNeed::InsertEntity,
            Route::ReplaceEntity(_) | Route::MergeEntity(_) if conditional => TableNeed::UpdateEntity,
            Route::ReplaceEntity(_) | Route::MergeEntity(_) => TableNeed::UpsertEntity,
            Route::DeleteEntity(_) => TableNeed::DeleteEntity,
            Route::Batch => TableNeed::Batch,
        }
    }

    /// The table it is on, if it is on one.
    pub(crate) fn table(&self) -> Option<&str> {
        match self {
            Route::ReadTable(table)
            | Route::DeleteTable(table)
            | Route::ReadPolicies(table)
            | Route::WritePolicies(table)
            | Route::QueryEntities(table)
            | Route::InsertEntity(table)
            | Route::BelowTable { table, .. } => Some(table),
            Route::ReadEntity(entity)
            | Route::ReplaceEntity(entity)
            | Route::MergeEntity(entity)
            | Route::DeleteEntity(entity) => Some(&entity.table),
            _ => None,
        }
    }

    /// Whether it changes nothing, and so may go to the secondary.
    pub(crate) fn is_read(&self) -> bool {
        matches!(
            self,
            Route::ReadServiceProperties
                | Route::ReadServiceStats
                | Route::ListTables
                | Route::ReadTable(_)
                | Route::ReadPolicies(_)
                | Route::QueryEntities(_)
                | Route::ReadEntity(_)
                | Route::BelowTable { is_insert: false, .. }
        )
    }

    /// Whether the request's body is read.
    pub(crate) fn has_body(&self) -> bool {
        match self {
            Route::DeleteTable(_) | Route::DeleteEntity(_) => false,
            _ => !self.is_read(),
        }
    }

    /// Whether it speaks XML, errors included.
    pub(crate) fn is_xml(&self) -> bool {
        matches!(
            self,
            Route::ReadServiceProperties
                | Route::WriteServiceProperties
                | Route::ReadServiceStats
                | Route::ReadPolicies(_)
                | Route::WritePolicies(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn route(verb: Verb, path: &str, query: &str) -> Result<Route, ErrorCode> {
        let query = QueryParameters::parse(Some(query)).expect("query");
        let resource = TableResource::parse(path).expect("path");
        Route::find(verb, resource, &query).map_err(|error| error.code)
    }

    #[test]
    fn operations_are_found() {
        let stats = "restype=service&comp=stats";
        assert_eq!(route(Verb::Get, "/", stats), Ok(Route::ReadServiceStats));
        assert_eq!(route(Verb::Get, "/T()", ""), Ok(Route::QueryEntities("T".into())));
        assert_eq!(route(Verb::Put, "/T", "comp=acl"), Ok(Route::WritePolicies("T".into())));
        assert_eq!(route(Verb::Post, "/$batch", ""), Ok(Route::Batch));
        assert_eq!(route(Verb::Put, "/Tables", ""), Err(ErrorCode::MethodNotAllowed));
        assert_eq!(route(Verb::Delete, "/T", ""), Err(ErrorCode::UnsupportedHttpVerb));
        assert_eq!(route(Verb::Get, "/T", "comp=x"), Err(ErrorCode::InvalidQueryParameterValue));
        assert_eq!(route(Verb::Get, "/", ""), Err(ErrorCode::InvalidUri));
    }

    #[test]
    fn verbs_are_tunnelled() {
        let mut headers = HeaderMap::new();
        let verb = |method: &Method, headers: &HeaderMap| {
            Verb::of_request(method, headers).map_err(|error| error.code)
        };
        assert_eq!(verb(&Method::POST, &headers), Ok(Verb::Post));
        assert_eq!(verb(&Method::HEAD, &headers), Err(ErrorCode::UnsupportedHttpVerb));
        headers.append(X_HTTP_METHOD, HeaderValue::from_static("MERGE"));
        assert_eq!(verb(&Method::POST, &headers), Ok(Verb::Merge));
        assert_eq!(verb(&Method::PUT, &headers), Err(ErrorCode::XMethodNotUsingPost));
        headers.append(X_HTTP_METHOD, HeaderValue::from_static("PUT"));
        assert_eq!(verb(&Method::POST, &headers), Err(ErrorCode::XMethodIncorrectCount));
        headers.insert(X_HTTP_METHOD, HeaderValue::from_static("GET"));
        assert_eq!(verb(&Method::POST, &headers), Err(ErrorCode::XMethodIncorrectValue));
    }
}
