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
