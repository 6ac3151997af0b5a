//! The operation that changes a service's properties: roots that were sent replace those that are stored.

use crate::properties::{ServiceProperties, ServicePropertiesUpdate};
use base::codec::DecodeError;
use partition::{Decision, ObjectTable, Operation, Read, Row, RowChange, RowKey, RowVersion, Rows};

/// Changes the settings; the change is checked.
#[derive(Clone, Debug)]
pub struct SetServiceProperties {
    /// Where the settings are.
    pub key: RowKey,
    /// What to change.
    pub update: ServicePropertiesUpdate,
}

/// The settings in a row; defaults if there is none.
pub fn read_service_properties(row: Option<&Row>) -> Result<ServiceProperties, DecodeError> {
    match row {
        Some(row) => ServiceProperties::decode(&row.value),
        None => Ok(ServiceProperties::default()),
    }
}

impl Operation for SetServiceProperties {
    type Reply = Result<(), DecodeError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        match read_service_properties(rows.point(0)) {
            Ok(properties) => Decision {
                changes: vec![RowChange::Put {
                    key: self.key.clone(),
                    value: properties.updated(&self.update).encode().into(),
                }],
                reply: Ok(()),
            },
            Err(error) => Decision::unchanged(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::{CorsRule, Metrics};

    #[test]
    fn a_change_builds_on_what_is_stored() {
        let key = RowKey::new("acct", 1, "table", "properties");
        let decide = |update: ServicePropertiesUpdate, stored: Option<Row>| {
            let set = SetServiceProperties { key: key.clone(), update };
            set.decide(&Rows::new(vec![stored.into_iter().collect()]), RowVersion(1))
        };
        let cors = ServicePropertiesUpdate {
            cors: Some(vec![CorsRule::default()]),
            ..ServicePropertiesUpdate::default()
        };
        let first = decide(cors, None);
        let [RowChange::Put { value, .. }] = &first.changes[..] else { panic!("{first:?}") };
        let row = Row { key: key.clone(), version: RowVersion(1), value: value.clone() };
        let metrics = ServicePropertiesUpdate {
            hour_metrics: Some(Metrics { enabled: true, ..Metrics::default() }),
            ..ServicePropertiesUpdate::default()
        };
        let second = decide(metrics, Some(row));
        let [RowChange::Put { value, .. }] = &second.changes[..] else { panic!("{second:?}") };
        let stored = ServiceProperties::decode(value).unwrap();
        assert!(stored.cors.len() == 1 && stored.hour_metrics.enabled);
    }
}
