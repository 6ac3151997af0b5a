//! The facade: a front end over the services, serving bound listeners.

use crate::access::AccessLog;
use crate::accounts::Accounts;
use crate::auth::bearer::BearerAuthority;
use crate::blob_api::BlobApi;
use crate::bounds::limits::Limits;
use crate::pipeline::{Pipeline, RequestHandler, Shared, StandBy};
use crate::queue_api::QueueApi;
use crate::reply::body::ResponseBody;
use crate::request::connection_info::ConnectionInfo;
use crate::server::{ConnectionMetrics, TlsIdentity, serve};
use crate::simulate::Simulation;
use crate::table_api::TableApi;
use base::{BoxFuture, Clock, Metrics, Random, Spawner};
use blob::BlobService;
use bytes::Bytes;
use futures_util::future::join3;
use hyper::body::Body;
use hyper::{Request, Response};
use queue::QueueService;
use std::sync::Arc;
use table::TableService;
use tokio::net::TcpListener;

/// What a front end is made of, apart from the services.
#[derive(Clone, Debug)]
pub struct FrontEndSettings {
    /// Who may sign requests.
    pub accounts: Accounts,
    /// What is taken on at most.
    pub limits: Limits,
    /// With it connections are encrypted, and others are not served.
    pub tls: Option<TlsIdentity>,
    /// Who judges bearer tokens; without it none is taken.
    pub bearer: Option<Arc<dyn BearerAuthority>>,
    /// Whether blobs may be written with customers' keys and encryption scopes, although nothing is encrypted
    /// with them.
    pub takes_customer_keys: bool,
    /// With it requests meet limits, page boundaries and faults on purpose.
    pub simulation: Option<Arc<Simulation>>,
    /// Where requests and connections are counted.
    pub metrics: Metrics,
    /// Who takes notes of each request.
    pub access: Option<Arc<dyn AccessLog>>,
}

impl FrontEndSettings {
    /// For these accounts, with everything else as usual: default limits, no encryption, no bearer tokens.
    pub fn new(accounts: Accounts) -> Self {
        FrontEndSettings {
            accounts,
            limits: Limits::default(),
            tls: None,
            bearer: None,
            takes_customer_keys: false,
            simulation: None,
            metrics: Metrics::default(),
            access: None,
        }
    }
}

/// The services that a front end serves.
#[derive(Clone)]
pub struct Services {
    /// The Blob service.
    pub blob: Arc<BlobService>,
    /// The Table service.
    pub table: Arc<TableService>,
    /// The Queue service.
    pub queue: Arc<QueueService>,
}

/// The stateless HTTP side of a stamp.
pub struct FrontEnd {
    blob: Arc<Pipeline<BlobApi>>,
    table: Arc<Pipeline<TableApi>>,
    queue: Arc<Pipeline<QueueApi>>,
    connections: Connections,
}

/// What connections are served with.
struct Connections {
    limits: Limits,
    tls: Option<TlsIdentity>,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
    metrics: Metrics,
}

impl Connections {
    /// Serves whichever service it is; boxed, so that the program that awaits it does not compile it again.
    fn serve<'a>(
        &'a self,
        handler: Arc<dyn RequestHandler>,
        listener: TcpListener,
        shutdown: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, ()> {
        let (clock, spawner) = (self.clock.clone(), self.spawner.clone());
        let metrics = ConnectionMetrics::new(&self.metrics, handler.label(), self.limits.connections_max);
        Box::pin(serve(
            handler,
            &self.limits,
            self.tls.clone(),
            clock,
            spawner,
            (listener, metrics),
            shutdown,
        ))
    }
}

/// The HTTP side of a process that does not serve: each request gets that as its answer, and
/// may be tried again.
pub struct StandByFrontEnd {
    blob: Arc<StandBy<BlobApi>>,
    table: Arc<StandBy<TableApi>>,
    queue: Arc<StandBy<QueueApi>>,
    connections: Connections,
}

impl StandByFrontEnd {
    /// `reason` says why nothing is served, at each request.
    pub fn new(
        settings: FrontEndSettings,
        reason: Arc<dyn Fn() -> String + Send + Sync>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        let FrontEndSettings { accounts, limits, tls, bearer, metrics, .. } = settings;
        let shared = Arc::new(Shared::new(accounts, bearer, limits.clone(), clock.clone(), random));
        StandByFrontEnd {
            blob: Arc::new(StandBy::new(shared.clone(), reason.clone())),
            table: Arc::new(StandBy::new(shared.clone(), reason.clone())),
            queue: Arc::new(StandBy::new(shared, reason)),
            connections: Connections { limits, tls, clock, spawner, metrics },
        }
    }

    /// Answers on the listeners of Blob, Table and Queue service until `shutdown` completes.
    pub async fn serve(&self, listeners: [TcpListener; 3], shutdown: impl Fn() -> BoxFuture<'static, ()>) {
        let [blob, table, queue] = listeners;
        join3(
            self.connections.serve(self.blob.clone(), blob, shutdown()),
            self.connections.serve(self.table.clone(), table, shutdown()),
            self.connections.serve(self.queue.clone(), queue, shutdown()),
        )
        .await;
    }
}

impl FrontEnd {
    /// A front end over these services.
    pub fn new(
        settings: FrontEndSettings,
        services: Services,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        let FrontEndSettings {
            accounts,
            limits,
            tls,
            bearer,
            takes_customer_keys,
            simulation,
            metrics,
            access,
        } = settings;
        let shared = Arc::new(Shared::new(accounts, bearer, limits.clone(), clock.clone(), random));
        let blob = BlobApi::new(services.blob, takes_customer_keys);
        let blob =
            Arc::new(Pipeline::new(shared.clone(), blob, simulation.clone(), &metrics, access.clone()));
        let table = TableApi::new(services.table);
        let table =
            Arc::new(Pipeline::new(shared.clone(), table, simulation.clone(), &metrics, access.clone()));
        let queue =
            Arc::new(Pipeline::new(shared, QueueApi::new(services.queue), simulation, &metrics, access));
        FrontEnd { blob, table, queue, connections: Connections { limits, tls, clock, spawner, metrics } }
    }

    /// Serves the Blob service on a bound listener, as [`Self::serve_table`] does.
    pub fn serve_blob<'a>(&'a self, listener: TcpListener, shutdown: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        self.serve(self.blob.clone(), listener, shutdown)
    }

    /// Answers one request to the Blob service without a socket.
    pub async fn handle_blob<B>(
        &self,
        connection: ConnectionInfo,
        request: Request<B>,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let state = self.blob.connection_state(self.connections.spawner.current_worker());
        self.blob.handle(connection, request, &state).await
    }

    /// Serves the Table service on a bound listener until `shutdown` completes; then finishes requests under
    /// way, closes connections and returns, at the latest after [`Limits::drain_for_max`].
    pub fn serve_table<'a>(
        &'a self,
        listener: TcpListener,
        shutdown: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, ()> {
        self.serve(self.table.clone(), listener, shutdown)
    }

    /// The same for the Queue service.
    pub fn serve_queue<'a>(
        &'a self,
        listener: TcpListener,
        shutdown: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, ()> {
        self.serve(self.queue.clone(), listener, shutdown)
    }

    fn serve<'a>(
        &'a self,
        handler: Arc<dyn RequestHandler>,
        listener: TcpListener,
        shutdown: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, ()> {
        self.connections.serve(handler, listener, shutdown)
    }

    /// Answers one request to the Table service without a socket.
    pub async fn handle_table<B>(
        &self,
        connection: ConnectionInfo,
        request: Request<B>,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let state = self.table.connection_state(self.connections.spawner.current_worker());
        self.table.handle(connection, request, &state).await
    }

    /// Answers one request to the Queue service without a socket.
    pub async fn handle_queue<B>(
        &self,
        connection: ConnectionInfo,
        request: Request<B>,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let state = self.queue.connection_state(self.connections.spawner.current_worker());
        self.queue.handle(connection, request, &state).await
    }
}
