//! Answers that are of the service, not of one blob: credentials, settings, batches.

use super::*;

/// A token that no authority believes.
const BAD_TOKEN: &str = "Bearer eyJhbGciOiJub25lIn0.e30.AAAA";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bearer_tokens() {
    let stamp = open_with_tokens().await;
    fill(&stamp).await;
    let rows = vec![
        get("/box/a").auth(Auth::Bearer).says("hello"),
        get("/box/a")
            .auth(Auth::Header("Bearer YOU SHALL NOT PASS"))
            .header("x-ms-version", "2018-11-09")
            .fails(400, "InvalidAuthenticationInfo"),
        get("/box/a").auth(Auth::Header("Bearer BLA")).fails(400, "InvalidAuthenticationInfo"),
        get("/box/a")
            .auth(Auth::Header(BAD_TOKEN))
            .fails(401, "InvalidAuthenticationInfo")
            .has("AuthenticationErrorDetail", ANY)
            .has_header("www-authenticate", ANY),
        // Policies by token.
        get("/box?restype=container&comp=acl").auth(Auth::Bearer).header("x-ms-version", "2025-07-05"),
        get("/box?restype=container&comp=acl")
            .auth(Auth::Bearer)
            .header("x-ms-version", "2025-07-04")
            .fails(404, "ResourceNotFound"),
        put("/box?restype=container&comp=acl")
            .auth(Auth::Bearer)
            .header("x-ms-version", "2021-12-02")
            .fails(404, "ResourceNotFound"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_and_what_reads_tell_any_origin() {
    let stamp = open().await;
    let path = "/?restype=service&comp=properties";
    let set = |inside: &str| {
        put(path).body(format!("<StorageServiceProperties>{inside}</StorageServiceProperties>")).gives(202)
    };
    let rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
                <AllowedHeaders /><ExposedHeaders>x-ms-error*,x-ms-blob-type</ExposedHeaders>\
                <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>";
    let (allowed, exposed) = ("access-control-allow-origin", "access-control-expose-headers");
    let parameter = |row: Row, name: &'static str, value: &str| {
        row.fails(400, "InvalidQueryParameterValue")
            .has("QueryParameterName", name)
            .has("QueryParameterValue", value)
            .has("Reason", "")
    };
    let rows = vec![
        parameter(get("/?restype=service&comp=stats"), "comp", "stats"),
        parameter(put("/?restype=container"), "comp", ""),
        set("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>")
            .fails(400, "InvalidXmlDocument")
            .has("LineNumber", "1")
            .has("LinePosition", ANY)
            .has("Reason", "Element is missing: Days."),
        // Without a rule, with one for others, and with one for all.
        get("/box/a").has_header(allowed, ""),
        set(&format!("<Cors>{}</Cors>", rule.replace(">*<", ">http://a<"))),
        get("/box/a").has_header(allowed, "").has_header("vary", "Origin"),
        set(&format!("<Cors>{rule}</Cors>")),
        get("/box/a").has_header(allowed, "*").has_header(exposed, "x-ms-blob-type").has_header("vary", ""),
        get("/box/none")
            .fails(404, "BlobNotFound")
            .has_header(allowed, "*")
            .has_header(exposed, "x-ms-error-code,x-ms-blob-type"),
        Row::of("HEAD", "/box/a").has_header(allowed, ""),
        put("/box/a?comp=metadata").has_header(allowed, ""),
        put("/box/a?comp=metadata").header("origin", "http://a").has_header(allowed, "*"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_too_many() {
    let stamp = open().await;
    let batch = |count: usize| {
        let part =
            "--b\r\nContent-Type: application/http\r\n\r\nDELETE /devstoreaccount1/box/a HTTP/1.1\r\n\r\n";
        Row::of("POST", "/?comp=batch")
            .header("content-type", "multipart/mixed; boundary=b")
            .body(part.repeat(count) + "--b--\r\n")
    };
    let answer = batch(257).gives(202).send(&stamp, Service::Blob).await.expect(202);
    assert!(answer.header("content-type").starts_with("multipart/mixed; boundary="));
    assert_eq!(answer.body.matches("HTTP/1.1 400 Bad Request").count(), 1, "{}", answer.body);
    assert_eq!(answer.body.matches("\r\n--").count(), 1, "{}", answer.body);
    for text in [
        "x-ms-error-code: ExceedsMaxBatchRequestCount",
        "The batch operation exceeds maximum number of allowed subrequests.",
    ] {
        assert!(answer.body.contains(text), "{}", answer.body);
    }
    let rows = [get("/box/a").says("hello"), batch(256).gives(202).says("NoAuthenticationInformation")];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_blobs_tell() {
    let stamp = open().await;
    let taken = told(&stamp, put("/box/a?comp=snapshot").gives(201), "x-ms-snapshot").await;
    let of_snapshot = format!("/box/a?snapshot={taken}");
    let lease_headers = |row: Row, state: &str, status: &str| {
        row.has_header("x-ms-lease-state", state).has_header("x-ms-lease-status", status)
    };
    let below_zero = |name: &'static str| {
        page("/box/disk", "bytes=0-511", 0).header(name, "-1").fails(400, "InvalidInput")
    };
    let rows = vec![
        lease_headers(get(&of_snapshot), "", "").has_header("x-ms-snapshot", &taken),
        lease_headers(Row::of("HEAD", &of_snapshot), "", "").has_header("x-ms-snapshot", &taken),
        lease_headers(get("/box/a"), "available", "unlocked").has_header("x-ms-snapshot", ""),
        below_zero("x-ms-if-sequence-number-lt"),
        below_zero("x-ms-if-sequence-number-le"),
        below_zero("x-ms-if-sequence-number-eq"),
        page("/box/disk", "bytes=0-511", 0)
            .header("x-ms-if-sequence-number-eq", "x")
            .fails(400, "InvalidHeaderValue")
            .names_header("x-ms-if-sequence-number-eq", "x"),
        put("/box/a?comp=tier")
            .header(TIER, "P10")
            .fails(400, "InvalidHeaderValue")
            .names_header(TIER, "P10"),
        // A blob that is missing, and an ETag that none can have.
        get("/box/none").header("if-match", "\"0x8D\"").fails(404, "BlobNotFound"),
        get("/box/none").header("if-match", "*").fails(404, "BlobNotFound"),
        get("/box/none").header("if-match", "\"a\"").fails(412, "ConditionNotMet"),
        Row::of("HEAD", "/box/none").header("if-match", "0x").fails(412, "ConditionNotMet"),
    ];
    answers(&stamp, rows).await;
}
