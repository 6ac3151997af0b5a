//! The Blob service's settings beyond those that all services have.
//!
//! ```text
//! settings = u8 format (1), number retention days, u8 flags (1 permanent delete allowed, 2 website enabled)
//!            text index document, text error document, text default index document
//! ```

use crate::error::BlobError;
use crate::rows::fields::{put_number, put_text, take_number, take_text};
use base::codec::{DecodeError, Decoder, Encode};
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};
use service::{ServiceProperties, ServicePropertiesUpdate};

const FORMAT: u8 = 1;

/// Settings that only the Blob service has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobSettings {
    /// Days that deleted blobs can come back; `None`: they don't.
    pub retention_days: Option<u32>,
    /// What can come back may be deleted for good.
    pub allow_permanent_delete: bool,
    /// A website is served from `$web`. Stored and returned only.
    pub website_enabled: bool,
    /// Its index document.
    pub index_document: Option<String>,
    /// What is shown instead of what is missing.
    pub error_document: Option<String>,
    /// The index document of the root.
    pub default_index_document: Option<String>,
}

impl BlobSettings {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_number(&mut out, self.retention_days.map(u64::from));
        out.put_u8_field(u8::from(self.allow_permanent_delete) | u8::from(self.website_enabled) << 1);
        put_text(&mut out, self.index_document.as_deref());
        put_text(&mut out, self.error_document.as_deref());
        put_text(&mut out, self.default_index_document.as_deref());
        out
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(value);
        if decoder.u8("settings format")? != FORMAT {
            return Err(DecodeError("settings format"));
        }
        let retention_days = take_number(&mut decoder)?.map(|days| days as u32);
        let flags = decoder.u8("settings flags")?;
        let settings = BlobSettings {
            retention_days,
            allow_permanent_delete: flags & 1 != 0,
            website_enabled: flags & 2 != 0,
            index_document: take_text(&mut decoder)?,
            error_document: take_text(&mut decoder)?,
            default_index_document: take_text(&mut decoder)?,
        };
        decoder.finish("settings")?;
        Ok(settings)
    }
}

/// A change: what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobSettingsUpdate {
    /// Days, or none, and whether permanent deletion is allowed.
    pub retention: Option<(Option<u32>, bool)>,
    /// The website's settings, the other fields of which don't count.
    pub website: Option<BlobSettings>,
}

/// The key of the row of these settings.
pub(crate) fn blob_settings_key(account: &str) -> RowKey {
    RowKey::new(account, 1, service::SERVICE_BLOB, "blob properties")
}

/// Changes the settings.
pub(crate) struct SetSettings {
    pub(crate) common_key: RowKey,
    pub(crate) own_key: RowKey,
    pub(crate) common: ServicePropertiesUpdate,
    pub(crate) own: BlobSettingsUpdate,
}

impl SetSettings {
    fn changes(&self, rows: &Rows) -> Result<Vec<RowChange>, DecodeError> {
        let common = match rows.point(0) {
            Some(row) => ServiceProperties::decode(&row.value)?,
            None => ServiceProperties::default(),
        };
        let mut own =
            rows.point(1).map(|row| BlobSettings::decode(&row.value)).transpose()?.unwrap_or_default();
        if let Some((days, allow_permanent_delete)) = self.own.retention {
            own.retention_days = days;
            own.allow_permanent_delete = allow_permanent_delete;
        }
        if let Some(website) = &self.own.website {
            own = BlobSettings {
                retention_days: own.retention_days,
                allow_permanent_delete: own.allow_permanent_delete,
                ..website.clone()
            };
        }
        let common = common.updated(&self.common).encode().into();
        Ok(vec![
            RowChange::Put { key: self.common_key.clone(), value: common },
            RowChange::Put { key: self.own_key.clone(), value: own.encode().into() },
        ])
    }
}

impl Operation for SetSettings {
    type Reply = Result<(), BlobError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.common_key.clone()), Read::Point(self.own_key.clone())]
    }

    fn gives_back(&self) -> bool {
        // Soft delete keeps what is deleted, and must be ended before deletions can help.
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        match self.changes(rows) {
            Ok(changes) => Decision { changes, reply: Ok(()) },
            Err(error) => Decision::unchanged(Err(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back() {
        let settings = BlobSettings {
            retention_days: Some(7),
            allow_permanent_delete: true,
            website_enabled: true,
            index_document: Some("i".into()),
            error_document: None,
            default_index_document: Some(String::new()),
        };
        assert_eq!(BlobSettings::decode(&settings.encode()), Ok(settings));
    }
}
