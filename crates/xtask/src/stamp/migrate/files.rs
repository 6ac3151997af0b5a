//! Blobs: of one piece, of committed blocks, with uncommitted blocks beside them, and of uncommitted ones
//! alone. What always holds: a blob is compared with its bytes, ETag, time and both block lists; at the end
//! the uncommitted blocks are committed, so that their bytes are compared, too.

use super::clients::{CLIENT_COUNT, client, digest, side_by_side};
use super::served::Served;
use crate::Outcome;
use crate::client::content::content;
use crate::client::http_client::Answer;
use crate::client::service_client::Pairs;
use crate::stamp::router::{Request, Router, Service};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::atomic::AtomicBool;

const CONTAINER: &str = "moved";
const BLOCK_COUNT: usize = 3;
const SIZE_BYTES_MAX: u64 = 24 << 10;
/// One blob of so many has large blocks.
const LARGE_ONE_IN: usize = 200;
const LARGE_SIZE_BYTES: usize = 2 << 20;

/// What a blob is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Committed,
    /// Committed blocks, and others that are not.
    Both,
    Uncommitted,
}

impl Kind {
    fn of(number: usize) -> Self {
        [Kind::Whole, Kind::Committed, Kind::Both, Kind::Uncommitted][number % 4]
    }

    fn has_committed_blocks(self) -> bool {
        matches!(self, Kind::Committed | Kind::Both)
    }

    fn has_uncommitted_blocks(self) -> bool {
        matches!(self, Kind::Both | Kind::Uncommitted)
    }
}

pub(super) struct Files {
    /// By number.
    digests: Vec<u64>,
}

impl Files {
    /// Writes them, and reads them once.
    pub(super) fn fill(server: &Served, count: usize) -> Outcome<Self> {
        let mut router = client(Service::Blob, server);
        expect(&mut router, "PUT", CONTAINER, &[("restype", "container")], &[], b"")?;
        let parts = side_by_side(|thread| {
            let mut router = client(Service::Blob, server);
            let mut digests = Vec::new();
            for number in (thread..count).step_by(CLIENT_COUNT) {
                write(&mut router, number)?;
                digests.push(digest(&described(&mut router, number)?));
            }
            Ok(digests)
        })?;
        let digests = (0..count).map(|number| parts[number % CLIENT_COUNT][number / CLIENT_COUNT]).collect();
        Ok(Files { digests })
    }

    pub(super) fn count(&self) -> usize {
        self.digests.len()
    }

    pub(super) fn with_committed_blocks(&self) -> usize {
        (0..self.count()).filter(|number| Kind::of(*number).has_committed_blocks()).count()
    }

    pub(super) fn with_uncommitted_blocks(&self) -> usize {
        (0..self.count()).filter(|number| Kind::of(*number).has_uncommitted_blocks()).count()
    }

    /// Reads all of them, and answers what differs; `commits`: uncommitted blocks are committed, and read.
    pub(super) fn compare(&self, server: &Served, commits: bool) -> Outcome<Vec<String>> {
        let differences = side_by_side(|thread| {
            let mut router = client(Service::Blob, server);
            let mut differences = Vec::new();
            for number in (thread..self.count()).step_by(CLIENT_COUNT) {
                let found = described(&mut router, number)?;
                if digest(&found) != self.digests[number] {
                    differences.push(format!("blob {} is {found}", path(number)));
                }
                if commits && Kind::of(number).has_uncommitted_blocks() {
                    differences.extend(commit_uncommitted(&mut router, number)?);
                }
            }
            Ok(differences)
        })?;
        Ok(differences.concat())
    }
}

/// Path of a blob.
pub(super) fn path(number: usize) -> String {
    format!("{CONTAINER}/f{number:06}")
}

/// Bytes of a block; those from `BLOCK_COUNT` on are not committed.
fn bytes(number: usize, block: usize) -> Vec<u8> {
    let seed = digest(&format!("{number}/{block}"));
    let size = match number.is_multiple_of(LARGE_ONE_IN) {
        true => LARGE_SIZE_BYTES,
        false => (seed % SIZE_BYTES_MAX) as usize + 1,
    };
    content(seed, size)
}

fn write(router: &mut Router, number: usize) -> Outcome<()> {
    let (path, kind) = (path(number), Kind::of(number));
    if kind == Kind::Whole {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        expect(router, "PUT", &path, &[], &headers, &bytes(number, 0))?;
    }
    if kind.has_committed_blocks() {
        stage(router, number, 0)?;
        commit(router, number, 0)?;
    }
    if kind.has_uncommitted_blocks() {
        stage(router, number, BLOCK_COUNT)?;
    }
    Ok(())
}

fn id(block: usize) -> String {
    STANDARD.encode(format!("block-{block:03}"))
}

fn stage(router: &mut Router, number: usize, first: usize) -> Outcome<()> {
    for block in first..first + BLOCK_COUNT {
        let id = id(block);
        let parameters = [("blockid", id.as_str()), ("comp", "block")];
        expect(router, "PUT", &path(number), &parameters, &[], &bytes(number, block))?;
    }
    Ok(())
}

fn commit(router: &mut Router, number: usize, first: usize) -> Outcome<()> {
    let ids: String =
        (first..first + BLOCK_COUNT).map(|block| format!("<Latest>{}</Latest>", id(block))).collect();
    let list = format!("<BlockList>{ids}</BlockList>");
    expect(router, "PUT", &path(number), &[("comp", "blocklist")], &[], list.as_bytes()).map(drop)
}

/// Commits the uncommitted blocks, and says what is wrong with their bytes.
fn commit_uncommitted(router: &mut Router, number: usize) -> Outcome<Option<String>> {
    commit(router, number, BLOCK_COUNT)?;
    let answer = expect(router, "GET", &path(number), &[], &[], b"")?;
    let wanted: Vec<u8> = (BLOCK_COUNT..2 * BLOCK_COUNT).flat_map(|block| bytes(number, block)).collect();
    let is_right = answer.body == wanted;
    Ok((!is_right).then(|| format!("the uncommitted blocks of {} have other bytes", path(number))))
}

/// All that is seen of a blob.
fn described(router: &mut Router, number: usize) -> Outcome<String> {
    let path = path(number);
    let blob = ask(router, "GET", &path, &[], &[], b"")?;
    let list = ask(router, "GET", &path, &[("blocklisttype", "all"), ("comp", "blocklist")], &[], b"")?;
    let names = ["etag", "last-modified", "x-ms-creation-time", "x-ms-blob-type", "content-md5"];
    let headers = names.map(|name| blob.header(name).unwrap_or("none").to_owned());
    // The text of an error names the request.
    let body = if blob.status == 200 { digest(&String::from_utf8_lossy(&blob.body)) } else { 0 };
    let size = if blob.status == 200 { blob.body.len() } else { 0 };
    Ok(format!("{} {headers:?}, {size} bytes ({body:x}), {} {}", blob.status, list.status, list.text()))
}

fn ask(
    router: &mut Router,
    verb: &str,
    path: &str,
    parameters: Pairs<'_>,
    headers: Pairs<'_>,
    body: &[u8],
) -> Outcome<Answer> {
    Ok(router.ask(Request { verb, path, parameters, headers, body }, &AtomicBool::new(false))?)
}

fn expect(
    router: &mut Router,
    verb: &str,
    path: &str,
    parameters: Pairs<'_>,
    headers: Pairs<'_>,
    body: &[u8],
) -> Outcome<Answer> {
    let answer = ask(router, verb, path, parameters, headers, body)?;
    match answer.status {
        200..300 => Ok(answer),
        status => Err(format!("{verb} {path}: {status} {}", answer.text()).into()),
    }
}
