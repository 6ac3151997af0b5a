//! Rows of one partition, put and deleted in groups of a hundred, and a look for the first of them. Their
//! text hardly compresses, so that the space that they take is that of real rows.

use crate::Outcome;
use crate::client::content::content;
use crate::client::http_client::{Answer, HttpClient};
use crate::client::shared_key::Signer;
use base::random::splitmix64;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) const TABLE: &str = "churn";
pub(super) const GROUP_ROWS: u64 = 100;
const WRITER_COUNT: usize = 4;

/// What a group does to each of its rows.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Puts it, there or not, with so many bytes of text.
    Put {
        text_size: usize,
    },
    /// Inserts it, which must not be there, with so many bytes of text.
    Insert {
        text_size: usize,
    },
    Delete,
}

/// Texts of rows are parts of a text of so many characters.
const TEXTS_SIZE: usize = 1 << 20;
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

/// A text in which no part comes again.
static TEXTS: LazyLock<String> = LazyLock::new(|| {
    content(1, TEXTS_SIZE).into_iter().map(|byte| char::from(LETTERS[usize::from(byte % 64)])).collect()
});

/// The text of a row, another one of each row.
fn text_of(row: u64, size: usize) -> &'static str {
    let mut state = row;
    let from = splitmix64(&mut state) % (TEXTS_SIZE - size) as u64;
    &TEXTS[from as usize..][..size]
}

/// One connection.
pub(super) struct TableClient {
    http: HttpClient,
}

impl TableClient {
    pub(super) fn connect(address: SocketAddr) -> Outcome<Self> {
        Self::connect_as(address, Signer::new())
    }

    pub(super) fn connect_as(address: SocketAddr, signer: Signer) -> Outcome<Self> {
        Ok(Self { http: HttpClient::connect(address, signer)? })
    }

    pub(super) fn create_table(&mut self) -> Outcome<()> {
        let body = format!("{{\"TableName\":\"{TABLE}\"}}");
        let created = self.http.send("POST", "Tables", &[], body.as_bytes())?;
        match created.status {
            201 => Ok(()),
            status => Err(format!("create table: {status} {}", created.text()).into()),
        }
    }

    /// Changes up to a hundred rows of a partition at once. A row that is to be deleted must be there.
    pub(super) fn change(&mut self, partition: &str, rows: Range<u64>, change: Change) -> Outcome<()> {
        let base = self.http.base_url();
        let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
        for row in rows.clone() {
            let target = format!("{base}/{TABLE}(PartitionKey='{partition}',RowKey='r{row:010}')");
            body.push_str(
                "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
            );
            match change {
                Change::Insert { text_size } => {
                    body.push_str(&format!(
                        "POST {base}/{TABLE} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"r{row:010}\",\"Number\":{row},\"Text\":\"{}\"}}\r\n",
                        text_of(row, text_size)
                    ));
                }
                Change::Put { text_size } => {
                    body.push_str(&format!(
                        "PUT {target} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{{\"Number\":{row},\"Text\":\"{}\"}}\r\n",
                        text_of(row, text_size)
                    ));
                }
                Change::Delete => {
                    body.push_str(&format!("DELETE {target} HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n"))
                }
            }
        }
        body.push_str("--c--\r\n--b--\r\n");
        let content_type = "multipart/mixed; boundary=b";
        let answer = self.http.send_as(content_type, "POST", "$batch", &[], body.as_bytes())?;
        if answer.status != 202 || answer.text().contains("odata.error") {
            return Err(format!("rows {rows:?}: {} {}", answer.status, answer.text()).into());
        }
        Ok(())
    }

    /// Walks over a partition, page by page; its rows.
    pub(super) fn count(&mut self, partition: &str) -> Outcome<u64> {
        let query = format!("{TABLE}()?$filter=PartitionKey%20eq%20'{partition}'");
        let (mut next, mut rows) = (String::new(), 0);
        loop {
            let answer = self.http.send("GET", &format!("{query}{next}"), &[], b"")?;
            if answer.status != 200 {
                return Err(format!("{query}: {} {}", answer.status, answer.text()).into());
            }
            rows += answer.text().matches("\"RowKey\":").count() as u64;
            match continuation(&answer) {
                Some(continued) => next = continued,
                None => return Ok(rows),
            }
        }
    }

    /// Looks for the first row of a partition.
    pub(super) fn first(&mut self, partition: &str) -> Outcome<First> {
        let query = format!("{TABLE}()?$filter=PartitionKey%20eq%20'{partition}'&$top=1");
        let (mut next, mut requests, began_at) = (String::new(), 0, Instant::now());
        loop {
            let answer = self.http.send("GET", &format!("{query}{next}"), &[], b"")?;
            requests += 1;
            if answer.status != 200 {
                return Err(format!("{query}: {} {}", answer.status, answer.text()).into());
            }
            let body: serde_json::Value = serde_json::from_slice(&answer.body)?;
            let number = body["value"][0]["Number"].as_u64();
            match (number, continuation(&answer)) {
                (None, Some(continued)) => next = continued,
                (number, _) => return Ok(First { number, requests, took_for: began_at.elapsed() }),
            }
        }
    }
}

/// What asks for the next page, if there is one.
fn continuation(answer: &Answer) -> Option<String> {
    let partition = answer.header("x-ms-continuation-nextpartitionkey")?;
    let row = answer.header("x-ms-continuation-nextrowkey").map(|key| format!("&NextRowKey={key}"));
    Some(format!("&NextPartitionKey={partition}{}", row.unwrap_or_default()))
}

/// The answer to a look for the first row.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) number: Option<u64>,
    pub(super) requests: u64,
    pub(super) took_for: Duration,
}

/// Changes many rows over several connections; rows a second.
pub(super) fn change_all(
    address: SocketAddr,
    partition_of: impl Fn(u64) -> String + Sync,
    rows: Range<u64>,
    change: Change,
) -> Outcome<f64> {
    let began_at = Instant::now();
    let next = AtomicU64::new(rows.start);
    let write = || -> Outcome<()> {
        let mut client = TableClient::connect(address)?;
        loop {
            let from = next.fetch_add(GROUP_ROWS, Ordering::Relaxed);
            if from >= rows.end {
                return Ok(());
            }
            client.change(&partition_of(from), from..rows.end.min(from + GROUP_ROWS), change)?;
        }
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..WRITER_COUNT).map(|_| scope.spawn(|| write().map_err(|error| error.to_string()))).collect();
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().map_err(|_| "a writer panicked".to_owned())?)
    })?;
    Ok((rows.end - rows.start) as f64 / began_at.elapsed().as_secs_f64())
}
