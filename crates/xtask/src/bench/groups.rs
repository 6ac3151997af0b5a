//! Group transactions of 100 inserts beside single inserts: entities of the same size, the same number of
//! connections.

use super::{ENTITY_SIZE_BYTES, InsertRequests, Key, PARTITION_COUNT, entity_template, median, prepare};
use crate::bench::measured::MeasuredServer;
use crate::client::http_client::HttpClient;
use crate::client::load::{Load, RequestSource, measure};
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{ACCOUNT, Signer, date_now};
use crate::{Outcome, workspace};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const GROUP_ROWS: u64 = 100;
const TABLE: &str = "groups";
const SIGN_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Groups whose last entity is read back after the run.
const CHECKED_GROUP_COUNT: u64 = 200;

#[derive(clap::Args)]
pub(crate) struct GroupArguments {
    /// Rounds; the medians are over them.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds measured per round and kind.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    #[command(flatten)]
    server: MeasuredServer,
    /// Fail if groups write fewer entities per second than so many times single inserts.
    #[arg(long)]
    times_min: Option<f64>,
}

impl GroupArguments {
    /// A run so short that it only shows that the bench still works.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        Self { rounds: 1, seconds: 1, connections: 64, server: MeasuredServer::smoke(bin), times_min: None }
    }
}

pub(crate) fn run(arguments: &GroupArguments) -> Outcome<()> {
    let programs = arguments.server.programs()?;
    let scratch = workspace::Scratch::create("bench-groups")?;
    let server = ServerProcess::start_larimar(&programs.larimar, &scratch.path().join("data"))?;
    prepare(server.address)?;
    let mut client = HttpClient::connect(server.address, Signer::new())?;
    let created = client.send("POST", "Tables", &[], format!("{{\"TableName\":\"{TABLE}\"}}").as_bytes())?;
    if created.status != 201 {
        return Err(format!("create table: {} {}", created.status, created.text()).into());
    }
    let load = |expected_status| Load {
        address: server.address,
        connection_count: arguments.connections,
        warm_up_for: Duration::from_millis(500),
        measure_for: Duration::from_secs(arguments.seconds),
        expected_status,
        server_process_id: None,
    };
    let mut inserts = InsertRequests::new(server.address);
    let mut groups = GroupRequests::new(server.address);
    let (mut single_rates, mut group_rates) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        // Who goes first alternates.
        for kind in [round % 2, (round + 1) % 2] {
            if kind == 0 {
                single_rates.push(measure(&load(204), &mut inserts)?.operations_per_second);
            } else {
                let rate = measure(&load(202), &mut groups)?.operations_per_second;
                group_rates.push(rate * GROUP_ROWS as f64);
            }
        }
        println!(
            "round {}: single {:.0}/s, groups {:.0}/s",
            round + 1,
            single_rates[round],
            group_rates[round]
        );
    }
    // A failed group is answered with 202 as well: what was written is read back.
    let last = groups.sent_count;
    for index in 0..CHECKED_GROUP_COUNT.min(last) {
        let group = last - 1 - index * (last / CHECKED_GROUP_COUNT.min(last));
        let key = group_key(group, GROUP_ROWS - 1);
        let target = format!("{TABLE}(PartitionKey='{}',RowKey='{}')", key.partition, key.row);
        let found = client.send("GET", &target, &[], b"")?;
        if found.status != 200 {
            return Err(format!("group {group} of {last} is not there: {}", found.text()).into());
        }
    }
    let ratios: Vec<f64> =
        group_rates.iter().zip(&single_rates).map(|(group, single)| group / single).collect();
    let times = median(&ratios);
    println!(
        "\n{} connections, entities of {ENTITY_SIZE_BYTES} B: single inserts {:.0} entities/s, groups of {GROUP_ROWS} {:.0} entities/s: {times:.1} times",
        arguments.connections,
        median(&single_rates),
        median(&group_rates)
    );
    let status = server.terminate()?;
    if !status.success() {
        return Err(format!("the server ended with {status}").into());
    }
    match arguments.times_min {
        Some(min) if times < min => Err(format!("{times:.1} times, below {min}").into()),
        _ => Ok(()),
    }
}

/// The key of a row of a group: all rows of a group are in one partition, groups in each partition in turn.
fn group_key(group: u64, row: u64) -> Key {
    let number = (group / PARTITION_COUNT * GROUP_ROWS + row) * PARTITION_COUNT + group % PARTITION_COUNT;
    Key::of(number)
}

/// Group transactions of ever new entities, by one template.
struct GroupRequests {
    address: SocketAddr,
    head: Vec<u8>,
    signed_at: Instant,
    body: Vec<u8>,
    /// Where each entity starts in the body.
    entities_at: Vec<usize>,
    sent_count: u64,
}

impl GroupRequests {
    fn new(address: SocketAddr) -> Self {
        let (entity, mut entities_at) = (entity_template(), Vec::new());
        let mut body = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_vec();
        for _ in 0..GROUP_ROWS {
            let head = format!(
                "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST http://{address}/{ACCOUNT}/{TABLE} HTTP/1.1\r\nContent-Type: application/json\r\n\
                 Accept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\n\
                 DataServiceVersion: 3.0\r\n\r\n"
            );
            body.extend_from_slice(head.as_bytes());
            entities_at.push(body.len());
            body.extend_from_slice(&entity);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--c--\r\n--b--\r\n");
        let head = Vec::new();
        let mut requests =
            Self { address, head, signed_at: Instant::now(), body, entities_at, sent_count: 0 };
        requests.sign();
        requests
    }

    fn sign(&mut self) {
        let (date, path) = (date_now(), format!("/{ACCOUNT}/$batch"));
        let content_type = "multipart/mixed; boundary=b";
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

impl RequestSource for GroupRequests {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        if self.signed_at.elapsed() > SIGN_AGAIN_AFTER {
            self.sign();
        }
        for (row, at) in self.entities_at.iter().enumerate() {
            group_key(self.sent_count, row as u64).write_into(&mut self.body[*at..at + ENTITY_SIZE_BYTES]);
        }
        self.sent_count += 1;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(&self.body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_share_no_row_and_no_group_spans_partitions() {
        let mut seen = std::collections::BTreeSet::new();
        for group in 0..3 * PARTITION_COUNT {
            let partition = group_key(group, 0).partition;
            for row in 0..GROUP_ROWS {
                let key = group_key(group, row);
                assert_eq!(key.partition, partition);
                assert!(seen.insert((key.partition, key.row)));
            }
        }
    }
}
