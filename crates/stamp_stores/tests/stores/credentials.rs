//! Where credentials come from, and when they are renewed.

use crate::s3_server::{Fault, S3Server};
use crate::surroundings;
use base::date_time::date_time_text;
use base::system::SystemClock;
use base::{BoxFuture, Clock, Ticks};
use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use stamp::PutAnswer;
use stamp_stores::{ObjectStoreSettings, OpenedObjectStore, StoreSurroundings, open_object_store};
use stamp_streams::StoreError;
use std::sync::Arc;
use std::time::Duration;

const TOKEN_PATH: &str = "PUT /latest/api/token";
const ROLES: &str = "GET /latest/meta-data/iam/security-credentials/";

async fn open(server: &S3Server, surroundings: &StoreSurroundings) -> OpenedObjectStore {
    let settings = ObjectStoreSettings { endpoint: Some(server.url()), ..ObjectStoreSettings::default() };
    open_object_store("s3://bkt", &settings, surroundings).await.expect("a store")
}

/// Which key signed the last request to the bucket, and its token.
fn signer(server: &S3Server) -> (String, String) {
    let seen = server.seen();
    let last =
        seen.iter().rev().find(|seen| seen.target.starts_with("/bkt")).expect("a request to the bucket");
    let key =
        last.header("authorization").split("Credential=").nth(1).and_then(|rest| rest.split('/').next());
    (key.expect("a key").to_owned(), last.header("x-amz-security-token").to_owned())
}

async fn signer_with(server: &S3Server, variables: &[(&str, &str)]) -> Result<(String, String), String> {
    let opened = open(server, &surroundings(variables)).await;
    match opened.store.read("absent", 0, 1).await {
        Err(StoreError::NotThere) => Ok(signer(server)),
        Err(error) => Err(error.to_string()),
        Ok(_) => panic!("nothing is there"),
    }
}

fn pair(key: &str, token: &str) -> Result<(String, String), String> {
    Ok((key.to_owned(), token.to_owned()))
}

#[tokio::test]
async fn variables_and_profiles() {
    let server = S3Server::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().display().to_string();
    std::fs::create_dir(folder.path().join(".aws")).expect("a folder");
    let profiles = "[default]\naws_access_key_id=D\naws_secret_access_key=hunter2\n[other]\naws_access_key_id=O\n\
                    aws_secret_access_key=hunter2\naws_session_token=OT\n[role]\nrole_arn=x\n";
    std::fs::write(folder.path().join(".aws/credentials"), profiles).expect("a file");
    let file = format!("{home}/.aws/credentials");
    let keys = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];
    let off = ("AWS_EC2_METADATA_DISABLED", "true");
    for (variables, expected) in [
        (vec![keys[0], keys[1]], pair("E", "")),
        (vec![keys[0], keys[1], ("AWS_SESSION_TOKEN", "ET")], pair("E", "ET")),
        (vec![keys[0], keys[1], ("HOME", &home)], pair("E", "")),
        (vec![("HOME", home.as_str())], pair("D", "")),
        (vec![("HOME", home.as_str()), ("AWS_PROFILE", "other")], pair("O", "OT")),
        (vec![("AWS_SHARED_CREDENTIALS_FILE", &file), ("AWS_PROFILE", "other")], pair("O", "OT")),
    ] {
        assert_eq!(signer_with(&server, &variables).await, expected, "{variables:?}");
    }
    let absent = format!("{home}/absent");
    for (variables, part) in [
        (vec![keys[0], off], "AWS_SECRET_ACCESS_KEY is not"),
        (vec![keys[1], off], "AWS_ACCESS_KEY_ID is not"),
        (vec![("HOME", home.as_str()), ("AWS_PROFILE", "none")], "no profile [none]"),
        (vec![("HOME", home.as_str()), ("AWS_PROFILE", "role")], "not supported"),
        (vec![("AWS_SHARED_CREDENTIALS_FILE", &absent)], "can't be read"),
        (vec![("HOME", absent.as_str()), off], "there are no credentials"),
        (vec![off], "there are no credentials"),
    ] {
        let error = signer_with(&server, &variables).await.expect_err("no credentials");
        assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
    }
    let opened = open(&server, &surroundings(&[off])).await;
    assert_eq!(opened.store.create("a", Bytes::new()).await, PutAnswer::Unknown);
}

#[tokio::test]
async fn a_web_identity_gets_a_role() {
    let server = S3Server::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "jwt.hunter2\n").expect("a file");
    let (file, url) = (file.display().to_string(), server.url());
    let variables = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file.as_str()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ENDPOINT_URL_STS", url.as_str()),
    ];
    let ends_at = date_time_text(SystemClock::new().now().plus(Duration::from_secs(3600)));
    let answer = format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>W</AccessKeyId>\
         <SecretAccessKey>s</SecretAccessKey><SessionToken>WT</SessionToken><Expiration>{ends_at}</Expiration>\
         </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    );
    server.fix("POST /", 200, &answer);
    let opened = open(&server, &surroundings(&variables)).await;
    assert_eq!(opened.store.read("absent", 0, 1).await, Err(StoreError::NotThere));
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    let form = String::from_utf8_lossy(&seen[0].body).into_owned();
    for part in [
        "Action=AssumeRoleWithWebIdentity",
        "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr",
        "WebIdentityToken=jwt.hunter2",
    ] {
        assert!(form.split('&').any(|pair| pair == part), "{form}");
    }
    assert_eq!(seen[1].header("x-amz-security-token"), "WT");
    server.fix("POST /", 403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>jwt.hunter2</Message></Error></ErrorResponse>");
    let error = signer_with(&server, &variables).await.expect_err("refused");
    assert!(error.contains("AccessDenied") && !error.contains("hunter2"), "{error}");
}

fn document(key: &str, ends_at: Ticks) -> String {
    let ends_at = date_time_text(ends_at);
    format!(
        r#"{{"AccessKeyId":"{key}","SecretAccessKey":"hunter2","Token":"{key}T","Expiration":"{ends_at}"}}"#
    )
}

#[tokio::test]
async fn a_container_and_a_machine_give_credentials() {
    let server = S3Server::start().await;
    let later = SystemClock::new().now().plus(Duration::from_secs(3600));
    let url = format!("{}/creds?a=b", server.url());
    server.fix("GET /creds?a=b", 200, &document("C", later));
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter2"),
    ];
    let opened = open(&server, &surroundings(&variables)).await;
    drop(opened.store.read("absent", 0, 1).await);
    assert_eq!(server.state.seen.lock()[0].header("authorization"), "hunter2");
    assert_eq!(signer(&server), ("C".to_owned(), "CT".to_owned()));
    let host = server.url();
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", host.as_str())];
    server.fix(TOKEN_PATH, 200, "imds.hunter2");
    server.fix(ROLES, 200, "role-1\n");
    server.fix(&format!("{ROLES}role-1"), 200, &document("I", later));
    let opened = open(&server, &surroundings(&variables)).await;
    drop(opened.store.read("absent", 0, 1).await);
    let seen = server.state.seen.lock().clone();
    assert_eq!(seen[0].header("x-aws-ec2-metadata-token-ttl-seconds"), "60");
    assert!(seen[1..3].iter().all(|seen| seen.header("x-aws-ec2-metadata-token") == "imds.hunter2"));
    assert_eq!(signer(&server), ("I".to_owned(), "IT".to_owned()));
    server.fix(&format!("{ROLES}role-1"), 200, "hunter2");
    let error = signer_with(&server, &variables).await.expect_err("no document");
    assert!(error.contains("role-1") && !error.contains("hunter2"), "{error}");
}

/// A clock that a test moves; waits are real.
struct MovedClock {
    real: SystemClock,
    ahead: Mutex<Duration>,
}

impl Clock for MovedClock {
    fn now(&self) -> Ticks {
        self.real.now().plus(*self.ahead.lock())
    }
    fn monotonic(&self) -> Duration {
        self.real.monotonic() + *self.ahead.lock()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(sleep_for)
    }
}

/// One search serves all that wait; what is held is renewed beside requests before it ends, and is used while
/// that fails.
#[tokio::test(flavor = "multi_thread")]
async fn temporary_credentials_are_renewed_before_they_end() {
    let server = S3Server::start().await;
    let clock = Arc::new(MovedClock { real: SystemClock::new(), ahead: Mutex::default() });
    let url = format!("{}/creds", server.url());
    let mut surroundings = surroundings(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url)]);
    surroundings.http.clock = clock.clone();
    let opened = open(&server, &surroundings).await;
    let ends_in = |seconds| clock.now().plus(Duration::from_secs(seconds));
    let searches = |server: &S3Server| server.seen().iter().filter(|seen| seen.target == "/creds").count();
    let read = async || opened.store.read("absent", 0, 1).await;
    server.fix("GET /creds", 200, &document("A", ends_in(1000)));
    let reads: Vec<_> = (0..50).map(|_| read()).collect();
    assert!(join_all(reads).await.iter().all(|read| *read == Err(StoreError::NotThere)));
    assert_eq!(searches(&server), 1, "single flight");
    // Due, and the service is away: requests go on with what is held.
    server.fix("GET /creds", 500, "");
    *clock.ahead.lock() = Duration::from_secs(800);
    for _ in 0..5 {
        assert_eq!(read().await, Err(StoreError::NotThere));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(searches(&server), 1, "a failure counts for a while");
    // It is back: a request still uses what is held, the next ones what is new.
    server.fix("GET /creds", 200, &document("B", ends_in(1000)));
    *clock.ahead.lock() += Duration::from_secs(10);
    assert_eq!(read().await, Err(StoreError::NotThere));
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.seen();
    assert_eq!(read().await, Err(StoreError::NotThere));
    assert_eq!(signer(&server).0, "B");
    // Ended, and the service is away: nothing is sent to the bucket.
    server.fix("GET /creds", 500, "");
    *clock.ahead.lock() += Duration::from_secs(2000);
    server.seen();
    assert!(matches!(read().await, Err(StoreError::Unavailable(_))));
    assert_eq!(opened.store.create("a", Bytes::new()).await, PutAnswer::Unknown);
    assert!(server.seen().iter().all(|seen| seen.target == "/creds"));
    // The store says earlier than expected that they have ended.
    server.fix("GET /creds", 200, &document("C", ends_in(1000)));
    *clock.ahead.lock() += Duration::from_secs(10);
    assert_eq!(read().await, Err(StoreError::NotThere));
    server.fix("GET /creds", 200, &document("D", ends_in(1000)));
    server.fault(Fault::Status(400, "ExpiredToken"));
    assert_eq!(opened.store.create("a", Bytes::new()).await, PutAnswer::Unknown);
    assert_eq!(opened.store.create("a", Bytes::new()).await, PutAnswer::Created);
    assert_eq!(signer(&server).0, "D");
    // Somebody has put others in their place before they have ended, and the store knows these no more.
    server.fix("GET /creds", 200, &document("E", ends_in(1000)));
    let unknown = || server.fault(Fault::Status(403, "InvalidAccessKeyId"));
    for (later_s, searched_for) in [(1, 0), (10, 1)] {
        *clock.ahead.lock() += Duration::from_secs(later_s);
        server.seen();
        unknown();
        assert!(matches!(read().await, Err(StoreError::Refused(_))));
        assert_eq!(read().await, Err(StoreError::NotThere));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(searches(&server), searched_for, "{later_s} s later");
    }
    assert_eq!(read().await, Err(StoreError::NotThere));
    assert_eq!(signer(&server).0, "E");
}
