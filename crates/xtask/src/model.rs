//! The exhaustive search of the protocol of a stamp of several processes: a program of the crate `model`,
//! built optimized, because it visits millions of states.

use crate::{Outcome, workspace};

#[derive(clap::Args)]
pub(crate) struct ModelArguments {
    /// Small bounds.
    #[arg(long)]
    pub(crate) short: bool,
    /// Only the setting or the planted fault of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) config: Option<String>,
    /// Coarse steps for all of them, planted faults too.
    #[arg(long)]
    pub(crate) coarse: bool,
    /// Print the shortest trace to each planted fault.
    #[arg(long)]
    pub(crate) traces: bool,
}

impl ModelArguments {
    /// What belongs to the test command: small bounds.
    pub(crate) fn short() -> Self {
        ModelArguments { short: true, config: None, coarse: false, traces: false }
    }
}

pub(crate) fn run(arguments: &ModelArguments) -> Outcome<()> {
    let mut command = workspace::cargo()?;
    command.args(["run", "--quiet", "--release", "--package", "model", "--"]);
    command.args(arguments.short.then_some("--short"));
    command.args(arguments.coarse.then_some("--coarse"));
    command.args(arguments.traces.then_some("--traces"));
    if let Some(config) = &arguments.config {
        command.args(["--config", config]);
    }
    if command.status()?.success() {
        Ok(())
    } else {
        Err("the model has a state that is wrong, or misses a planted fault".into())
    }
}
