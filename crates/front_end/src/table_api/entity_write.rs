//! Insert, replace, merge, upsert and delete: from a request to an operation, and from its outcome to a
//! reply.
//!
//! The same two steps serve a single request and an operation of a batch.

use super::admit::admit_write;
use super::errors::from_table;
use super::request_context::RequestContext;
use super::route::Route;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::json::entity_reader::{EntityBody, read_entity};
use crate::json::entity_writer::{
    AnswerContext, EntityFields, Selection, put_entity_address, put_single_entity,
};
use crate::reply::negotiation::MetadataLevel;
use crate::reply::{DATA_SERVICE_ID, DATA_SERVICE_VERSION, PREFERENCE_APPLIED, Reply};
use crate::table_api::entity_path::EntityAddress;
use base::Ticks;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderValue, LOCATION};
use service::{Condition, DateTimeText, format_etag, parse_if_match};
use std::convert::Infallible;
use table::{EntityOperation, EntityOutcome, EntityVerb, Properties};

/// Whether a client wants the new entity back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// `return-content`
    Content,
    /// `return-no-content`
    NoContent,
}

impl Preference {
    /// Reads a `Prefer` value; others are ignored.
    pub(crate) fn parse(value: &str) -> Option<Preference> {
        value.split([',', ';']).find_map(|part| match part.trim() {
            part if part.eq_ignore_ascii_case("return-content") => Some(Preference::Content),
            part if part.eq_ignore_ascii_case("return-no-content") => Some(Preference::NoContent),
            _ => None,
        })
    }

    /// The value of `Preference-Applied`.
    pub(crate) fn applied(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Preference::Content => "return-content",
            Preference::NoContent => "return-no-content",
        })
    }
}

/// What of a write's headers matters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteHeaders<'a> {
    /// `If-Match`, if present.
    pub(crate) if_match: Option<&'a str>,
    /// Whether there is an `If-None-Match`.
    pub(crate) has_if_none_match: bool,
    /// `Prefer`, if present.
    pub(crate) preference: Option<Preference>,
    /// The form of the answer.
    pub(crate) level: MetadataLevel,
}

/// A write, ready to be executed.
pub(crate) struct PlannedWrite {
    /// The table.
    pub(crate) table: String,
    /// What the Table service does.
    pub(crate) operation: EntityOperation,
    /// What the reply needs afterwards.
    pub(crate) answer: PlannedAnswer,
}

/// What the reply to a write needs.
pub(crate) struct PlannedAnswer {
    verb: EntityVerb,
    preference: Option<Preference>,
    level: MetadataLevel,
    /// The new entity's address, for an insert.
    location: Vec<u8>,
    /// The new entity, if it goes back.
    echo: Option<EntityEcho>,
}

struct EntityEcho {
    table: String,
    partition_key: String,
    row_key: String,
    properties: Properties,
}

/// Turns a request into an operation.
pub(crate) fn plan_write(
    context: &RequestContext<'_>,
    route: Route,
    headers: &WriteHeaders<'_>,
    body: &[u8],
) -> Result<PlannedWrite, ApiError> {
    if headers.has_if_none_match {
        return Err(ErrorCode::InvalidInput.into());
    }
    let condition = match headers.if_match {
        Some(value) => parse_if_match(value).map_err(|_| ApiError::new(ErrorCode::InvalidInput))?,
        None => Condition::None,
    };
    let conditional = condition != Condition::None;
    let (verb, address, properties) = match route {
        Route::InsertEntity(table) => {
            let entity = read_entity(body)?;
            if entity.has_typed_key {
                return Err(ErrorCode::PrimaryKeyPropertyIsInvalidType.into());
            }
            let EntityBody { partition_key: Some(partition_key), row_key: Some(row_key), properties, .. } =
                entity
            else {
                return Err(ErrorCode::PropertiesNeedValue.into());
            };
            let address = EntityAddress { table, partition_key, row_key };
            (EntityVerb::Insert, address, properties)
        }
        Route::ReplaceEntity(address) => {
            let verb = if conditional { EntityVerb::Replace } else { EntityVerb::InsertOrReplace };
            let properties = addressed_properties(body)?;
            (verb, address, properties)
        }
        Route::MergeEntity(address) => {
            let verb = if conditional { EntityVerb::Merge } else { EntityVerb::InsertOrMerge };
            let properties = addressed_properties(body)?;
            (verb, address, properties)
        }
        Route::DeleteEntity(address) => {
            // The reference demands the header; without it nothing says which version may go.
            if !conditional {
                return Err(ErrorCode::InvalidInput.into());
            }
            (EntityVerb::Delete, address, Properties::default())
        }
        _ => return Err(ErrorCode::InvalidInput.into()),
    };
    context.grant.check_keys(&address.partition_key, &address.row_key)?;
    let answer = plan_answer(context, verb, &address, headers, &properties);
    let EntityAddress { table, partition_key, row_key } = address;
    Ok(PlannedWrite {
        table,
        operation: EntityOperation {
            verb,
            partition_key,
            row_key,
            properties,
            condition: if verb == EntityVerb::Insert { Condition::None } else { condition },
        },
        answer,
    })
}

/// The properties in a body of an entity that the address names: keys in the body, which must be texts, say
/// nothing, as in Azure, whose own Python client until 12.1 sent others if they had quotes. There must be a
/// body: one that was lost on the way would leave nothing of an entity that is replaced.
fn addressed_properties(body: &[u8]) -> Result<Properties, ApiError> {
    if body.trim_ascii().is_empty() {
        return Err(ApiError::with_message(
            ErrorCode::InvalidInput,
            "The request has no body. Send {} for an entity without properties.",
        ));
    }
    Ok(read_entity(body)?.properties)
}

fn plan_answer(
    context: &RequestContext<'_>,
    verb: EntityVerb,
    address: &EntityAddress,
    headers: &WriteHeaders<'_>,
    properties: &Properties,
) -> PlannedAnswer {
    let is_insert = verb == EntityVerb::Insert;
    let mut location = Vec::new();
    if is_insert {
        location.reserve(context.base.len() + address.table.len() + 64);
        put_entity_address(
            &mut location,
            Some(context.base),
            &address.table,
            &address.partition_key,
            &address.row_key,
        );
    }
    let echoes = is_insert && headers.preference != Some(Preference::NoContent);
    PlannedAnswer {
        verb,
        preference: headers.preference.filter(|_| is_insert),
        level: headers.level,
        location,
        echo: echoes.then(|| EntityEcho {
            table: address.table.clone(),
            partition_key: address.partition_key.clone(),
            row_key: address.row_key.clone(),
            properties: properties.clone(),
        }),
    }
}

impl PlannedAnswer {
    /// The reply to a write that was done.
    pub(crate) fn finish(self, context: &RequestContext<'_>, outcome: EntityOutcome) -> Reply {
        let timestamp = DateTimeText::new(Ticks(outcome.version.0));
        let mut etag = Vec::with_capacity(64);
        format_etag(&timestamp, &mut etag);
        let mut reply = match &self.echo {
            Some(echo) => {
                let answer = AnswerContext {
                    level: self.level,
                    base: context.base,
                    account: context.account,
                    table: &echo.table,
                    select: None,
                };
                let own = echo.properties.0.iter();
                let own = own.map(|(name, value)| Ok::<_, Infallible>((name.as_str(), value.as_ref())));
                let entity = EntityFields {
                    partition_key: &echo.partition_key,
                    row_key: &echo.row_key,
                    timestamp: &timestamp,
                    etag: &etag,
                    properties: own,
                };
                let mut body = Vec::with_capacity(1024);
                let Ok(()) = put_single_entity(&mut body, &answer, entity, &Selection::new(None));
                Reply::json(StatusCode::CREATED, self.level.content_type(), body)
            }
            None => {
                let mut reply = Reply::new(StatusCode::NO_CONTENT);
                let version = if self.verb == EntityVerb::Insert { "3.0;" } else { "1.0;" };
                reply.header(DATA_SERVICE_VERSION, HeaderValue::from_static(version));
                reply
            }
        };
        if let Some(preference) = self.preference {
            reply.header(PREFERENCE_APPLIED, preference.applied());
        }
        if self.verb == EntityVerb::Insert
            && let Ok(location) = HeaderValue::from_maybe_shared(Bytes::from(self.location))
        {
            if self.echo.is_none() {
                reply.header(DATA_SERVICE_ID, location.clone());
            }
            reply.header(LOCATION, location);
        }
        if self.verb != EntityVerb::Delete {
            reply.header_bytes(ETAG, etag);
        }
        reply
    }
}

/// A single write.
pub(crate) async fn write_entity(
    context: &RequestContext<'_>,
    route: Route,
    headers: &WriteHeaders<'_>,
    body: Bytes,
) -> Result<Reply, ApiError> {
    let planned = plan_write(context, route, headers, &body)?;
    drop(body);
    if let Some(simulated) = context.environment.simulated {
        Box::pin(admit_write(simulated, &planned.table, &planned.operation)).await?;
    }
    let outcome = context
        .service
        .execute(context.account, &planned.table, planned.operation)
        .await
        .map_err(from_table)?;
    Ok(planned.answer.finish(context, outcome))
}
