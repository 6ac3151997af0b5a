//! A server as a user would run it, and what the newest clients need to reach it: signed addresses, or tokens over TLS.

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::http::{ClientOptions, RetryOptions, Transport, Url};
use azure_core::time::{Duration as TimeSpan, OffsetDateTime};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const ACCOUNT: &str = "devstoreaccount1";
const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/front_end/tests/certificates");

fn binary() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("LARIMAR_BIN").map(PathBuf::from);
    given.unwrap_or_else(|| root.join("target/release/larimar"))
}

/// A server on free ports that forgets everything at the end.
pub struct Server {
    process: Child,
    ready: serde_json::Value,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Server {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let binary = binary();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let ready_file =
            std::env::temp_dir().join(format!("larimar-rust-{}-{number}.json", std::process::id()));
        let _ = std::fs::remove_file(&ready_file);
        let mut command = Command::new(&binary);
        command.args(["--in-memory", "--table-port", "0", "--blob-port", "0", "--queue-port", "0"]);
        command.args(["--admin-port", "none"]);
        command.arg("--ready-file").arg(&ready_file).args(arguments);
        command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
        let process = command
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let mut server = Server { process, ready: serde_json::Value::Null };
        let started_at = Instant::now();
        while server.ready.is_null() {
            assert!(started_at.elapsed() < START_TIMEOUT, "the server was not ready in time");
            std::thread::sleep(Duration::from_millis(5));
            let ready = std::fs::read(&ready_file).unwrap_or_default();
            server.ready = serde_json::from_slice(&ready).unwrap_or_default();
        }
        std::fs::remove_file(&ready_file).expect("the ready file");
        server
    }

    /// One that takes tokens.
    pub fn start_with_tokens() -> Server {
        let (certificate, key) =
            (format!("{CERTIFICATES}/server.pem"), format!("{CERTIFICATES}/server-key.pem"));
        Server::start(&["--tls-cert", &certificate, "--tls-key", &key, "--oauth", "basic"])
    }

    fn base(&self, service: &str) -> &str {
        self.ready[service].as_str().expect("an address")
    }

    pub fn port(&self, service: &str) -> u16 {
        self.base(service).rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    /// The address of a service as its start makes it, signed.
    pub fn signed_url(&self, service: &str) -> Url {
        let address = self.ready["sas"][service].as_str().expect("a signed address");
        Url::parse(address).expect("an address")
    }

    /// The address of a service.
    pub fn plain_url(&self, service: &str) -> Url {
        Url::parse(&format!("{}/{ACCOUNT}", self.base(service))).expect("an address")
    }

    /// An address that `larimar sas` makes for one resource.
    pub fn made_url(&self, resource: &str, permissions: &str) -> Url {
        let mut command = Command::new(binary());
        command.args(["sas", "--resource", resource, "--permissions", permissions]);
        for service in ["blob", "queue", "table"] {
            command.arg(format!("--{service}-port")).arg(self.port(service).to_string());
        }
        command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
        let output = command.output().expect("the program");
        let printed = String::from_utf8(output.stdout).expect("text");
        Url::parse(printed.lines().nth(1).expect("an address")).expect("an address")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Clients that trust the test's certificate, and do not hide a refusal by trying again.
pub fn client_options() -> ClientOptions {
    // Another test may have chosen it already; all choose the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = std::fs::read(format!("{CERTIFICATES}/server.pem")).expect("the certificate");
    let certificate = reqwest::Certificate::from_pem(&certificate).expect("a certificate");
    let client = reqwest::Client::builder().tls_certs_only([certificate]).build().expect("a client");
    ClientOptions {
        transport: Some(Transport::new(Arc::new(client))),
        retry: RetryOptions::none(),
        ..ClientOptions::default()
    }
}

/// Issues tokens as the identity service would, but for the signature.
#[derive(Debug)]
pub struct Tokens;

#[async_trait]
impl TokenCredential for Tokens {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        assert_eq!(scopes, ["https://storage.azure.com/.default"]);
        let now = OffsetDateTime::now_utc();
        let claims = json!({
            "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
            "aud": "https://storage.azure.com",
            "tid": "ab1f708d-50f6-404c-a006-d71b2ac7a606",
            "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
            "nbf": now.unix_timestamp() - 60,
            "iat": now.unix_timestamp() - 60,
            "exp": now.unix_timestamp() + 600,
        });
        let header = json!({ "alg": "RS256", "typ": "JWT" });
        let part = |part: serde_json::Value| azure_core::base64::encode_url_safe(part.to_string());
        let token = format!("{}.{}.AAAA", part(header), part(claims));
        Ok(AccessToken::new(token, now + TimeSpan::minutes(10)))
    }
}

/// The status and the code with which something is refused.
pub fn refusal<T>(result: azure_core::Result<T>) -> (u16, String) {
    let Err(error) = result else { panic!("it is not refused") };
    match error.kind() {
        ErrorKind::HttpResponse { status, error_code, .. } => {
            (u16::from(*status), error_code.clone().unwrap_or_default())
        }
        _ => panic!("{error:?}"),
    }
}
