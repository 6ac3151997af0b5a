//! `kill -9` under the consumers of one queue: no message is handed to two within its visibility timeout,
//! none is lost, one that is taken and not deleted comes back, and one that is deleted does not.
//!
//! Each message carries its number. A consumer records when it sent a get and when the answer came, so that
//! an overlap of two deliveries of one message is certain: the second answer came before the first delivery's
//! time could be over.

use crate::bench::queues::element;
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use crate::{Outcome, workspace};
use base::random::splitmix64;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const QUEUE: &str = "kills";
const PRODUCER_COUNT: usize = 8;
const TAKEN_TOGETHER: usize = 8;
/// One message of this many is taken and left alone.
const ABANDONED_ONE_IN: u64 = 40;
const KILL_AFTER_MS_MIN: u64 = 1000;
const KILL_AFTER_MS_MAX: u64 = 4000;
const FINISHED_WITHIN: Duration = Duration::from_secs(600);

#[derive(clap::Args)]
pub(crate) struct QueueKillArguments {
    /// Messages in all.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) messages: usize,
    /// Concurrent consumers, each with a connection of its own.
    #[arg(long, default_value_t = 64)]
    pub(crate) consumers: usize,
    /// How often to kill.
    #[arg(long, default_value_t = 3)]
    pub(crate) kills: usize,
    /// How long a message is invisible once it is taken.
    #[arg(long, default_value_t = 8)]
    pub(crate) invisible_seconds: u64,
    /// Seed of the instants and of what is abandoned; else a new one, printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// The server to kill; else this checkout's, built now.
    #[arg(long)]
    pub(crate) bin: Option<PathBuf>,
}

impl QueueKillArguments {
    /// What each test run does.
    pub(crate) fn short(bin: PathBuf) -> Self {
        Self { messages: 8000, consumers: 64, kills: 1, invisible_seconds: 3, seed: None, bin: Some(bin) }
    }
}

/// What happened to a message.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// Its put was answered.
    is_put: bool,
    /// When its last delivery was asked for and answered, since the start.
    taken: Option<(Duration, Duration)>,
    deliveries: u32,
    /// When its deletion was answered.
    deleted_at: Option<Duration>,
    /// Its deletion was sent and not answered.
    perhaps_deleted: bool,
}

/// What producers and consumers share.
struct Stage {
    started_at: Instant,
    invisible_for: Duration,
    messages: Mutex<Vec<Fate>>,
    next: AtomicUsize,
    deleted: AtomicU64,
    redelivered: AtomicU64,
    seed: u64,
}

pub(crate) fn run(arguments: &QueueKillArguments) -> Outcome<()> {
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let scratch = workspace::Scratch::create("kill9-queues")?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    println!(
        "kill -9 of a queue: {} messages, {} consumers, {} kills, seed {seed}",
        arguments.messages, arguments.consumers, arguments.kills
    );
    let outcome = run_lives(arguments, seed, &binary, &scratch.path().join("data"));
    if outcome.is_err() {
        println!("kill -9 of a queue: the data folder is kept in {}", scratch.keep().display());
    }
    outcome
}

fn run_lives(arguments: &QueueKillArguments, seed: u64, binary: &Path, data: &Path) -> Outcome<()> {
    let mut random = seed;
    let stage = Stage {
        started_at: Instant::now(),
        invisible_for: Duration::from_secs(arguments.invisible_seconds),
        messages: Mutex::new(vec![Fate::default(); arguments.messages]),
        next: AtomicUsize::new(0),
        deleted: AtomicU64::new(0),
        redelivered: AtomicU64::new(0),
        seed,
    };
    for life in 0..=arguments.kills {
        let server = ServerProcess::start_larimar(binary, data)?;
        let address = server.queue_address.ok_or("the server has no queue service")?;
        if life == 0 {
            connect(address)?.expect("PUT", QUEUE, &[], &[], b"", &[201])?;
        }
        let (killed, finished) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (stage, killed, finished) = (&stage, &killed, &finished);
            let mut running = Vec::new();
            for _ in 0..PRODUCER_COUNT {
                running.push(scope.spawn(move || stage.produce(address, killed)));
            }
            for number in 0..arguments.consumers {
                running.push(scope.spawn(move || stage.consume(number, life, address, killed, finished)));
            }
            let is_last = life == arguments.kills;
            let outcome = if is_last {
                let outcome = stage.wait_until_all_is_done(address);
                finished.store(true, Ordering::SeqCst);
                outcome.and_then(|()| stop(server))
            } else {
                let span = KILL_AFTER_MS_MAX - KILL_AFTER_MS_MIN;
                std::thread::sleep(Duration::from_millis(KILL_AFTER_MS_MIN + splitmix64(&mut random) % span));
                killed.store(true, Ordering::SeqCst);
                server.kill()
            };
            let outcomes: Vec<Outcome<()>> =
                running.into_iter().map(|thread| thread.join().expect("a client panicked")).collect();
            println!(
                "life {}: {} put so far, {} deleted, {} deliveries were not the first",
                life + 1,
                stage.messages.lock().expect("no panic").iter().filter(|fate| fate.is_put).count(),
                stage.deleted.load(Ordering::SeqCst),
                stage.redelivered.load(Ordering::SeqCst),
            );
            outcomes.into_iter().collect::<Outcome<()>>().and(outcome)
        })?;
    }
    stage.report()
}

fn stop(server: ServerProcess) -> Outcome<()> {
    let status = server.terminate()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("after SIGTERM the server ended with {status}").into())
    }
}

impl Stage {
    fn now(&self) -> Duration {
        self.started_at.elapsed()
    }

    fn with<T>(&self, number: usize, change: impl FnOnce(&mut Fate) -> T) -> Outcome<T> {
        let mut messages = self.messages.lock().expect("no panic");
        let fate = messages.get_mut(number).ok_or_else(|| format!("a message {number} that nobody put"))?;
        Ok(change(fate))
    }

    fn produce(&self, address: SocketAddr, killed: &AtomicBool) -> Outcome<()> {
        let count = self.messages.lock().expect("no panic").len();
        let mut client = match connect(address) {
            Err(_) if killed.load(Ordering::SeqCst) => return Ok(()),
            client => client?,
        };
        while !killed.load(Ordering::SeqCst) {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            if number >= count {
                return Ok(());
            }
            let body = format!("<QueueMessage><MessageText>{number}</MessageText></QueueMessage>");
            match client.send("POST", &format!("{QUEUE}/messages"), &[], &[], body.as_bytes()) {
                Ok(answer) if answer.status == 201 => self.with(number, |fate| fate.is_put = true)?,
                Ok(answer) => return Err(format!("put: {} {}", answer.status, answer.text()).into()),
                Err(_) if killed.load(Ordering::SeqCst) => return Ok(()),
                Err(error) => return Err(format!("put: {error}").into()),
            }
        }
        Ok(())
    }

    fn consume(
        &self,
        number: usize,
        life: usize,
        address: SocketAddr,
        killed: &AtomicBool,
        finished: &AtomicBool,
    ) -> Outcome<()> {
        let mut random = self.seed ^ ((number + 1000 * life) as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
        let ended = || killed.load(Ordering::SeqCst) || finished.load(Ordering::SeqCst);
        let mut client = match connect(address) {
            Err(_) if ended() => return Ok(()),
            client => client?,
        };
        let seconds = self.invisible_for.as_secs().to_string();
        let taken_together = TAKEN_TOGETHER.to_string();
        let parameters =
            [("numofmessages", taken_together.as_str()), ("visibilitytimeout", seconds.as_str())];
        while !ended() {
            let asked_at = self.now();
            let answer = match client.send("GET", &format!("{QUEUE}/messages"), &parameters, &[], b"") {
                Ok(answer) if answer.status == 200 => answer,
                Ok(answer) => return Err(format!("get: {} {}", answer.status, answer.text()).into()),
                Err(_) if ended() => return Ok(()),
                Err(error) => return Err(format!("get: {error}").into()),
            };
            let answered_at = self.now();
            let text = answer.text();
            let messages: Vec<&str> = text.split("<QueueMessage>").skip(1).collect();
            if messages.is_empty() {
                std::thread::sleep(Duration::from_millis(20));
            }
            for message in messages {
                self.note_delivery(message, asked_at, answered_at)?;
                if splitmix64(&mut random).is_multiple_of(ABANDONED_ONE_IN) {
                    continue;
                }
                if !self.delete(&mut client, message, &ended)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn note_delivery(&self, message: &str, asked_at: Duration, answered_at: Duration) -> Outcome<()> {
        let number: usize = element(message.as_bytes(), "MessageText").parse()?;
        let invisible_for = self.invisible_for;
        let problem = self.with(number, |fate| {
            let overlaps = fate.taken.is_some_and(|(before_asked_at, before_answered_at)| {
                // Neither may have begun before the other one's time was over.
                answered_at < before_asked_at + invisible_for && before_answered_at < asked_at + invisible_for
            });
            let after_deletion = fate.deleted_at.is_some_and(|deleted_at| asked_at > deleted_at);
            if fate.taken.is_none_or(|(before, _)| before < asked_at) {
                fate.taken = Some((asked_at, answered_at));
            }
            fate.deliveries += 1;
            self.redelivered.fetch_add(u64::from(fate.deliveries > 1), Ordering::SeqCst);
            match (overlaps, after_deletion) {
                (true, _) => Some("was handed to two within its visibility timeout"),
                (_, true) => Some("was delivered after it was deleted"),
                _ => None,
            }
        })?;
        problem.map_or(Ok(()), |problem| Err(format!("message {number} {problem}").into()))
    }

    /// False: the server is gone.
    fn delete(&self, client: &mut ServiceClient, message: &str, ended: &impl Fn() -> bool) -> Outcome<bool> {
        let part = |name| element(message.as_bytes(), name);
        let number: usize = part("MessageText").parse()?;
        let path = format!("{QUEUE}/messages/{}", part("MessageId"));
        self.with(number, |fate| fate.perhaps_deleted = true)?;
        match client.send("DELETE", &path, &[("popreceipt", part("PopReceipt"))], &[], b"") {
            Ok(answer) if answer.status == 204 => {
                let now = self.now();
                let before = self.with(number, |fate| fate.deleted_at.replace(now))?;
                self.deleted.fetch_add(1, Ordering::SeqCst);
                before.map_or(Ok(true), |_| Err(format!("message {number} was deleted twice").into()))
            }
            // Its time was over, and somebody else has it, or has deleted it.
            Ok(answer) if answer.status == 400 || answer.status == 404 => Ok(true),
            Ok(answer) => Err(format!("delete: {} {}", answer.status, answer.text()).into()),
            Err(_) if ended() => Ok(false),
            Err(error) => Err(format!("delete: {error}").into()),
        }
    }

    /// Until the queue says that it is empty.
    fn wait_until_all_is_done(&self, address: SocketAddr) -> Outcome<()> {
        let mut client = connect(address)?;
        let count = self.messages.lock().expect("no panic").len();
        let waiting_since = Instant::now();
        while waiting_since.elapsed() < FINISHED_WITHIN {
            std::thread::sleep(Duration::from_millis(500));
            let answer = client.expect("GET", QUEUE, &[("comp", "metadata")], &[], b"", &[200])?;
            let is_empty = answer.header("x-ms-approximate-messages-count") == Some("0");
            if is_empty && self.next.load(Ordering::SeqCst) >= count + PRODUCER_COUNT {
                return Ok(());
            }
        }
        Err(format!("the queue is not empty after {FINISHED_WITHIN:?}").into())
    }

    fn report(&self) -> Outcome<()> {
        let messages = self.messages.lock().expect("no panic");
        let lost = messages.iter().filter(|fate| fate.is_put && fate.deliveries == 0).count();
        let vanished = messages.iter().filter(|fate| fate.is_put && !fate.perhaps_deleted).count();
        if lost + vanished > 0 {
            return Err(format!("{lost} messages were never delivered, {vanished} vanished undeleted").into());
        }
        let put = messages.iter().filter(|fate| fate.is_put).count();
        let deliveries: u64 = messages.iter().map(|fate| u64::from(fate.deliveries)).sum();
        println!(
            "kill -9 of a queue: {put} messages acknowledged, all delivered and deleted; {deliveries} deliveries, none \
             of a message that somebody had; {:.0} messages/s; seed {}",
            put as f64 / self.now().as_secs_f64(),
            self.seed
        );
        Ok(())
    }
}

fn connect(address: SocketAddr) -> std::io::Result<ServiceClient> {
    ServiceClient::connect(address, "application/xml")
}
