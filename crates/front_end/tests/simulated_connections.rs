//! `--simulate` on real sockets: connections that are reset before and after the work, and bodies that break
//! off.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod stamp;

use front_end::{Simulation, parse_rule_file};
use stamp::Stamp;
use stamp::listening::{Running, Service, read_answer};
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn start() -> (Running, Arc<Simulation>) {
    let simulation = Arc::new(Simulation::new(parse_rule_file("").expect("good rules")));
    let given = simulation.clone();
    let stamp = Stamp::with_settings(move |settings| settings.simulation = Some(given)).await;
    stamp.create_table("Tasks").await;
    (Running::over(stamp, Service::Table).await, simulation)
}

const ENTITY: &str = r#"{"PartitionKey":"p","RowKey":"r"}"#;

async fn send(running: &Running, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    stream.write_all(running.request(method, path, body).as_bytes()).await.expect("sent");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_reset_before_or_after_the_work() {
    let (running, simulation) = start().await;
    for (when, is_done) in [("before", false), ("after", true)] {
        let rules = format!("[[fault]]\noperation = \"InsertEntity\"\ntimes = 1\nreset = \"{when}\"");
        simulation.replace_settings(parse_rule_file(&rules).expect("good rules"));
        let mut stream = send(&running, "POST", "/Tasks", ENTITY).await;
        let mut answer = Vec::new();
        let error = stream.read_to_end(&mut answer).await.expect_err(when);
        assert_eq!((error.kind(), answer.len()), (ErrorKind::ConnectionReset, 0), "{when}");
        let found = running.stamp.send("GET", "/Tasks(PartitionKey='p',RowKey='r')", &[], "").await;
        assert_eq!(found.status.as_u16(), if is_done { 200 } else { 404 }, "{when}");
    }
    // A client that tries again gets an answer.
    let mut stream = send(&running, "POST", "/Tasks", ENTITY).await;
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 409"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_breaks_off_after_so_many_bytes() {
    let (running, simulation) = start().await;
    running.stamp.insert("Tasks", ENTITY).await.expect(204);
    let mut whole = send(&running, "GET", "/Tasks", "").await;
    let whole = read_answer(&mut whole).await;
    let (head, body) = whole.split_once("\r\n\r\n").expect("a head");
    let length = head.lines().find(|line| line.starts_with("content-length")).expect("a length").to_owned();
    for size in [0, 10] {
        let rules = format!("[[fault]]\noperation = \"QueryEntities\"\ncut_body_bytes = {size}");
        simulation.replace_settings(parse_rule_file(&rules).expect("good rules"));
        let mut stream = send(&running, "GET", "/Tasks", "").await;
        let mut answer = Vec::new();
        // However the connection ends.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).expect("text");
        let (head, part) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&length) && head.contains("x-larimar-simulated: fault fault-1"), "{head}");
        assert_eq!(part, &body[..size]);
    }
}
