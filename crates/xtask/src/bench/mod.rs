//! Durable insert and point get, side by side with the bare server, on one machine in one run.
//!
//! Rounds alternate between the servers, so that a slow minute of the machine hits both. Both get byte for
//! byte the same requests (but for the `Host` header) and answer with bodies of the same size; what differs
//! is the work.

mod advise;
pub(crate) mod bare_server;
mod blobs;
mod churn;
pub(crate) mod cold_build;
mod disk_usage;
pub(crate) mod engine;
mod groups;
pub(crate) mod measured;
mod pairs;
mod profiles;
mod queries;
pub(crate) mod queues;
pub(crate) mod rounds;
mod routes;
mod shard;
mod stamp;
mod stress;
mod table_tools;

use crate::bench::engine::EngineBenchArguments;
use crate::bench::measured::{MeasuredServer, Programs};
use crate::bench::queues::QueueBenchArguments;
use crate::bench::rounds::{RoundArguments, Series, median};
use crate::client::http_client::HttpClient;
use crate::client::load::{RequestSource, measure};
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{ACCOUNT, Signer, date_now};
use crate::{Outcome, workspace};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TABLE: &str = "bench";
const ENTITY_SIZE_BYTES: usize = 1024;
const PARTITION_COUNT: u64 = 64;
const SIGN_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How many ready-made point gets a round cycles through.
const GET_REQUEST_COUNT: usize = 8192;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    rounds: RoundArguments,
    #[command(flatten)]
    server: MeasuredServer,
    /// Fail if inserts per second are below this percentage of the bare server's.
    #[arg(long)]
    insert_percent_min: Option<f64>,
    /// Fail if point gets per second are below this percentage of the bare server's.
    #[arg(long)]
    get_percent_min: Option<f64>,
    /// Seed of the keys that are read.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    queues: QueueBenchArguments,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Millions of entities through the partition layer, in process: memory, restarts, reads, changes of
    /// ranges.
    Engine(EngineBenchArguments),
    /// Queries on a table of 1,000,000 entities beside the same on one of 10,000.
    Queries(queries::QueryArguments),
    /// Group transactions of 100 inserts beside single inserts.
    Groups(groups::GroupArguments),
    /// What a build in an empty target folder costs, and which packages most of it.
    ColdBuild(cold_build::ColdBuildArguments),
    /// The server of the release profile beside that of the dist profile.
    Profiles(profiles::ProfileArguments),
    /// Blobs: small and large ones beside the bare server and the disk, memory, listings, space that comes
    /// back.
    Blobs(blobs::BlobArguments),
    /// Two builds of the server side by side, in short slots that alternate.
    Pairs(pairs::PairArguments),
    /// Growth and churn: what deletions, overwrites and a steady flow leave behind.
    Churn(churn::ChurnArguments),
    /// What a route of a shard map costs.
    Routes,
    /// What a fence costs a write to a Postgres shard, and how fast rows move between two.
    Shard(shard::ShardBenchArguments),
    /// The load test `larimar stress` beside the bench's own clients; with --peer against the peer emulator,
    /// too.
    Stress(stress::StressArguments),
    /// A stamp beside its store: inserts and large blobs, and the store's own creations.
    Stamp(stamp::StampBenchArguments),
    /// Exports and imports of whole tables: entities a second.
    TableTools(table_tools::TableToolsArguments),
    /// The design that `larimar advise` proposes beside the present one.
    Advise(advise::AdviseArguments),
}

impl BenchArguments {
    /// A run so short that it only shows that the bench still works.
    fn smoke(bin: PathBuf) -> Self {
        Self {
            part: None,
            rounds: RoundArguments::smoke(),
            server: MeasuredServer::smoke(bin),
            insert_percent_min: None,
            get_percent_min: None,
            seed: 1,
            queues: QueueBenchArguments::smoke(),
        }
    }
}

/// Every bench, so short that it only shows that it still works.
pub(crate) fn smoke(bin: &Path) -> Outcome<()> {
    run(&BenchArguments::smoke(bin.to_path_buf()))?;
    queries::run(&queries::QueryArguments::smoke(bin.to_path_buf()))?;
    groups::run(&groups::GroupArguments::smoke(bin.to_path_buf()))?;
    blobs::run(&blobs::BlobArguments::smoke(bin.to_path_buf()))?;
    churn::run(&churn::ChurnArguments::smoke(bin.to_path_buf()))?;
    stress::run(&stress::StressArguments::smoke(bin.to_path_buf()))?;
    table_tools::run(&table_tools::TableToolsArguments::smoke(bin.to_path_buf()))?;
    advise::run(&advise::AdviseArguments::smoke(bin.to_path_buf()))
}

pub(crate) fn run(arguments: &BenchArguments) -> Outcome<()> {
    match &arguments.part {
        Some(Part::Engine(engine)) => engine::run(engine),
        Some(Part::Queries(queries)) => queries::run(queries),
        Some(Part::Groups(groups)) => groups::run(groups),
        Some(Part::Blobs(blobs)) => blobs::run(blobs),
        Some(Part::Pairs(pairs)) => pairs::run(pairs),
        Some(Part::Churn(churn)) => churn::run(churn),
        Some(Part::ColdBuild(build)) => cold_build::run(build),
        Some(Part::Profiles(profiles)) => profiles::run(profiles),
        Some(Part::Routes) => routes::run(),
        Some(Part::Shard(shard)) => shard::run(shard),
        Some(Part::Stress(stress)) => stress::run(stress),
        Some(Part::Stamp(stamp)) => stamp::run(stamp),
        Some(Part::TableTools(tools)) => table_tools::run(tools),
        Some(Part::Advise(advise)) => advise::run(advise),
        None => run_server(arguments),
    }
}

fn run_server(arguments: &BenchArguments) -> Outcome<()> {
    let programs = arguments.server.programs()?;
    if !arguments.queues.only_queues {
        run_tables(arguments, &programs)?;
    }
    queues::run(&arguments.rounds, &arguments.queues, &programs)
}

fn run_tables(arguments: &BenchArguments, programs: &Programs) -> Outcome<()> {
    let scratch = workspace::Scratch::create("bench")?;
    let larimar = ServerProcess::start_larimar(&programs.larimar, &scratch.path().join("data"))?;
    let get_size_bytes = prepare(larimar.address)?;
    let bare = ServerProcess::start_bare(&programs.bare, scratch.path(), get_size_bytes)?;

    println!(
        "{} connections, {} rounds of {} s, entities of {ENTITY_SIZE_BYTES} B in {PARTITION_COUNT} partitions, \
         get bodies of {get_size_bytes} B, {} cores, seed {}",
        arguments.rounds.connections,
        arguments.rounds.rounds,
        arguments.rounds.seconds,
        std::thread::available_parallelism()?,
        arguments.seed,
    );
    let mut series = [
        Series::new("bare POST"),
        Series::new("durable insert"),
        Series::new("bare GET"),
        Series::new("point get"),
    ];
    let mut bare_inserts = InsertRequests::new(bare.address);
    let mut inserts = InsertRequests::new(larimar.address);
    let mut random = arguments.seed;
    for round in 0..arguments.rounds.rounds {
        // The order alternates.
        let order = if round % 2 == 0 { [0, 1, 2, 3] } else { [1, 0, 3, 2] };
        for kind in order {
            let measurement = match kind {
                0 => measure(&arguments.rounds.load(bare.address, &bare, 204), &mut bare_inserts)?,
                1 => measure(&arguments.rounds.load(larimar.address, &larimar, 204), &mut inserts)?,
                _ => {
                    let server = if kind == 2 { &bare } else { &larimar };
                    let mut gets = GetRequests::build(server.address, inserts.sent_count.max(1), &mut random);
                    measure(&arguments.rounds.load(server.address, server, 200), &mut gets)?
                }
            };
            series[kind].add(measurement)?;
        }
        let rates: Vec<String> =
            series.iter().map(|one| format!("{} {:.0}/s", one.name, one.last())).collect();
        println!("round {}: {}", round + 1, rates.join(", "));
    }
    report(arguments, &series)?;
    let status = larimar.terminate()?;
    if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
}

/// Creates the table, and tells how large the answer to a point get is.
fn prepare(address: SocketAddr) -> Outcome<usize> {
    let mut client = HttpClient::connect(address, Signer::new())?;
    let no_content = [("Prefer", "return-no-content")];
    let created =
        client.send("POST", "Tables", &no_content, format!("{{\"TableName\":\"{TABLE}\"}}").as_bytes())?;
    if created.status != 204 {
        return Err(format!("create table: {} {}", created.status, created.text()).into());
    }
    let mut body = entity_template();
    let key = Key::of(u64::MAX);
    key.write_into(&mut body);
    let inserted = client.send("POST", TABLE, &no_content, &body)?;
    if inserted.status != 204 {
        return Err(format!("insert: {} {}", inserted.status, inserted.text()).into());
    }
    let found = client.send("GET", &key.target(), &[], b"")?;
    if found.status != 200 {
        return Err(format!("get: {} {}", found.status, found.text()).into());
    }
    let missing = client.send("GET", &Key::of(u64::MAX - 1).target(), &[], b"")?;
    if missing.status != 404 {
        return Err(format!("get of a missing entity: {} {}", missing.status, missing.text()).into());
    }
    Ok(found.body.len())
}

fn report(arguments: &BenchArguments, series: &[Series; 4]) -> Outcome<()> {
    println!(
        "\n{:<16}{:>15} {:>12} {:>12} {:>12} {:>13}",
        "", "median", "p50", "p99", "server time", "generator"
    );
    for one in series {
        one.print();
    }
    let percent = |of: &Series, bare: &Series| {
        let ratios: Vec<f64> =
            of.rates.iter().zip(&bare.rates).map(|(one, bare)| 100.0 * one / bare).collect();
        median(&ratios)
    };
    let insert_percent = percent(&series[1], &series[0]);
    let get_percent = percent(&series[3], &series[2]);
    println!("\ndurable insert: {insert_percent:.1} % of the bare server; point get: {get_percent:.1} %");
    for (name, percent, min) in [
        ("durable insert", insert_percent, arguments.insert_percent_min),
        ("point get", get_percent, arguments.get_percent_min),
    ] {
        if min.is_some_and(|min| percent < min) {
            return Err(format!("{name} is at {percent:.1} %, below {:.1} %", min.unwrap_or_default()).into());
        }
    }
    Ok(())
}

/// The keys of the n-th entity, of fixed width. Row keys are scattered, so inserts don't arrive in key order.
struct Key {
    partition: String,
    row: String,
}

impl Key {
    fn of(number: u64) -> Self {
        let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { partition: format!("p{:02}", number % PARTITION_COUNT), row: format!("{scattered:016x}") }
    }

    fn target(&self) -> String {
        format!("{TABLE}(PartitionKey='{}',RowKey='{}')", self.partition, self.row)
    }

    fn write_into(&self, body: &mut [u8]) {
        body[PARTITION_AT..PARTITION_AT + 3].copy_from_slice(self.partition.as_bytes());
        body[ROW_AT..ROW_AT + 16].copy_from_slice(self.row.as_bytes());
    }
}

const ENTITY_HEAD: &str = r#"{"PartitionKey":"p00","RowKey":"0000000000000000","Count":4711,"Price":12.5,"Active":true,"Total@odata.type":"Edm.Int64","Total":"1234567890123","Data":""#;
const PARTITION_AT: usize = 17;
const ROW_AT: usize = 32;

/// An entity as JSON of exactly [`ENTITY_SIZE_BYTES`]: a few typed properties and a string that fills it up.
fn entity_template() -> Vec<u8> {
    let mut entity = ENTITY_HEAD.as_bytes().to_vec();
    let mut random = 7;
    while entity.len() < ENTITY_SIZE_BYTES - 2 {
        entity.push(b'a' + (base::random::splitmix64(&mut random) % 26) as u8);
    }
    entity.extend_from_slice(b"\"}");
    entity
}

/// Inserts of ever new entities. One signature serves all of them for a minute: it covers neither key nor
/// body.
struct InsertRequests {
    address: SocketAddr,
    signer: Signer,
    head: Vec<u8>,
    signed_at: Instant,
    body: Vec<u8>,
    sent_count: u64,
}

impl InsertRequests {
    fn new(address: SocketAddr) -> Self {
        let mut requests = Self {
            address,
            signer: Signer::new(),
            head: Vec::new(),
            signed_at: Instant::now(),
            body: entity_template(),
            sent_count: 0,
        };
        requests.sign();
        requests
    }

    fn sign(&mut self) {
        let date = date_now();
        let path = format!("/{ACCOUNT}/{TABLE}");
        let authorization = self.signer.authorization("POST", "application/json", &date, &path);
        self.head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n\
             Prefer: return-no-content\r\nx-ms-version: 2019-02-02\r\nx-ms-date: {date}\r\n\
             Authorization: {authorization}\r\nContent-Length: {ENTITY_SIZE_BYTES}\r\n\r\n",
            self.address
        )
        .into_bytes();
        self.signed_at = Instant::now();
    }
}

impl RequestSource for InsertRequests {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        if self.sent_count.is_multiple_of(256) && self.signed_at.elapsed() > SIGN_AGAIN_AFTER {
            self.sign();
        }
        Key::of(self.sent_count).write_into(&mut self.body);
        self.sent_count += 1;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(&self.body);
    }
}

/// Gets of entities that were inserted before, ready-made: a signature covers the key.
struct GetRequests {
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl GetRequests {
    fn build(address: SocketAddr, entity_count: u64, random: &mut u64) -> Self {
        let signer = Signer::new();
        let date = date_now();
        let requests = (0..GET_REQUEST_COUNT).map(|_| {
            let key = Key::of(base::random::splitmix64(random) % entity_count);
            let path = format!("/{ACCOUNT}/{}", key.target());
            let authorization = signer.authorization("GET", "", &date, &path);
            format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json;odata=minimalmetadata\r\n\
                 DataServiceVersion: 3.0\r\nx-ms-version: 2019-02-02\r\nx-ms-date: {date}\r\n\
                 Authorization: {authorization}\r\n\r\n"
            )
            .into_bytes()
        });
        Self { requests: requests.collect(), next: 0 }
    }
}

impl RequestSource for GetRequests {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.requests[self.next]);
        self.next = (self.next + 1) % self.requests.len();
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTITY_SIZE_BYTES, Key, entity_template};

    #[test]
    fn an_entity_has_its_keys_in_place_and_the_promised_size() {
        let mut entity = entity_template();
        let key = Key::of(3);
        key.write_into(&mut entity);
        assert_eq!(entity.len(), ENTITY_SIZE_BYTES);
        let entity: serde_json::Value = serde_json::from_slice(&entity).expect("the template is JSON");
        assert_eq!(entity["PartitionKey"], "p03");
        assert_eq!(entity["RowKey"], key.row);
    }
}
