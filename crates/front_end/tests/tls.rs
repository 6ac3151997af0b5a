//! TLS on real sockets: encrypted requests, the protocol chosen in the handshake, bearer tokens, and clients
//! that do not encrypt or never finish the handshake.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod stamp;

use base::Clock;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use front_end::{Limits, TlsIdentity, UnverifiedTokens};
use stamp::{ROOT, Stamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const CERTIFICATE: &[u8] = include_bytes!("certificates/server.pem");
const KEY: &[u8] = include_bytes!("certificates/server-key.pem");

const RENEWED: &[u8] = include_bytes!("certificates/renewed.pem");
const RENEWED_KEY: &[u8] = include_bytes!("certificates/renewed-key.pem");

struct Running {
    stamp: Stamp,
    identity: TlsIdentity,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

async fn start(limits: Limits) -> Running {
    let identity = TlsIdentity::from_pem(CERTIFICATE, KEY).expect("a pair");
    let stamp = Stamp::with_settings(|settings| {
        settings.limits = limits;
        settings.tls = Some(identity.clone());
        settings.bearer = Some(Arc::new(UnverifiedTokens));
    })
    .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let front_end = stamp.front_end.clone();
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        front_end.serve_table(listener, Box::pin(stopped)).await;
    });
    Running { stamp, identity, address, stop, served }
}

impl Running {
    /// A connection that trusts the server's certificate only.
    async fn connect(&self, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        self.try_connect(CERTIFICATE, protocols).await.expect("a handshake")
    }

    /// A connection that trusts this certificate only.
    async fn try_connect(
        &self,
        trusted: &[u8],
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted).expect("a certificate")).expect("a root");
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    fn signed(&self, path: &str) -> String {
        let target = format!("{ROOT}{path}");
        let mut text = format!("GET {target} HTTP/1.1\r\n");
        for (name, value) in &self.stamp.signed_headers("GET", &target, &[]) {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        text + "\r\n"
    }

    fn borne(&self, token: &str) -> String {
        format!(
            "GET {ROOT}/Tables HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2019-02-02\r\nauthorization: Bearer \
             {token}\r\n\r\n"
        )
    }

    fn token(&self, audience: &str, expires_in: i64) -> String {
        let now = self.stamp.clock.now().since_unix().as_secs() as i64;
        let claims = format!(
            r#"{{"iss":"https://sts.windows.net/x/","aud":"{audience}","nbf":{},"iat":{},"exp":{}}}"#,
            now - 60,
            now - 60,
            now + expires_in
        );
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
        format!("{header}.{}.AAAA", URL_SAFE_NO_PAD.encode(claims))
    }
}

async fn ask(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("sent");
    read_answer(stream).await
}

async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.expect("an answer"));
    }
    let head = String::from_utf8(text).expect("text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |size| size.parse().expect("size"))];
    stream.read_exact(&mut body).await.expect("a body");
    head + &String::from_utf8(body).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_served_and_addresses_are_https() {
    let running = start(Limits::default()).await;
    running.stamp.create_table("People").await;
    for protocols in [&[][..], &[&b"http/1.1"[..]]] {
        let mut stream = running.connect(protocols).await;
        for _ in 0..2 {
            let answer = ask(&mut stream, &running.signed("/People()")).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert!(
                answer.contains("\"https://127.0.0.1:10002/devstoreaccount1/$metadata#People\""),
                "{answer}"
            );
        }
    }
    let mut idle = running.connect(&[]).await;
    ask(&mut idle, &running.signed("/Tables")).await;
    running.stop.send(()).expect("running");
    let ended = tokio::time::timeout(Duration::from_secs(5), idle.read(&mut [0; 1])).await.expect("in time");
    assert!(matches!(ended, Ok(0)), "closed with a notice: {ended:?}");
    running.served.await.expect("stopped");
}

/// A certificate that was renewed was shown after a restart only, so servers that went on showed one that had
/// expired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_connections_get_a_renewed_certificate() {
    let running = start(Limits::default()).await;
    let mut open = running.connect(&[]).await;
    running.identity.renew(RENEWED, KEY).expect_err("the key is another's");
    running.identity.renew(b"", RENEWED_KEY).expect_err("no certificate");
    running.connect(&[]).await;
    running.identity.renew(RENEWED, RENEWED_KEY).expect("a pair");
    let mut new = running.try_connect(RENEWED, &[]).await.expect("a handshake");
    running.try_connect(CERTIFICATE, &[]).await.expect_err("the former one is not shown any more");
    for stream in [&mut open, &mut new] {
        let answer = ask(stream, &running.signed("/Tables")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_is_chosen_in_the_handshake() {
    let running = start(Limits { drain_for_max: Duration::from_millis(200), ..Limits::default() }).await;
    let mut stream = running.connect(&[b"h2", b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("sent");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.expect("a frame");
    assert_eq!(frame[3], 4, "the server's settings come first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bearer_tokens_are_judged() {
    let running = start(Limits::default()).await;
    let mut stream = running.connect(&[]).await;
    for (token, status, code) in [
        (running.token("https://storage.azure.com", 60), 200, ""),
        (running.token("https://devstoreaccount1.table.core.windows.net", 60), 200, ""),
        (running.token("https://other.table.core.windows.net", 60), 403, "AuthenticationFailed"),
        (running.token("https://storage.azure.com", -1), 403, "AuthenticationFailed"),
        ("nonsense".to_owned(), 400, "InvalidAuthenticationInfo"),
    ] {
        let answer = ask(&mut stream, &running.borne(&token)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(code), "{answer}");
        assert!(!answer.contains(&token), "a token is a secret");
    }
    let anonymous =
        format!("GET {ROOT}/Tables HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2019-02-02\r\n\r\n");
    let answer = ask(&mut stream, &anonymous).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer authorization_uri=https://"), "{answer}");
    // The same token on a connection that is not encrypted is refused.
    let headers = [
        ("host", "localhost"),
        ("x-ms-version", "2019-02-02"),
        ("authorization", &format!("Bearer {}", running.token("https://storage.azure.com", 60))),
    ];
    let answer = running.stamp.send_raw("GET", &format!("{ROOT}/Tables"), &headers, "").await;
    let answer = answer.expect_error(403, "AuthenticationFailed");
    assert!(answer.body.contains("not allowed with HTTP"), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_handshake_are_dropped() {
    let limits = Limits { header_read_for_max: Duration::from_millis(300), ..Limits::default() };
    let running = start(limits).await;
    for start in ["", "\x16", "\x16\x03\x01", "\0GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        stream.write_all(start.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(Duration::from_secs(5), read).await;
        assert!(ended.is_ok(), "{start:?} is waited for");
        assert!(!answer.starts_with(b"HTTP"), "{start:?} is answered in the clear");
    }
    // Plain HTTP once got a broken handshake. It gets one answer, whatever the request, and nothing of it is
    // looked at.
    let plain = running.stamp.signed_headers("GET", &format!("{ROOT}/Tables"), &[]);
    let headers: String =
        plain.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().expect("text"))).collect();
    for request in [
        format!("GET {ROOT}/Tables HTTP/1.1\r\n{headers}\r\n"),
        format!("PUT {ROOT}/box/a HTTP/1.1\r\ncontent-length: 500000\r\n\r\n{}", "x".repeat(500_000)),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ] {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(5), read).await.expect("in time").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains("\r\nx-ms-error-code: AccountRequiresHttps\r\n"), "{answer}");
        assert!(answer.ends_with("</Error>") && answer.contains("use https in the address"), "{answer}");
    }
    // Others are served meanwhile, and half a handshake does not hold up a stop.
    let _half = TcpStream::connect(running.address).await.expect("a connection");
    running.stop.send(()).expect("running");
    tokio::time::timeout(Duration::from_secs(5), running.served).await.expect("in time").expect("stopped");
}
