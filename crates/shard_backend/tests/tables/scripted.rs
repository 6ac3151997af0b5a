//! An account whose answers are written beforehand, one a request.

use crate::setup::SCHEMA;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use base::{BoxFuture, Connector, Socket};
use parking_lot::Mutex;
use shard_backend::{Backend, FenceHold, RowKey, Schema, Shardlet, TableBackend, TablePlace};
use shard_map::Epoch;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use storage_client::{
    AccountKey, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Proxies, Settings, Surroundings,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Each connection has the next answer, and ends with it.
struct Scripted(Mutex<VecDeque<&'static str>>);

impl Connector for Scripted {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        let answer = self.0.lock().pop_front();
        Box::pin(async move {
            let answer = answer.ok_or_else(|| io::Error::other("the script is at its end"))?;
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            tokio::spawn(serve(ours, answer));
            Ok(Box::new(theirs) as Box<dyn Socket>)
        })
    }
}

/// Reads a request to the end of its body, and answers it.
async fn serve(mut socket: DuplexStream, answer: &'static str) {
    let mut request = Vec::new();
    let is_whole = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).to_ascii_lowercase();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.map_or(0, |length| length.trim().parse::<usize>().unwrap_or(0));
        (body.len() >= length).then_some(())
    };
    while is_whole(&request).is_none() {
        if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    drop(socket.write_all(answer.as_bytes()).await);
}

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nx-ms-error-code: ResourceNotFound\r\nconnection: close\r\n\
     content-length: 0\r\n\r\n";
const DELETED: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nx-ms-error-code: AuthenticationFailed\r\nconnection: close\r\n\
     content-length: 0\r\n\r\n";

/// Deletes two rows of one partition; whether something of it may be done, if it fails.
async fn delete_two(answers: &[&'static str]) -> Option<bool> {
    let script = Arc::new(Scripted(Mutex::new(answers.iter().copied().collect())));
    let surroundings = Surroundings {
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom::new()),
        spawner: Arc::new(TokioSpawner::current()),
        connector: script.clone(),
    };
    let settings = Settings { proxies: Proxies::none(), retry: retry::Policy::none(), ..Settings::default() };
    let at = TablePlace {
        account: DEVELOPMENT_ACCOUNT_NAME.to_owned(),
        endpoint: "http://account.example:10002".to_owned(),
        key: AccountKey::from_base64(DEVELOPMENT_ACCOUNT_KEY).expect("a key"),
        copies: "larimarshard".to_owned(),
    };
    let schema = Arc::new(Schema::parse(SCHEMA).expect("a schema"));
    let backend = TableBackend::new(at, schema.clone(), settings, surroundings).expect("an address");
    let table = schema.table("countries").expect("it");
    let keys = ["de", "fr"].map(|code| RowKey { values: vec![code.into()] });
    let deleted = backend.delete(table, &Shardlet::all(), FenceHold::Closed(Epoch(1)), &keys).await;
    assert!(script.0.lock().is_empty(), "{deleted:?}");
    deleted.err().map(|error| error.may_be_done())
}

/// If a row of a group is not there, the others are deleted one by one. When that failed on the way, the
/// error said that nothing was done.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_deletions_that_fails_on_the_way_may_be_done() {
    assert_eq!(delete_two(&[NOT_FOUND, DELETED, DELETED]).await, None);
    assert_eq!(delete_two(&[NOT_FOUND, NOT_FOUND, DELETED]).await, None);
    assert_eq!(delete_two(&[NOT_FOUND, DELETED, FORBIDDEN]).await, Some(true));
    assert_eq!(delete_two(&[NOT_FOUND, FORBIDDEN]).await, Some(false));
    assert_eq!(delete_two(&[FORBIDDEN]).await, Some(false));
}
