//! Rules of integrity over all shards: checked by one ordered read of all, and repaired under claims.

pub(crate) mod check;
pub(crate) mod finding;
pub(crate) mod judged;
pub(crate) mod merged;
pub(crate) mod orphans;
pub(crate) mod placed;
pub(crate) mod progress;
pub(crate) mod repair;
pub(crate) mod repair_plan;
pub(crate) mod rules;
