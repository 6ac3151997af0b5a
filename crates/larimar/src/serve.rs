//! One process as a whole stamp: opens the layers from the bottom up, serves until asked to stop, closes them
//! from the top down.

use crate::admin::{AdminError, AdminSide, Handles, Layers, Readiness};
use crate::arguments::VERSION;
use crate::collector;
use crate::configuration::is_loopback;
use crate::configuration::memory_shares::limits_for;
use crate::configuration::stamp::StampConfiguration;
use crate::configuration::{
    ADMIN_PORT_FLAG, BLOB_PORT_FLAG, Configuration, QUEUE_PORT_FLAG, Storage, TABLE_PORT_FLAG,
};
use crate::data_folder;
use crate::open_files::choose_connections_max;
use crate::output::log::announce;
use crate::output::report::{self, Addresses, StartSas};
use crate::over_ranges::{front_end, memory_guard, services, stopped};
use crate::passed_sockets::PassedSockets;
use crate::serve_error::{ServeError, of_partition, of_stream};
use crate::service_manager;
use crate::settings::reload::{Live, Reload};
use crate::stamp::{self, Process};
use crate::start_progress::StartProgress;
use access_log::AccessLogs;
use base::Environment;
use base::memory_disk::MemoryDisk;
use base::system::WorkerSpawner;
use front_end::{AccessLog, Limits};
use otlp::SpanRecorder;
use partition::{PartitionSettings, Partitions};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use stream::{StreamSettings, Streams};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Runs the server until SIGTERM or Ctrl-C. SIGHUP has `reload` read its file again.
pub(crate) fn serve(configuration: Configuration, reload: Reload) -> Result<(), ServeError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
    let ended = runtime.block_on(run(configuration, reload));
    // Everything is closed, and a thread may still wait for a file that somebody wanted to be read again.
    runtime.shutdown_background();
    ended
}

async fn run(configuration: Configuration, reload: Reload) -> Result<(), ServeError> {
    // First what can fail without having touched anything.
    let stop = stop_on_signals()?;
    // From here on: without a file to read again the signal ends the process, as ever.
    let hangup = hangups(&configuration, &reload)?;
    let rotate = signal(SignalKind::user_defined1()).map_err(ServeError::Signal)?;
    let mut passed = PassedSockets::take(&|name| std::env::var_os(name))?;
    let [(blob_listener, blob), (table_listener, table), (queue_listener, queue)] =
        listen_all(&configuration, &mut passed)?;
    let limits = limits_for(limits(), configuration.partitions.memory_budget_size_bytes());
    // Each of these layers knows its files, but not in which folder they are.
    let storage = || configuration.storage.clone();
    let stream_failed = |error| of_stream(storage(), error);
    let partition_failed = |error| of_partition(storage(), error);
    let (mut env, _lock) = environment(&configuration).await?;
    check_access_log(&configuration)?;
    // Not before the ports and the folder are this server's: it may be the ready file of the one that has
    // them.
    if let Some(path) = &configuration.ready_file {
        report::remove_ready_file(path).map_err(ServeError::ReadyFile)?;
    }
    let readiness = Readiness::starting();
    let admin = AdminSide::start(&configuration, passed.of("admin"), &readiness, &env, VERSION);
    let admin = admin.map_err(of_admin)?;
    let progress = StartProgress::begin(&configuration.storage, &env.metrics);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    env.spawner = Arc::new(
        WorkerSpawner::start(cores, configuration.process.pin_workers).map_err(ServeError::Runtime)?,
    );
    // The workers end with the process: threads that were started before something failed use their timers to
    // the last.
    std::mem::forget(env.spawner.clone());
    if let Storage::Stamp(stamp) = configuration.storage.clone() {
        drop(progress);
        let listeners = [blob_listener, table_listener, queue_listener];
        let places = [blob, table, queue];
        let signals = Signals { stop, hangup, rotate };
        let (configuration, admin) = (&configuration, admin.as_ref());
        let started = Started { configuration, env: &env, limits, readiness: &readiness, admin };
        return serve_stamp(started, &stamp, listeners, places, signals, reload).await;
    }
    let (streams, partitions) = sized(&configuration, &env).await;
    let streams = Streams::open(&env, streams).await.map_err(stream_failed)?;
    // The journal was read whole, and ranges have rows to load.
    allocator::release_free_memory(allocator::Release::All);
    let partitions = Partitions::open(&env, streams.clone(), partitions).await;
    let partitions = Arc::new(partitions.map_err(partition_failed)?);
    drop(progress);
    let guard_thread = env.spawner.start_thread("memory").map_err(ServeError::Runtime)?;
    guard_thread.spawn("memory", Box::pin(memory_guard(&configuration, &env, &partitions).run()));
    let services = services(&configuration, &env, &partitions);
    let (logs, spans) = start_logs(&configuration, &env)?;
    let front_end = front_end(&configuration, services, &env, limits, &logs);
    let disk = env.disk.clone();
    readiness.note_serving(Layers { streams: streams.clone(), partitions: partitions.clone(), disk });
    if let Some(admin) = &admin {
        admin.note_serving(handles(&configuration, &reload, &logs), &env);
    }
    let addresses = Addresses { blob, queue, table, admin: admin.as_ref().map(AdminSide::place) };
    say_started(&configuration, &addresses, &env)?;
    let follow = async {
        match &configuration.tls {
            Some(certificate) => certificate.follow(&*env.clock).await,
            None => std::future::pending().await,
        }
    };
    service_manager::note_ready();
    // Until the process ends: to close takes time, too.
    let clock = env.clock.clone();
    tokio::spawn(async move { service_manager::keep_watchdog(&*clock).await });
    let draining = async {
        stopped(stop.clone()).await;
        readiness.note_draining();
        service_manager::note_stopping();
        std::future::pending::<Infallible>().await
    };
    let serve = async {
        tokio::join!(
            front_end.serve_blob(blob_listener, Box::pin(stopped(stop.clone()))),
            front_end.serve_table(table_listener, Box::pin(stopped(stop.clone()))),
            front_end.serve_queue(queue_listener, Box::pin(stopped(stop.clone()))),
        )
    };
    tokio::select! {
        _ = serve => {}
        never = follow => match never {},
        never = follow_hangups(hangup, &configuration, reload) => match never {},
        never = draining => match never {},
        never = follow_rotations(rotate, &logs) => match never {},
    }
    // Again: a server without connections ends before it notes that it drains.
    service_manager::note_stopping();
    readiness.note_closing();
    partitions.close().await;
    tracing::info!(statistics = ?partitions.statistics(), "ranges are closed");
    streams.close().await;
    close_logs(logs, spans.as_deref(), &env).await;
    tracing::info!("stopped");
    Ok(())
}

/// What a server has once it listens.
struct Started<'a> {
    configuration: &'a Configuration,
    env: &'a Environment,
    limits: Limits,
    readiness: &'a Arc<Readiness>,
    admin: Option<&'a AdminSide>,
}

/// The signals that a server follows.
struct Signals {
    stop: watch::Receiver<bool>,
    hangup: Option<Signal>,
    rotate: Signal,
}

/// Runs as one of the processes of a stamp, until it is asked to stop.
async fn serve_stamp(
    started: Started<'_>,
    stamp: &StampConfiguration,
    [blob_listener, table_listener, queue_listener]: [TcpListener; 3],
    [blob, table, queue]: [SocketAddr; 3],
    signals: Signals,
    reload: Reload,
) -> Result<(), ServeError> {
    let Started { configuration, env, limits, readiness, admin } = started;
    let (logs, spans) = start_logs(configuration, env)?;
    let admin_handles = handles(configuration, &reload, &logs);
    let process = Process {
        configuration,
        handles: &admin_handles,
        env,
        limits,
        listeners: [blob_listener, table_listener, queue_listener],
        readiness,
        admin,
        logs: &logs,
        stop: signals.stop,
    };
    let addresses = Addresses { blob, queue, table, admin: admin.map(AdminSide::place) };
    let clock = env.clock.clone();
    tokio::spawn(async move { service_manager::keep_watchdog(&*clock).await });
    let follow = async {
        match &configuration.tls {
            Some(certificate) => certificate.follow(&*env.clock).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = stamp::run(&process, stamp, || say_started(configuration, &addresses, env)) => ended,
        never = follow => match never {},
        never = follow_hangups(signals.hangup, configuration, reload) => match never {},
        never = follow_rotations(signals.rotate, &logs) => match never {},
    };
    service_manager::note_stopping();
    readiness.note_closing();
    close_logs(logs, spans.as_deref(), env).await;
    tracing::info!("stopped");
    ended
}

/// What the process is given, and the lock of its data folder.
async fn environment(
    configuration: &Configuration,
) -> Result<(Environment, Option<data_folder::FolderLock>), ServeError> {
    match &configuration.storage {
        Storage::Memory | Storage::Stamp(_) => {
            Ok((base::system::environment_on(Arc::new(MemoryDisk::new())), None))
        }
        Storage::Folder(path) => {
            data_folder::create(path)?;
            let env = base::system::environment(path);
            let failed = |error| of_stream(configuration.storage.clone(), error);
            Streams::check_folder(&env).await.map_err(failed)?;
            let lock = data_folder::lock(path)?;
            Ok((env, Some(lock)))
        }
    }
}

/// Says where the server listens, on standard output and in the ready file.
fn say_started(
    configuration: &Configuration,
    addresses: &Addresses,
    env: &Environment,
) -> Result<(), ServeError> {
    let sas = StartSas::new(configuration, addresses, env.clock.now());
    report::started(configuration, addresses, sas.as_ref());
    match &configuration.ready_file {
        None => Ok(()),
        Some(path) => report::write_ready_file(path, configuration, addresses, sas.as_ref())
            .map_err(ServeError::ReadyFile),
    }
}

/// The settings of the lower layers, with the sizes that suit the disk.
async fn sized(configuration: &Configuration, env: &Environment) -> (StreamSettings, PartitionSettings) {
    let (streams, partitions) = (configuration.streams.clone(), configuration.partitions.clone());
    if let Storage::Memory = configuration.storage {
        return (streams, partitions);
    }
    // Where nobody knows how large the disk is it is taken for a large one, as it was when nobody asked.
    let streams = streams.for_disk(env.disk.total_bytes().await.unwrap_or(u64::MAX / 2));
    let flush_size_bytes_max = streams.flush_size_bytes_max;
    (streams, partitions.with_flushes_of(flush_size_bytes_max))
}

fn start_logs(
    configuration: &Configuration,
    env: &Environment,
) -> Result<(AccessLogs, Option<Arc<SpanRecorder>>), ServeError> {
    let spans = collector::start(configuration, env)?;
    let gathered = spans.clone().map(|spans| spans as Arc<dyn AccessLog>);
    let logs = AccessLogs::start(&configuration.process.access, &env.metrics, announce, gathered);
    Ok((logs.map_err(ServeError::Runtime)?, spans))
}

/// Writes and sends what the logs still hold.
async fn close_logs(logs: AccessLogs, spans: Option<&SpanRecorder>, env: &Environment) {
    logs.close();
    if let Some(spans) = spans {
        spans.close(&*env.clock).await;
    }
}

/// Once the data folder is there, which it may lie in, and before there are requests.
fn check_access_log(configuration: &Configuration) -> Result<(), ServeError> {
    let access = &configuration.process.access;
    let file = || access.target.as_ref().map_or_else(String::new, ToString::to_string);
    access_log::check(access).map_err(|error| ServeError::AccessLog { file: file(), error })
}

fn of_admin(error: AdminError) -> ServeError {
    match error {
        AdminError::Listen { address, error } => ServeError::Listen { flag: ADMIN_PORT_FLAG, address, error },
        AdminError::Runtime(error) => ServeError::Runtime(error),
    }
}

/// What the admin side has of the process.
pub(crate) fn handles(configuration: &Configuration, reload: &Reload, logs: &AccessLogs) -> Handles {
    Handles {
        slow: logs.slow(),
        log: reload.log(),
        settings: reload.control(),
        simulation: configuration.development.simulated.as_ref().map(|simulated| simulated.control()),
        storage: configuration.storage.to_string(),
    }
}

/// Connections that the system keeps for each service until they are taken; it may keep fewer
/// (`net.core.somaxconn`). Those beyond it try again after a second.
const BACKLOG: u32 = 4096;

/// The sockets of blob, table and queue.
fn listen_all(
    configuration: &Configuration,
    passed: &mut PassedSockets,
) -> Result<[(TcpListener, SocketAddr); 3], ServeError> {
    let addresses = &configuration.addresses;
    Ok([
        listen(passed.of("blob"), BLOB_PORT_FLAG, addresses.blob)?,
        listen(passed.of("table"), TABLE_PORT_FLAG, addresses.table)?,
        listen(passed.of("queue"), QUEUE_PORT_FLAG, addresses.queue)?,
    ])
}

/// Takes a socket that was passed, or binds a port; also tells which, as the system may have picked it.
fn listen(
    passed: Option<std::net::TcpListener>,
    flag: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let bind = || {
        if let Some(passed) = passed {
            let bound = passed.local_addr()?;
            check_reach(bound, address)?;
            return Ok((TcpListener::from_std(passed)?, bound));
        }
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A server that was stopped can start again at once, whatever connections it left behind.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    bind().map_err(|error| ServeError::Listen { flag, address, error })
}

/// A socket that was passed is reached by no more than `--host` allows: short keys are refused by that.
fn check_reach(bound: SocketAddr, configured: SocketAddr) -> std::io::Result<()> {
    match is_loopback(bound.ip()) || !is_loopback(configured.ip()) {
        true => Ok(()),
        false => Err(std::io::Error::other(format!(
            "the socket that was passed listens on {bound}, where other machines reach it; give its address \
             with --host, too"
        ))),
    }
}

/// The bounds of requests. First the process gets all the file descriptors it can have.
fn limits() -> Limits {
    let open_files_max = base::system::raise_open_files_max();
    let wanted = Limits::default();
    let connections_max = choose_connections_max(open_files_max, wanted.connections_max);
    if connections_max < wanted.connections_max {
        tracing::debug!(
            open_files_max,
            connections_max,
            "the process may open few files, so each service takes fewer connections; raise its limit (ulimit -n)"
        );
    }
    Limits { connections_max, ..wanted }
}

/// The signals that have files read again, if there are such files.
fn hangups(configuration: &Configuration, reload: &Reload) -> Result<Option<Signal>, ServeError> {
    let has_rules =
        configuration.development.simulated.as_ref().is_some_and(|simulated| simulated.has_file());
    let is_wanted = has_rules || reload.has_file();
    is_wanted.then(|| signal(SignalKind::hangup())).transpose().map_err(ServeError::Signal)
}

/// Has the file of settings, or without one that with rules, read again with each signal, and when the admin
/// side wants it.
async fn follow_hangups(
    hangup: Option<Signal>,
    configuration: &Configuration,
    mut reload: Reload,
) -> Infallible {
    let certificate = configuration.tls.as_ref();
    let simulated = configuration.development.simulated.as_ref();
    reload.follow(hangup, Live { certificate, simulated }).await
}

/// Has the access log opened again with each signal: somebody has moved its file.
async fn follow_rotations(mut rotate: Signal, logs: &AccessLogs) -> Infallible {
    loop {
        rotate.recv().await;
        logs.reopen();
    }
}

/// Turns true at the first SIGTERM or SIGINT; a second one ends the process at once.
fn stop_on_signals() -> Result<watch::Receiver<bool>, ServeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signal)?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        for count in 0.. {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if count > 0 {
                std::process::exit(130);
            }
            sender.send_replace(true);
        }
    });
    Ok(receiver)
}
