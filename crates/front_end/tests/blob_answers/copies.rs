//! Copies, and operations whose bytes come from a URL.

use super::*;

/// An answer that says why a source could not be read, in headers and in its body.
fn names_source(row: Row, status: u16, code: &'static str) -> Row {
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
        // Only a request that may read it learns whether it is there.
        let refused = |row: Row| names_source(row.fails(401, unverified), 401, "NoAuthenticationInformation");
        rows.extend(from_url(url).map(refused));
    }
    rows.extend(from_url(&missing).map(|row| names_source(row.fails(404, unverified), 404, "BlobNotFound")));
    rows.push(names_source(
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
        names_source(
            put_from().header("x-ms-source-if-none-match", &etag).fails(304, unverified),
            304,
            "ConditionNotMet",
        ),
        names_source(
            put_from().header("x-ms-source-if-modified-since", IN_THE_FUTURE).fails(304, unverified),
            304,
            "ConditionNotMet",
        ),
        names_source(
            put_from().header("x-ms-source-if-unmodified-since", LONG_AGO).fails(412, unverified),
            412,
            "ConditionNotMet",
        ),
        put_from().header("x-ms-source-if-match", "\"0x1\"").fails(412, "SourceConditionNotMet"),
        put_from().header("x-ms-source-if-match", &etag).gives(201),
        names_source(
            stage_from().header("x-ms-source-if-match", "\"0x1\"").fails(412, unverified),
            412,
            "ConditionNotMet",
        ),
        names_source(
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
        names_source(
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
            401 => names_source(row.fails(401, unverified), 401, "NoAuthenticationInformation"),
            status => row.gives(status),
        });
    }
    for (path, code) in [("/box/none", "BlobNotFound"), ("/none/source", "ContainerNotFound")] {
        for (row, status) in from_url(&here(path)).into_iter().zip(statuses) {
            let row = row.auth(Auth::Bearer);
            rows.push(match status {
                401 => names_source(row.fails(401, unverified), 401, "NoAuthenticationInformation"),
                _ => names_source(row.fails(404, code), 404, code),
            });
        }
    }
    rows.extend([
        get("/box/new").says(&bytes),
        get("/box/log").says(&bytes),
        get("/box/disk").says(&bytes),
        get("/box/staged?comp=blocklist&blocklisttype=all").has("Size", "512"),
        // A copy that is not waited for reads what its request may read, and names what is missing as such.
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
            .fails(400, unverified),
    ]);
    answers(&stamp, rows).await;
}

/// `az storage blob copy start` called with the names of container and blob makes such an address, wherever
/// the server is.
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
        names_source(copy(&azure("/box/none")).fails(404, "CannotVerifyCopySource"), 404, "BlobNotFound"),
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
    let refused = |row: Row, code| names_source(row.fails(409, "CannotVerifyCopySource"), 409, code);
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
