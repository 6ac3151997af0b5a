//! What a server builds over ranges, whether they are in a folder or in a stamp.

use crate::arguments::OauthMode;
use crate::configuration::{Configuration, Storage};
use crate::memory_guard::MemoryGuard;
use access_log::AccessLogs;
use base::Environment;
use blob::BlobService;
use front_end::{FrontEnd, FrontEndSettings, Limits, Services};
use partition::Partitions;
use queue::QueueService;
use std::sync::Arc;
use table::TableService;
use tokio::sync::watch;

/// The services over the ranges, with what they do in the background.
pub(crate) fn services(
    configuration: &Configuration,
    env: &Environment,
    partitions: &Arc<Partitions>,
) -> Services {
    let queues = QueueService::new(partitions.clone(), env.clock.clone(), env.random.clone());
    let services = Services {
        blob: Arc::new(BlobService::new(
            partitions.clone(),
            env.clock.clone(),
            configuration.versioned.clone(),
        )),
        table: Arc::new(TableService::new(partitions.clone(), env.clock.clone())),
        queue: Arc::new(queues),
    };
    services.queue.start_sweeping(&*env.spawner);
    services.blob.start_sweeping(&*env.spawner);
    services.blob.start_retiring(&*env.spawner);
    services.table.start_retiring(&*env.spawner);
    services.queue.start_retiring(&*env.spawner);
    services
}

/// What keeps the process's memory within the budget. In memory what is stored has no bound.
pub(crate) fn memory_guard(
    configuration: &Configuration,
    env: &Environment,
    partitions: &Arc<Partitions>,
) -> MemoryGuard {
    let settings = &configuration.partitions;
    let budget_bytes = match &configuration.storage {
        Storage::Memory => u64::MAX,
        Storage::Folder(_) | Storage::Stamp(_) => settings.memory_budget_size_bytes(),
    };
    MemoryGuard::new(partitions, env.clock.clone(), budget_bytes, settings.cache_size_bytes_max)
}

pub(crate) fn front_end(
    configuration: &Configuration,
    services: Services,
    env: &Environment,
    limits: Limits,
    logs: &AccessLogs,
) -> FrontEnd {
    let settings = front_end_settings(configuration, env, limits, logs);
    FrontEnd::new(settings, services, env.clock.clone(), env.random.clone(), env.spawner.clone())
}

pub(crate) fn front_end_settings(
    configuration: &Configuration,
    env: &Environment,
    limits: Limits,
    logs: &AccessLogs,
) -> FrontEndSettings {
    FrontEndSettings {
        limits,
        takes_customer_keys: configuration.development.takes_customer_keys,
        tls: configuration.tls.as_ref().map(|certificate| certificate.identity.clone()),
        bearer: configuration.development.oauth.map(OauthMode::authority),
        metrics: env.metrics.clone(),
        access: logs.recorder(),
        simulation: configuration
            .development
            .simulated
            .as_ref()
            .map(|simulated| simulated.simulation.clone()),
        ..FrontEndSettings::new(configuration.accounts.clone())
    }
}

/// Returns once the process is asked to stop.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    // The sender lives as long as the runtime.
    let _ = stop.wait_for(|stopping| *stopping).await;
}
