//! Faults on purpose, which histories must find. Each switches off one defence.

use shard_mover::{Planted, PlantedFault};

/// Which defence is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Clients' writes pass no fence.
    NoFence,
    /// Clients check the fence, and write without holding it.
    FenceWithoutLock,
    /// A client's signature ends T after it was made, not T after the map was read.
    SignatureOutlivesMap,
    /// Movers do not wait until signatures end.
    NoWait,
    /// Movers switch whatever the comparison says.
    SwitchBeforeVerify,
    /// The comparison does not see rows that only the target has.
    DigestIgnoresDeletes,
    /// The copy goes from the target to the source.
    SwappedPair,
}

impl Fault {
    pub(crate) const ALL: [Fault; 7] = [
        Fault::NoFence,
        Fault::FenceWithoutLock,
        Fault::SignatureOutlivesMap,
        Fault::NoWait,
        Fault::SwitchBeforeVerify,
        Fault::DigestIgnoresDeletes,
        Fault::SwappedPair,
    ];

    /// The fault of the movers, if it is one of theirs.
    pub(crate) fn of_movers(fault: Option<Fault>) -> Planted {
        match fault {
            Some(Fault::NoWait) => Planted::fault(PlantedFault::NoWait),
            Some(Fault::SwitchBeforeVerify) => Planted::fault(PlantedFault::SwitchBeforeVerify),
            Some(Fault::DigestIgnoresDeletes) => Planted::fault(PlantedFault::DigestIgnoresDeletes),
            Some(Fault::SwappedPair) => Planted::fault(PlantedFault::SwappedPair),
            _ => Planted::default(),
        }
    }
}
