//! The Blob service measured: small and large puts and gets beside the bare server and the disk, memory of
//! very large blobs, pages of listings by the container's length, and space that comes back.
//!
//! Each part starts a server of its own on a new folder. A part that misses what it is measured by is printed
//! as such; the run fails only where a bound was asked for with `--check`.

mod listing;
mod memory;
mod space;
mod speed;

use crate::bench::measured::MeasuredServer;
use crate::bench::rounds::RoundArguments;
use crate::client::load::RequestSource;
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use crate::client::shared_key::{ServiceRequest, Signer, date_now};
use crate::{Outcome, workspace};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(super) const CONTAINER: &str = "bench";
pub(super) const CONTENT_TYPE: &str = "application/octet-stream";
/// Makes a blob of a put.
pub(super) const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

#[derive(clap::Args)]
pub(crate) struct BlobArguments {
    /// Only these parts.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Of small and large blobs; the connections are those of small ones.
    #[command(flatten)]
    rounds: RoundArguments,
    /// Bytes of a small blob; the bound is for 4 KiB.
    #[arg(long, default_value_t = 4096)]
    small_size_bytes: usize,
    /// Connections of large puts and gets.
    #[arg(long, default_value_t = 4)]
    large_connections: usize,
    /// MiB of the blob of which memory is measured.
    #[arg(long, default_value_t = 4096)]
    memory_mib: u64,
    /// Blobs of the large container that is listed.
    #[arg(long, default_value_t = 1_000_000)]
    listed_blobs: u64,
    /// Times that each page of a listing is asked for.
    #[arg(long, default_value_t = 31)]
    listed_pages: usize,
    /// MiB of the disk budget: half of it is live data, ten times as much is written.
    #[arg(long, default_value_t = 2048)]
    budget_mib: u64,
    /// Seconds that space may take to come back after the last write.
    #[arg(long, default_value_t = 180)]
    settled_within: u64,
    #[command(flatten)]
    server: MeasuredServer,
    /// Fail if a part misses its bound.
    #[arg(long)]
    check: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Part {
    Small,
    Large,
    Memory,
    Listing,
    Space,
}

impl BlobArguments {
    /// A run so short that it only shows that the bench still works.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        Self {
            only: Vec::new(),
            rounds: RoundArguments::smoke(),
            small_size_bytes: 4096,
            large_connections: 4,
            memory_mib: 64,
            listed_blobs: 20_000,
            listed_pages: 9,
            budget_mib: 64,
            // So little is mostly what an open extent may keep: it won't come back.
            settled_within: 2,
            server: MeasuredServer::smoke(bin),
            check: false,
        }
    }
}

/// What was measured against what it should be.
struct Verdict {
    what: String,
    holds: bool,
}

pub(crate) fn run(arguments: &BlobArguments) -> Outcome<()> {
    let programs = arguments.server.programs()?;
    let mut verdicts = Vec::new();
    for part in [Part::Small, Part::Large, Part::Memory, Part::Listing, Part::Space] {
        if !arguments.only.is_empty() && !arguments.only.contains(&part) {
            continue;
        }
        let scratch = workspace::Scratch::create("blob-bench")?;
        let server = ServerProcess::start_larimar(&programs.larimar, &scratch.path().join("data"))?;
        let bench = Bench {
            arguments,
            bare_program: &programs.bare,
            address: server.blob_address.ok_or("the server has no blob service")?,
            server,
            folder: scratch.path().to_path_buf(),
        };
        bench.connect()?.expect("PUT", CONTAINER, &[("restype", "container")], &[], b"", &[201])?;
        verdicts.extend(match part {
            Part::Small => speed::run_small(&bench)?,
            Part::Large => speed::run_large(&bench)?,
            Part::Memory => memory::run(&bench)?,
            Part::Listing => listing::run(&bench)?,
            Part::Space => space::run(&bench)?,
        });
        let status = bench.server.terminate()?;
        if !status.success() {
            return Err(format!("the server ended with {status}").into());
        }
    }
    println!();
    for verdict in &verdicts {
        println!("{} {}", if verdict.holds { "holds: " } else { "MISSED:" }, verdict.what);
    }
    match verdicts.iter().filter(|verdict| !verdict.holds).count() {
        missed if arguments.check && missed > 0 => Err(format!("{missed} bounds were missed").into()),
        _ => Ok(()),
    }
}

/// What a part works with.
struct Bench<'a> {
    arguments: &'a BlobArguments,
    bare_program: &'a Path,
    server: ServerProcess,
    address: SocketAddr,
    folder: PathBuf,
}

impl Bench<'_> {
    fn connect(&self) -> Outcome<ServiceClient> {
        Ok(ServiceClient::connect(self.address, CONTENT_TYPE)?)
    }
}

/// Ready-made requests with one body for all of them, each head used in its turn: the load generator signs
/// nothing.
pub(in crate::bench) struct Requests {
    heads: Vec<Vec<u8>>,
    body: Vec<u8>,
    next: usize,
}

impl Requests {
    pub(in crate::bench) fn puts(
        address: SocketAddr,
        paths: impl Iterator<Item = String>,
        body: Vec<u8>,
    ) -> Self {
        Self::build(address, "PUT", paths, &[BLOCK_BLOB], body)
    }

    pub(in crate::bench) fn gets(address: SocketAddr, paths: impl Iterator<Item = String>) -> Self {
        Self::build(address, "GET", paths, &[], Vec::new())
    }

    pub(super) fn build(
        address: SocketAddr,
        verb: &str,
        paths: impl Iterator<Item = String>,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Self {
        let (signer, date) = (Signer::new(), date_now());
        let content_type = if body.is_empty() { "" } else { CONTENT_TYPE };
        let heads = paths.map(|path| {
            let path = format!("{CONTAINER}/{path}");
            let request = ServiceRequest { verb, path: &path, parameters: &[], headers, content_type };
            signer.service_request(address, &date, &request, body.len() as u64).into_bytes()
        });
        Self { heads: heads.collect(), body, next: 0 }
    }
}

impl RequestSource for Requests {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.heads[self.next % self.heads.len()]);
        out.extend_from_slice(&self.body);
        self.next += 1;
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
