//! Arguments of `larimar check` and `larimar repair`, as typed.

use crate::arguments::stamp_arguments::StampArguments;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `larimar check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The data folder
    #[arg(value_name = "DIR", required_unless_present = "stamp", conflicts_with = "stamp")]
    pub(crate) folder: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) stamp: StampArguments,

    /// Do not tell how far it is
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Arguments of `larimar repair`.
#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// The data folder
    #[arg(value_name = "DIR", required_unless_present_any = ["stamp", "store", "etcd"])]
    pub(crate) folder: Option<PathBuf>,

    /// A stamp has no repair: this says so
    #[arg(long, hide = true)]
    pub(crate) stamp: Option<String>,

    /// As above
    #[arg(long, hide = true)]
    pub(crate) store: Option<String>,

    /// As above
    #[arg(long, hide = true)]
    pub(crate) etcd: Option<String>,

    /// Change the folder as planned; copies of what is replaced are kept in DIR/repair
    #[arg(long)]
    pub(crate) apply: bool,

    /// Do not tell how far it is
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Write the plan, or with --apply what was done, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl RepairArguments {
    /// Whether only a folder is named.
    pub(crate) fn names_no_stamp(&self) -> bool {
        self.stamp.is_none() && self.store.is_none() && self.etcd.is_none()
    }
}
