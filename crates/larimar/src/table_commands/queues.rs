//! `larimar queue`: the thin end of the queues' part of crate `table_tools`.

use super::settings::{address, path, settings};
use super::{in_runtime, print, with_environment};
use crate::Failure;
use crate::arguments::queue_arguments::{
    CopyMessagesArguments, DrainArguments, PeekArguments, QueueArguments, QueueCommand, RequeueArguments,
    TakingArguments,
};
use std::process::ExitCode;
use std::time::Duration;
use storage_client::Service;
use table_tools::{Drained, QueuePlace, Taking, message_line};

/// The service's bound: seven days.
const INVISIBLE_S_MAX: u64 = 7 * 86_400;

/// Does what was asked for.
pub(crate) fn queue(command: &QueueCommand) -> Result<ExitCode, Failure> {
    in_runtime(async {
        match command {
            QueueCommand::Peek(of) => peek(of).await,
            QueueCommand::Copy(of) => copy(of).await,
            QueueCommand::Drain(of) => drain(of).await,
            QueueCommand::Requeue(of) => requeue(of).await,
        }
    })
}

fn place(of: &QueueArguments) -> Result<QueuePlace, Failure> {
    Ok(QueuePlace {
        address: address("--endpoint", &of.reach.endpoint, Service::Queue)?,
        settings: settings(&of.reach)?,
        queue: of.queue.clone(),
    })
}

fn taking(of: &TakingArguments) -> Result<Taking, Failure> {
    if !(1..=INVISIBLE_S_MAX).contains(&of.invisible) {
        return Err(Failure::of_words(format!("--invisible: give seconds from 1 to {INVISIBLE_S_MAX}")));
    }
    Ok(Taking {
        count_max: of.count.unwrap_or(u64::MAX),
        invisible_for: Duration::from_secs(of.invisible),
        is_dry: of.dry_run,
    })
}

fn counted(count: u64) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

fn done(verb: &str, count: u64, taking: Taking) -> ExitCode {
    match taking.is_dry {
        true => print(&format!("dry run: nothing was changed; {} at the queue's head\n", counted(count))),
        false => print(&format!("{verb}: {}\n", counted(count))),
    }
    ExitCode::SUCCESS
}

async fn peek(of: &PeekArguments) -> Result<ExitCode, Failure> {
    let place = place(&of.queue)?;
    let messages =
        with_environment(async |environment| table_tools::peek(&place, of.count, environment).await);
    messages.await?.iter().for_each(|message| print(&message_line(message)));
    Ok(ExitCode::SUCCESS)
}

async fn copy(of: &CopyMessagesArguments) -> Result<ExitCode, Failure> {
    let (from, taking) = (place(&of.queue)?, taking(&of.taking)?);
    let address = of.to.as_deref().map(|text| address("--to", text, Service::Queue)).transpose()?;
    let address = address.unwrap_or_else(|| from.address.clone());
    let to = QueuePlace { address, queue: of.target.clone(), ..from.clone() };
    let count = with_environment(async |environment| {
        table_tools::copy_messages(&from, &to, taking, environment).await
    });
    Ok(done("copied", count.await?, taking))
}

async fn drain(of: &DrainArguments) -> Result<ExitCode, Failure> {
    let (place, taking, file) = (place(&of.queue)?, taking(&of.taking)?, path(&of.file)?);
    let drained =
        with_environment(async |environment| table_tools::drain(&place, &file, taking, environment).await);
    let Drained { count, invisible } = drained.await?;
    if invisible == 0 {
        return Ok(done("drained", count, taking));
    }
    let are = if invisible == 1 { "1 is" } else { &format!("{invisible} are") };
    print(&format!("drained: {}; {are} invisible yet\n", counted(count)));
    Ok(ExitCode::SUCCESS)
}

async fn requeue(of: &RequeueArguments) -> Result<ExitCode, Failure> {
    let (to, taking) = (place(&of.queue)?, taking(&of.taking)?);
    let poison = of.poison.clone().unwrap_or_else(|| format!("{}-poison", to.queue));
    if poison == to.queue {
        return Err(Failure::of_words("--poison: it is the same queue".to_owned()));
    }
    let from = QueuePlace { queue: poison, ..to.clone() };
    let count =
        with_environment(async |environment| table_tools::requeue(&from, &to, taking, environment).await);
    Ok(done("requeued", count.await?, taking))
}
