//! What is known of a setting: its names, its values, its words.

use crate::settings::kind::Kind;

/// When a new value is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// On SIGHUP.
    AtRunTime,
    /// With the next start.
    AtStart,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// What belongs together.
    pub(crate) group: &'static str,
    /// Its name in a file.
    pub(crate) key: &'static str,
    /// Its flag.
    pub(crate) flag: &'static str,
    /// What stands behind the flag; empty: nothing.
    pub(crate) operand: &'static str,
    pub(crate) kind: Kind,
    /// Its unit; empty: it has none.
    pub(crate) unit: &'static str,
    /// Its value if nobody says otherwise; empty: it is not set.
    pub(crate) default: &'static str,
    /// What it means that it is not set.
    pub(crate) unset: &'static str,
    /// A value for the commented file, where there is no default.
    pub(crate) example: &'static str,
    pub(crate) change: Change,
    /// What it does.
    pub(crate) meaning: &'static str,
}

impl Setting {
    /// Its variable in the environment.
    pub(crate) fn variable(&self) -> String {
        format!("LARIMAR_{}", self.key.to_ascii_uppercase())
    }

    /// The variable that its flag would have, where that is another one: `LARIMAR_ACCOUNT` for `--account`.
    pub(crate) fn misnamed_variable(&self) -> Option<String> {
        let flag = self.flag.trim_start_matches('-').replace('-', "_").to_ascii_uppercase();
        Some(format!("LARIMAR_{flag}")).filter(|misnamed| *misnamed != self.variable())
    }
}

/// What most settings have in common.
pub(super) const PLAIN: Setting = Setting {
    group: "",
    key: "",
    flag: "",
    operand: "",
    kind: Kind::Text,
    unit: "",
    default: "",
    unset: "",
    example: "",
    change: Change::AtStart,
    meaning: "",
};
