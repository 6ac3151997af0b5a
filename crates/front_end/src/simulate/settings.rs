//! What is simulated, as checked data: from a profile, or from a rule file (`rule_file.rs`).

use super::balancing::BalancingSettings;
use super::boundaries::Boundaries;
use super::fault_rule::FaultRule;
use std::num::NonZeroU64;

/// The profiles that `--simulate` and a rule file may name.
pub const PROFILES: [&str; 2] = ["azure", "azure-large"];

const GBIT_SIZE_BYTES: u64 = 1_000_000_000 / 8;

/// The share of partitions at which a profile lets a range begin, and that of rows before which a page is
/// empty. The live service publishes neither.
const PROFILE_BOUNDARY_SHARE: f64 = 1.0 / 16.0;

/// The published targets, each a number a second; without one there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TargetLimits {
    pub(crate) partition_entities: Option<NonZeroU64>,
    pub(crate) queue_messages: Option<NonZeroU64>,
    pub(crate) block_blob_requests: Option<NonZeroU64>,
    pub(crate) page_blob_requests: Option<NonZeroU64>,
    pub(crate) page_blob_bytes: Option<NonZeroU64>,
    pub(crate) account_requests: Option<NonZeroU64>,
    pub(crate) ingress_bytes: Option<NonZeroU64>,
    pub(crate) egress_bytes: Option<NonZeroU64>,
}

/// What is simulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulationSettings {
    pub(crate) seed: u64,
    pub(crate) limits: TargetLimits,
    pub(crate) boundaries: Boundaries,
    pub(crate) balancing: Option<BalancingSettings>,
    pub(crate) rules: Vec<FaultRule>,
}

impl TargetLimits {
    /// Those of a standard account; `is_large`: in one of the regions with larger ones.
    fn published(is_large: bool) -> Self {
        let (requests, ingress_gbit, egress_gbit) =
            if is_large { (40_000, 60, 200) } else { (20_000, 25, 50) };
        TargetLimits {
            partition_entities: NonZeroU64::new(2000),
            queue_messages: NonZeroU64::new(2000),
            block_blob_requests: NonZeroU64::new(3000),
            page_blob_requests: NonZeroU64::new(500),
            page_blob_bytes: NonZeroU64::new(60 << 20),
            account_requests: NonZeroU64::new(requests),
            ingress_bytes: NonZeroU64::new(ingress_gbit * GBIT_SIZE_BYTES),
            egress_bytes: NonZeroU64::new(egress_gbit * GBIT_SIZE_BYTES),
        }
    }
}

impl SimulationSettings {
    /// Rows that a page of entities examines at most.
    pub(crate) fn examined_rows(&self) -> Option<u64> {
        self.boundaries.examined_rows
    }

    /// A profile by its name.
    pub fn profile(name: &str) -> Option<Self> {
        let place = PROFILES.iter().position(|known| *known == name)?;
        Some(SimulationSettings {
            seed: 0,
            limits: TargetLimits::published(place == 1),
            boundaries: Boundaries {
                partitions: PROFILE_BOUNDARY_SHARE,
                empty: PROFILE_BOUNDARY_SHARE,
                ..Boundaries::default()
            },
            balancing: Some(BalancingSettings::default()),
            rules: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_the_published_targets() {
        let limits = |name| SimulationSettings::profile(name).map(|settings| settings.limits);
        let (azure, large) = (limits("azure").expect("a profile"), limits("azure-large").expect("a profile"));
        assert_eq!(azure.account_requests, NonZeroU64::new(20_000));
        assert_eq!(large.account_requests, NonZeroU64::new(40_000));
        assert_eq!(azure.ingress_bytes, NonZeroU64::new(3_125_000_000));
        assert_eq!(azure.partition_entities, large.partition_entities);
        assert_eq!(limits("Azure"), None);
    }
}
