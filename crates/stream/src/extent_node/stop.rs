//! The node's one-way switch: after a failed write of the journal or a failed sync, no more writes until a
//! restart.
//!
//! What always holds: syncs of one extent go on one after the other, and none after one has failed.

use super::extent::Extent;
use crate::error::StreamError;
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct Stop {
    reason: OnceLock<StreamError>,
}

impl Stop {
    /// Syncs an extent. One sync of it goes on at a time, and none after one has failed: which bytes that one
    /// was about nobody knows.
    pub(crate) async fn sync(&self, extent: &Extent) -> Result<(), StreamError> {
        let _syncing = extent.syncing.lock().await;
        self.check()?;
        let synced = extent.file.sync_data().await;
        synced.map_err(|error| {
            let error = StreamError::write(&format!("extent {}", extent.id), &error);
            self.writes(error.clone());
            error
        })
    }

    /// Stops writing; the first reason stays.
    pub(crate) fn writes(&self, error: StreamError) {
        if self.reason.set(error.clone()).is_ok() {
            tracing::error!(%error, "writing has stopped");
        }
    }

    /// Why writing has stopped, if it has.
    pub(crate) fn check(&self) -> Result<(), StreamError> {
        self.reason.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent_node::state::ExtentState;
    use crate::ids::ExtentId;
    use crate::owner::Owner;
    use async_trait::async_trait;
    use base::DiskFile;
    use bytes::Bytes;
    use futures_util::FutureExt;
    use std::io;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Notify;

    /// The first sync of it takes its time and reports a failed write-back, which the kernel reports once.
    #[derive(Default)]
    struct FailsOnce {
        syncs: AtomicU32,
        is_over: Notify,
    }

    #[async_trait]
    impl DiskFile for FailsOnce {
        async fn read_at(&self, _: u64, _: usize) -> io::Result<Bytes> {
            Ok(Bytes::new())
        }
        async fn write_at(&self, _: u64, _: Bytes) -> io::Result<()> {
            Ok(())
        }
        async fn sync_data(&self) -> io::Result<()> {
            if self.syncs.fetch_add(1, Ordering::Relaxed) > 0 {
                return Ok(());
            }
            self.is_over.notified().await;
            Err(io::Error::other("write-back"))
        }
        async fn size(&self) -> io::Result<u64> {
            Ok(0)
        }
        async fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_sync_beside_one_that_fails_fails_too() {
        let file = Arc::new(FailsOnce::default());
        let extent = Extent::new(ExtentId(1), file.clone(), ExtentState::empty(Owner::default()));
        let stop = Stop::default();
        let (mut first, mut second) = (pin!(stop.sync(&extent)), pin!(stop.sync(&extent)));
        assert_eq!(first.as_mut().now_or_never(), None);
        assert_eq!(second.as_mut().now_or_never(), None, "it took the other's bytes for durable");
        file.is_over.notify_one();
        assert!(first.now_or_never().unwrap().is_err());
        assert!(second.now_or_never().unwrap().is_err());
    }
}
