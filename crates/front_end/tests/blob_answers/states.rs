//! What a blob's state allows: conditions, leases, tiers, types, changed pages.

use super::*;

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
        // One of which nothing is committed can be deleted, by the holder of its lease.
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
