//! Traces and metrics of a running server, as a collector gets them; and what is said where they can't be
//! sent.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::program;
use std::process::Stdio;

#[cfg(feature = "otlp")]
mod sent {
    use crate::running::Server;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    const WITHIN: Duration = Duration::from_secs(30);
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const TRACE_BYTES: [u8; 16] = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    const SECRETS: [&str; 3] =
        ["SecretPartition", "SecretRow", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6"];

    /// Answers each delivery with 200, and gives its head and body.
    fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let sender = sender.clone();
                std::thread::spawn(
                    move || while take(socket.as_ref().expect("a socket"), &sender).is_some() {},
                );
            }
        });
        (url, receiver)
    }

    fn take(mut socket: &TcpStream, sender: &std::sync::mpsc::Sender<(String, Vec<u8>)>) -> Option<()> {
        let mut reader = BufReader::new(socket);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        sender.send((head, body)).ok()?;
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()
    }

    fn has(body: &[u8], part: &[u8]) -> bool {
        body.windows(part.len()).any(|window| window == part)
    }

    /// Asks for an entity that is not there.
    fn get(server: &Server, headers: &str) {
        let address = server.sas("table");
        let (host, rest) =
            address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a path");
        let (account, token) = rest.split_once('?').expect("a signature");
        let mut connection = TcpStream::connect(host).expect("a connection");
        let one = "People(PartitionKey='SecretPartition',RowKey='SecretRow')";
        let request = format!(
            "GET /{account}/{one}?{token} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        );
        connection.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }

    #[test]
    fn a_collector_gets_sampled_requests_and_metrics_and_nothing_secret() {
        let (url, deliveries) = collector();
        let folder = tempfile::tempdir().unwrap();
        let flags = ["--in-memory", "--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=0"];
        let otlp = format!("--otlp={url}");
        let of_otlp = [otlp.as_str(), "--otlp-one-in=0", "--otlp-metrics-every=2"];
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=mine");
        let server = Server::start(folder.path(), &[&flags[..], &of_otlp].concat(), &[headers]);
        get(&server, "");
        get(&server, &format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-00\r\n"));
        get(&server, &format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"));
        let (mut spans, mut metrics) = (0, 0);
        while spans == 0 || metrics == 0 {
            let (head, body) = deliveries.recv_timeout(WITHIN).expect("a delivery");
            assert!(head.to_ascii_lowercase().contains("x-tenant: mine"), "{head}");
            assert!(SECRETS.iter().all(|secret| !has(&body, secret.as_bytes())));
            if head.starts_with("POST /v1/traces ") {
                spans += body.windows(16).filter(|window| *window == TRACE_BYTES).count();
                assert!(has(&body, b"table GetEntity") && has(&body, b"NotFound"));
            } else {
                assert!(head.starts_with("POST /v1/metrics "), "{head}");
                assert!(has(&body, b"larimar_requests_total"));
                metrics += 1;
            }
        }
        assert_eq!(spans, 1, "only the one that its client sampled");
    }
}

#[test]
fn what_can_not_be_used_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = |url: &str, headers: &str| {
        let mut command = program(folder.path(), &["serve", "--in-memory", &format!("--otlp={url}")]);
        command.env("OTEL_EXPORTER_OTLP_HEADERS", headers).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run("collector:4318", "");
    assert!(code == Some(2) && text.contains("--otlp") && text.contains("http://"), "{text}");
    if cfg!(feature = "otlp") {
        let (code, text) = run("http://127.0.0.1:9", "secret");
        assert!(code == Some(2) && text.contains("entry 1 of OTEL_EXPORTER_OTLP_HEADERS"), "{code:?} {text}");
        assert!(!text.contains("secret"), "{text}");
    } else {
        let (code, text) = run("http://127.0.0.1:9", "");
        assert!(code == Some(2) && text.contains("--features otlp"), "{code:?} {text}");
    }
}
