//! `larimar blob copy`: the block blobs of a container into another one, of any account.
//!
//! A blob's bytes go through this program, so that neither service must reach the other. What always holds: a
//! blob that is copied has the source's bytes: its MD5 is computed on the way, compared with the source's
//! where that has one, and with that of the target's bytes, which are read again; only then it is kept with
//! the target, unless the service has computed it of what it got. So a blob that the target has already, with
//! the same size, MD5, properties and metadata, was verified and is left as it is, and a copy that was
//! stopped is simply repeated; memory is a block for each worker.

use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use base::BoxFuture;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::LocalBoxFuture;
use futures_util::future::{Either, select};
use md5::{Digest, Md5};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage_client::{
    AccountAddress, BlobClient, BlobCondition, BlobProperties, BlobQuery, BlobWrite, ContainerClient,
    IfMatch, ListedBlob, Settings, StorageAccount, Surroundings,
};
use tokio::sync::{Mutex, mpsc};

/// Blobs that wait for a worker, at most.
const WAITING_MAX: usize = 256;
/// Progress is shown so often.
const EVERY: Duration = Duration::from_millis(250);
/// Connections beside those of the workers.
const SPARE_CONNECTIONS: usize = 4;
const BLOCK_BLOB: &str = "BlockBlob";
/// What the service gives to a blob without one.
const USUAL_CONTENT_TYPE: &str = "application/octet-stream";

/// A container of an account, as a command names it.
#[derive(Clone)]
pub struct ContainerPlace {
    /// The account.
    pub address: AccountAddress,
    /// How requests are retried, and what servers are trusted by.
    pub settings: Settings,
    /// The container's name.
    pub container: String,
}

impl ContainerPlace {
    fn client(&self, surroundings: &Surroundings, connections: usize) -> ContainerClient {
        let settings = Settings { connections_max: connections + SPARE_CONNECTIONS, ..self.settings.clone() };
        let account = StorageAccount::new(self.address.clone(), settings, surroundings.clone());
        account.container(&self.container)
    }
}

/// What is copied.
pub struct BlobCopyPlan {
    /// Where from.
    pub from: ContainerPlace,
    /// Where to.
    pub to: ContainerPlace,
    /// What the blobs' names begin with.
    pub prefix: String,
    /// Workers, each with a blob at a time.
    pub connections: usize,
    /// The container is made unless it is there.
    pub creates_container: bool,
    /// Blobs are listed and compared, and nothing is written.
    pub is_dry: bool,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobsCopied {
    /// Blobs that were written, or would be.
    pub copied: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Blobs that the target had already.
    pub same: u64,
    /// Append and page blobs, which are left out.
    pub other_kinds: u64,
}

type Report = Result<BlobsCopied, ToolError>;

struct Shared {
    blobs: Mutex<mpsc::Receiver<ListedBlob>>,
    from: ContainerClient,
    to: ContainerClient,
    is_dry: bool,
    failed: AtomicBool,
}

/// Copies blobs.
pub fn copy_blobs<'a, 'e: 'a>(
    plan: &'a BlobCopyPlan,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<BlobsCopied, ToolError>> {
    Box::pin(async move {
        let surroundings = environment.surroundings.clone();
        let from = plan.from.client(&surroundings, plan.connections);
        let to = plan.to.client(&surroundings, plan.connections);
        from.properties().await?;
        match (plan.creates_container, plan.is_dry) {
            (true, false) => {
                to.create_if_absent().await?;
            }
            (false, _) => {
                to.properties().await?;
            }
            (true, true) => {}
        }
        let (sender, blobs) = mpsc::channel(WAITING_MAX);
        let (reporter, mut reports) = mpsc::channel(WAITING_MAX);
        let (is_dry, failed) = (plan.is_dry, AtomicBool::new(false));
        let shared = Arc::new(Shared { blobs: Mutex::new(blobs), from: from.clone(), to, is_dry, failed });
        for _ in 0..plan.connections {
            surroundings.spawner.spawn("blobs", work(shared.clone(), reporter.clone()));
        }
        let lister = list(from, plan.prefix.clone(), sender, shared.clone(), reporter);
        surroundings.spawner.spawn("blobs", lister);
        let mut all = BlobsCopied::default();
        let watched = watch(&mut reports, &shared, &mut all, environment).await;
        match watched {
            Err(error) if plan.is_dry => Err(error),
            Err(error) => {
                let kept = format!("{} blobs were copied until then; the same command goes on", all.copied);
                Err(error.keeping(kept))
            }
            Ok(()) => Ok(all),
        }
    })
}

async fn watch(
    reports: &mut mpsc::Receiver<Report>,
    shared: &Shared,
    all: &mut BlobsCopied,
    environment: &mut ToolEnvironment<'_>,
) -> Result<(), ToolError> {
    let clock = environment.surroundings.clock.clone();
    let mut rate = Rate::new(clock.monotonic(), 0);
    let mut tick = clock.sleep(EVERY);
    let mut error = None;
    loop {
        let report = match select(pin!(reports.recv()), &mut tick).await {
            Either::Left((report, _)) => Some(report),
            Either::Right(_) => None,
        };
        match report {
            Some(Some(Ok(one))) => all.add(one),
            Some(Some(Err(failed))) => {
                shared.failed.store(true, Ordering::Relaxed);
                error = error.or(Some(failed));
            }
            // All workers have ended.
            Some(None) if environment.stop.is_set() && error.is_none() => return Err(ToolError::Stopped),
            Some(None) => return error.map_or(Ok(()), Err),
            None => {
                tick = clock.sleep(EVERY);
                if environment.stop.is_set() {
                    shared.failed.store(true, Ordering::Relaxed);
                }
                let done = all.copied + all.same;
                let rate = rate.look(clock.monotonic(), done);
                (environment.watcher)(&Progress { verb: "copying", done, rate, rest: Rest::Ranges(1) });
            }
        }
    }
}

impl BlobsCopied {
    fn add(&mut self, other: Self) {
        self.copied += other.copied;
        self.size_bytes += other.size_bytes;
        self.same += other.same;
        self.other_kinds += other.other_kinds;
    }
}

/// Lists the source, page by page, no faster than blobs are copied.
fn list(
    from: ContainerClient,
    prefix: String,
    sender: mpsc::Sender<ListedBlob>,
    shared: Arc<Shared>,
    reporter: mpsc::Sender<Report>,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let mut query = BlobQuery { prefix, with_metadata: true, ..BlobQuery::default() };
        loop {
            let page = match from.list_page(&query).await {
                Ok(page) => page,
                Err(error) => {
                    // The other end is there as long as workers are.
                    let _ = reporter.send(Err(error.into())).await;
                    return;
                }
            };
            for blob in page.blobs {
                if shared.failed.load(Ordering::Relaxed) || sender.send(blob).await.is_err() {
                    return;
                }
            }
            query.marker = page.marker;
            if query.marker.is_none() {
                return;
            }
        }
    })
}

fn work(shared: Arc<Shared>, reporter: mpsc::Sender<Report>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        loop {
            let blob = shared.blobs.lock().await.recv().await;
            let Some(blob) = blob else { return };
            // What is listed yet is dropped.
            if shared.failed.load(Ordering::Relaxed) {
                continue;
            }
            let copied = copy_blob(&shared, &blob).await;
            if reporter.send(copied).await.is_err() {
                return;
            }
        }
    })
}

async fn copy_blob(shared: &Shared, listed: &ListedBlob) -> Report {
    if listed.properties.kind != BLOCK_BLOB {
        return Ok(BlobsCopied { other_kinds: 1, ..BlobsCopied::default() });
    }
    let (source, target) = (shared.from.blob(&*listed.name), shared.to.blob(&*listed.name));
    let size_bytes = listed.properties.size_bytes;
    match target.properties().await {
        Ok(there) if is_copy(&listed.properties, &there) => {
            return Ok(BlobsCopied { same: 1, ..BlobsCopied::default() });
        }
        Ok(_) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    if !shared.is_dry {
        write(&source, &target, &listed.name).await?;
    }
    Ok(BlobsCopied { copied: 1, size_bytes, ..BlobsCopied::default() })
}

/// Whether the target's blob is a copy that was verified.
fn is_copy(listed: &BlobProperties, there: &BlobProperties) -> bool {
    let carried = |properties: &BlobProperties| {
        let write = BlobWrite::like(properties);
        let content_type = write.content_type.clone().unwrap_or_else(|| USUAL_CONTENT_TYPE.to_owned());
        BlobWrite { content_type: Some(content_type), ..write }
    };
    let has_bytes = listed.size_bytes == there.size_bytes && listed.content_md5 == there.content_md5;
    has_bytes && !listed.content_md5.is_empty() && carried(listed) == carried(there)
}

/// Copies one blob, and looks whether it is the same.
async fn write(source: &BlobClient, target: &BlobClient, name: &str) -> Result<(), ToolError> {
    let mut download = source.download(None).await?;
    let properties = download.properties().clone();
    let write = BlobWrite::like(&properties);
    let mut upload = target.upload(write.clone());
    let mut hash = Md5::new();
    while let Some(part) = download.part().await? {
        hash.update(&part);
        upload.write(part).await?;
    }
    let md5 = STANDARD.encode(hash.finalize());
    if !properties.content_md5.is_empty() && properties.content_md5 != md5 {
        let of = &properties.content_md5;
        return Err(ToolError::Refused(format!("{name}: its bytes have the MD5 {md5}, not {of} as it says")));
    }
    let etag = upload.finish().await?;
    let mut read = Md5::new();
    let mut download = target.download(None).await?;
    while let Some(part) = download.part().await? {
        read.update(&part);
    }
    let found = STANDARD.encode(read.finalize());
    if found != md5 {
        target.delete(&BlobCondition::Match(IfMatch::ETag(etag)), false).await?;
        let what = format!(
            "{name}: the target had bytes with the MD5 {found}, not {md5}, and is deleted; copy it again"
        );
        return Err(ToolError::Refused(what));
    }
    if download.properties().content_md5 != md5 {
        // So that a later copy knows it again. Earlier it would take what was never verified for a copy.
        let condition = BlobCondition::Match(IfMatch::ETag(etag));
        target.set_properties(&BlobWrite { content_md5: Some(md5), condition, ..write }).await?;
    }
    Ok(())
}
