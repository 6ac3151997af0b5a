//! Names of blobs that the service does not take: dots at the end of a segment are dropped, control
//! characters refused. A kept data folder holds blobs that a former version stored under such names: they
//! stay listed, readable and deletable.
//!
//! ```text
//! fixture = LZ4 block with its size in front: entry*
//! entry   = varint n, n bytes path, varint size of the file, varint m, m bytes
//!
//! The m bytes are the file without the zeros at its end.
//! ```

mod stamp;

use base::codec::Decoder;
use base::memory_disk::MemoryDisk;
use base::{Disk, OpenMode};
use bytes::Bytes;
use stamp::answers::{Auth, Row, Service, check};
use std::sync::Arc;

/// Written by the program of format 4.
const FOLDER: &[u8] = include_bytes!("fixtures/blob-names.lz4");

async fn unpack() -> Arc<MemoryDisk> {
    let disk = Arc::new(MemoryDisk::new());
    let entries = lz4_flex::block::decompress_size_prepended(FOLDER).expect("a fixture");
    let mut decoder = Decoder::new(&entries);
    while !decoder.is_empty() {
        let path = decoder.text("path").expect("a path").to_owned();
        let size = decoder.varint("size").expect("a size");
        let content = Bytes::copy_from_slice(decoder.bytes("content").expect("content"));
        if let Some((folder, _)) = path.rsplit_once('/') {
            disk.create_folder(folder).await.expect("a folder");
        }
        let file = disk.open(&path, OpenMode::CreateNew).await.expect("a file");
        let zeros = usize::try_from(size).expect("a size") - content.len();
        let end = content.len() as u64;
        file.write_at(0, content).await.expect("written");
        if zeros > 0 {
            file.write_at(end, vec![0; zeros].into()).await.expect("written");
        }
    }
    disk
}

fn get(path: &str) -> Row {
    Row::of("GET", path)
}

fn put(path: &str, bytes: &str) -> Row {
    Row::of("PUT", path).header("x-ms-blob-type", "BlockBlob").body(bytes).gives(201)
}

fn copy(path: &str, source: &str) -> Row {
    let source = format!("http://127.0.0.1:10002/devstoreaccount1{source}");
    Row::of("PUT", path).header("x-ms-copy-source", source).gives(202)
}

fn invalid(row: Row) -> Row {
    row.fails(400, "InvalidUri")
}

/// A signature of a version that does not sign what it is for, whose parameters leave that out.
fn signed_without_kind(stamp: &stamp::Stamp, name: &str) -> Auth {
    let text = format!("rd\n\n2027-01-01\n/blob/devstoreaccount1/box/{name}\n\n\n\n2017-11-09\n\n\n\n\n");
    let signature = stamp.sas_signature(&text).replace('/', "%2F");
    Auth::Query(format!("sv=2017-11-09&sp=rd&se=2027-01-01&sig={signature}"))
}

/// A signature for one blob, made with this name.
fn signed(stamp: &stamp::Stamp, name: &str) -> Auth {
    let text =
        format!("rcwd\n\n2027-01-01\n/blob/devstoreaccount1/box/{name}\n\n\n\n2020-02-10\nb\n\n\n\n\n\n");
    let signature = stamp.sas_signature(&text).replace('/', "%2F");
    Auth::Query(format!("sv=2020-02-10&sr=b&sp=rcwd&se=2027-01-01&sig={signature}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dots_at_the_end_of_segments_are_dropped() {
    let stamp = stamp::Stamp::open().await;
    let rows = [
        Row::of("PUT", "/box?restype=container").gives(201),
        put("/box/dots...", "dots"),
        get("/box/dots").says("dots"),
        get("/box/dots.").says("dots"),
        put("/box/dir./sub../x.", "deep"),
        get("/box/dir/sub/x").says("deep"),
        put("/box/encoded%2E%2e", "encoded"),
        get("/box/encoded").says("encoded"),
        get("/box?restype=container&comp=list").says("<Name>dir/sub/x</Name>"),
        // In copy sources.
        copy("/box/copy.", "/box/dots.."),
        get("/box/copy").says("dots"),
        // Staged blocks and what is done to them, and all else that writes.
        Row::of("PUT", "/box/blocks.?comp=block&blockid=QUFB").body("block").gives(201),
        Row::of("PUT", "/box/blocks?comp=blocklist")
            .body("<BlockList><Latest>QUFB</Latest></BlockList>")
            .gives(201),
        get("/box/blocks.").says("block"),
        Row::of("PUT", "/box/dots.?comp=metadata").header("x-ms-meta-a", "b"),
        Row::of("HEAD", "/box/dots").has_header("x-ms-meta-a", "b"),
        // Before a signature is verified.
        get("/box/dots.").auth(signed(&stamp, "dots")).says("dots"),
        get("/box/dots").auth(signed(&stamp, "dots.")).fails(403, "AuthenticationFailed"),
        Row::of("DELETE", "/box/dots..").gives(202),
        get("/box/dots").fails(404, "BlobNotFound"),
        // Nothing is left.
        invalid(put("/box/...", "x")),
        invalid(put("/box/./...", "x")),
        invalid(get("/box/.")),
        invalid(Row::of("DELETE", "/box/..")),
    ];
    answers_of(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_characters_are_refused() {
    let stamp = stamp::Stamp::open().await;
    let mut rows = vec![Row::of("PUT", "/box?restype=container").gives(201)];
    for encoded in ["%00", "%01", "%0A", "%1F", "%7F", "%C2%80", "%C2%85", "%C2%9F"] {
        let path = format!("/box/a{encoded}b");
        rows.extend([
            invalid(put(&path, "x")),
            invalid(get(&path)),
            invalid(Row::of("DELETE", path.as_str())),
            invalid(copy("/box/copy", &path)),
            invalid(Row::of("PUT", format!("{path}?comp=block&blockid=QUFB")).body("x")),
            invalid(Row::of("PUT", format!("{path}?comp=metadata"))),
        ]);
    }
    // Their neighbours are not.
    rows.extend(["%20", "%7E", "%C2%A0"].map(|encoded| put(&format!("/box/a{encoded}b"), "x")));
    answers_of(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_former_version_stored_is_listed_read_and_deleted_under_its_exact_name() {
    let stamp = stamp::Stamp::over(unpack().await, |_| {}).await;
    let list = "/box?restype=container&comp=list&include=uncommittedblobs,snapshots";
    let mut rows = Vec::new();
    // What XML can't hold is listed encoded.
    for name in ["...", "bell%07", "a%00b", "del\u{7f}"] {
        rows.push(get(list).says(name));
    }
    rows.extend([
        get(list).says("<Name>dir./x</Name>"),
        get(list).says("<Name>staged.</Name>"),
        get("/box/plain").says("plain"),
        get("/box/dots...").says("dots").has_header("x-ms-meta-of", "old"),
        // No other number of dots is its name.
        get("/box/dots.").fails(404, "BlobNotFound"),
        get("/box/dir./x").says("in dir.").has_header("content-length", "7"),
        get("/box/dir/x").says("in dir").has_header("content-length", "6"),
        get("/box/...").says("only dots"),
        get("/box/bell%07").says("bell"),
        get("/box/a%00b").says("nul"),
        get("/box/c1%C2%85").says("c1"),
        Row::of("HEAD", "/box/del%7F").has_header("content-length", "3"),
        get("/box/large.").says("L".repeat(20_000)),
        get("/box/staged.?comp=blocklist&blocklisttype=all").says("<Name>AAAA</Name>"),
        // As the source of a copy to a name of today.
        copy("/box/rescued", "/box/dots..."),
        get("/box/rescued").says("dots"),
        copy("/box/rescued", "/box/bell%07"),
        get("/box/rescued").says("bell"),
        // A signature for one blob reaches no other.
        get("/box/dir./x").auth(signed(&stamp, "dir/x")).has_header("content-length", "6"),
        Row::of("DELETE", "/box/dots...").auth(signed(&stamp, "dots")).fails(404, "BlobNotFound"),
        // Beside it nothing is written: a read by the same address would not find it.
        put("/box/dir./x", "new").fails(409, "BlobAlreadyExists"),
        put("/box/...", "x").fails(409, "BlobAlreadyExists"),
        put("/box/bell%07", "x").fails(409, "BlobAlreadyExists"),
        copy("/box/dots...", "/box/plain").fails(409, "BlobAlreadyExists"),
        Row::of("PUT", "/box/dots...?comp=metadata").fails(409, "BlobAlreadyExists"),
        Row::of("PUT", "/box/large.?comp=block&blockid=QUFB").body("x").fails(409, "BlobAlreadyExists"),
        // A signature that is good for one blob only, whose parameters do not say so, reaches no other
        // either.
        get("/box/dir./x").auth(signed_without_kind(&stamp, "dir/x")).has_header("content-length", "6"),
        copy("/box/dir/x", "/box/dir./x").auth(signed(&stamp, "dir/x")),
        get("/box/dir/x").has_header("content-length", "6"),
        // Deletions, snapshots and leases in their way included.
        Row::of("DELETE", "/box/dots...").fails(409, "SnapshotsPresent"),
        Row::of("DELETE", "/box/dots...").header("x-ms-delete-snapshots", "include").gives(202),
        get("/box/dots...").fails(404, "BlobNotFound"),
        Row::of("DELETE", "/box/leased.").fails(412, "LeaseIdMissing"),
        Row::of("PUT", "/box/leased.?comp=lease").header("x-ms-lease-action", "break").gives(202),
        Row::of("DELETE", "/box/leased.").gives(202),
        Row::of("DELETE", "/box/dir./x").gives(202),
        Row::of("DELETE", "/box/dir./x").gives(202),
        get("/box/dir/x").fails(404, "BlobNotFound"),
    ]);
    for name in ["...", "bell%07", "a%00b", "c1%C2%85", "del%7F", "large."] {
        rows.push(Row::of("DELETE", format!("/box/{name}")).gives(202));
    }
    rows.extend([
        invalid(get("/box/...")),
        invalid(get("/box/bell%07")),
        get("/box/large.").fails(404, "BlobNotFound"),
    ]);
    answers_of(&stamp, rows).await;
}

async fn answers_of(stamp: &stamp::Stamp, rows: impl IntoIterator<Item = Row>) {
    check(stamp, Service::Blob, rows).await;
}
