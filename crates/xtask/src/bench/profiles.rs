//! The server as `release` builds it beside the one of `dist`: inserts, point gets and small puts in turns,
//! so that a slow minute of the machine hits both.
//!
//! Each server has a folder of its own on the same disk. A ratio is taken per round, and of these the median.

use super::blobs::{BLOCK_BLOB, CONTAINER, CONTENT_TYPE, Requests};
use super::{GetRequests, InsertRequests, Series, median, prepare};
use crate::bench::measured::Profile;
use crate::client::content::content;
use crate::client::load::{Load, RequestSource, measure};
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use crate::{Outcome, workspace};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `release` may be so much slower than `dist`.
const SLOWER_PERCENT_MAX: f64 = 15.0;
const PUT_SIZE_BYTES: usize = 4096;
/// Blobs of a round before it starts over.
const PUT_COUNT: u64 = 100_000;

#[derive(clap::Args)]
pub(crate) struct ProfileArguments {
    /// Rounds; the medians are over them.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds measured per round and kind.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// The first server, else this checkout's, built now with `release`.
    #[arg(long)]
    release_bin: Option<PathBuf>,
    /// The second server, else this checkout's, built now with `dist`.
    #[arg(long)]
    dist_bin: Option<PathBuf>,
}

/// One of the two servers and what was asked of it.
struct Side {
    server: ServerProcess,
    blob_address: SocketAddr,
    inserts: InsertRequests,
    /// Inserts, gets, puts.
    series: [Series; 3],
}

impl Side {
    fn start(binary: &std::path::Path, folder: &std::path::Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let server = ServerProcess::start_larimar(binary, &folder.join("data"))?;
        prepare(server.address)?;
        let blob_address = server.blob_address.ok_or("the server has no blob service")?;
        ServiceClient::connect(blob_address, CONTENT_TYPE)?.expect(
            "PUT",
            CONTAINER,
            &[("restype", "container")],
            &[],
            b"",
            &[201],
        )?;
        let inserts = InsertRequests::new(server.address);
        let series = ["durable insert", "point get", "put of 4 KiB"].map(Series::new);
        Ok(Side { server, blob_address, inserts, series })
    }

    fn measure(&mut self, arguments: &ProfileArguments, kind: usize, round: usize) -> Outcome<()> {
        let load = |address, expected_status| Load {
            address,
            connection_count: arguments.connections,
            warm_up_for: Duration::from_millis(500),
            measure_for: Duration::from_secs(arguments.seconds),
            expected_status,
            server_process_id: Some(self.server.id()),
        };
        let mut gets;
        let mut puts;
        let (load, requests): (Load, &mut dyn RequestSource) = match kind {
            0 => (load(self.server.address, 204), &mut self.inserts),
            1 => {
                // The same keys for both sides.
                let mut random = round as u64;
                let count = self.inserts.sent_count.max(1);
                gets = GetRequests::build(self.server.address, count, &mut random);
                (load(self.server.address, 200), &mut gets)
            }
            _ => {
                let paths = (0..PUT_COUNT)
                    .map(|number| format!("{round}/{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
                puts = Requests::build(
                    self.blob_address,
                    "PUT",
                    paths,
                    &[BLOCK_BLOB],
                    content(7, PUT_SIZE_BYTES),
                );
                (load(self.blob_address, 201), &mut puts)
            }
        };
        self.series[kind].add(measure(&load, requests)?)
    }
}

pub(crate) fn run(arguments: &ProfileArguments) -> Outcome<()> {
    let binary = |given: &Option<PathBuf>, profile: Profile| match given {
        Some(binary) => Ok(binary.clone()),
        None => profile.build("larimar"),
    };
    let binaries =
        [binary(&arguments.release_bin, Profile::Release)?, binary(&arguments.dist_bin, Profile::Dist)?];
    let scratch = workspace::Scratch::create("bench-profiles")?;
    let mut sides = [
        Side::start(&binaries[0], &scratch.path().join("release"))?,
        Side::start(&binaries[1], &scratch.path().join("dist"))?,
    ];
    println!(
        "{} connections, {} rounds of {} s in turns",
        arguments.connections, arguments.rounds, arguments.seconds
    );
    for round in 0..arguments.rounds {
        for kind in 0..3 {
            // Who goes first alternates.
            let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for side in order {
                sides[side].measure(arguments, kind, round)?;
            }
        }
    }
    let mut missed = 0;
    for kind in 0..3 {
        let [release, dist] = [&sides[0].series[kind], &sides[1].series[kind]];
        let ratios: Vec<f64> =
            release.rates.iter().zip(&dist.rates).map(|(one, whole)| 100.0 * (1.0 - one / whole)).collect();
        let slower = median(&ratios);
        let holds = slower <= SLOWER_PERCENT_MAX;
        missed += usize::from(!holds);
        println!(
            "{} {}: release {:.0}/s, {:.1} µs of the server's processor time each; dist {:.0}/s, {:.1} µs; release is \
             {slower:.1} % slower ({SLOWER_PERCENT_MAX} %), rounds {:.1?}",
            if holds { "holds: " } else { "MISSED:" },
            release.name,
            median(&release.rates),
            median(&release.server_us),
            median(&dist.rates),
            median(&dist.server_us),
            ratios,
        );
    }
    for side in sides {
        let status = side.server.terminate()?;
        if !status.success() {
            return Err(format!("a server ended with {status}").into());
        }
    }
    if missed == 0 { Ok(()) } else { Err(format!("{missed} bounds were missed").into()) }
}
