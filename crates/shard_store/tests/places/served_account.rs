//! A storage account in memory, served over a socket by the real front end.

use base::connector::SystemConnector;
use base::memory_disk::MemoryDisk;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use front_end::{Accounts, FrontEnd, FrontEndSettings, Services};
use partition::Partitions;
use std::net::SocketAddr;
use std::sync::Arc;
use storage_client::{
    AccountAddress, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Proxies, Settings, StorageAccount,
    Surroundings,
};
use stream::{StreamSettings, Streams};
use tokio::net::TcpListener;

pub(crate) struct ServedAccount {
    address: SocketAddr,
}

impl ServedAccount {
    /// Serves tables, until the runtime ends.
    pub(crate) async fn serve() -> Self {
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let settings = StreamSettings {
            extent_size_bytes_max: 16 << 20,
            journal_segment_size_bytes: 1 << 20,
            journaled_append_size_bytes_max: 64 << 10,
            ..StreamSettings::default()
        };
        let streams = Streams::open(&env, settings).await.expect("streams");
        let partitions = Partitions::open(&env, streams, partition::PartitionSettings::default()).await;
        let partitions = Arc::new(partitions.expect("partitions"));
        let (clock, random) = (env.clock.clone(), env.random.clone());
        let blob =
            blob::BlobService::new(partitions.clone(), clock.clone(), blob::VersionedAccounts::default());
        let table = table::TableService::new(partitions.clone(), clock.clone());
        let queue = queue::QueueService::new(partitions, clock.clone(), random.clone());
        let services = Services { blob: Arc::new(blob), table: Arc::new(table), queue: Arc::new(queue) };
        let settings = FrontEndSettings::new(Accounts::development());
        let front_end = FrontEnd::new(settings, services, clock, random, env.spawner);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { front_end.serve_table(listener, Box::pin(std::future::pending())).await });
        ServedAccount { address }
    }

    /// The address of its tables.
    pub(crate) fn location(&self) -> String {
        format!("http://{}/{DEVELOPMENT_ACCOUNT_NAME}", self.address)
    }

    /// A client of its own.
    pub(crate) fn client(&self) -> StorageAccount {
        let endpoint = self.location();
        let text = format!(
            "TableEndpoint={endpoint};AccountName={DEVELOPMENT_ACCOUNT_NAME};AccountKey={DEVELOPMENT_ACCOUNT_KEY}"
        );
        let address = AccountAddress::parse(&text).expect("a connection string");
        let settings = Settings { proxies: Proxies::none(), ..Settings::default() };
        let surroundings = Surroundings {
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SystemRandom::new()),
            spawner: Arc::new(TokioSpawner::current()),
            connector: Arc::new(SystemConnector),
        };
        StorageAccount::new(address, settings, surroundings)
    }
}
