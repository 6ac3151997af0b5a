//! The load of a stamp: writers and readers of rows, uploads, producers and consumers, over all processes at
//! once, and some that speak to one process alone, so that one that serves no more is tried, too.
//!
//! What always holds: all threads end before what they found is judged; a row, a blob and a message is known
//! to one ledger.

use super::arguments::{BreakKind, Plan};
use super::blobs::{self, Blobs};
use super::cluster::Cluster;
use super::groups::BATCH;
use super::ledger::{Counts, Findings};
use super::queues::{DRAINER_COUNT, Queue};
use super::router::{Request, Router, Sent, Service};
use super::tables::{self, Keys, Shared, TABLE, Ways, Writer};
use super::timeline::Gap;
use crate::Outcome;
use crate::client::shared_key::ACCOUNT;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Rows of a writer that speaks to one process alone.
const DIRECT_ROWS: usize = 200;
const READER_COUNT: usize = 4;
const UPLOADER_COUNT: usize = 4;
/// Each message of the queue that stands is a request of its own, and a store answers many at once.
const FILLER_COUNT: usize = 32;
const PRODUCER_COUNT: usize = 2;
const CONSUMER_COUNT: usize = 4;
/// One row of so many is not there at first, and inserted under load.
const SPARE_ONE_IN: usize = 10;
/// So many rows, blobs and messages at least, whatever the flags say.
const COUNT_MIN: usize = 200;
/// The queue whose messages wait until the end.
const STANDING: &str = "trial-standing";

/// Addresses of the processes, by service.
struct Addresses {
    tables: Vec<SocketAddr>,
    blobs: Vec<SocketAddr>,
    queues: Vec<SocketAddr>,
}

/// All clients with what they know.
pub(super) struct Load {
    addresses: Addresses,
    writers: Vec<Writer>,
    /// So many of them, the first, have all processes to write to; each other has one alone.
    routed_count: usize,
    blobs: Blobs,
    /// Filled and drained in each round.
    work: Queue,
    /// Filled at the start, drained at the end.
    standing: Queue,
    findings: Findings,
    seed: u64,
}

/// What was seen while a round lasted.
pub(super) struct Seen {
    pub(super) writes: u64,
    pub(super) unknown: u64,
    pub(super) reads: u64,
    /// Uploads that were acknowledged.
    pub(super) uploads: u64,
    /// Messages that were taken, and their deletion acknowledged.
    pub(super) messages: u64,
    /// Of each writer that has all processes to write to.
    pub(super) gaps: Vec<Vec<Gap>>,
    /// The end of the observation; a gap that lasts ends there.
    pub(super) until: Instant,
}

impl Load {
    /// Clients that know nothing yet.
    pub(super) fn new(plan: &Plan, cluster: &Cluster, seed: u64) -> Self {
        let all = |address: fn(&super::cluster::Process) -> SocketAddr| -> Vec<SocketAddr> {
            cluster.processes.iter().map(address).collect()
        };
        let addresses = Addresses {
            tables: all(|process| process.tables),
            blobs: all(|process| process.blobs),
            queues: all(|process| process.queues),
        };
        let rows = (plan.entities / plan.writers.max(1)).max(COUNT_MIN);
        let rows = rows + rows / SPARE_ONE_IN;
        let ways = |all: &[SocketAddr], number| Ways {
            singles: Router::new(Service::Table, all, number),
            batches: Router::new(Service::Table, all, number).with_table_content_type(BATCH),
            base_url: format!("http://{}/{ACCOUNT}", all[0]),
        };
        let mut writers = Vec::new();
        for number in 0..plan.writers {
            let ways = ways(&addresses.tables, number);
            let seed = seed ^ number as u64;
            writers.push(Writer::new(&format!("w{number:02}"), (rows, plan.row_size), ways, seed));
        }
        for (number, address) in addresses.tables.iter().enumerate() {
            let ways = ways(&[*address], 0);
            let seed = seed ^ (1000 + number) as u64;
            writers.push(Writer::new(&format!("d{number:02}"), (DIRECT_ROWS, plan.row_size), ways, seed));
        }
        Load {
            addresses,
            writers,
            routed_count: plan.writers,
            blobs: Blobs::new(plan.blobs.max(COUNT_MIN)),
            work: Queue::new("trial-work"),
            standing: Queue::new(STANDING),
            findings: Findings::default(),
            seed,
        }
    }

    fn router(&self, service: Service, number: usize) -> Router {
        let addresses = match service {
            Service::Table => &self.addresses.tables,
            Service::Blob => &self.addresses.blobs,
            Service::Queue => &self.addresses.queues,
        };
        Router::new(service, addresses, number)
    }

    /// Makes table, container and queues, and fills them before the first fault.
    pub(super) fn fill(&mut self, plan: &Plan) -> Outcome<()> {
        let never = AtomicBool::new(false);
        let table = format!("{{\"TableName\":\"{TABLE}\"}}");
        let mut tables = self.router(Service::Table, 0);
        let headers = [("Prefer", "return-no-content")];
        let (verb, body) = ("POST", table.as_bytes());
        let request = Request { verb, path: "Tables", parameters: &[], headers: &headers, body };
        expect(&mut tables, request, &never)?;
        let parameters = [("restype", "container")];
        let path = blobs::CONTAINER;
        let request = Request { verb: "PUT", path, parameters: &parameters, headers: &[], body: b"" };
        expect(&mut self.router(Service::Blob, 0), request, &never)?;
        for queue in [&self.work, &self.standing] {
            queue.make(&mut self.router(Service::Queue, 0))?;
        }

        let shared = Shared { findings: &self.findings, stop: &never, fills: &never };
        let rows = (plan.entities / plan.writers.max(1)).max(COUNT_MIN);
        let addresses = &self.addresses;
        let (blobs, standing) = (&self.blobs, &self.standing);
        let outcomes: Vec<Outcome<()>> = std::thread::scope(|scope| {
            let shared = &shared;
            for _ in 0..UPLOADER_COUNT {
                let mut router = Router::new(Service::Blob, &addresses.blobs, 0);
                scope.spawn(move || blobs.load(&mut router, shared));
            }
            for number in 0..FILLER_COUNT {
                let mut router = Router::new(Service::Queue, &addresses.queues, number);
                scope.spawn(move || standing.load(&mut router, plan.messages.max(COUNT_MIN), shared));
            }
            let loading = self.writers.iter_mut().map(|writer| {
                let mut router =
                    Router::new(Service::Table, &addresses.tables, 0).with_table_content_type(BATCH);
                scope.spawn(move || writer.load(rows.min(writer.rows()), &mut router))
            });
            let loading: Vec<_> = loading.collect();
            loading.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        outcomes.into_iter().collect()
    }

    /// Runs all clients while `body` goes on; while it sets what it is given, the writers write much.
    pub(super) fn run_during<T>(
        &mut self,
        body: impl FnOnce(&AtomicBool) -> Outcome<T>,
    ) -> Outcome<(T, Seen)> {
        let (stop, fills, reads) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        self.blobs.begin_round();
        let before = self.counts();
        let keys: Vec<_> = self.writers.iter().map(|writer| writer.keys.clone()).collect();
        let (blobs, work, addresses, seed) = (&self.blobs, &self.work, &self.addresses, self.seed);
        let shared = Shared { findings: &self.findings, stop: &stop, fills: &fills };
        let writers = &mut self.writers;
        let outcome = std::thread::scope(|scope| {
            let _stops = StopOnDrop(&stop);
            let (shared, keys, reads) = (&shared, &keys, &reads);
            for writer in writers.iter_mut() {
                scope.spawn(move || writer.write(shared));
            }
            let mut readers: Vec<Router> = (0..READER_COUNT)
                .map(|number| Router::new(Service::Table, &addresses.tables, number))
                .collect();
            let alone = addresses.tables.iter().map(|address| Router::new(Service::Table, &[*address], 0));
            readers.extend(alone);
            for (number, mut router) in readers.into_iter().enumerate() {
                scope.spawn(move || {
                    let checked = tables::check_reads(&mut router, keys, seed ^ number as u64, shared);
                    reads.fetch_add(checked, Ordering::SeqCst);
                });
            }
            for number in 0..UPLOADER_COUNT {
                let mut router = Router::new(Service::Blob, &addresses.blobs, number);
                scope.spawn(move || blobs.work(&mut router, seed ^ number as u64, shared));
            }
            for number in 0..PRODUCER_COUNT {
                let mut router = Router::new(Service::Queue, &addresses.queues, number);
                scope.spawn(move || work.produce(&mut router, shared));
            }
            for number in 0..CONSUMER_COUNT {
                let mut router = Router::new(Service::Queue, &addresses.queues, number);
                scope.spawn(move || work.consume(&mut router, shared));
            }
            body(&fills).map(|outcome| (outcome, Instant::now()))
        });
        let (outcome, until) = outcome?;
        let routed = self.writers.iter().take(self.routed_count);
        let gaps = routed.map(|writer| writer.timeline.gaps(until)).collect();
        let after = self.counts();
        let [writes, unknown, uploads, messages] =
            std::array::from_fn(|index| after[index].saturating_sub(before[index]));
        let reads = reads.load(Ordering::SeqCst);
        Ok((outcome, Seen { writes, unknown, reads, uploads, messages, gaps, until }))
    }

    /// Writes acknowledged and of unknown outcome, uploads, messages consumed.
    fn counts(&self) -> [u64; 4] {
        let sum = |count: fn(&Writer) -> u64| self.writers.iter().map(count).sum();
        let (uploads, _) = self.blobs.done();
        [sum(|writer| writer.acknowledged), sum(|writer| writer.unknown), uploads, self.work.consumed()]
    }

    /// Reads all rows and blobs back.
    pub(super) fn verify(&mut self) -> Outcome<Verified> {
        let addresses = &self.addresses;
        let (findings, blobs) = (&self.findings, &self.blobs);
        let writers = &mut self.writers;
        let (rows, blob_count) = std::thread::scope(|scope| {
            let rows: Vec<_> = writers
                .iter_mut()
                .map(|writer| {
                    let mut router = Router::new(Service::Table, &addresses.tables, 0);
                    scope.spawn(move || writer.verify(&mut router, findings))
                })
                .collect();
            let blobs: Vec<_> = (0..UPLOADER_COUNT)
                .map(|thread| {
                    let mut router = Router::new(Service::Blob, &addresses.blobs, 0);
                    scope.spawn(move || blobs.verify(&mut router, (thread, UPLOADER_COUNT), findings))
                })
                .collect();
            (sum(rows), sum(blobs))
        });
        let (_, deleted_blobs) = self.blobs.done();
        Ok(Verified { rows: rows?, blobs: blob_count?, deleted_blobs })
    }

    /// Drains the round's queue, or both queues at the end; answers how many messages there were.
    pub(super) fn drain(&mut self, is_last: bool) -> Outcome<usize> {
        let never = AtomicBool::new(false);
        let (findings, addresses) = (&self.findings, &self.addresses);
        let shared = Shared { findings, stop: &never, fills: &never };
        let routers =
            || (0..DRAINER_COUNT).map(|_| Router::new(Service::Queue, &addresses.queues, 0)).collect();
        let mut messages = self.work.drain(routers(), &shared)?;
        if is_last {
            let started_at = Instant::now();
            let standing = self.standing.drain(routers(), &shared)?;
            println!("      the {standing} standing messages were drained in {:.1?}", started_at.elapsed());
            messages += standing;
        }
        Ok(messages)
    }

    /// What was found since the last call.
    pub(super) fn take_counts(&self) -> Counts {
        self.findings.take()
    }

    /// What can spoil something while all clients run.
    pub(super) fn spoiler(&self) -> Outcome<Spoiler> {
        let keys = self.writers.first().ok_or("no writers")?.keys.clone();
        let routers = [Service::Table, Service::Blob, Service::Queue].map(|service| self.router(service, 0));
        Ok(Spoiler { keys, routers })
    }

    /// How much is there before the first fault.
    pub(super) fn description(&self) -> String {
        let rows: usize = self.writers.iter().map(Writer::rows).sum();
        format!("up to {rows} rows, {} blobs, {} messages", self.blobs.count(), self.standing.count())
    }
}

/// Changes behind the ledgers.
pub(super) struct Spoiler {
    keys: Arc<Keys>,
    /// Of tables, blobs and queues.
    routers: [Router; 3],
}

impl Spoiler {
    /// Spoils something that the ledgers know, so that the next verdict must be a failure.
    pub(super) fn spoil(self, kind: BreakKind) -> Outcome<()> {
        let (target, value) = (self.keys.target(0), self.keys.floor(0));
        let entity = |value| self.keys.entity(0, value);
        let [tables, blobs, queues] = self.routers;
        let (mut router, verb, path, body) = match kind {
            BreakKind::Row => (tables, "DELETE", target, String::new()),
            BreakKind::OldValue => (tables, "PUT", target, entity(value.saturating_sub(1))),
            BreakKind::NewValue => (tables, "PUT", target, entity(value + 1000)),
            BreakKind::Blob => (blobs, "DELETE", blobs::path(1), String::new()),
            BreakKind::Message => (queues, "DELETE", format!("{STANDING}/messages"), String::new()),
        };
        let is_of_a_row = matches!(kind, BreakKind::Row | BreakKind::OldValue | BreakKind::NewValue);
        let headers: &[(&str, &str)] = if is_of_a_row { &[("If-Match", "*")] } else { &[] };
        let request = Request { verb, path: &path, parameters: &[], headers, body: body.as_bytes() };
        println!("      on purpose: {verb} {path}");
        expect(&mut router, request, &AtomicBool::new(false))
    }
}

/// What was read back.
pub(super) struct Verified {
    pub(super) rows: usize,
    pub(super) blobs: usize,
    /// Since the start.
    pub(super) deleted_blobs: u64,
}

/// Ends the threads of a round, also when its body fails or panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn sum(threads: Vec<std::thread::ScopedJoinHandle<'_, Outcome<usize>>>) -> Outcome<usize> {
    threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
}

fn expect(router: &mut Router, request: Request<'_>, never: &AtomicBool) -> Outcome<()> {
    match router.send(request, never) {
        Sent::Answer(answer) if answer.status < 300 => Ok(()),
        Sent::Answer(answer) => {
            Err(format!("{} {}: {} {}", request.verb, request.path, answer.status, answer.text()).into())
        }
        Sent::NotDone(why) | Sent::Unknown(why) => Err(why.into()),
    }
}
