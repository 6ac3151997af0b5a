//! `larimar blob`: the thin end of the blobs' part of crate `table_tools`.

use super::settings::{address, settings, within_connections};
use super::{in_runtime, print, with_environment};
use crate::Failure;
use crate::arguments::blob_arguments::{BlobCommand, CopyBlobsArguments};
use std::process::ExitCode;
use storage_client::Service;
use table_tools::{BlobCopyPlan, ContainerPlace};

/// Does what was asked for.
pub(crate) fn blob(command: &BlobCommand) -> Result<ExitCode, Failure> {
    let BlobCommand::Copy(of) = command;
    in_runtime(copy(of))
}

async fn copy(of: &CopyBlobsArguments) -> Result<ExitCode, Failure> {
    let from = ContainerPlace {
        address: address("--endpoint", &of.reach.endpoint, Service::Blob)?,
        settings: settings(&of.reach)?,
        container: of.container.clone(),
    };
    let other = of.to.as_deref().map(|text| address("--to", text, Service::Blob)).transpose()?;
    let address = other.unwrap_or_else(|| from.address.clone());
    let plan = BlobCopyPlan {
        to: ContainerPlace { address, container: of.target.clone(), ..from.clone() },
        from,
        prefix: of.prefix.clone(),
        connections: within_connections(of.connections)?,
        creates_container: of.create,
        is_dry: of.dry_run,
    };
    let done =
        with_environment(async |environment| table_tools::copy_blobs(&plan, environment).await).await?;
    let head = if plan.is_dry { "dry run: nothing was written; would be copied" } else { "copied" };
    let (copied, bytes, same) = (done.copied, done.size_bytes, done.same);
    let others = match done.other_kinds {
        0 => String::new(),
        count => format!("; left out, because they are no block blobs: {count}"),
    };
    let gone = match done.gone {
        0 => String::new(),
        count => format!("; deleted since they were listed: {count}"),
    };
    print(&format!("{head}: {copied} blobs of {bytes} bytes; there already: {same}{others}{gone}\n"));
    Ok(ExitCode::SUCCESS)
}
