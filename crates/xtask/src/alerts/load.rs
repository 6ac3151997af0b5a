//! Small loads for faults that only show under one. What always holds: a refused or failed request is no
//! error here, and its status is handed out.

use crate::Outcome;
use crate::client::content::content;
use crate::client::http_client::HttpClient;
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use crate::client::shared_key::Signer;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const TABLE: &str = "alerts";
const CONTAINER: &str = "alerts";

/// One connection to the Table service.
pub(super) struct Rows {
    client: HttpClient,
    next: u64,
}

impl Rows {
    pub(super) fn connect(address: SocketAddr) -> Outcome<Self> {
        Ok(Rows { client: HttpClient::connect(address, Signer::new())?, next: 0 })
    }

    /// Makes the table, unless it is there.
    pub(super) fn prepare(&mut self) -> Outcome<()> {
        let body = format!("{{\"TableName\":\"{TABLE}\"}}");
        let answer =
            self.client.send("POST", "Tables", &[("Prefer", "return-no-content")], body.as_bytes())?;
        if matches!(answer.status, 204 | 409) { Ok(()) } else { Err(answer.text().into()) }
    }

    /// Inserts a row of some bytes into a partition, the next after those of before; the status.
    pub(super) fn insert(&mut self, partition: &str, size: usize) -> Outcome<u16> {
        let (row, value) = (self.next, "v".repeat(size));
        let body = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"V\":\"{value}\"}}");
        self.next += 1;
        let headers = [("Prefer", "return-no-content")];
        Ok(self.client.send("POST", TABLE, &headers, body.as_bytes())?.status)
    }

    /// Gets a row; the status.
    pub(super) fn get(&mut self, partition: &str, row: u64) -> Outcome<u16> {
        let target = format!("{TABLE}(PartitionKey='{partition}',RowKey='{row}')");
        Ok(self.client.send("GET", &target, &[], b"")?.status)
    }
}

/// Inserts rows on many connections for a while.
pub(super) fn insert_for(
    server: &ServerProcess,
    connections: usize,
    size: usize,
    lasts_for: Duration,
) -> Outcome<()> {
    // Of which time no partition was written before.
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    let insert = |number: usize| -> Outcome<()> {
        let (partition, since) = (format!("{run}-{number}"), Instant::now());
        let mut rows = Rows::connect(server.address)?;
        while since.elapsed() < lasts_for {
            rows.insert(&partition, size)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|number| scope.spawn(move || insert(number))).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread has panicked")??;
        }
        Ok(())
    })
}

/// Puts so many blobs of a size; each must be taken.
pub(super) fn put_blobs(server: &ServerProcess, count: u64, size: usize) -> Outcome<()> {
    let address = server.blob_address.ok_or("the server has no blob service")?;
    let mut client = ServiceClient::connect(address, "application/octet-stream")?;
    client.expect("PUT", CONTAINER, &[("restype", "container")], &[], b"", &[201, 409])?;
    for number in 0..count {
        let (path, body) = (format!("{CONTAINER}/{number}"), content(number, size));
        client.expect("PUT", &path, &[], &[("x-ms-blob-type", "BlockBlob")], &body, &[201])?;
    }
    Ok(())
}
