//! `larimar shard serve-map`: binds, says where, and serves until it is stopped.

use super::homes::Opener;
use super::input::Lookup;
use crate::Failure;
use crate::arguments::shard_arguments::ServeMapArguments;
use crate::configuration::is_loopback;
use crate::output::error_line::print_error;
use base::system::TokioSpawner;
use shard_command::{Listening, serve_map};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until Ctrl-C or a signal to end.
pub(super) async fn serve(
    arguments: &ServeMapArguments,
    environment: Lookup<'_>,
) -> Result<ExitCode, Failure> {
    let opener = Opener::new(environment);
    let home = opener.home(&arguments.home)?;
    let listener = TcpListener::bind((arguments.host, arguments.port)).await;
    let listener = listener.map_err(|error| {
        Failure::of_words(format!("can't listen on {} port {}: {error}", arguments.host, arguments.port))
    })?;
    let address = listener.local_addr().map_err(|error| Failure::of_work(&error))?;
    let is_loopback = is_loopback(arguments.host);
    if !is_loopback {
        print_error(&format!(
            "warning: {} is not this machine alone: all who reach it read where all shards are, without a password or TLS",
            arguments.host
        ));
    }
    // The map is read before it is said that it is served.
    home.load().await.map_err(|error| Failure::of_work(&error))?;
    let _ = writeln!(std::io::stdout(), "http://{address}/v1/catalog");
    let (listening, spawner) = (Listening { listener, is_loopback }, Arc::new(TokioSpawner::current()));
    let mut ended = signal(SignalKind::terminate()).map_err(|error| Failure::of_work(&error))?;
    tokio::select! {
        served = serve_map(home, listening, opener.clock(), spawner) => match served {
            Ok(never) => match never {},
            Err(error) => Err(Failure::of_work(&error)),
        },
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        _ = ended.recv() => Ok(ExitCode::SUCCESS),
    }
}
