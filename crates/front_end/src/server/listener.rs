//! Accepts connections until it is stopped, then lets those under way finish.
//!
//! What always holds: no more connections than allowed are open (others wait in the backlog), and no more of
//! one client than its share (others are closed at once); after a stop the listener returns within the drain
//! time.

use super::connection::{ConnectionSettings, serve_connection};
use super::connection_metrics::ConnectionMetrics;
use super::phase::Phase;
use super::tls::TlsIdentity;
use crate::bounds::limits::Limits;
use crate::bounds::peer_shares::PeerShares;
use crate::pipeline::RequestHandler;
use crate::request::connection_info::ConnectionInfo;
use base::{BoxFuture, Clock, Spawner};
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// How long accepting rests after a failure, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// That all connections are taken, or all of a client, is logged this often at most.
const FULL_LOGGED_EVERY: Duration = Duration::from_secs(60);

/// Serves until `shutdown` completes, and then until connections have drained.
pub(crate) async fn serve(
    handler: Arc<dyn RequestHandler>,
    limits: &Limits,
    tls: Option<TlsIdentity>,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
    (listener, metrics): (TcpListener, ConnectionMetrics),
    shutdown: BoxFuture<'_, ()>,
) {
    let permits = u32::try_from(limits.connections_max).unwrap_or(u32::MAX).max(1);
    let connections = Arc::new(Semaphore::new(permits as usize));
    let (phase, phase_of_connections) = watch::channel(Phase::Serving);
    let encrypted = tls.is_some();
    let settings = Arc::new(ConnectionSettings::new(limits, tls, clock.clone(), spawner.clone()));
    let mut shutdown = shutdown;
    let peers = PeerShares::of(limits.connections_max);
    let mut told_full_at = None;
    let mut told_share_at = None;
    loop {
        if connections.available_permits() == 0 && is_due(&mut told_full_at, &*clock) {
            tracing::warn!(
                service = handler.label(),
                "all {permits} connections are taken; others wait until one is closed"
            );
        }
        let next = pin!(accept(&listener, &connections, &*clock));
        let (stream, peer, permit) = match select(shutdown.as_mut(), next).await {
            Either::Left(_) => break,
            Either::Right((accepted, _)) => accepted,
        };
        let Some(of_peer) = peers.take(Some(peer.ip()), 1) else {
            metrics.refused.increment();
            if is_due(&mut told_share_at, &*clock) {
                tracing::warn!(
                    service = handler.label(),
                    client = %peer.ip(),
                    "a client holds as many connections as one may, so further ones are closed"
                );
            }
            continue;
        };
        let info = ConnectionInfo { peer: Some(peer.ip()), encrypted };
        let (served_by, settings, phase) = (handler.clone(), settings.clone(), phase_of_connections.clone());
        let open = metrics.open();
        let task = async move {
            serve_connection(served_by, info, stream, &settings, phase).await;
            drop((permit, of_peer, open));
        };
        spawner.spawn(handler.connection_name(), Box::pin(task));
    }
    drop(listener);
    phase.send_replace(Phase::Draining);
    let all_closed = pin!(connections.acquire_many(permits));
    if let Either::Right(_) = select(all_closed, clock.sleep(limits.drain_for_max)).await {
        tracing::warn!("connections are closed before their requests are finished");
        phase.send_replace(Phase::Closed);
    }
}

/// Whether something is logged again, which is noted.
fn is_due(logged_at: &mut Option<Duration>, clock: &dyn Clock) -> bool {
    let now = clock.monotonic();
    let is_due = logged_at.is_none_or(|logged_at| now.saturating_sub(logged_at) >= FULL_LOGGED_EVERY);
    if is_due {
        *logged_at = Some(now);
    }
    is_due
}

type Accepted = (tokio::net::TcpStream, std::net::SocketAddr, tokio::sync::OwnedSemaphorePermit);

/// The next connection, once the limits admit it.
async fn accept(listener: &TcpListener, connections: &Arc<Semaphore>, clock: &dyn Clock) -> Accepted {
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, permit),
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                drop(permit);
                clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
