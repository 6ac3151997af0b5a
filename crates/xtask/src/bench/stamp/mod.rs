//! What a stamp costs beside its store: durable inserts and large blobs through one process, and the store's
//! own creations by the same client, in the same run.
//!
//! What always holds: the store's own figures are taken before and after, and their medians count; requests
//! to the store are those that the process says it has sent (`GET /metrics`).

mod store_model;

use super::{InsertRequests, prepare};
use crate::client::load::{Load, Measurement, RequestSource, measure};
use crate::client::service_client::ServiceClient;
use crate::stamp::ceph::{self, Ceph};
use crate::stamp::child::{Service, free_port, wait_for};
use crate::stamp::etcd::{self, Etcd, plain_request};
use crate::{Outcome, workspace};
use base::random::splitmix64;
use bytes::Bytes;
use stamp_stores::{ObjectStoreSettings, StoreSurroundings, open_object_store};
use stamp_streams::ObjectStore;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store_model::Pace;

/// Bytes of an object whose creation is timed: an entity, and what is around it in a part.
const SMALL_OBJECT_SIZE_BYTES: usize = 1536;
const LARGE_SIZE_BYTES: usize = 4 << 20;
const SERVING_WITHIN: Duration = Duration::from_secs(60);
const CONTAINER: &str = "bench";

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    /// A model of a store in this process: 230 creations a second, 12 ms each.
    Model,
    /// Ceph's gateway from Debian's packages.
    Ceph,
}

#[derive(clap::Args)]
pub(crate) struct StampBenchArguments {
    /// Which store.
    #[arg(long, value_enum, default_value_t = StoreKind::Model)]
    store: StoreKind,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Writers at once.
    #[arg(long, default_value_t = 64)]
    writers: usize,
    /// Large blobs, and large objects of the store itself, at once.
    #[arg(long, default_value_t = 8)]
    large_at_once: usize,
    /// The server; without it that of the release profile is built.
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Fail if a figure misses its bound.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &StampBenchArguments) -> Outcome<()> {
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let scratch = workspace::Scratch::create("stamp-bench")?;
    etcd::set_up()?;
    let metadata = Etcd::start(1, scratch.path())?;
    let mut ceph = None;
    let (endpoint, bucket) = match arguments.store {
        StoreKind::Model => {
            let pace = Pace { latency: Duration::from_millis(12), creates_per_second: 230.0 };
            (store_model::start(pace)?, store_model::BUCKET)
        }
        StoreKind::Ceph => {
            ceph::set_up()?;
            let started = Ceph::start(scratch.path())?;
            let address = started.address;
            ceph = Some(started);
            (address, ceph::BUCKET)
        }
    };
    let own = OwnStore::open(endpoint, bucket)?;
    let mut server = Process::start(&binary, &metadata, endpoint, bucket, scratch.path())?;
    let verdicts = compare(arguments, &own, &server)?;
    // Before the stores end.
    server.service.terminate()?;
    drop(ceph);
    for verdict in &verdicts {
        println!("{} {}", if verdict.holds { "holds: " } else { "MISSED:" }, verdict.what);
    }
    match verdicts.iter().filter(|verdict| !verdict.holds).count() {
        missed if arguments.check && missed > 0 => Err(format!("{missed} bounds were missed").into()),
        _ => Ok(()),
    }
}

struct Verdict {
    what: String,
    holds: bool,
}

fn compare(arguments: &StampBenchArguments, own: &OwnStore, server: &Process) -> Outcome<Vec<Verdict>> {
    let seconds = Duration::from_secs(arguments.seconds);
    prepare(server.tables)?;
    let mut inserts = InsertRequests::new(server.tables);
    let mut load =
        |connections| measure(&server.load(server.tables, connections, seconds, 204), &mut inserts);
    let before = own.creates(1, SMALL_OBJECT_SIZE_BYTES, seconds / 2)?;
    let alone = load(1)?;
    let after = own.creates(1, SMALL_OBJECT_SIZE_BYTES, seconds / 2)?;
    let sent_before = server.creates()?;
    let many = load(arguments.writers)?;
    let sent = server.creates()?.saturating_sub(sent_before).max(1);
    let large_before = own.creates(arguments.large_at_once, LARGE_SIZE_BYTES, seconds)?;
    let blobs = server.large_blobs(arguments.large_at_once, seconds)?;
    let large_after = own.creates(arguments.large_at_once, LARGE_SIZE_BYTES, seconds)?;

    let own_p50 = mean(before.p50(), after.p50());
    let insert_p50 = p50(&alone);
    let inserts_each = many.operations_per_second * seconds.as_secs_f64() / sent as f64;
    let own_rate = (large_before.per_second + large_after.per_second) / 2.0;
    let share = 100.0 * blobs.operations_per_second / own_rate;
    println!("store: own creation of {SMALL_OBJECT_SIZE_BYTES} B p50 {:.2} ms", ms(own_p50));
    println!(
        "one writer: p50 {:.2} ms; {} writers: {:.0} inserts/s, p50 {:.1} ms, {sent} creations",
        ms(insert_p50),
        arguments.writers,
        many.operations_per_second,
        ms(p50(&many))
    );
    println!(
        "objects of 4 MiB, {} at once: store {own_rate:.1}/s, blobs {:.1}/s",
        arguments.large_at_once, blobs.operations_per_second
    );
    let over = insert_p50.saturating_sub(own_p50);
    let verdict = |what: String, holds| Verdict { what, holds };
    let mut verdicts = vec![
        verdict(
            format!("insert p50 is {:.2} ms over the store's own creation (3 ms)", ms(over)),
            over <= Duration::from_millis(3),
        ),
        verdict(format!("{inserts_each:.1} inserts a creation (8)"), inserts_each >= 8.0),
        verdict(format!("4 MiB blobs at {share:.0} % of the store's own rate (70)"), share >= 70.0),
    ];
    if arguments.store == StoreKind::Model {
        let rate = many.operations_per_second;
        verdicts.push(verdict(
            format!("{rate:.0} inserts/s of {} writers (2,000)", arguments.writers),
            rate >= 2000.0,
        ));
    }
    Ok(verdicts)
}

fn p50(measurement: &Measurement) -> Duration {
    Duration::from_nanos(measurement.latency_ns.value_at_quantile(0.5))
}

fn mean(one: Duration, other: Duration) -> Duration {
    (one + other) / 2
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The store as the server's own client sees it.
struct OwnStore {
    runtime: tokio::runtime::Runtime,
    objects: Arc<dyn ObjectStore>,
}

/// Creations by that client.
struct OwnRate {
    latencies: Vec<Duration>,
    per_second: f64,
}

impl OwnRate {
    fn p50(&self) -> Duration {
        self.latencies.get(self.latencies.len() / 2).copied().unwrap_or_default()
    }
}

fn variables() -> BTreeMap<String, String> {
    let pairs = [("AWS_ACCESS_KEY_ID", ceph::ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", ceph::SECRET_KEY)];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

impl OwnStore {
    fn open(endpoint: SocketAddr, bucket: &str) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let settings = ObjectStoreSettings {
            endpoint: Some(format!("http://{endpoint}")),
            region: Some(ceph::REGION.to_owned()),
            path_style: Some(true),
            ..ObjectStoreSettings::default()
        };
        let url = format!("s3://{bucket}/own");
        let opened = runtime.block_on(async {
            let surroundings =
                StoreSurroundings { variables: Arc::new(variables()), ..StoreSurroundings::system() };
            open_object_store(&url, &settings, &surroundings).await
        })?;
        Ok(OwnStore { runtime, objects: opened.store })
    }

    /// Creates objects of this size, so many at once, one after the other each.
    fn creates(&self, at_once: usize, size_bytes: usize, lasts_for: Duration) -> Outcome<OwnRate> {
        let mut random = size_bytes as u64;
        let content: Bytes =
            (0..size_bytes).map(|_| splitmix64(&mut random) as u8).collect::<Vec<u8>>().into();
        // No two measurements name the same objects.
        let started = std::time::UNIX_EPOCH.elapsed()?.as_nanos();
        let until = Instant::now() + lasts_for;
        let writer = |number: usize| {
            let (objects, content) = (self.objects.clone(), content.clone());
            async move {
                let mut latencies = Vec::new();
                while Instant::now() < until {
                    let name = format!("{started:x}/{number}/{}", latencies.len());
                    let began_at = Instant::now();
                    let answer = objects.create(&name, content.clone()).await;
                    if answer != stamp::PutAnswer::Created {
                        return Err(format!("the store answers {answer:?} to a creation"));
                    }
                    latencies.push(began_at.elapsed());
                }
                Ok(latencies)
            }
        };
        let began_at = Instant::now();
        let tasks: Vec<_> = (0..at_once).map(|number| self.runtime.spawn(writer(number))).collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(self.runtime.block_on(task)??);
        }
        let per_second = latencies.len() as f64 / began_at.elapsed().as_secs_f64();
        latencies.sort_unstable();
        Ok(OwnRate { latencies, per_second })
    }
}

/// The process of the stamp.
struct Process {
    service: Service,
    tables: SocketAddr,
    blobs: SocketAddr,
    admin: SocketAddr,
}

impl Process {
    fn start(binary: &Path, etcd: &Etcd, endpoint: SocketAddr, bucket: &str, folder: &Path) -> Outcome<Self> {
        let here = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let (tables, blobs, admin) = (here(free_port()?), here(free_port()?), here(free_port()?));
        let members: Vec<_> = etcd.addresses().iter().map(|address| format!("http://{address}")).collect();
        let flags = [
            ("--host", "127.0.0.1".to_owned()),
            ("--table-port", tables.port().to_string()),
            ("--blob-port", blobs.port().to_string()),
            ("--queue-port", free_port()?.to_string()),
            ("--admin-port", admin.port().to_string()),
            ("--admin-token-file", folder.join("tokens").display().to_string()),
            ("--stamp", "bench".to_owned()),
            ("--store", format!("s3://{bucket}/bench")),
            ("--store-endpoint", format!("http://{endpoint}")),
            ("--store-region", ceph::REGION.to_owned()),
            ("--etcd", members.join(",")),
        ];
        let flags = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        let arguments = ["serve".to_owned(), "--store-path-style".to_owned()].into_iter().chain(flags);
        let keys = [("AWS_ACCESS_KEY_ID", ceph::ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", ceph::SECRET_KEY)];
        let mut service = Service::new("larimar", binary, arguments.collect(), folder).with_variables(&keys);
        service.start()?;
        let waited = wait_for("the process serves", SERVING_WITHIN, || {
            service.check()?;
            Ok(plain_request(admin, "GET", "/ready", "").is_ok_and(|answer| answer.status == 200))
        });
        waited.map_err(|error| format!("{error}; {}", service.said()))?;
        Ok(Process { service, tables, blobs, admin })
    }

    fn load(
        &self,
        address: SocketAddr,
        connection_count: usize,
        measure_for: Duration,
        expected: u16,
    ) -> Load {
        Load {
            address,
            connection_count,
            warm_up_for: Duration::from_secs(1),
            measure_for,
            expected_status: expected,
            server_process_id: None,
        }
    }

    /// Objects that it has asked the store to create.
    fn creates(&self) -> Outcome<u64> {
        let text = plain_request(self.admin, "GET", "/metrics", "")?.text();
        let of_creates = |line: &&str| {
            line.starts_with("larimar_store_requests_total") && line.contains("kind=\"create\"")
        };
        let counts =
            text.lines().filter(of_creates).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        match counts.sum::<f64>() {
            0.0 => Err("the process shows no request to the store".into()),
            count => Ok(count as u64),
        }
    }

    /// Puts blobs of 4 MiB, so many at once.
    fn large_blobs(&self, at_once: usize, measure_for: Duration) -> Outcome<Measurement> {
        let mut client = ServiceClient::connect(self.blobs, "application/octet-stream")?;
        client.expect("PUT", CONTAINER, &[("restype", "container")], &[], b"", &[201])?;
        let mut random = 5;
        let body: Vec<u8> = (0..LARGE_SIZE_BYTES).map(|_| splitmix64(&mut random) as u8).collect();
        let paths = (0..16_384).map(|number| format!("large{number}"));
        let mut puts = super::blobs::Requests::puts(self.blobs, paths, body);
        let source: &mut dyn RequestSource = &mut puts;
        measure(&self.load(self.blobs, at_once, measure_for, 201), source)
    }
}
