//! What an authenticated request may do.
//!
//! Shared keys may do everything. A shared access signature grants letters: which services and resource types
//! (account signatures), which permissions, and for a service's signature one resource and perhaps a range of
//! keys.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use std::cmp::Ordering;
use table::edm::utf16_cmp;

/// What an operation of a service needs of a signature.
pub(crate) trait Need: Copy {
    /// The service's letter in account signatures.
    const SERVICE: char;

    /// Resource types of an account signature, any of which does; none: never by signature.
    fn resource_types(self) -> &'static [char];

    /// Permission sets of an account signature, any of which does.
    fn account_permissions(self) -> &'static [&'static str];

    /// Permission sets of a service signature, any of which does; `None`: never by a service signature.
    fn service_permissions(self) -> Option<&'static [&'static str]>;
}

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Signed with an account key.
    Everything,
    /// Nobody signed: only what is public.
    Anonymous,
    /// An account signature.
    Account {
        /// Service letters.
        services: String,
        /// Resource type letters.
        resource_types: String,
        /// Permission letters.
        permissions: String,
    },
    /// A service signature for one resource.
    Service {
        /// The resource's name below the account; a table's in any case.
        resource: String,
        /// Permission letters.
        permissions: String,
        /// Which keys of a table.
        range: KeyBounds,
    },
}

impl Grant {
    /// Whether it is good for more than one blob or folder: a signature for one of these names it below its
    /// container.
    pub(crate) fn reaches_container(&self) -> bool {
        !matches!(self, Grant::Service { resource, .. } if resource.contains('/'))
    }

    /// Whether an operation is allowed. `table` is the table it is on, if that was not part of what was
    /// signed.
    pub(crate) fn check<N: Need>(&self, need: N, table: Option<&str>) -> Result<(), ApiError> {
        let failure = || ApiError::new(ErrorCode::AuthorizationFailure);
        let (permissions, needed) = match self {
            Grant::Everything => return Ok(()),
            Grant::Anonymous => return Err(ErrorCode::NoAuthenticationInformation.into()),
            Grant::Account { services, resource_types, permissions } => {
                if !services.contains(N::SERVICE) {
                    return Err(ErrorCode::AuthorizationServiceMismatch.into());
                }
                if need.resource_types().is_empty() {
                    return Err(failure());
                }
                if !need.resource_types().iter().any(|kind| resource_types.contains(*kind)) {
                    return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
                }
                (permissions, need.account_permissions())
            }
            Grant::Service { resource, permissions, .. } => {
                let Some(needed) = need.service_permissions() else {
                    return Err(failure());
                };
                if table.is_some_and(|table| !table.eq_ignore_ascii_case(resource)) {
                    return Err(failure());
                }
                (permissions, needed)
            }
        };
        let holds = |letters: &&str| letters.chars().all(|letter| permissions.contains(letter));
        match needed.iter().any(holds) {
            true => Ok(()),
            false => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        }
    }

    /// Whether it holds a permission, whatever that is for.
    pub(crate) fn holds(&self, letter: char) -> bool {
        match self {
            Grant::Everything => true,
            Grant::Anonymous => false,
            Grant::Account { permissions, .. } | Grant::Service { permissions, .. } => {
                permissions.contains(letter)
            }
        }
    }

    /// Whether an operation on one entity stays inside the range of keys.
    pub(crate) fn check_keys(&self, partition_key: &str, row_key: &str) -> Result<(), ApiError> {
        match self.bounds() {
            Some(bounds) if !bounds.contains(partition_key, row_key) => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// The range of keys, if there is one.
    pub(crate) fn bounds(&self) -> Option<&KeyBounds> {
        match self {
            Grant::Service { range, .. } if !range.is_unbounded() => Some(range),
            _ => None,
        }
    }
}

/// An inclusive range of keys. A row key bound is only there beside its partition key bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    /// The first keys.
    pub(crate) start: Option<(String, Option<String>)>,
    /// The last keys.
    pub(crate) end: Option<(String, Option<String>)>,
}

impl KeyBounds {
    fn is_unbounded(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        self.place(partition_key, row_key) == Ordering::Equal
    }

    /// Where a key lies: before the range, in it (equal), or behind it.
    pub(crate) fn place(&self, partition_key: &str, row_key: &str) -> Ordering {
        let compare = |(partition, row): &(String, Option<String>)| {
            let by_row = |row: &String| utf16_cmp(row_key.as_bytes(), row.as_bytes());
            utf16_cmp(partition_key.as_bytes(), partition.as_bytes())
                .then_with(|| row.as_ref().map_or(Ordering::Equal, by_row))
        };
        if self.end.as_ref().is_some_and(|end| compare(end) == Ordering::Greater) {
            Ordering::Greater
        } else if self.start.as_ref().is_some_and(|start| compare(start) == Ordering::Less) {
            Ordering::Less
        } else {
            Ordering::Equal
        }
    }

    /// The same as a `$filter`.
    pub(crate) fn filter_text(&self) -> String {
        let quote = |text: &str| text.replace('\'', "''");
        let bound = |(partition, row): &(String, Option<String>), beyond: &str, at: &str| {
            let partition = quote(partition);
            match row {
                None => format!("PartitionKey {at} '{partition}'"),
                Some(row) => format!(
                    "(PartitionKey {beyond} '{partition}' or (PartitionKey eq '{partition}' and RowKey {at} '{}'))",
                    quote(row)
                ),
            }
        };
        let start = self.start.as_ref().map(|start| bound(start, "gt", "ge"));
        let end = self.end.as_ref().map(|end| bound(end, "lt", "le"));
        start.into_iter().chain(end).collect::<Vec<_>>().join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_api::TableNeed as Need;

    fn account(services: &str, resource_types: &str, permissions: &str) -> Grant {
        Grant::Account {
            services: services.into(),
            resource_types: resource_types.into(),
            permissions: permissions.into(),
        }
    }

    fn code(result: Result<(), ApiError>) -> Option<ErrorCode> {
        result.err().map(|error| error.code)
    }

    #[test]
    fn account_signatures() {
        use ErrorCode::*;
        let check = |grant: Grant, need| code(grant.check(need, Some("People")));
        assert_eq!(check(account("t", "o", "a"), Need::InsertEntity), None);
        assert_eq!(check(account("bq", "o", "a"), Need::InsertEntity), Some(AuthorizationServiceMismatch));
        assert_eq!(
            check(account("t", "sc", "a"), Need::InsertEntity),
            Some(AuthorizationResourceTypeMismatch)
        );
        assert_eq!(check(account("t", "o", "r"), Need::InsertEntity), Some(AuthorizationPermissionMismatch));
        assert_eq!(check(account("t", "o", "a"), Need::UpsertEntity), Some(AuthorizationPermissionMismatch));
        assert_eq!(check(account("t", "o", "ua"), Need::UpsertEntity), None);
        assert_eq!(check(account("t", "c", "l"), Need::ListTables), None);
        assert_eq!(check(account("t", "s", "l"), Need::ListTables), Some(AuthorizationResourceTypeMismatch));
        assert_eq!(check(account("t", "c", "w"), Need::CreateTable), None);
        assert_eq!(check(account("t", "o", "d"), Need::Batch), None);
        assert_eq!(check(account("t", "sco", "rwdlacu"), Need::Policies), Some(AuthorizationFailure));
    }

    #[test]
    fn table_signatures_and_their_ranges() {
        let grant = Grant::Service {
            resource: "People".into(),
            permissions: "ra".into(),
            range: KeyBounds { start: Some(("b".into(), Some("5".into()))), end: Some(("d".into(), None)) },
        };
        assert_eq!(code(grant.check(Need::ReadEntities, Some("people"))), None);
        assert_eq!(
            code(grant.check(Need::ReadEntities, Some("Other"))),
            Some(ErrorCode::AuthorizationFailure)
        );
        assert_eq!(code(grant.check(Need::ListTables, None)), Some(ErrorCode::AuthorizationFailure));
        for (keys, inside) in [
            (("a", "9"), false),
            (("b", "4"), false),
            (("b", "5"), true),
            (("c", ""), true),
            (("d", "z"), true),
            (("e", ""), false),
        ] {
            assert_eq!(grant.check_keys(keys.0, keys.1).is_ok(), inside, "{keys:?}");
        }
        assert_eq!(
            grant.bounds().map(KeyBounds::filter_text).as_deref(),
            Some("(PartitionKey gt 'b' or (PartitionKey eq 'b' and RowKey ge '5')) and PartitionKey le 'd'")
        );
    }
}
