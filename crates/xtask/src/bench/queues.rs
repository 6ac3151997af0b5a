//! Durable put of messages beside the bare server, and what a queue's length does to puts and gets.
//!
//! The second part fills one queue for each length and then measures it: puts alone, and cycles in which each
//! connection puts a message, gets one and deletes that. A cycle keeps the length as it is, so that a short
//! queue stays short.

use crate::bench::measured::Programs;
use crate::bench::rounds::{RoundArguments, Series, median};
use crate::client::http_client::HttpClient;
use crate::client::load::{Load, RequestSource, measure};
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{Signer, date_now};
use crate::{Outcome, workspace};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const SIGN_AGAIN_AFTER: Duration = Duration::from_secs(60);
const GET_SIZE_BYTES: usize = 16;

#[derive(clap::Args)]
pub(crate) struct QueueBenchArguments {
    /// Measure queues only.
    #[arg(long)]
    pub(crate) only_queues: bool,
    /// Lengths of queues to compare, the first with each other.
    #[arg(long, value_delimiter = ',', default_value = "1000,100000")]
    queue_lengths: Vec<u64>,
    /// Characters of a message.
    #[arg(long, default_value_t = 1024)]
    message_size_bytes: usize,
    /// Fail if puts per second are below this percentage of the bare server's.
    #[arg(long)]
    put_percent_min: Option<f64>,
    /// Fail if rates at the longest queue differ by more than this percentage from those at the shortest.
    #[arg(long)]
    length_percent_max: Option<f64>,
}

impl QueueBenchArguments {
    /// So short that it only shows that the bench still works.
    pub(crate) fn smoke() -> Self {
        Self {
            only_queues: false,
            queue_lengths: vec![100, 2000],
            message_size_bytes: 1024,
            put_percent_min: None,
            length_percent_max: None,
        }
    }
}

pub(crate) fn run(
    rounds: &RoundArguments,
    arguments: &QueueBenchArguments,
    programs: &Programs,
) -> Outcome<()> {
    let scratch = workspace::Scratch::create("queue-bench")?;
    let larimar = ServerProcess::start_larimar(&programs.larimar, &scratch.path().join("data"))?;
    let bare = ServerProcess::start_bare(&programs.bare, scratch.path(), GET_SIZE_BYTES)?;
    let address = larimar.queue_address.ok_or("the server has no queue service")?;
    println!(
        "\nqueues: {} connections, {} rounds of {} s, messages of {} characters",
        rounds.connections, rounds.rounds, rounds.seconds, arguments.message_size_bytes
    );
    compare_with_bare(rounds, arguments, &larimar, address, &bare)?;
    drop(bare);
    compare_lengths(rounds, arguments, address, &larimar)?;
    let status = larimar.terminate()?;
    if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
}

fn compare_with_bare(
    rounds: &RoundArguments,
    arguments: &QueueBenchArguments,
    server: &ServerProcess,
    address: SocketAddr,
    bare: &ServerProcess,
) -> Outcome<()> {
    create_queue(address, "puts")?;
    let size = arguments.message_size_bytes;
    let mut series = [Series::new("bare POST"), Series::new("durable put")];
    let mut requests = [Messages::puts(bare.address, "puts", size), Messages::puts(address, "puts", size)];
    for round in 0..rounds.rounds {
        for kind in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let load = if kind == 0 {
                rounds.load(bare.address, bare, 204)
            } else {
                rounds.load(address, server, 201)
            };
            series[kind].add(measure(&load, &mut requests[kind])?)?;
        }
        println!("round {}: bare {:.0}/s, put {:.0}/s", round + 1, series[0].last(), series[1].last());
    }
    series.iter().for_each(Series::print);
    let ratios: Vec<f64> =
        series[1].rates.iter().zip(&series[0].rates).map(|(put, bare)| 100.0 * put / bare).collect();
    let percent = median(&ratios);
    println!("durable put: {percent:.1} % of the bare server");
    match arguments.put_percent_min {
        Some(min) if percent < min => Err(format!("puts are at {percent:.1} %, below {min:.1} %").into()),
        _ => Ok(()),
    }
}

fn compare_lengths(
    rounds: &RoundArguments,
    arguments: &QueueBenchArguments,
    address: SocketAddr,
    server: &ServerProcess,
) -> Outcome<()> {
    let size = arguments.message_size_bytes;
    let mut queues = Vec::new();
    for (index, &length) in arguments.queue_lengths.iter().enumerate() {
        let name = format!("length{index}");
        create_queue(address, &name)?;
        let filling_since = Instant::now();
        fill(rounds.connections, size, address, &name, length)?;
        println!(
            "queue of {length} filled in {:.1} s; the server has {} MiB",
            filling_since.elapsed().as_secs_f64(),
            server.resident_bytes()? >> 20
        );
        let cycles = Messages::cycles(address, &name, size, rounds.connections);
        let puts = format!("{name}puts");
        queues.push((length, name, cycles, puts, Series::new("put"), Series::new("put+get+delete")));
    }
    for round in 0..rounds.rounds {
        for (length, name, cycles, puts, put_series, cycle_series) in &mut queues {
            cycle_series.add(measure(&rounds.load(address, server, 201), cycles)?)?;
            // Puts would make the short queue long: it gets one of its own for each round.
            let target = if *length < 100_000 {
                let fresh = format!("{puts}{round}");
                create_queue(address, &fresh)?;
                fill(rounds.connections, size, address, &fresh, *length)?;
                fresh
            } else {
                name.clone()
            };
            put_series.add(measure(
                &rounds.load(address, server, 201),
                &mut Messages::puts(address, &target, size),
            )?)?;
            println!(
                "round {}, queue of {length}: put {:.0}/s, requests of put+get+delete {:.0}/s",
                round + 1,
                put_series.last(),
                cycle_series.last()
            );
        }
    }
    println!("the server has {} MiB", server.resident_bytes()? >> 20);
    let Some((first, rest)) = queues.split_first() else { return Ok(()) };
    let mut worst: f64 = 0.0;
    for other in rest {
        for (one, another) in [(&first.4, &other.4), (&first.5, &other.5)] {
            let (one_rate, other_rate) = (median(&one.rates), median(&another.rates));
            // The machine is not equally fast in all rounds: those measured one after the other are compared.
            let ratios: Vec<f64> = another
                .rates
                .iter()
                .zip(&one.rates)
                .map(|(other, one)| 100.0 * (other - one) / one)
                .collect();
            let difference = median(&ratios);
            println!(
                "{:<16} {:>8.0}/s with {} messages, {:>8.0}/s with {}: {difference:+.1} %",
                one.name, one_rate, first.0, other_rate, other.0
            );
            worst = worst.max(difference.abs());
        }
    }
    match arguments.length_percent_max {
        Some(max) if worst > max => Err(format!("rates differ by {worst:.1} %, more than {max:.1} %").into()),
        _ => Ok(()),
    }
}

pub(super) fn create_queue(address: SocketAddr, name: &str) -> Outcome<()> {
    let signer = Signer::new();
    let mut client = HttpClient::connect(address, signer.clone())?;
    let request = signer.queue_request(address, "PUT", &date_now(), name, &[], 0);
    let answer = client.exchange(request.as_bytes())?;
    match answer.status {
        201 => Ok(()),
        status => Err(format!("create queue: {status} {}", answer.text()).into()),
    }
}

/// Puts about `count` messages; then the length is what the queue says.
fn fill(
    connections: usize,
    message_size_bytes: usize,
    address: SocketAddr,
    name: &str,
    count: u64,
) -> Outcome<()> {
    let mut puts = Messages::puts(address, name, message_size_bytes);
    puts.left = Some(count);
    while puts.left != Some(0) {
        let load = Load {
            address,
            connection_count: connections.min(count as usize).max(1),
            warm_up_for: Duration::ZERO,
            measure_for: Duration::from_millis(if count > 100_000 { 5000 } else { 20 }),
            expected_status: 201,
            server_process_id: None,
        };
        measure(&load, &mut puts)?;
    }
    Ok(())
}

/// What a connection does next.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Put,
    Get,
    Delete,
}

/// Requests on the messages of one queue. Signatures of puts and gets serve for a minute; a delete needs its
/// own.
pub(super) struct Messages {
    address: SocketAddr,
    path: String,
    signer: Signer,
    body: Vec<u8>,
    date: String,
    put_head: String,
    get: String,
    signed_at: Instant,
    /// What each connection does next; empty if all of them only put.
    steps: Vec<Step>,
    /// Puts until it has put enough, if it has to stop.
    left: Option<u64>,
}

impl Messages {
    pub(super) fn puts(address: SocketAddr, queue: &str, size: usize) -> Self {
        let body =
            format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", text(size)).into_bytes();
        let mut messages = Self {
            address,
            path: format!("{queue}/messages"),
            signer: Signer::new(),
            body,
            date: String::new(),
            put_head: String::new(),
            get: String::new(),
            signed_at: Instant::now(),
            steps: Vec::new(),
            left: None,
        };
        messages.sign();
        messages
    }

    fn cycles(address: SocketAddr, queue: &str, size: usize, connections: usize) -> Self {
        Self { steps: vec![Step::Put; connections], ..Self::puts(address, queue, size) }
    }

    fn sign(&mut self) {
        self.date = date_now();
        let body_size = self.body.len();
        self.put_head =
            self.signer.queue_request(self.address, "POST", &self.date, &self.path, &[], body_size);
        let hidden = [("visibilitytimeout", "300")];
        self.get = self.signer.queue_request(self.address, "GET", &self.date, &self.path, &hidden, 0);
        self.signed_at = Instant::now();
    }

    fn delete(&self, got: &[u8]) -> String {
        let id = element(got, "MessageId");
        let receipt = element(got, "PopReceipt");
        let path = format!("{}/{id}", self.path);
        let parameters = [("popreceipt", receipt)];
        self.signer.queue_request(self.address, "DELETE", &self.date, &path, &parameters, 0)
    }
}

impl RequestSource for Messages {
    fn write_next(&mut self, connection: usize, response: &[u8], out: &mut Vec<u8>) {
        if self.signed_at.elapsed() > SIGN_AGAIN_AFTER {
            self.sign();
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        let step = self.steps.get(connection).copied().unwrap_or(Step::Put);
        let next = match step {
            Step::Put => {
                out.extend_from_slice(self.put_head.as_bytes());
                out.extend_from_slice(&self.body);
                Step::Get
            }
            // The first response of a measurement is that of the one before, and gone.
            Step::Delete if response.is_empty() => {
                out.extend_from_slice(self.get.as_bytes());
                Step::Delete
            }
            Step::Get => {
                out.extend_from_slice(self.get.as_bytes());
                Step::Delete
            }
            Step::Delete => {
                out.extend_from_slice(self.delete(response).as_bytes());
                Step::Put
            }
        };
        if let Some(step) = self.steps.get_mut(connection) {
            *step = next;
        }
    }

    fn expected_status(&self, connection: usize) -> Option<u16> {
        // What comes next tells what is under way.
        self.steps.get(connection).map(|next| match next {
            Step::Get => 201,
            Step::Delete => 200,
            Step::Put => 204,
        })
    }
}

/// Characters that need no escaping, always the same.
fn text(size: usize) -> String {
    let mut random = 7;
    (0..size).map(|_| char::from(b'a' + (base::random::splitmix64(&mut random) % 26) as u8)).collect()
}

/// What stands between the first tags of that name; empty if they are not there.
pub(crate) fn element<'a>(response: &'a [u8], name: &str) -> &'a str {
    let text = std::str::from_utf8(response).unwrap_or_default();
    let found = text.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
    found.map_or("", |(inside, _)| inside)
}
