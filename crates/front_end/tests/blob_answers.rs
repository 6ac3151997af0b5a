//! What the Blob service answers, as tables: request, status, code, and what of body and headers has to be
//! there.
//!
//! The rows are what the live service was seen to answer or is documented to; where it is neither,
//! `docs/differences.md` says what was chosen.

#[path = "blob_answers/copies.rs"]
mod copies;
#[path = "blob_answers/documents.rs"]
mod documents;
#[path = "blob_answers/service.rs"]
mod service;
mod stamp;
#[path = "blob_answers/states.rs"]
mod states;

use stamp::answers::{ANY, Auth, Row, Service, check, open_with_tokens};
use stamp::{ROOT, Stamp};

const PAGE: &str = "x-ms-blob-content-length";
const KIND: &str = "x-ms-blob-type";
const SOURCE: &str = "x-ms-copy-source";
const TIER: &str = "x-ms-access-tier";
const LEASE: &str = "x-ms-lease-id";
const ACTION: &str = "x-ms-lease-action";
const DURATION: &str = "x-ms-lease-duration";
const PROPOSED: &str = "x-ms-proposed-lease-id";
const ONE: &str = "11111111-1111-1111-1111-111111111111";
const OTHER: &str = "22222222-2222-2222-2222-222222222222";

/// Before and after whatever a test does.
const LONG_AGO: &str = "Fri, 01 Jan 2010 00:00:00 GMT";
const IN_THE_FUTURE: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

async fn answers(stamp: &Stamp, rows: impl IntoIterator<Item = Row>) {
    check(stamp, Service::Blob, rows).await;
}

fn get(path: &str) -> Row {
    Row::of("GET", path)
}

fn put(path: &str) -> Row {
    Row::of("PUT", path)
}

/// Puts a block blob with these bytes.
fn blob(path: &str, bytes: &str) -> Row {
    put(path).header(KIND, "BlockBlob").body(bytes).gives(201)
}

/// Makes a page blob.
fn pages(path: &str, size: &str) -> Row {
    put(path).header(KIND, "PageBlob").header(PAGE, size).gives(201)
}

fn append_blob(path: &str) -> Row {
    put(path).header(KIND, "AppendBlob").gives(201)
}

/// Writes or clears pages.
fn page(path: &str, range: &str, bytes: usize) -> Row {
    let action = if bytes > 0 { "update" } else { "clear" };
    let row = put(&format!("{path}?comp=page")).header("x-ms-page-write", action).header("x-ms-range", range);
    row.body("x".repeat(bytes)).gives(201)
}

fn lease(path: &str, action: &str) -> Row {
    put(&format!("{path}?comp=lease")).header(ACTION, action)
}

/// The address of a source as the request's own server is addressed.
fn here(path: &str) -> String {
    format!("http://127.0.0.1:10002{ROOT}{path}")
}

/// One container, one blob of each type.
async fn open() -> Stamp {
    let stamp = Stamp::open().await;
    fill(&stamp).await;
    stamp
}

async fn fill(stamp: &Stamp) {
    let rows = [
        put("/box?restype=container").gives(201),
        blob("/box/a", "hello"),
        append_blob("/box/log"),
        pages("/box/disk", "4096"),
    ];
    answers(stamp, rows).await;
}

/// Sends a request and returns what its answer says in a header.
async fn told(stamp: &Stamp, row: Row, header: &str) -> String {
    let answer = row.send(stamp, Service::Blob).await;
    assert!(answer.status.is_success(), "{}", answer.body);
    answer.header(header).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_is_at_fault_is_named() {
    let stamp = open().await;
    let (invalid, missing) = ("InvalidHeaderValue", "MissingRequiredHeader");
    let name = "HeaderName";
    let tebibytes = (9u64 << 40).to_string();
    let rows = [
        lease("/box/a", "steal").fails(400, invalid).names_header(ACTION, "steal"),
        put("/box/a?comp=lease").fails(400, missing).has(name, ACTION),
        lease("/box/a", "acquire").fails(400, missing).has(name, DURATION),
        lease("/box/a", "acquire").header(DURATION, "14").fails(400, invalid).names_header(DURATION, "14"),
        lease("/box/a", "acquire").header(DURATION, "61").fails(400, invalid).names_header(DURATION, "61"),
        lease("/box/a", "acquire")
            .header(DURATION, "-1")
            .header(PROPOSED, "me")
            .fails(400, invalid)
            .names_header(PROPOSED, "me"),
        lease("/box/a", "break")
            .header("x-ms-lease-break-period", "61")
            .fails(400, invalid)
            .names_header("x-ms-lease-break-period", "61"),
        lease("/box/a", "renew").fails(400, missing).has(name, LEASE),
        lease("/box?restype=container", "x").fails(400, "InvalidQueryParameterValue"),
        put("/box?restype=container&comp=lease").header(ACTION, "renew").fails(400, missing).has(name, LEASE),
        get("/box/a").header(LEASE, "mine").fails(400, invalid).names_header(LEASE, "mine"),
        get("/box/a")
            .header("if-modified-since", "yesterday")
            .fails(400, invalid)
            .names_header("If-Modified-Since", "yesterday"),
        get("/box/a")
            .header("if-unmodified-since", "tomorrow")
            .fails(400, invalid)
            .names_header("If-Unmodified-Since", "tomorrow"),
        get("/box/a").header("x-ms-if-tags", "a=1").fails(400, invalid).names_header("x-ms-if-tags", "a=1"),
        get("/box/a")
            .header("x-ms-range-get-content-md5", "true")
            .fails(400, invalid)
            .names_header("x-ms-range-get-content-md5", "true"),
        get("/box/a")
            .header("x-ms-range-get-content-crc64", "true")
            .fails(400, invalid)
            .names_header("x-ms-range-get-content-crc64", "true"),
        blob("/box/b", "x")
            .header("content-md5", "?")
            .fails(400, "InvalidMd5")
            .names_header("Content-MD5", "?"),
        blob("/box/b", "x")
            .header("x-ms-blob-content-md5", "?")
            .fails(400, "InvalidMd5")
            .names_header("x-ms-blob-content-md5", "?"),
        blob("/box/b", "x")
            .header("x-ms-content-crc64", "?")
            .fails(400, invalid)
            .names_header("x-ms-content-crc64", "?"),
        blob("/box/b", "x").header("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==").fails(400, "Md5Mismatch"),
        blob("/box/b", "x")
            .header("x-ms-content-crc64", "AAAAAAAAAAA=")
            .fails(400, "Crc64Mismatch")
            .has("UserSpecifiedCrc", "AAAAAAAAAAA=")
            .has("ServerCalculatedCrc", ANY),
        blob("/box/b", "x")
            .header("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")
            .header("x-ms-content-crc64", "AAAAAAAAAAA=")
            .fails(400, "BothCrc64AndMd5HeaderPresent"),
        blob("/box/b", "x").header(TIER, "Lukewarm").fails(400, invalid).names_header(TIER, "Lukewarm"),
        blob("/box/b", "x").header("x-ms-tags", "a").fails(400, invalid).names_header("x-ms-tags", "a"),
        blob("/box/b", "x")
            .header("x-ms-meta-1a", "v")
            .fails(400, "InvalidMetadata")
            .names_header("x-ms-meta-1a", "v"),
        put("/box/a?comp=metadata")
            .header("x-ms-meta-good", "v")
            .header("x-ms-meta-a-b", "w")
            .fails(400, "InvalidMetadata")
            .names_header("x-ms-meta-a-b", "w"),
        put("/box?restype=container&comp=metadata")
            .header("x-ms-meta-a-b", "w")
            .fails(400, "InvalidMetadata")
            .names_header("x-ms-meta-a-b", "w"),
        put("/box/a?comp=metadata")
            .header("x-ms-meta-", "w")
            .fails(400, "EmptyMetadataKey")
            .names_header("x-ms-meta-", "w"),
        put("/box/b").body("x").fails(400, missing).has(name, KIND),
        put("/box/b").header(KIND, "Blob").fails(400, invalid).names_header(KIND, "Blob"),
        put("/box/b").header(KIND, "PageBlob").fails(400, missing).has(name, PAGE),
        pages("/box/b", "100").fails(400, invalid).names_header(PAGE, "100"),
        pages("/box/b", "-1").fails(400, invalid).names_header(PAGE, "-1"),
        pages("/box/b", &tebibytes).fails(400, invalid).names_header(PAGE, &tebibytes),
        pages("/box/b", "512").body("x").fails(400, invalid).names_header("Content-Length", "1"),
        put("/box/disk?comp=properties").header(PAGE, "100").fails(400, invalid).names_header(PAGE, "100"),
        put("/box/disk?comp=properties")
            .header("x-ms-sequence-number-action", "double")
            .fails(400, invalid)
            .names_header("x-ms-sequence-number-action", "double"),
        put("/box/disk?comp=properties")
            .header("x-ms-sequence-number-action", "max")
            .fails(400, missing)
            .has(name, "x-ms-blob-sequence-number"),
        put("/box/disk?comp=properties")
            .header("x-ms-sequence-number-action", "increment")
            .header("x-ms-blob-sequence-number", "5")
            .fails(400, invalid)
            .names_header("x-ms-blob-sequence-number", "5"),
        put("/box/disk?comp=properties")
            .header("x-ms-blob-sequence-number", "5")
            .fails(400, missing)
            .has(name, "x-ms-sequence-number-action"),
        page("/box/disk", "bytes=0-1023", 512).fails(400, invalid).names_header("Content-Length", "512"),
        put("/box/disk?comp=page")
            .header("x-ms-range", "bytes=0-511")
            .fails(400, missing)
            .has(name, "x-ms-page-write"),
        put("/box/disk?comp=page")
            .header("x-ms-page-write", "clear")
            .fails(400, missing)
            .has(name, "x-ms-range"),
        put("/box/a?comp=block&blockid=MDAw").fails(400, invalid).names_header("Content-Length", "0"),
        put("/box/log?comp=appendblock").fails(400, invalid).names_header("Content-Length", "0"),
        put("/box/a?comp=tier").fails(400, missing).has(name, TIER),
        put("/box/a?comp=tier").header(TIER, "Lukewarm").fails(400, invalid).names_header(TIER, "Lukewarm"),
        put("/box/a?comp=tier")
            .header(TIER, "Hot")
            .header("x-ms-rehydrate-priority", "Now")
            .fails(400, invalid)
            .names_header("x-ms-rehydrate-priority", "Now"),
        Row::of("DELETE", "/box/a")
            .header("x-ms-delete-snapshots", "all")
            .fails(400, invalid)
            .names_header("x-ms-delete-snapshots", "all"),
        put("/box/copy").header(SOURCE, "box/a").fails(400, invalid).names_header(SOURCE, "box/a"),
        put(&format!("/box/copy?comp=copy&copyid={ONE}")).fails(400, missing).has(name, "x-ms-copy-action"),
        put(&format!("/box/copy?comp=copy&copyid={ONE}"))
            .header("x-ms-copy-action", "stop")
            .fails(400, invalid)
            .names_header("x-ms-copy-action", "stop"),
        put("/new?restype=container")
            .header("x-ms-blob-public-access", "all")
            .fails(400, invalid)
            .names_header("x-ms-blob-public-access", "all"),
        blob("/box/b", "x")
            .header("x-ms-encryption-scope", "mine")
            .fails(400, "UnsupportedHeader")
            .names_header("x-ms-encryption-scope", "mine"),
        blob("/box/b", "x")
            .header("x-ms-legal-hold", "true")
            .fails(400, "UnsupportedHeader")
            .names_header("x-ms-legal-hold", "true"),
        get("/box/disk?comp=pagelist")
            .header("x-ms-previous-snapshot-url", "http://h/disk")
            .fails(400, invalid)
            .names_header("x-ms-previous-snapshot-url", "http://h/disk"),
        // Nothing of this was done.
        Row::of("HEAD", "/box/b").fails(404, "BlobNotFound"),
        get("/box/a").has_header("x-ms-lease-state", "available").says("hello"),
    ];
    answers(&stamp, rows).await;
}

/// As [`Row::fails`], with what the error says of the parameter.
fn names_parameter(row: Row, code: &'static str, name: &str, value: &str) -> Row {
    row.fails(400, code).has("QueryParameterName", name).has("QueryParameterValue", value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_that_is_at_fault_is_named() {
    let stamp = open().await;
    let invalid = |row, name, value| names_parameter(row, "InvalidQueryParameterValue", name, value);
    let outside = |row, name, value| names_parameter(row, "OutOfRangeQueryParameterValue", name, value);
    let missing =
        |row: Row, name| row.fails(400, "MissingRequiredQueryParameter").has("QueryParameterName", name);
    let list = "/box?restype=container&comp=list";
    let at = "2026-11-20T10:00:00.0000000Z";
    let rows = [
        missing(get("/?comp=blobs"), "where"),
        missing(get("/box?restype=container&comp=blobs"), "where"),
        invalid(get("/?comp=blobs&where=a"), "where", "a"),
        invalid(get("/box?restype=container&comp=blobs&where=@container='box'"), "where", "@container='box'")
            .says("Error parsing query: Cannot have container in both uri and query"),
        invalid(get("/?comp=blobs&where=a='1'%20AND%20Year"), "where", "a='1' AND Year")
            .says("Error parsing query at or near character position"),
        invalid(get("/?comp=blobs&where=a='1'%20Year"), "where", "a='1' Year")
            .says("Error parsing query at or near character position 7: unexpected 'Year'"),
        invalid(
            get("/box?restype=container&comp=blobs&where=a='1'%20AND%20@container='other'"),
            "where",
            "a='1' AND @container='other'",
        ),
        get("/box?restype=container&comp=blobs&where=a='1'"),
        get("/?comp=blobs&where=a='1'%20AND%20@container='box'"),
        missing(put("/box/a?comp=copy").header("x-ms-copy-action", "abort"), "copyid"),
        missing(put("/box/a?comp=copy&copyid=").header("x-ms-copy-action", "abort"), "copyid"),
        invalid(put("/box/a?comp=copy&copyid=1").header("x-ms-copy-action", "abort"), "copyid", "1"),
        put(&format!("/box/a?comp=copy&copyid={ONE}"))
            .header("x-ms-copy-action", "Abort")
            .fails(409, "NoPendingCopyOperation"),
        missing(put("/box/a?comp=block").body("x"), "blockid"),
        invalid(put("/box/a?comp=block&blockid=?").body("x"), "blockid", "?"),
        invalid(get("/box/a?snapshot=yesterday"), "snapshot", "yesterday"),
        invalid(get("/box/a?versionid=first"), "versionid", "first"),
        invalid(get("/box/disk?comp=pagelist&prevsnapshot=first"), "prevsnapshot", "first"),
        invalid(get(&format!("/box/a?snapshot={at}&versionid={at}")), "versionid", at),
        get("/box/a?snapshot=0001-01-01T00:00:00.0000000Z").fails(400, "OutOfRangeInput"),
        get("/box/a?versionid=0001-01-01T00:00:00.0000000Z").fails(400, "OutOfRangeInput"),
        get("/box/disk?comp=pagelist&prevsnapshot=0001-01-01T00:00:00.0000000Z")
            .fails(400, "OutOfRangeInput"),
        Row::of("DELETE", "/box/a?snapshot=1600-12-31T23:59:59.9999999Z").fails(400, "OutOfRangeInput"),
        invalid(
            get("/box/a?snapshot=2026-11-20T10:00:00.000000Z"),
            "snapshot",
            "2026-11-20T10:00:00.000000Z",
        ),
        invalid(get("/box/a?snapshot=2026-11-20T10:00:00Z"), "snapshot", "2026-11-20T10:00:00Z"),
        get(&format!("/box/a?snapshot={at}")).fails(404, "BlobNotFound"),
        get(&format!("/box/a?versionid={at}")).fails(404, "BlobNotFound"),
        get(&format!("/box/disk?comp=pagelist&prevsnapshot={at}")).fails(409, "PreviousSnapshotNotFound"),
        invalid(
            Row::of("DELETE", format!("/box/a?snapshot={at}")).header("x-ms-delete-snapshots", "include"),
            "snapshot",
            at,
        ),
        invalid(
            Row::of("DELETE", format!("/box/a?versionid={at}")).header("x-ms-delete-snapshots", "Only"),
            "versionid",
            at,
        )
        .has("Reason", "This operation is only allowed on the root blob. Version id should not be provided."),
        invalid(put(&format!("/box/a?comp=metadata&snapshot={at}")), "snapshot", at),
        invalid(put(&format!("/box/a?comp=properties&versionid={at}")), "versionid", at),
        invalid(blob(&format!("/box/a?snapshot={at}"), "x"), "snapshot", at),
        invalid(get(&format!("/box/a?snapshot={at}")).header(LEASE, ONE), "snapshot", at),
        outside(get(&format!("{list}&maxresults=0")), "maxresults", "0").has("MinimumAllowed", "1"),
        outside(get(&format!("{list}&maxresults=-5")), "maxresults", "-5"),
        outside(get("/?comp=list&maxresults=0"), "maxresults", "0"),
        outside(get("/?comp=blobs&where=a='1'&maxresults=0"), "maxresults", "0"),
        outside(get("/box/disk?comp=pagelist&maxresults=0"), "maxresults", "0"),
        invalid(get(&format!("{list}&maxresults=many")), "maxresults", "many"),
        invalid(get("/?comp=list&maxresults=many"), "maxresults", "many"),
        get(&format!("{list}&maxresults=5001")).has("MaxResults", "5000"),
        get("/?comp=list&maxresults=5001").has("MaxResults", "5000"),
        invalid(get(&format!("{list}&include=everything")), "include", "everything"),
        invalid(get("/?comp=list&include=snapshots"), "include", "snapshots"),
        get(&format!("{list}&marker=x")).fails(400, "OutOfRangeInput"),
        invalid(get("/box/a?comp=blocklist&blocklisttype=some"), "blocklisttype", "some"),
        invalid(get("/box/disk?comp=pagelist&marker=x"), "marker", "x"),
        invalid(Row::of("DELETE", "/box/a?deletetype=soft"), "deletetype", "soft"),
        invalid(get("/box/a?comp=nothing"), "comp", "nothing"),
        invalid(put("/box?restype=container&comp=nothing"), "comp", "nothing"),
        invalid(get("/box/?comp=list"), "comp", "list"),
        invalid(get("/box?restype=blob"), "restype", "blob"),
        invalid(get("/?comp=list&timeout=soon"), "timeout", "soon"),
        outside(get("/box/a?timeout=-1"), "timeout", "-1"),
        Row::of("POST", "/box/a").fails(405, "UnsupportedHttpVerb"),
        get("/box/").fails(400, "InvalidUri"),
    ];
    answers(&stamp, rows).await;
}
