//! The settings that are searched without a fault: what happens in each, how often, in the short and in the
//! full form.
//!
//! What always holds: every kind of event happens in some setting, beside late and lost messages and the end
//! of a lease.

use crate::setting::{Bounds, Breaches, Event, Grain, Setting};
use Event::{
    Backup, CloseAlone, EarlyName, Failure, GiveUp, KeyEnd, LeaseEnd, Loss, Release, Roll, Split, StraySeal,
    Sweep, Trim, Unknown, Write,
};

/// A setting in two sizes. The short one has fine steps.
pub(crate) struct Config {
    /// For `--config`.
    pub(crate) name: &'static str,
    processes: usize,
    window: usize,
    short: &'static [(Event, u8)],
    full: &'static [(Event, u8)],
    full_grain: Grain,
}

impl Config {
    /// The setting to search.
    pub(crate) fn setting(&self, is_short: bool) -> Setting {
        let (grain, events) = if is_short { (Grain::Fine, self.short) } else { (self.full_grain, self.full) };
        Setting {
            name: self.name,
            processes: self.processes,
            window: self.window,
            grain,
            bounds: Bounds::of(events),
            breaches: Breaches::default(),
        }
    }
}

/// All settings.
pub(crate) const CONFIGS: &[Config] = &[
    Config {
        name: "append",
        processes: 2,
        window: 2,
        short: &[(Write, 3), (Unknown, 1), (LeaseEnd, 1)],
        full: &[(Write, 3), (Unknown, 2), (LeaseEnd, 2)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "give-up",
        processes: 2,
        window: 2,
        short: &[(Write, 3), (Unknown, 1), (GiveUp, 1)],
        full: &[(Write, 3), (Unknown, 1), (GiveUp, 1), (Failure, 1), (LeaseEnd, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "failure",
        processes: 2,
        window: 2,
        short: &[(Write, 3), (Unknown, 1), (Failure, 1)],
        full: &[(Write, 3), (Unknown, 2), (Failure, 2), (LeaseEnd, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "roll",
        processes: 2,
        window: 2,
        short: &[(Write, 3), (Roll, 1), (EarlyName, 1), (Unknown, 1)],
        full: &[(Write, 3), (Roll, 1), (EarlyName, 1), (Unknown, 1), (LeaseEnd, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "release",
        processes: 2,
        window: 2,
        short: &[(Write, 2), (Release, 1), (Unknown, 1), (LeaseEnd, 1)],
        full: &[(Write, 3), (Release, 2), (Unknown, 2), (LeaseEnd, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "release-roll",
        processes: 2,
        window: 2,
        short: &[(Write, 2), (Release, 1), (Roll, 1)],
        full: &[(Write, 3), (Release, 1), (Roll, 1), (EarlyName, 1), (Unknown, 1), (LeaseEnd, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "live-lease-ended",
        processes: 2,
        window: 2,
        short: &[(Write, 2), (KeyEnd, 1), (Unknown, 1)],
        full: &[(Write, 3), (KeyEnd, 2), (Unknown, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "stray-seal",
        processes: 2,
        window: 2,
        short: &[(Write, 2), (StraySeal, 1), (Unknown, 1)],
        full: &[(Write, 2), (StraySeal, 1), (Unknown, 1), (LeaseEnd, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "three-processes",
        processes: 3,
        window: 2,
        short: &[(Write, 2), (LeaseEnd, 1)],
        full: &[(Write, 3), (Roll, 1), (Release, 1), (Unknown, 1), (LeaseEnd, 2)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "sweep",
        processes: 2,
        window: 1,
        short: &[(Write, 1), (Roll, 1), (Trim, 1), (Backup, 1), (Sweep, 1), (LeaseEnd, 1)],
        full: &[(Write, 2), (Roll, 1), (Trim, 1), (Backup, 1), (Sweep, 2), (LeaseEnd, 1), (Unknown, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "closed-alone",
        processes: 2,
        window: 1,
        short: &[(Write, 2), (CloseAlone, 1), (LeaseEnd, 1)],
        full: &[(Write, 3), (CloseAlone, 1), (LeaseEnd, 1), (Unknown, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "split",
        processes: 2,
        window: 1,
        short: &[(Write, 2), (Roll, 1), (Split, 1), (Unknown, 1)],
        full: &[(Write, 3), (Roll, 1), (Split, 1), (LeaseEnd, 1), (Unknown, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "split-sweep",
        processes: 2,
        window: 1,
        short: &[(Roll, 1), (Split, 1), (Trim, 1), (Backup, 1), (Sweep, 1)],
        full: &[(Write, 2), (Roll, 1), (Split, 1), (Trim, 2), (Backup, 1), (Sweep, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "split-sweep-lease-end",
        processes: 1,
        window: 1,
        short: &[(Write, 1), (Roll, 1), (Split, 1), (LeaseEnd, 1)],
        full: &[(Write, 1), (Roll, 1), (Split, 1), (Trim, 1), (Backup, 1), (Sweep, 1), (LeaseEnd, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "restore",
        processes: 2,
        window: 1,
        short: &[(Write, 2), (Roll, 1), (Backup, 1), (Loss, 1)],
        full: &[(Write, 3), (Roll, 1), (Backup, 1), (Loss, 1), (LeaseEnd, 1), (Unknown, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "restore-early-name",
        processes: 2,
        window: 1,
        short: &[(Write, 1), (EarlyName, 1), (LeaseEnd, 1), (Loss, 1)],
        full: &[(Write, 2), (EarlyName, 1), (Roll, 1), (LeaseEnd, 1), (Backup, 1), (Loss, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "restore-sweep",
        processes: 1,
        window: 1,
        short: &[(Write, 1), (Roll, 1), (Trim, 1), (Backup, 1), (Sweep, 1), (Loss, 1)],
        full: &[(Write, 2), (Roll, 1), (Trim, 1), (Backup, 1), (Sweep, 2), (Loss, 1), (Unknown, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "restore-split",
        processes: 1,
        window: 1,
        short: &[(Write, 2), (Roll, 1), (Split, 1), (Loss, 1)],
        full: &[(Write, 3), (Roll, 1), (Split, 1), (Loss, 1), (LeaseEnd, 1)],
        full_grain: Grain::Coarse,
    },
    Config {
        name: "restore-closed-alone",
        processes: 1,
        window: 1,
        short: &[(Write, 2), (CloseAlone, 1), (Loss, 1)],
        full: &[(Write, 3), (CloseAlone, 1), (Loss, 1), (LeaseEnd, 1)],
        full_grain: Grain::Fine,
    },
    Config {
        name: "restore-twice",
        processes: 1,
        window: 1,
        short: &[(Write, 2), (Loss, 2)],
        full: &[(Write, 3), (Roll, 1), (Loss, 2), (Unknown, 1), (LeaseEnd, 1)],
        full_grain: Grain::Fine,
    },
];
