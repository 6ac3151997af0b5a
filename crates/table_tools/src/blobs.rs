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
use crate::scan::run::BROKE_DOWN;
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
    AccountAddress, BlobClient, BlobCondition, BlobProperties, BlobQuery, BlobWrite, ContainerClient, Error,
    IfMatch, ListedBlob, Service, Settings, StorageAccount, Surroundings,
};
use tokio::sync::{Mutex, mpsc};

/// Blobs that wait for a worker, at most.
const WAITING_MAX: usize = 256;
/// Progress is shown so often.
const EVERY: Duration = Duration::from_millis(250);
/// Connections beside those of the workers.
const SPARE_CONNECTIONS: usize = 4;
const BLOCK_BLOB: &str = "BlockBlob";
/// Bytes of a block, at least, and blocks of a blob, at most: the service's bound.
const BLOCK_SIZE_BYTES_MIN: u64 = 8 << 20;
const BLOCKS_MAX: u64 = 50_000;
/// Blobs that can't be copied and are named, at most; the others are counted.
const NAMED_MAX: usize = 3;
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
    /// Whether it is the same container under another spelling.
    fn is_same(&self, other: &Self) -> bool {
        self.container == other.container && self.address.has_same_endpoint(&other.address, Service::Blob)
    }

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
    /// Blobs that were deleted after they had been listed.
    pub gone: u64,
}

/// What a worker, or the lister, says.
enum Report {
    Done(BlobsCopied),
    /// A blob can't be copied; others can.
    Failed(String),
    /// Nothing can go on.
    Ended(ToolError),
}

/// How far it is.
#[derive(Default)]
struct Course {
    copied: BlobsCopied,
    /// Blobs that can't be copied, and why the first ones can't.
    failed: u64,
    named: Vec<String>,
}

struct Shared {
    blobs: Mutex<mpsc::Receiver<ListedBlob>>,
    from: ContainerClient,
    to: ContainerClient,
    is_dry: bool,
    failed: AtomicBool,
    broke_down: AtomicBool,
}

/// Ends all if a task breaks down: else what it had under way would be missing without a word.
struct EndsUnlessDone {
    shared: Arc<Shared>,
    is_done: bool,
}

impl Drop for EndsUnlessDone {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.broke_down.store(true, Ordering::Relaxed);
            self.shared.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Copies blobs. One that can't be copied does not keep others from it.
///
/// # Errors
/// That of the service; that both are one container; at the end, that some blobs can't be copied.
pub fn copy_blobs<'a, 'e: 'a>(
    plan: &'a BlobCopyPlan,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<BlobsCopied, ToolError>> {
    Box::pin(async move {
        if plan.from.is_same(&plan.to) {
            return Err(ToolError::refused("a container is not copied onto itself"));
        }
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
        let (is_dry, blobs, source) = (plan.is_dry, Mutex::new(blobs), from.clone());
        let (failed, broke_down) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { blobs, from: source, to, is_dry, failed, broke_down });
        for _ in 0..plan.connections {
            surroundings.spawner.spawn("blobs", work(shared.clone(), reporter.clone()));
        }
        let lister = list(from, plan.prefix.clone(), sender, shared.clone(), reporter);
        surroundings.spawner.spawn("blobs", lister);
        let mut course = Course::default();
        let watched = watch(&mut reports, &shared, &mut course, environment).await;
        match watched.and_then(|()| course.check()) {
            Err(error) if plan.is_dry => Err(error),
            Err(error) => {
                let copied = course.copied.copied;
                let kept = format!("{copied} blobs were copied until then; the same command goes on");
                Err(error.keeping(kept))
            }
            Ok(()) => Ok(course.copied),
        }
    })
}

async fn watch(
    reports: &mut mpsc::Receiver<Report>,
    shared: &Shared,
    course: &mut Course,
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
            Some(Some(Report::Done(one))) => course.copied.add(one),
            Some(Some(Report::Failed(what))) => course.fail(what),
            Some(Some(Report::Ended(failed))) => {
                shared.failed.store(true, Ordering::Relaxed);
                error = error.or(Some(failed));
            }
            // All workers have ended, or the lister would wait for one that has broken down.
            Some(None) | None if shared.broke_down.load(Ordering::Relaxed) => {
                return Err(error.unwrap_or(ToolError::refused(BROKE_DOWN)));
            }
            Some(None) if environment.stop.is_set() && error.is_none() => return Err(ToolError::Stopped),
            Some(None) => return error.map_or(Ok(()), Err),
            None => {
                tick = clock.sleep(EVERY);
                if environment.stop.is_set() {
                    shared.failed.store(true, Ordering::Relaxed);
                }
                let done = course.copied.copied + course.copied.same;
                let rate = rate.look(clock.monotonic(), done);
                (environment.watcher)(&Progress { verb: "copying", done, rate, rest: Rest::Ranges(1) });
            }
        }
    }
}

impl Course {
    fn fail(&mut self, what: String) {
        self.failed += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(what);
        }
    }

    /// An error if there are blobs that can't be copied.
    fn check(&self) -> Result<(), ToolError> {
        if self.failed == 0 {
            return Ok(());
        }
        let more = if self.failed > NAMED_MAX as u64 { "; and others" } else { "" };
        let (count, named) = (self.failed, self.named.join("; "));
        Err(ToolError::Refused(format!("{count} blobs can't be copied: {named}{more}")))
    }
}

impl BlobsCopied {
    fn add(&mut self, other: Self) {
        self.copied += other.copied;
        self.size_bytes += other.size_bytes;
        self.same += other.same;
        self.other_kinds += other.other_kinds;
        self.gone += other.gone;
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
        let mut watched = EndsUnlessDone { shared: shared.clone(), is_done: false };
        list_all(from, prefix, sender, &shared, &reporter).await;
        watched.is_done = true;
    })
}

async fn list_all(
    from: ContainerClient,
    prefix: String,
    sender: mpsc::Sender<ListedBlob>,
    shared: &Shared,
    reporter: &mpsc::Sender<Report>,
) {
    let mut query = BlobQuery { prefix, with_metadata: true, ..BlobQuery::default() };
    loop {
        let page = match from.list_page(&query).await {
            Ok(page) => page,
            Err(error) => {
                // The other end is there as long as workers are.
                let _ = reporter.send(Report::Ended(error.into())).await;
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
            let mut watched = EndsUnlessDone { shared: shared.clone(), is_done: false };
            let report = match copy_blob(&shared, &blob).await {
                Ok(one) => Report::Done(one),
                Err(error) if is_of_blob(&error) => Report::Failed(error.to_string()),
                Err(error) => Report::Ended(error),
            };
            watched.is_done = true;
            if reporter.send(report).await.is_err() {
                return;
            }
        }
    })
}

/// Whether it is about one blob: archived, changed or deleted while it was read, leased, or without the bytes
/// that it says. All else, such as a key that is refused, is that of others, too.
fn is_of_blob(error: &ToolError) -> bool {
    match error {
        ToolError::Refused(_) => true,
        ToolError::Service(error) => {
            matches!(error.status(), Some(400 | 404 | 409 | 412)) && !error.code().starts_with("Container")
        }
        _ => false,
    }
}

/// Whether it is the blob that is not there, not its container.
fn is_gone(error: &Error) -> bool {
    error.is_not_found() && !error.code().starts_with("Container")
}

async fn copy_blob(shared: &Shared, listed: &ListedBlob) -> Result<BlobsCopied, ToolError> {
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
    if !shared.is_dry && !write(&source, &target, &listed.name).await? {
        return Ok(BlobsCopied { gone: 1, ..BlobsCopied::default() });
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

/// Bytes of the blocks of a blob: as few as it can have.
fn block_size(size_bytes: u64) -> usize {
    usize::try_from(size_bytes.div_ceil(BLOCKS_MAX).max(BLOCK_SIZE_BYTES_MIN)).unwrap_or(usize::MAX)
}

/// Copies one blob, and looks whether it is the same; whether it is there yet.
async fn write(source: &BlobClient, target: &BlobClient, name: &str) -> Result<bool, ToolError> {
    let mut download = match source.download(None).await {
        Err(error) if is_gone(&error) => return Ok(false),
        download => download?,
    };
    let properties = download.properties().clone();
    let write = BlobWrite::like(&properties);
    let mut upload = target.upload_in_blocks(write.clone(), block_size(properties.size_bytes));
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
        let write = BlobWrite { content_md5: Some(md5.clone()), condition, ..write };
        match target.set_properties(&write).await {
            // An attempt whose answer was lost may have given it another ETag.
            Err(error) if error.may_be_done() && error.status() == Some(412) => {
                if target.properties().await?.content_md5 != md5 {
                    return Err(error.into());
                }
            }
            set => drop(set?),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_large_as_a_blob_needs_them() {
        assert_eq!([0, 1, 400 << 30].map(block_size), [8 << 20, 8 << 20, 8_589_935]);
        for size_bytes in [BLOCK_SIZE_BYTES_MIN * BLOCKS_MAX + 1, 190 << 40] {
            assert!(size_bytes.div_ceil(block_size(size_bytes) as u64) <= BLOCKS_MAX);
        }
    }

    #[test]
    fn blobs_that_fail_are_counted_and_the_first_named() {
        let mut course = Course::default();
        assert!(course.check().is_ok());
        for number in 0..5 {
            course.fail(format!("b{number} is archived"));
        }
        let text = course.check().expect_err("an error").to_string();
        let expected = "5 blobs can't be copied: b0 is archived; b1 is archived; b2 is archived; and others";
        assert_eq!(text, expected);
    }
}
