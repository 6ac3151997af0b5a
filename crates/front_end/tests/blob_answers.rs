//! What the Blob service answers, as tables: request, status, code, and what of body and headers has to be there.
//!
//! The rows are what the live service was seen to answer or is documented to; where it is neither, `docs/differences.md`
//! says what was chosen.

mod stamp;

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
        invalid(get("/box?restype=container&comp=blobs&where=@container='box'"), "where", "@container='box'"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_blocks_are_any_xml() {
    let stamp = open().await;
    let stage = |id: &str| put(&format!("/box/b?comp=block&blockid={id}")).body(id).gives(201);
    let commit = |list: &str| put("/box/b?comp=blocklist").body(format!("<BlockList>{list}</BlockList>"));
    let long = "a".repeat(65);
    let rows = [
        stage("MDA="),
        stage("MDE="),
        stage("MDI%3D"),
        commit("<Latest>MDA&#61;</Latest><Latest>MDE&#x3d;</Latest>").gives(201),
        get("/box/b").says("MDA=MDE="),
        commit("<Committed><![CDATA[MDE=]]></Committed><Committed>M<!-- -->DA=</Committed>").gives(201),
        get("/box/b").says("MDE=MDA="),
        commit("<Latest>&unknown;</Latest>").fails(400, "InvalidXmlDocument"),
        commit("<Latest>MDA=</Latest").fails(400, "InvalidXmlDocument"),
        put("/box/b?comp=blocklist").fails(400, "InvalidHeaderValue").names_header("Content-Length", "0"),
        commit("<Latest/>").fails(400, "InvalidXmlDocument").has("Reason", "Block ID cannot be empty"),
        commit("<Latest></Latest>")
            .fails(400, "InvalidXmlDocument")
            .has("Reason", "Block ID cannot be empty"),
        put("/box/b?comp=blocklist").body("<Blocks/>").fails(400, "InvalidXmlDocument"),
        commit("<Latest>?</Latest>").fails(400, "InvalidBlockId"),
        commit("<Latest>MDk=</Latest>").fails(400, "InvalidBlockList"),
        commit("<Uncommitted>MDA=</Uncommitted>").fails(400, "InvalidBlockList"),
        put(&format!("/box/b?comp=block&blockid={long}")).body("x").fails(400, "InvalidQueryParameterValue"),
        put("/box/b?comp=block&blockid=MDAw").body("x").gives(201),
        put("/box/b?comp=block&blockid=MDAwMA==").body("x").fails(400, "InvalidBlobOrBlock"),
        put("/box/log?comp=block&blockid=MDAw").body("x").fails(409, "InvalidBlobType"),
        put("/box/log?comp=blocklist").body("<BlockList/>").fails(409, "InvalidBlobType"),
        get("/box/log?comp=blocklist").fails(409, "InvalidBlobType"),
        get("/box/none?comp=blocklist").fails(404, "BlobNotFound"),
        get("/none/b?comp=blocklist").fails(404, "ContainerNotFound"),
        get("/box/b?comp=blocklist&blocklisttype=all")
            .has("CommittedBlocks", ANY)
            .has("UncommittedBlocks", ANY)
            .has_header("x-ms-blob-content-length", "8")
            .has_header("etag", ANY),
        get("/box/b?comp=blocklist").has("Name", "MDE=").has("Size", "4"),
    ];
    answers(&stamp, rows).await;
    // A snapshot has the blocks of its time, and none that wait.
    let snapshot = told(&stamp, put("/box/b?comp=snapshot"), "x-ms-snapshot").await;
    let rows = [
        commit("<Latest>MDAw</Latest>").gives(201),
        get(&format!("/box/b?comp=blocklist&blocklisttype=all&snapshot={snapshot}"))
            .has("UncommittedBlocks", "")
            .says("MDE=")
            .has_header("x-ms-blob-content-length", "8"),
        get(&format!("/box/b?comp=blocklist&snapshot={snapshot}")).says("MDA="),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_archived_and_on_its_way_out() {
    let stamp = open().await;
    let tier = |tier: &str| put("/box/a?comp=tier").header(TIER, tier);
    let hurried = |name: &str, priority: &str| tier(name).header("x-ms-rehydrate-priority", priority);
    let being = "BlobBeingRehydrated";
    let rows = [
        tier("Archive"),
        get("/box/a").fails(409, "BlobArchived"),
        put("/box/a?comp=metadata").fails(409, "BlobArchived"),
        put("/box/a?comp=snapshot").fails(409, "BlobArchived"),
        blob("/box/a", "x").fails(409, "BlobArchived"),
        tier("Hot").gives(202),
        Row::of("HEAD", "/box/a")
            .has_header("x-ms-archive-status", "rehydrate-pending-to-hot")
            .has_header("x-ms-rehydrate-priority", "Standard"),
        get("/box/a").fails(409, being),
        tier("Hot").fails(409, being),
        hurried("Hot", "Standard").fails(409, being),
        hurried("Cool", "High").fails(409, being),
        tier("Archive").fails(409, being),
        hurried("Hot", "High").gives(202),
        Row::of("HEAD", "/box/a")
            .has_header("x-ms-access-tier", "Archive")
            .has_header("x-ms-archive-status", "rehydrate-pending-to-hot")
            .has_header("x-ms-rehydrate-priority", "High"),
        hurried("Hot", "High").fails(409, being),
        hurried("Hot", "Standard").fails(409, being),
        put("/box/disk?comp=tier").header(TIER, "Hot").fails(400, "AccessTierNotSupportedForBlobType"),
        put("/box/log?comp=tier").header(TIER, "Hot").fails(400, "AccessTierNotSupportedForBlobType"),
        put("/box/none?comp=tier").header(TIER, "Hot").fails(404, "BlobNotFound"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_pages_since_a_snapshot() {
    let stamp = open().await;
    let first = told(&stamp, put("/box/disk?comp=snapshot"), "x-ms-snapshot").await;
    let since = |snapshot: &str| get(&format!("/box/disk?comp=pagelist&prevsnapshot={snapshot}"));
    let rows = [
        page("/box/disk", "bytes=0-1023", 1024),
        page("/box/disk", "bytes=512-1023", 0),
        // A page that was never written is none that has changed.
        page("/box/disk", "bytes=2048-2559", 0),
        since(&first)
            .says("<PageRange><Start>0</Start><End>511</End></PageRange>")
            .says("<ClearRange><Start>512</Start><End>1023</End></ClearRange><NextMarker />"),
    ];
    answers(&stamp, rows).await;
    let second = told(&stamp, put("/box/disk?comp=snapshot"), "x-ms-snapshot").await;
    let between = format!("/box/disk?comp=pagelist&snapshot={second}&prevsnapshot={first}");
    let rows = [
        since(&second).says("<PageList><NextMarker /></PageList>"),
        page("/box/disk", "bytes=512-1023", 512),
        since(&second)
            .says("<PageList><PageRange><Start>512</Start><End>1023</End></PageRange><NextMarker />"),
        since(&first).says("<PageList><PageRange><Start>0</Start><End>1023</End></PageRange><NextMarker />"),
        get(&between).says("<ClearRange><Start>512</Start><End>1023</End></ClearRange><NextMarker />"),
        get(&format!("/box/disk?comp=pagelist&snapshot={first}&prevsnapshot={second}"))
            .fails(400, "PreviousSnapshotCannotBeNewer"),
        get(&format!("/box/a?comp=pagelist&prevsnapshot={first}")).fails(409, "InvalidBlobType"),
        page("/box/disk", "bytes=4096-4607", 512).fails(416, "InvalidPageRange"),
        page("/box/a", "bytes=0-511", 512).fails(409, "InvalidBlobType"),
        page("/box/none", "bytes=0-511", 512).fails(404, "BlobNotFound"),
        page("/box/disk", "bytes=0-511", 512)
            .header("x-ms-if-sequence-number-lt", "0")
            .fails(412, "SequenceNumberConditionNotMet"),
        page("/box/disk", "bytes=0-511", 512)
            .header("x-ms-if-sequence-number-eq", "x")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-if-sequence-number-eq", "x"),
        page("/box/disk", "bytes=0-511", 512)
            .header("x-ms-if-sequence-number-lt", "9")
            .header("x-ms-if-sequence-number-le", "8")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-if-sequence-number-le", "8"),
        blob("/box/b", "x")
            .header("x-ms-blob-sequence-number", "1")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-blob-sequence-number", "1"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_the_service() {
    let stamp = open().await;
    let path = "/?restype=service&comp=properties";
    let set = |inside: &str| {
        put(path).body(format!("<StorageServiceProperties>{inside}</StorageServiceProperties>")).gives(202)
    };
    let site = |inside: &str| set(&format!("<StaticWebsite>{inside}</StaticWebsite>"));
    let kept = |inside: &str| set(&format!("<DeleteRetentionPolicy>{inside}</DeleteRetentionPolicy>"));
    let (document, value) = ("InvalidXmlDocument", "InvalidXmlNodeValue");
    let off = "<Enabled>false</Enabled>";
    let rows = [
        site("<Enabled>true</Enabled><IndexDocument>i.html</IndexDocument>"),
        get(path).has("IndexDocument", "i.html"),
        site(&format!("{off}<IndexDocument>i.html</IndexDocument>")).fails(400, document),
        site(&format!("{off}<ErrorDocument404Path>e.html</ErrorDocument404Path>")).fails(400, document),
        site(&format!("{off}<DefaultIndexDocumentPath>d.html</DefaultIndexDocumentPath>"))
            .fails(400, document),
        site("<IndexDocument>i.html</IndexDocument>").fails(400, document),
        site("<Enabled>perhaps</Enabled>").fails(400, value),
        get(path).has("IndexDocument", "i.html"),
        site(off),
        site(&format!("{off}<IndexDocument/>")),
        kept("<Enabled>true</Enabled><Days>5</Days>"),
        get(path).has("Days", "5").has("AllowPermanentDelete", "false"),
        kept("<Enabled>true</Enabled>").fails(400, document),
        kept("<Enabled>true</Enabled><Days>0</Days>").fails(400, document),
        kept("<Enabled>true</Enabled><Days>366</Days>").fails(400, document),
        kept("<Days>5</Days>").fails(400, document),
        kept("<Enabled>perhaps</Enabled>").fails(400, value),
        set("<Unknown/>").fails(400, document),
        set("<DefaultServiceVersion>new</DefaultServiceVersion>").fails(400, value),
        put(path).body("<Other/>").fails(400, document),
        put(path).body("<").fails(400, document),
        put(path).fails(400, document),
        get("/?restype=service&comp=stats").fails(400, "InvalidQueryParameterValue"),
        get("/?restype=service&comp=stats").at_secondary().has("Status", "live"),
        put("/more?restype=container").at_secondary().fails(403, "InsufficientAccountPermissions"),
        get("/?restype=account&comp=properties").has_header("x-ms-account-kind", "StorageV2"),
    ];
    answers(&stamp, rows).await;
}

/// An answer that says why a source could not be read, in headers and in its body.
fn tells_source(row: Row, status: u16, code: &'static str) -> Row {
    let number = status.to_string();
    let row = row
        .has_header("x-ms-copy-source-status-code", &number)
        .has_header("x-ms-copy-source-error-code", code);
    match status {
        // Whoever has it already is sent no body.
        304 => row,
        _ => row
            .has("CopySourceStatusCode", &number)
            .has("CopySourceErrorCode", code)
            .has("CopySourceErrorMessage", ANY),
    }
}

/// The five operations that read a source now; the last of them is the copy of a whole blob.
fn from_url(url: &str) -> [Row; 5] {
    [
        put("/box/new").header(KIND, "BlockBlob"),
        put("/box/staged?comp=block&blockid=MDAw"),
        put("/box/log?comp=appendblock"),
        put("/box/disk?comp=page")
            .header("x-ms-page-write", "update")
            .header("x-ms-range", "bytes=0-511")
            .header("x-ms-source-range", "bytes=0-511"),
        put("/box/copied").header("x-ms-requires-sync", "true"),
    ]
    .map(|row| row.header(SOURCE, url))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_that_are_read_by_account_key() {
    let stamp = open().await;
    let unverified = "CannotVerifyCopySource";
    let (source, none) = (here("/box/a"), here("/box/none"));
    let etag = told(&stamp, Row::of("HEAD", "/box/a"), "etag").await;
    let signed = {
        let text = "r\n\n2027-01-01\n/blob/devstoreaccount1/box\n\n\n\n2020-02-10\nc\n\n\n\n\n\n";
        format!("sv=2020-02-10&sr=c&sp=r&se=2027-01-01&sig={}", stamp.sas_signature(text))
    };
    let (readable, missing) = (format!("{source}?{signed}"), format!("{none}?{signed}"));
    let mut rows = Vec::new();
    for url in [&source, &none] {
        // Whether it is there is for those to know who may read it.
        let refused = |row: Row| tells_source(row.fails(401, unverified), 401, "NoAuthenticationInformation");
        rows.extend(from_url(url).map(refused));
    }
    rows.extend(from_url(&missing).map(|row| tells_source(row.fails(404, unverified), 404, "BlobNotFound")));
    rows.push(tells_source(
        put("/box/copied").header(SOURCE, &none).fails(404, unverified),
        404,
        "BlobNotFound",
    ));
    let from = |path: &str| put(path).header(SOURCE, &readable);
    let put_from = || from("/box/new").header(KIND, "BlockBlob");
    let stage_from = || from("/box/staged?comp=block&blockid=MDAw");
    rows.extend([
        put_from()
            .gives(201)
            .has_header("content-md5", "")
            .has_header("x-ms-content-crc64", ANY)
            .has_header("etag", ANY)
            .has_header("x-ms-request-server-encrypted", "true"),
        Row::of("HEAD", "/box/new")
            .has_header("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")
            .has_header("x-ms-blob-content-md5", ""),
        get("/box/new")
            .has_header("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")
            .has_header("x-ms-blob-content-md5", ""),
        get("/box/new")
            .header("x-ms-range", "bytes=0-1")
            .gives(206)
            .has_header("content-md5", "")
            .has_header("x-ms-blob-content-md5", "XUFAKrxLKna5cZ2REBfFkg=="),
        tells_source(
            put_from().header("x-ms-source-if-none-match", &etag).fails(304, unverified),
            304,
            "ConditionNotMet",
        ),
        tells_source(
            put_from().header("x-ms-source-if-modified-since", IN_THE_FUTURE).fails(304, unverified),
            304,
            "ConditionNotMet",
        ),
        tells_source(
            put_from().header("x-ms-source-if-unmodified-since", LONG_AGO).fails(412, unverified),
            412,
            "ConditionNotMet",
        ),
        put_from().header("x-ms-source-if-match", "\"0x1\"").fails(412, "SourceConditionNotMet"),
        put_from().header("x-ms-source-if-match", &etag).gives(201),
        tells_source(
            stage_from().header("x-ms-source-if-match", "\"0x1\"").fails(412, unverified),
            412,
            "ConditionNotMet",
        ),
        tells_source(
            stage_from().header("x-ms-source-if-none-match", &etag).fails(304, unverified),
            304,
            "ConditionNotMet",
        ),
        put_from()
            .header("x-ms-source-content-md5", "?")
            .fails(400, "InvalidMd5")
            .names_header("x-ms-source-content-md5", "?"),
        put_from().header("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==").fails(400, "Md5Mismatch"),
        stage_from()
            .header("x-ms-source-content-crc64", "AAAAAAAAAAA=")
            .fails(400, "Crc64Mismatch")
            .has("UserSpecifiedCrc", ANY),
        stage_from()
            .header("x-ms-source-range", "5")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-source-range", "5"),
        stage_from()
            .header("x-ms-source-range", "bytes=0-1")
            .gives(201)
            .has_header("x-ms-content-crc64", ANY),
        put("/box/copied")
            .header(SOURCE, &source)
            .header("x-ms-source-if-none-match", &etag)
            .fails(412, "SourceConditionNotMet"),
        put("/box/copied")
            .header(SOURCE, here("/box/a?snapshot=x&sig=secret"))
            .fails(400, "InvalidHeaderValue")
            .names_header(SOURCE, here("/box/a?snapshot=x")),
        put("/box/copied")
            .header(SOURCE, here(&format!("/box/a?{}", "x".repeat(2048))))
            .fails(400, "InvalidHeaderValue")
            .has("HeaderName", SOURCE),
        put("/box/copied")
            .header(SOURCE, &source)
            .header("x-ms-source-if-match", &etag)
            .header("x-ms-source-if-modified-since", LONG_AGO)
            .fails(400, "MultipleConditionHeadersNotSupported"),
        put("/box/copied")
            .header(SOURCE, &source)
            .header("x-ms-source-if-match", "\"0x1\",\"0x2\"")
            .fails(400, "InvalidHeaderValue")
            .has("HeaderName", "x-ms-source-if-match"),
        tells_source(
            stage_from().header("x-ms-source-range", "bytes=5-9").fails(416, unverified),
            416,
            "InvalidRange",
        ),
        put("/box/copied")
            .header(SOURCE, "http://127.0.0.1:10002/other/box/a")
            .fails(400, "CopyAcrossAccountsNotSupported")
            .has("SourceAccountName", "other"),
        put("/box/copied").header(SOURCE, "http://127.0.0.1:9/devstoreaccount1/box/a").fails(404, unverified),
        put("/box/copied")
            .header(SOURCE, here("/box/log"))
            .gives(202)
            .has_header("x-ms-copy-status", "success"),
        from("/box/disk").fails(409, "InvalidBlobType"),
        put("/box/disk?comp=page")
            .header(SOURCE, &readable)
            .header("x-ms-page-write", "update")
            .header("x-ms-range", "bytes=0-511")
            .header("x-ms-source-range", "bytes=0-511")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-source-range", "bytes=0-511"),
    ]);
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_that_are_read_by_bearer_token() {
    let stamp = open_with_tokens().await;
    fill(&stamp).await;
    let bytes = "x".repeat(512);
    answers(&stamp, [blob("/box/source", &bytes)]).await;
    let unverified = "CannotVerifyCopySource";
    let statuses = [201, 201, 201, 201, 401];
    let url = here("/box/source");
    let mut rows = Vec::new();
    for (row, status) in from_url(&url).into_iter().zip(statuses) {
        let row = row.auth(Auth::Bearer);
        rows.push(match status {
            401 => tells_source(row.fails(401, unverified), 401, "NoAuthenticationInformation"),
            status => row.gives(status),
        });
    }
    for (path, code) in [("/box/none", "BlobNotFound"), ("/none/source", "ContainerNotFound")] {
        for (row, status) in from_url(&here(path)).into_iter().zip(statuses) {
            let row = row.auth(Auth::Bearer);
            rows.push(match status {
                401 => tells_source(row.fails(401, unverified), 401, "NoAuthenticationInformation"),
                _ => tells_source(row.fails(404, code), 404, code),
            });
        }
    }
    rows.extend([
        get("/box/new").says(&bytes),
        get("/box/log").says(&bytes),
        get("/box/disk").says(&bytes),
        get("/box/staged?comp=blocklist&blocklisttype=all").has("Size", "512"),
        // A copy that is not waited for reads what its request may read, and tells what is missing as such.
        put("/box/copied").header(SOURCE, &url).auth(Auth::Bearer).gives(202),
        put("/box/copied").header(SOURCE, here("/box/none")).auth(Auth::Bearer).fails(404, unverified),
        // A signature in the source's address is what it is read by.
        put("/box/new")
            .header(KIND, "BlockBlob")
            .header(SOURCE, format!("{url}?sv=2020-02-10&sr=b&sp=r&se=2027-01-01&sig=x"))
            .auth(Auth::Bearer)
            .fails(403, unverified),
        put("/box/new")
            .header(KIND, "BlockBlob")
            .header(SOURCE, &url)
            .header("x-ms-copy-source-authorization", "Bearer x")
            .auth(Auth::Bearer)
            .fails(403, unverified),
    ]);
    answers(&stamp, rows).await;
}

/// `az storage blob copy start` asked with the names of container and blob makes such an address, wherever the server is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_as_azure_calls_it_is_of_this_server() {
    let stamp = open().await;
    let azure = |path: &str| format!("https://devstoreaccount1.blob.core.windows.net{path}");
    let copy = |url: &str| put("/box/copy").header(SOURCE, url);
    let rows = [
        copy(&azure("/box/a")).gives(202).has_header("x-ms-copy-status", "success"),
        get("/box/copy").says("hello").has_header("x-ms-copy-source", azure("/box/a")),
        copy("https://devstoreaccount1.blob.core.windows.net:443/box/a").gives(202),
        copy("http://DevStoreAccount1.blob.core.windows.net/box/a").gives(202),
        tells_source(copy(&azure("/box/none")).fails(404, "CannotVerifyCopySource"), 404, "BlobNotFound"),
        // Who may read it is as with any other address.
        copy(&azure("/box/a")).header("x-ms-requires-sync", "true").fails(401, "CannotVerifyCopySource"),
        copy(&azure("/box/a")).header(KIND, "BlockBlob").fails(401, "CannotVerifyCopySource"),
        copy("https://other.blob.core.windows.net/box/a").fails(400, "CopyAcrossAccountsNotSupported"),
        copy("https://devstoreaccount1.blob.core.windows.net:444/box/a").fails(404, "CannotVerifyCopySource"),
        copy("https://devstoreaccount1.blob.example.org/box/a").fails(404, "CannotVerifyCopySource"),
        copy("https://devstoreaccount1.queue.core.windows.net/box/a")
            .fails(400, "CopyAcrossAccountsNotSupported"),
    ];
    answers(&stamp, rows).await;
}

/// A key of a customer's: its text and its hash.
const KEYS: [(&str, &str); 2] = [
    ("MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=", "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE="),
    ("ODkwMTIzNDU4OTAxMjM0NTg5MDEyMzQ1ODkwMTIzNDU=", "qamtTvPd6XYDnBgQm5TrcadPp3Sv4Nz/IpuwniW1CuE="),
];

fn with_key(row: Row, key: (&str, &str)) -> Row {
    row.header("x-ms-encryption-key", key.0)
        .header("x-ms-encryption-key-sha256", key.1)
        .header("x-ms-encryption-algorithm", "AES256")
}

fn with_source_key(row: Row, key: (&str, &str)) -> Row {
    row.header("x-ms-source-encryption-key", key.0)
        .header("x-ms-source-encryption-key-sha256", key.1)
        .header("x-ms-source-encryption-algorithm", "AES256")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_with_customers_keys() {
    let stamp = Stamp::with_settings(|settings| settings.takes_customer_keys = true).await;
    fill(&stamp).await;
    let public = put("/box?restype=container&comp=acl").header("x-ms-blob-public-access", "blob");
    let [right, wrong] = KEYS;
    let bytes = "x".repeat(512);
    let mut rows = vec![public, with_key(blob("/box/locked", &bytes), right), blob("/box/open", &bytes)];
    let refused = |row: Row, code| tells_source(row.fails(409, "CannotVerifyCopySource"), 409, code);
    let [from_locked, from_open] = [here("/box/locked"), here("/box/open")];
    for row in from_url(&from_locked).into_iter().take(4) {
        rows.push(refused(with_source_key(row.clone(), wrong), "BlobCustomerSpecifiedEncryptionMismatch"));
        rows.push(refused(row.clone(), "BlobUsesCustomerSpecifiedEncryption"));
        rows.push(with_source_key(row, right).gives(201));
    }
    for row in from_url(&from_open).into_iter().take(4) {
        rows.push(refused(with_source_key(row, right), "BlobDoesNotUseCustomerSpecifiedEncryption"));
    }
    let staged = || put("/box/staged?comp=block&blockid=MDAw").header(SOURCE, &from_locked);
    rows.extend([
        with_key(get("/box/locked"), wrong).fails(409, "BlobCustomerSpecifiedEncryptionMismatch"),
        get("/box/locked").fails(409, "BlobUsesCustomerSpecifiedEncryption"),
        with_key(get("/box/open"), right).fails(409, "BlobDoesNotUseCustomerSpecifiedEncryption"),
        staged()
            .header("x-ms-source-encryption-key", right.0)
            .header("x-ms-source-encryption-algorithm", "AES256")
            .fails(400, "MissingRequiredHeader")
            .has("HeaderName", "x-ms-source-encryption-key-sha256"),
        with_source_key(staged(), (right.0, wrong.1))
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-source-encryption-key-sha256", wrong.1),
        blob("/box/b", "x")
            .header("x-ms-encryption-key", right.0)
            .header("x-ms-encryption-key-sha256", right.1)
            .header("x-ms-encryption-algorithm", "AES128")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-encryption-algorithm", "AES128"),
    ]);
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions() {
    let stamp = open().await;
    let etag = told(&stamp, Row::of("HEAD", "/box/a"), "etag").await;
    let (etag, bad) = (etag.as_str(), "\"0x1\"");
    let several = "MultipleConditionHeadersNotSupported";
    let not_met = "ConditionNotMet";
    let mut rows = vec![
        get("/box/a").header("if-match", etag),
        get("/box/a").header("if-match", format!("{bad}, {etag}")),
        get("/box/a").header("if-match", bad).fails(412, not_met),
        get("/box/a").header("if-none-match", etag).fails(304, not_met),
        get("/box/a").header("if-none-match", "*").fails(400, "UnsatisfiableCondition"),
        get("/box/a").header("if-modified-since", IN_THE_FUTURE).fails(304, not_met),
        get("/box/a").header("if-unmodified-since", LONG_AGO).fails(412, not_met),
        // Reads take any of them together.
        get("/box/a").header("if-match", etag).header("if-modified-since", LONG_AGO),
        get("/box/a").header("if-match", etag).header("if-none-match", etag).fails(304, not_met),
        Row::of("HEAD", "/box/a").header("if-none-match", etag).fails(304, not_met),
        get("/box/a?comp=metadata").header("if-none-match", etag).fails(304, not_met),
        get("/box/disk?comp=pagelist").header("if-modified-since", IN_THE_FUTURE).fails(304, not_met),
        get("/box/a").header("x-ms-if-tags", "\"a\"='b'").fails(412, not_met),
        // Tags have conditions of their own names.
        get("/box/a?comp=tags").header("x-ms-blob-if-match", etag),
        get("/box/a?comp=tags").header("x-ms-blob-if-match", bad).fails(412, not_met),
        get("/box/a?comp=tags").header("x-ms-blob-if-none-match", etag).fails(304, not_met),
        get("/box/a?comp=tags").header("x-ms-blob-if-none-match", bad),
        get("/box/a?comp=tags").header("x-ms-blob-if-modified-since", LONG_AGO),
        get("/box/a?comp=tags").header("x-ms-blob-if-unmodified-since", LONG_AGO).fails(412, not_met),
        get("/box/a?comp=tags").header("x-ms-if-tags", "\"a\"='b'").fails(412, not_met),
        put("/box/a?comp=tags")
            .header("x-ms-blob-if-none-match", etag)
            .body("<Tags><TagSet/></Tags>")
            .fails(412, not_met),
        put("/box/a?comp=tags").header("x-ms-blob-if-match", etag).body("<Tags><TagSet/></Tags>").gives(204),
        blob("/box/a", "x").header("if-none-match", "*").fails(409, "BlobAlreadyExists"),
        blob("/box/none", "x").header("if-match", "*").fails(412, not_met),
        Row::of("DELETE", "/box?restype=container")
            .header("if-unmodified-since", LONG_AGO)
            .fails(412, not_met),
        Row::of("DELETE", "/box?restype=container")
            .header("if-modified-since", IN_THE_FUTURE)
            .fails(412, not_met),
        put("/box?restype=container&comp=metadata")
            .header("if-modified-since", IN_THE_FUTURE)
            .fails(412, not_met),
        put("/box?restype=container&comp=acl").header("if-unmodified-since", LONG_AGO).fails(412, not_met),
        put("/box?restype=container&comp=lease")
            .header(ACTION, "acquire")
            .header(DURATION, "-1")
            .header("if-modified-since", IN_THE_FUTURE)
            .fails(412, not_met),
        lease("/box/a", "acquire").header(DURATION, "-1").header("if-match", bad).fails(412, not_met),
    ];
    // What a write can't have together, whichever write it is.
    let writes = || {
        [
            blob("/box/a", "x"),
            put("/box/a?comp=metadata"),
            put("/box/a?comp=properties").header("x-ms-blob-content-type", "a/b"),
            put("/box/a?comp=snapshot"),
            put("/box/a?comp=blocklist").body("<BlockList/>"),
            lease("/box/a", "break"),
            Row::of("DELETE", "/box/a"),
            put("/box/log?comp=appendblock").body("x"),
            page("/box/disk", "bytes=0-511", 512),
            put("/box/a").header(SOURCE, here("/box/log")),
            put("/box/a?comp=tags").body("<Tags><TagSet/></Tags>"),
            put("/box?restype=container&comp=acl"),
        ]
    };
    for (one, other) in [
        (("if-match", etag), ("if-none-match", bad)),
        (("if-match", etag), ("if-modified-since", LONG_AGO)),
        (("if-none-match", bad), ("if-unmodified-since", IN_THE_FUTURE)),
        (("if-modified-since", LONG_AGO), ("if-unmodified-since", IN_THE_FUTURE)),
    ] {
        let both = |row: Row| row.header(one.0, one.1).header(other.0, other.1).fails(400, several);
        rows.extend(writes().map(both));
    }
    // An ETag decides over the date that goes with it.
    rows.extend([
        put("/box/a?comp=snapshot")
            .header("if-match", etag)
            .header("if-unmodified-since", LONG_AGO)
            .gives(201),
        put("/box/a?comp=snapshot")
            .header("if-none-match", bad)
            .header("if-modified-since", IN_THE_FUTURE)
            .gives(201),
    ]);
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_in_every_state() {
    let stamp = open().await;
    let acquire = |path: &str, id: &str, duration: &str| {
        lease(path, "acquire").header(DURATION, duration).header(PROPOSED, id)
    };
    let with = |path: &str, action: &str, id: &str| lease(path, action).header(LEASE, id);
    let change = |path: &str, id: &str, to: &str| with(path, "change", id).header(PROPOSED, to);
    let breaks = |path: &str, period: &str| lease(path, "break").header("x-ms-lease-break-period", period);
    let write = |id: &str| {
        let row = put("/box/a?comp=metadata");
        if id.is_empty() { row } else { row.header(LEASE, id) }
    };
    let (mismatch, absent) = ("LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation");
    let (mismatch_of_blob, absent_of_blob) =
        ("LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation");
    let a = "/box/a";
    let state = |state: &str, status: &str| {
        Row::of("HEAD", "/box/a")
            .has_header("x-ms-lease-state", state)
            .has_header("x-ms-lease-status", status)
    };
    let rows = [
        // Available.
        with(a, "renew", ONE).fails(409, mismatch),
        with(a, "release", ONE).fails(409, mismatch),
        change(a, ONE, OTHER).fails(409, absent),
        lease(a, "break").fails(409, absent),
        write(ONE).fails(412, absent_of_blob),
        get(a).header(LEASE, ONE).fails(412, absent_of_blob),
        // Leased.
        acquire(a, ONE, "-1")
            .gives(201)
            .has_header(LEASE, ONE)
            .has_header("etag", ANY)
            .has_header("last-modified", ANY),
        state("leased", "locked").has_header(DURATION, "infinite"),
        acquire(a, OTHER, "-1").fails(409, "LeaseAlreadyPresent"),
        acquire(a, ONE, "15").gives(201),
        state("leased", "locked").has_header(DURATION, "fixed"),
        with(a, "renew", OTHER).fails(409, mismatch),
        with(a, "renew", ONE).has_header(LEASE, ONE),
        with(a, "release", OTHER).fails(409, mismatch),
        write("").fails(412, "LeaseIdMissing"),
        write(OTHER).fails(412, mismatch_of_blob),
        write(ONE),
        get(a).header(LEASE, OTHER).fails(412, mismatch_of_blob),
        get(a).header(LEASE, ONE),
        get(a),
        write(ONE).header("if-match", "\"0x1\",\"0x2\"").fails(400, "InvalidHeaderValue"),
        Row::of("DELETE", a).fails(412, "LeaseIdMissing"),
        put("/box/a?comp=block&blockid=MDAw").body("x").fails(412, "LeaseIdMissing"),
        put("/box/a?comp=snapshot").gives(201),
        change(a, OTHER, ONE).has_header(LEASE, ONE),
        change(a, ONE, OTHER).has_header(LEASE, OTHER),
        change(a, ONE, "33333333-3333-3333-3333-333333333333").fails(409, mismatch),
        // Breaking.
        breaks(a, "10").gives(202).has_header("x-ms-lease-time", "10").has_header(LEASE, ""),
        state("breaking", "locked").has_header(DURATION, ""),
        acquire(a, OTHER, "-1").fails(409, "LeaseIsBreakingAndCannotBeAcquired"),
        acquire(a, ONE, "-1").fails(409, "LeaseAlreadyPresent"),
        with(a, "renew", OTHER).fails(409, "LeaseIsBrokenAndCannotBeRenewed"),
        change(a, OTHER, ONE).fails(409, "LeaseIsBreakingAndCannotBeChanged"),
        write("").fails(412, "LeaseIdMissing"),
        write(OTHER),
        // Broken.
        breaks(a, "0").gives(202).has_header("x-ms-lease-time", "0"),
        state("broken", "unlocked"),
        with(a, "renew", OTHER).fails(409, "LeaseIsBrokenAndCannotBeRenewed"),
        write(OTHER).fails(412, "LeaseLost"),
        write(ONE).fails(412, absent_of_blob),
        with(a, "release", OTHER),
        state("available", "unlocked"),
        // A snapshot can't be leased, and what is not there neither.
        acquire("/box/none", ONE, "-1").fails(404, "BlobNotFound"),
        acquire("/none/a", ONE, "-1").fails(404, "ContainerNotFound"),
        put("/box/a?comp=lease&snapshot=2026-11-20T10:00:00.0000000Z")
            .header(ACTION, "break")
            .fails(400, "InvalidQueryParameterValue"),
        // Of containers.
        put("/box?restype=container&comp=lease")
            .header(ACTION, "acquire")
            .header(DURATION, "-1")
            .header(PROPOSED, ONE)
            .gives(201)
            .has_header(LEASE, ONE),
        Row::of("DELETE", "/box?restype=container").fails(412, "LeaseIdMissing"),
        Row::of("DELETE", "/box?restype=container")
            .header(LEASE, OTHER)
            .fails(412, "LeaseIdMismatchWithContainerOperation"),
        get("/box?restype=container")
            .header(LEASE, OTHER)
            .fails(412, "LeaseIdMismatchWithContainerOperation"),
        put("/box?restype=container&comp=metadata"),
        put("/box?restype=container&comp=lease").header(ACTION, "break").gives(202),
        Row::of("DELETE", "/box?restype=container").gives(202),
    ];
    answers(&stamp, rows).await;
}

/// Whoever staged blocks could not keep others from committing theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blobs_of_staged_blocks_can_be_leased() {
    let stamp = open().await;
    let acquire = || lease("/box/new", "acquire").header(DURATION, "-1").header(PROPOSED, ONE);
    let commit = || put("/box/new?comp=blocklist").body("<BlockList><Latest>MDAw</Latest></BlockList>");
    let list = "/box?restype=container&comp=list&include=uncommittedblobs&prefix=new";
    let rows = [
        acquire().fails(404, "BlobNotFound"),
        put("/box/new?comp=block&blockid=MDAw").body("x").gives(201),
        acquire().header("if-match", "*").fails(412, "ConditionNotMet"),
        acquire().gives(201).has_header(LEASE, ONE),
        get(list).has("LeaseState", "leased").has("LeaseDuration", "infinite"),
        put("/box/new?comp=block&blockid=MDAx").body("x").fails(412, "LeaseIdMissing"),
        commit().fails(412, "LeaseIdMissing"),
        blob("/box/new", "y").fails(412, "LeaseIdMissing"),
        get("/box/new").fails(404, "BlobNotFound"),
        put("/box/new?comp=block&blockid=MDAx").header(LEASE, ONE).body("x").gives(201),
        commit().header(LEASE, ONE).gives(201),
        get("/box/new").says("x").has_header("x-ms-lease-state", "leased").has_header("content-md5", ""),
        // One of which nothing is committed can be deleted, by whoever holds its lease.
        put("/box/draft?comp=block&blockid=MDAw").body("x").gives(201),
        lease("/box/draft", "acquire").header(DURATION, "-1").header(PROPOSED, ONE).gives(201),
        Row::of("DELETE", "/box/draft").header("x-ms-delete-snapshots", "only").fails(404, "BlobNotFound"),
        Row::of("DELETE", "/box/draft").fails(412, "LeaseIdMissing"),
        Row::of("DELETE", "/box/draft").header("if-match", "*").fails(412, "ConditionNotMet"),
        Row::of("DELETE", "/box/draft").header(LEASE, ONE).gives(202),
        get("/box/draft?comp=blocklist&blocklisttype=all").fails(404, "BlobNotFound"),
        Row::of("DELETE", "/box/draft").fails(404, "BlobNotFound"),
        lease("/box/new", "release").header(LEASE, ONE).has_header("etag", ANY),
        Row::of("DELETE", "/box/new").gives(202),
        acquire().fails(404, "BlobNotFound"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_document_and_where() {
    let stamp = open().await;
    let document = |row: Row, line: &str, position: &str| {
        row.fails(400, "InvalidXmlDocument")
            .has("LineNumber", line)
            .has("LinePosition", position)
            .has("Reason", ANY)
    };
    let node = |row: Row, name: &str, value: &str| {
        row.fails(400, "InvalidXmlNodeValue").has("XmlNodeName", name).has("XmlNodeValue", value)
    };
    let settings = |inside: &str| {
        let body = format!("<StorageServiceProperties>\n{inside}\n</StorageServiceProperties>");
        put("/?restype=service&comp=properties").body(body)
    };
    let list = |body: &str| put("/box/a?comp=blocklist").body(body);
    let tags = |body: &str| put("/box/a?comp=tags").body(body);
    let acl = |inside: &str| {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        put("/box?restype=container&comp=acl").body(body)
    };
    let policy = |id: &str, inside: &str| {
        format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{inside}</AccessPolicy></SignedIdentifier>")
    };
    let six: String = (0..6).map(|number| policy(&number.to_string(), "")).collect();
    let rows = [
        document(list("<BlockList>\n<Latest>MDA=</Later></BlockList>"), "2", ANY),
        document(list("<BlockList>\n  <Newest>MDA=</Newest></BlockList>"), "2", ANY),
        document(list("<Blocks/>"), "1", ANY),
        document(tags("<Tags><TagSet>\n<Tag><Key>a</Key></Tag></TagSet></Tags>"), "2", ANY),
        document(tags("<Labels/>"), "1", "2"),
        document(tags("<Tags"), "1", ANY),
        document(settings("<Unknown/>"), "2", "2"),
        document(settings("<StaticWebsite></StaticWebsite>"), "2", ANY),
        document(
            settings("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>x</Days></DeleteRetentionPolicy>"),
            "2",
            ANY,
        ),
        document(
            settings(
                "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
            ),
            "0",
            "0",
        )
        .says("Retention days must be"),
        node(settings("<StaticWebsite><Enabled>perhaps</Enabled></StaticWebsite>"), "Enabled", "perhaps"),
        node(settings("<DefaultServiceVersion>new</DefaultServiceVersion>"), "DefaultServiceVersion", "new"),
        document(acl("<Other/>"), "1", ANY),
        document(acl(&policy("a", "<Permission>?</Permission>")), "0", "0"),
        document(acl(&six), "0", "0"),
        document(acl(&policy(&"a".repeat(65), "")), "0", "0"),
        node(acl(&policy("a", "<Start>soon</Start>")), "Start", "soon"),
        acl(&policy("a", "<Permission>rl</Permission>")),
        acl(""),
        put("/box?restype=container&comp=acl"),
        // Tags that are read and none that a blob can have.
        tags("<Tags><TagSet><Tag><Key></Key><Value>1</Value></Tag></TagSet></Tags>")
            .fails(400, "EmptyTagName"),
        tags("<Tags><TagSet><Tag><Key>a</Key><Value>?</Value></Tag></TagSet></Tags>")
            .fails(400, "InvalidTag"),
        tags(&format!(
            "<Tags><TagSet>{}</TagSet></Tags>",
            "<Tag><Key>a</Key><Value>1</Value></Tag>".repeat(2)
        ))
        .fails(400, "DuplicateTagNames"),
        tags(&format!(
            "<Tags><TagSet>{}</TagSet></Tags>",
            "<Tag><Key>a</Key><Value>1</Value></Tag>".repeat(11)
        ))
        .fails(400, "TagsTooLarge"),
        tags("<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>").gives(204),
        Row::of("HEAD", "/box/a").has_header("x-ms-tag-count", "1"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn properties_and_metadata() {
    let stamp = open().await;
    let properties = || put("/box/a?comp=properties");
    let head = || Row::of("HEAD", "/box/a");
    let rows = [
        properties().header("x-ms-blob-content-type", "a/b").header("x-ms-blob-content-language", "de"),
        head()
            .has_header("content-type", "a/b")
            .has_header("content-language", "de")
            .has_header("content-md5", ""),
        // What is not given is cleared, all of it if nothing is.
        properties().header("x-ms-blob-cache-control", "no-cache").has_header("etag", ANY),
        head().has_header("cache-control", "no-cache").has_header("content-type", ""),
        properties(),
        head().has_header("cache-control", "").has_header("content-type", ""),
        properties().header(PAGE, "512").fails(409, "InvalidBlobType"),
        put("/box/disk?comp=properties").header("x-ms-blob-content-type", "a/b"),
        // A page blob whose size or number changes keeps the rest.
        put("/box/disk?comp=properties").header(PAGE, "512").has_header("x-ms-blob-sequence-number", "0"),
        Row::of("HEAD", "/box/disk").has_header("content-type", "a/b").has_header("content-length", "512"),
        put("/box/none?comp=properties").fails(404, "BlobNotFound"),
        put("/none/a?comp=properties").fails(404, "ContainerNotFound"),
        put("/box/a?comp=metadata")
            .header("x-ms-meta-a", "1")
            .has_header("x-ms-request-server-encrypted", "true"),
        get("/box/a?comp=metadata").has_header("x-ms-meta-a", "1"),
        put("/box/a?comp=metadata"),
        get("/box/a?comp=metadata").has_header("x-ms-meta-a", ""),
        put("/box/a?comp=metadata").header("x-ms-meta-a", "x".repeat(9000)).fails(400, "MetadataTooLarge"),
        put("/box/a?comp=seal").fails(409, "InvalidBlobType"),
        put("/box/log?comp=seal").has_header("x-ms-blob-sealed", "true"),
        put("/box/log?comp=appendblock").body("x").fails(409, "BlobIsSealed"),
        put("/box/a?comp=appendblock").body("x").fails(409, "InvalidBlobType"),
        put("/box/none?comp=appendblock").body("x").fails(404, "BlobNotFound"),
        put("/box/a?comp=undelete"),
        put("/box/none?comp=undelete").fails(404, "BlobNotFound"),
        get("/box/a")
            .header("x-ms-range", "bytes=5-")
            .fails(416, "InvalidRange")
            .has_header("content-range", "bytes */5"),
        get("/box/a")
            .header("range", "bytes=1-2")
            .gives(206)
            .has_header("content-range", "bytes 1-2/5")
            .says("el"),
        get("/box/a").header("range", "bytes=-2").says("hello"),
        put("/box?restype=container").fails(409, "ContainerAlreadyExists"),
        put("/Box?restype=container").fails(400, "InvalidResourceName"),
        put("/b?restype=container").fails(400, "OutOfRangeInput"),
        put("/b--x?restype=container").fails(400, "InvalidResourceName"),
        put("/new?restype=container").header("x-ms-blob-public-access", "Container").gives(201),
        get("/new?restype=container").has_header("x-ms-blob-public-access", "container"),
        get("/new?restype=container&comp=list").auth(Auth::Nothing).has("NextMarker", ""),
        get("/box?restype=container").auth(Auth::Nothing).fails(401, "NoAuthenticationInformation"),
        get("/none?restype=container").fails(404, "ContainerNotFound"),
        Row::of("DELETE", "/none?restype=container").fails(404, "ContainerNotFound"),
    ];
    answers(&stamp, rows).await;
}
