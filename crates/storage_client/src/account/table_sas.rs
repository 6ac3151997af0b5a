//! Making a shared access signature for the entities of one table. Its string-to-sign:
//!
//! ```text
//! sp \n st \n se \n /table/ACCOUNT/TABLE \n si \n sip \n spr \n sv \n spk \n srk \n epk \n erk
//! ```
//!
//! The table's name is in lower case there. What always holds: the signature ends at or before the instant
//! that was given, because its end is in whole seconds and is rounded down.

use super::credentials::{AccountKey, Credentials};
use crate::client::TABLE_VERSION;
use crate::wire::address_text::encode;
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use base::date_time::date_time_text;

/// What a signature for a table allows, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSas<'a> {
    /// The account.
    pub account: &'a str,
    /// The table.
    pub table: &'a str,
    /// Of `raud` (read, add, update, delete), in this order.
    pub permissions: &'a str,
    /// If given, only entities of this partition.
    pub partition_key: Option<&'a str>,
    /// When it ends: rounded down to a whole second.
    pub ends_at: Ticks,
}

impl TableSas<'_> {
    /// When it really ends.
    pub fn ends_at_second(&self) -> Ticks {
        Ticks(self.ends_at.0 - self.ends_at.0 % TICKS_PER_SECOND)
    }

    /// Signs it with the account's key.
    pub fn sign(&self, key: &AccountKey) -> Credentials {
        let (version, permissions) = (TABLE_VERSION, self.permissions);
        let end = date_time_text(self.ends_at_second());
        let table = self.table.to_ascii_lowercase();
        let resource = format!("/table/{}/{table}", self.account);
        let partition = self.partition_key.unwrap_or_default();
        let unsigned =
            format!("{permissions}\n\n{end}\n{resource}\n\n\n\n{version}\n{partition}\n\n{partition}\n");
        let signature = encode(&key.sign(unsigned.as_bytes()));
        let (end, name) = (encode(&end), encode(self.table));
        // From the partition to the same.
        let range = self.partition_key.map(encode).map(|key| format!("&spk={key}&epk={key}"));
        let range = range.unwrap_or_default();
        Credentials::Sas(format!("se={end}&sp={permissions}&sv={version}&tn={name}{range}&sig={signature}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const VECTORS: &str = include_str!("../../../front_end/tests/vectors/sas.json");

    #[test]
    fn a_worked_example_is_signed_alike() {
        let vectors: Value = serde_json::from_str(VECTORS).expect("JSON");
        let example = vectors["vectors"].as_array().expect("vectors").iter();
        let example =
            example.clone().find(|vector| vector["id"] == "service-sas-table-emulator").expect("the example");
        let key = vectors["accounts"]["devstoreaccount1"].as_str().expect("a key");
        let key = AccountKey::from_base64(key).expect("a key");
        // 2026-12-01T00:00:00Z and a part of a second, which is cut off.
        let ends_at = base::date_time::parse_date_time("2026-12-01T00:00:00.9Z").expect("a date-time");
        let sas = TableSas {
            account: "devstoreaccount1",
            table: "People",
            permissions: "r",
            partition_key: None,
            ends_at,
        };
        assert!(sas.ends_at_second() <= ends_at);
        let Credentials::Sas(parameters) = sas.sign(&key) else { panic!("no signature") };
        let percent = |text: &str| text.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
        let signature = percent(example["signature"].as_str().expect("a signature"));
        assert_eq!(parameters.rsplit_once("sig=").map(|(_, sent)| sent), Some(signature.as_str()));
        assert!(parameters.starts_with("se=2026-12-01T00%3A00%3A00Z&sp=r&sv=2019-02-02&tn=People&"));
    }
}
