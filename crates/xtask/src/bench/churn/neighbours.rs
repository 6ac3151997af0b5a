//! One account's small requests beside another's many: groups of a hundred rows, which wait for the disk, and
//! scans, which keep the processors busy. How long a get takes, and what the other account still does.

use super::rows::{Change, GROUP_ROWS, TABLE, TableClient};
use super::{Stage, Verdict};
use crate::Outcome;
use crate::client::load::{Load, Measurement, RequestSource, measure};
use crate::client::shared_key::{ACCOUNT, Signer, date_now};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The account whose requests are few and small.
pub(super) const QUIET_ACCOUNT: &str = "quiet";
const PARTITION: &str = "p";
const SIGN_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Connections of the other account, with the most milliseconds that a get may take beside them: half of
/// them, and 99 of a hundred.
const NOISE: [(usize, f64, f64); 2] = [(64, 1.0, 10.0), (256, 2.0, 20.0)];

/// The partition that scans pass over, and its rows.
const SCANNED_PARTITION: &str = "s";
const SCANNED_ROWS: u64 = 5_000;

/// The same read again and again.
struct Reads {
    address: SocketAddr,
    signer: Signer,
    path: String,
    query: &'static str,
    request: Vec<u8>,
    signed_at: Instant,
}

impl Reads {
    /// Gets one row.
    fn of_a_row(address: SocketAddr) -> Self {
        let path = format!("/{QUIET_ACCOUNT}/{TABLE}(PartitionKey='{PARTITION}',RowKey='r{:010}')", 7);
        Self::new(address, Signer::of(QUIET_ACCOUNT), path, "")
    }

    /// Passes over all rows of a partition and returns none.
    fn of_a_partition(address: SocketAddr) -> Self {
        let query = "?$filter=PartitionKey%20eq%20's'%20and%20Number%20lt%200";
        Self::new(address, Signer::new(), format!("/{ACCOUNT}/{TABLE}()"), query)
    }

    fn new(address: SocketAddr, signer: Signer, path: String, query: &'static str) -> Self {
        let signed_at = Instant::now();
        let mut reads = Reads { address, signer, path, query, request: Vec::new(), signed_at };
        reads.sign();
        reads
    }

    fn sign(&mut self) {
        let (path, query, date) = (&self.path, self.query, date_now());
        let authorization = self.signer.authorization("GET", "", &date, path);
        self.request = format!(
            "GET {path}{query} HTTP/1.1\r\nHost: {}\r\nx-ms-version: 2019-02-02\r\nx-ms-date: {date}\r\n\
             Accept: application/json;odata=nometadata\r\nAuthorization: {authorization}\r\n\r\n",
            self.address
        )
        .into_bytes();
        self.signed_at = Instant::now();
    }
}

impl RequestSource for Reads {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        if self.signed_at.elapsed() > SIGN_AGAIN_AFTER {
            self.sign();
        }
        out.extend_from_slice(&self.request);
    }
}

/// Groups of ever new small rows, which cost the server processor time rather than waits for the disk.
struct SmallGroups {
    address: SocketAddr,
    head: Vec<u8>,
    signed_at: Instant,
    body: Vec<u8>,
    /// Where the number of the group stands in the body, once a row.
    numbers_at: Vec<usize>,
    sent_count: u64,
}

impl SmallGroups {
    fn new(address: SocketAddr) -> Self {
        let mut body = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_vec();
        let mut numbers_at = Vec::new();
        for row in 0..GROUP_ROWS {
            let head = format!(
                "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 PUT http://{address}/{ACCOUNT}/{TABLE}(PartitionKey='n',RowKey='"
            );
            body.extend_from_slice(head.as_bytes());
            numbers_at.push(body.len());
            let rest = format!(
                "{:010}-{row:02}') HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{{\"Number\":{row}}}\r\n",
                0
            );
            body.extend_from_slice(rest.as_bytes());
        }
        body.extend_from_slice(b"--c--\r\n--b--\r\n");
        let (head, signed_at) = (Vec::new(), Instant::now());
        let mut groups = SmallGroups { address, head, signed_at, body, numbers_at, sent_count: 0 };
        groups.sign();
        groups
    }

    fn sign(&mut self) {
        let (date, path, content_type) =
            (date_now(), format!("/{ACCOUNT}/$batch"), "multipart/mixed; boundary=b");
        let authorization = Signer::new().authorization("POST", content_type, &date, &path);
        self.head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nx-ms-version: 2019-02-02\r\n\
             x-ms-date: {date}\r\nAuthorization: {authorization}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            self.body.len()
        )
        .into_bytes();
        self.signed_at = Instant::now();
    }
}

impl RequestSource for SmallGroups {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        if self.signed_at.elapsed() > SIGN_AGAIN_AFTER {
            self.sign();
        }
        let number = format!("{:010}", self.sent_count);
        for at in &self.numbers_at {
            self.body[*at..at + number.len()].copy_from_slice(number.as_bytes());
        }
        self.sent_count += 1;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(&self.body);
    }
}

/// Milliseconds of half of the requests, and of 99 of a hundred.
fn quantiles(measured: &Measurement) -> (f64, f64) {
    let at = |quantile| measured.latency_ns.value_at_quantile(quantile) as f64 / 1e6;
    (at(0.5), at(0.99))
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let address = stage.server.address;
    let mut quiet = TableClient::connect_as(address, Signer::of(QUIET_ACCOUNT))?;
    quiet.create_table()?;
    quiet.change(PARTITION, 0..100, Change::Put { text_size: 100 })?;
    let mut noisy = TableClient::connect(address)?;
    noisy.create_table()?;
    for at in (0..SCANNED_ROWS).step_by(GROUP_ROWS as usize) {
        noisy.change(SCANNED_PARTITION, at..at + GROUP_ROWS, Change::Put { text_size: 10 })?;
    }
    let measure_for = Duration::from_secs(stage.arguments.neighbour_seconds);
    let load = |connection_count, expected_status| Load {
        address,
        connection_count,
        warm_up_for: measure_for / 4,
        measure_for,
        expected_status,
        server_process_id: None,
    };
    let mut gets = Reads::of_a_row(address);
    let alone = measure(&load(1, 200), &mut gets)?;
    let (half, most) = quantiles(&alone);
    println!("  a get alone: p50 {half:.3} ms, p99 {most:.3} ms, {:.0}/s", alone.operations_per_second);
    let mut groups = SmallGroups::new(address);
    let mut scans = Reads::of_a_partition(address);
    let mut verdicts = Vec::new();
    for (connections, half_max, most_max) in NOISE {
        let noises: [(&str, u16, &mut (dyn RequestSource + Send)); 2] =
            [("groups", 202, &mut groups), ("scans", 200, &mut scans)];
        for (name, status, noise) in noises {
            let noise_alone = measure(&load(connections, status), noise)?.operations_per_second;
            let (noise, beside) = std::thread::scope(|scope| -> Outcome<(Measurement, Measurement)> {
                let load = &load;
                let measured = |load: Load, source: &mut dyn RequestSource| {
                    measure(&load, source).map_err(|error| error.to_string())
                };
                let noise = scope.spawn(move || measured(load(connections, status), noise));
                let beside = measured(load(1, 200), &mut gets)?;
                let noise = noise.join().map_err(|_| "the load generator panicked")??;
                Ok((noise, beside))
            })?;
            let (half, most) = quantiles(&beside);
            println!(
                "  beside {connections} connections with {name}: p50 {half:.2} ms, p99 {most:.2} ms, {:.0}/s; \
                 {name} {:.0}/s, {noise_alone:.0}/s alone",
                beside.operations_per_second, noise.operations_per_second
            );
            let of = |quantile| format!("a get beside {connections} with {name}, {quantile}");
            verdicts.push(Verdict::at_most(&of("p50"), half, half_max, "ms"));
            verdicts.push(Verdict::at_most(&of("p99"), most, most_max, "ms"));
        }
    }
    // A failed group is answered with 202 as well.
    match TableClient::connect(address)?.first("n")?.number {
        Some(_) => Ok(verdicts),
        None => Err("the groups wrote nothing".into()),
    }
}
