//! The course of a run: makes the place, loads it, runs the steps, drops the place, and reports.
//!
//! What always holds: what was made, or may have been, is dropped whatever happened in between; a server that
//! can't be reached, or refuses this client, has nothing made and is an error of its own kind.

use super::arrivals::Arrivals;
use super::place::{Place, Shared, new_name};
use super::seats::Seats;
use super::step::{Counted, Second, StepResult, per_second};
use super::stop::Stop;
use super::worker::{GRACE_FOR, WorkerTask, shares};
use crate::measure::heat::PLACES_MAX;
use crate::measure::recorder::Recorder;
use crate::measure::tally::Tally;
use crate::plan::{Pace, Plan, Step};
use crate::progress::{Progress, Watcher};
use crate::report::data::Report;
use crate::run::calls::filler::Filler;
use crate::workload::key_space::KeySpace;
use crate::workload::operation::OperationKind;
use base::Ticks;
use futures_util::future::{Either, select};
use retry::Policy;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use storage_client::{Error, ErrorKind, Service, Settings, StorageAccount, Surroundings};
use tokio::sync::mpsc;

/// What a run touches outside itself.
pub struct RunEnvironment<'a> {
    /// Of the conductor; the clock is that of all workers.
    pub surroundings: Surroundings,
    /// Where workers run.
    pub seats: &'a dyn Seats,
    /// Ends the run early.
    pub stop: Stop,
    /// Processor time of this process so far, if that is known.
    pub processor_time: &'a dyn Fn() -> Option<Duration>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum StressError {
    /// The endpoint can't be reached, or does not let this client in.
    #[error("{error}{}", behind(left_behind))]
    Refused {
        /// What it says.
        error: Error,
        /// What may have been made all the same; usually nothing.
        left_behind: Option<String>,
    },
    /// The place could not be made or loaded, or a worker broke down.
    #[error("{what}{}", behind(left_behind))]
    Failed {
        /// What went wrong.
        what: String,
        /// What could not be dropped again, and why.
        left_behind: Option<String>,
    },
    /// It was stopped before anything was measured.
    #[error("stopped before anything was measured{}", behind(left_behind))]
    Stopped {
        /// What could not be dropped again, and why.
        left_behind: Option<String>,
    },
}

fn behind(place: &Option<String>) -> String {
    place.as_ref().map_or_else(String::new, |place| format!("; {place}"))
}

/// How long the first answer is waited for.
const FIRST_ANSWER_FOR: Duration = Duration::from_secs(15);
/// Progress is shown, and a second of the report ends, so often.
const SECOND: Duration = Duration::from_secs(1);
/// How long loading and cleaning up is retried.
const PATIENCE: Duration = Duration::from_secs(60);

/// Patient: the place may be throttled by the run itself.
fn patient() -> Policy {
    let (z_min, z, z_max) = (Duration::from_millis(200), Duration::from_millis(200), Duration::from_secs(5));
    Policy::exponential(z_min, z, z_max, 30).within(PATIENCE).retrying_all()
}

/// Runs a plan.
pub async fn run(
    plan: Plan,
    environment: &RunEnvironment<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Report, StressError> {
    let name = new_name(&*environment.surroundings.random);
    let started_at = environment.surroundings.clock.now();
    let place = |retry, attempt_for| {
        let settings = Settings { retry, attempt_for, ..plan.settings.clone() };
        let account = StorageAccount::new(plan.address.clone(), settings, environment.surroundings.clone());
        Place::of(&account, plan.service, &name)
    };
    let first = place(Policy::none(), FIRST_ANSWER_FOR);
    let place = place(patient(), plan.settings.attempt_for);
    watcher.progress(&Progress::Creating { place: &place.title() });
    let mut stop = environment.stop.clone();
    let created = {
        let created = create(&first, &place);
        match select(pin!(created), pin!(stop.wait())).await {
            Either::Left((created, _)) => created,
            Either::Right(_) => Err(NotCreated::Stopped),
        }
    };
    if let Err(NotCreated::Refused { error, is_doubtful }) = created {
        let left_behind = is_doubtful.then(|| format!("{} may have been made", place.title()));
        watcher.progress(&Progress::Ended);
        return Err(StressError::Refused { error, left_behind });
    }
    let mut conductor = Conductor::new(plan, environment, name, started_at);
    let outcome = match created {
        Ok(()) => conductor.load_and_run(&place, watcher).await,
        Err(NotCreated::Stopped) => Ok(()),
        Err(NotCreated::Refused { error, .. } | NotCreated::Failed(error)) => Err(error.to_string()),
    };
    watcher.progress(&Progress::CleaningUp { place: &place.title() });
    let left_behind = place
        .delete()
        .await
        .err()
        .map(|error| format!("{} stays behind, because it could not be deleted: {error}", place.title()));
    watcher.progress(&Progress::Ended);
    match outcome {
        Err(what) => Err(StressError::Failed { what, left_behind }),
        Ok(()) if conductor.results.is_empty() => Err(StressError::Stopped { left_behind }),
        Ok(()) => Ok(conductor.report(left_behind)),
    }
}

/// Why a place was not made.
enum NotCreated {
    /// The server is out of reach, or refuses; if that is in doubt, it may have been made all the same.
    Refused {
        error: Error,
        is_doubtful: bool,
    },
    /// The server is there and has failed; it may have been made.
    Failed(Error),
    Stopped,
}

/// Makes the place. Whether the server can be reached and lets this client in shows at once, without
/// retries; what is busy is tried again.
async fn create(first: &Place, patient: &Place) -> Result<(), NotCreated> {
    let Err(error) = first.create().await else { return Ok(()) };
    let is_transient = error.status().is_some_and(|status| status >= 500 || status == 408 || status == 429);
    if is_transient {
        return patient.create().await.map_err(NotCreated::Failed);
    }
    // Whatever else failed after the request was sent may have made it.
    let may_be_made = error.may_be_done() || error.kind() == ErrorKind::UnreadableAnswer;
    let is_doubtful = may_be_made && first.delete().await.is_err();
    Err(NotCreated::Refused { error, is_doubtful })
}

struct Conductor<'a> {
    plan: Arc<Plan>,
    environment: &'a RunEnvironment<'a>,
    name: String,
    started_at: Ticks,
    keys: Arc<KeySpace>,
    filler: Filler,
    results: Vec<StepResult>,
    seconds: Vec<Second>,
    /// The counted time of steps that have ended.
    counted_for: Duration,
    is_interrupted: bool,
}

impl<'a> Conductor<'a> {
    fn new(plan: Plan, environment: &'a RunEnvironment<'a>, name: String, started_at: Ticks) -> Self {
        Conductor {
            keys: Arc::new(KeySpace::new(plan.keys)),
            filler: Filler::new(plan.mix.sizes.largest_item()),
            plan: Arc::new(plan),
            environment,
            name,
            started_at,
            results: Vec::new(),
            seconds: Vec::new(),
            counted_for: Duration::ZERO,
            is_interrupted: false,
        }
    }

    fn report(self, left_behind: Option<String>) -> Report {
        Report::new(&self.plan, self.name, self.started_at, &self.results, self.seconds)
            .ended(self.is_interrupted, left_behind)
    }

    async fn load_and_run(&mut self, place: &Place, watcher: &mut dyn Watcher) -> Result<(), String> {
        self.load(place, watcher).await?;
        let mut step = Some(self.plan.first_step());
        while let Some(current) = step.take_if(|_| !self.environment.stop.is_set()) {
            let result = self.run_step(&current, watcher).await?;
            step = self.plan.next_step(&current, result.has_kept_up());
            self.counted_for += result.counted_for;
            // Stopped in its warm-up, it has nothing to tell.
            if !result.counted_for.is_zero() {
                self.results.push(result);
            }
        }
        self.is_interrupted = self.environment.stop.is_set();
        Ok(())
    }

    async fn load(&self, place: &Place, watcher: &mut dyn Watcher) -> Result<(), String> {
        let clock = &self.environment.surroundings.clock;
        let loaded = AtomicU64::new(0);
        let load = place.load(&self.keys, &self.plan.mix.sizes, &loaded, &self.environment.stop);
        let mut load = pin!(load);
        loop {
            let all = self.plan.keys.loaded;
            watcher.progress(&Progress::Loading { loaded: loaded.load(Ordering::Relaxed), all });
            match select(load.as_mut(), clock.sleep(SECOND)).await {
                Either::Left((ended, _)) => {
                    return ended.map_err(|error| format!("{} can't be loaded: {error}", place.title()));
                }
                Either::Right(_) => continue,
            }
        }
    }

    /// Places whose load is counted apart.
    fn places(&self) -> u64 {
        match self.plan.service {
            Service::Table => self.plan.keys.partitions,
            Service::Queue => 1,
            // Load of single blobs beyond is not distinguished.
            Service::Blob if self.plan.keys.loaded > PLACES_MAX => 0,
            Service::Blob => self.plan.keys.loaded,
        }
    }

    async fn run_step(&mut self, step: &Step, watcher: &mut dyn Watcher) -> Result<StepResult, String> {
        let clock = self.environment.surroundings.clock.clone();
        let (from, places) = (clock.monotonic(), self.places());
        let counted_from = from + self.plan.warm_up_for;
        let until = counted_from + step.counted_for;
        let arrivals = match step.pace {
            Pace::Closed => None,
            Pace::Open(rate) => Some(Arc::new(Arrivals::new(from, rate))),
        };
        let (recorders, mut ended) = self.start_workers(arrivals.clone(), until, places)?;
        let drain = |tally: &mut Tally| recorders.iter().for_each(|recorder| recorder.drain(tally));

        self.sleep_until(counted_from).await;
        drain(&mut Tally::new(places));
        let processor_time_before = (self.environment.processor_time)();
        let mut tally = Tally::new(places);
        let mut last = clock.monotonic();
        while last < until && !self.environment.stop.is_set() {
            self.sleep_until((last + SECOND).min(until)).await;
            let now = clock.monotonic();
            let mut window = Tally::new(places);
            drain(&mut window);
            let at = self.counted_for + now.saturating_sub(counted_from);
            let second = second_of(&window, at, now.saturating_sub(last));
            let left = until.saturating_sub(now);
            watcher.progress(&Progress::Running { pace: step.pace, second: &second, left });
            // A rest that is too short says nothing.
            if now.saturating_sub(last) >= SECOND / 2 || self.seconds.is_empty() {
                self.seconds.push(second);
            }
            window.move_to(&mut tally);
            last = now;
        }
        let processor_time = (self.environment.processor_time)().zip(processor_time_before);
        let counted = tally
            .kinds()
            .map(|(kind, one)| (kind, Counted { done: one.done, items: one.items, bytes: one.bytes }));
        let counted: Vec<(OperationKind, Counted)> = counted.collect();
        let waits = arrivals.map(|arrivals| arrivals.waits(last.min(until))).unwrap_or_default();

        let mut count = 0;
        let all_ended = async {
            while ended.recv().await.is_some() {
                count += 1
            }
        };
        // Each ends after its grace; one whose thread is stuck is not waited for.
        let is_stuck = matches!(select(pin!(all_ended), clock.sleep(GRACE_FOR * 2)).await, Either::Right(_));
        if is_stuck || count < recorders.len() {
            return Err("a worker broke down".to_owned());
        }
        drain(&mut tally);
        let mut latencies = tally.all().latencies;
        waits.iter().for_each(|(wait, count)| latencies.record_many(*wait, *count));
        Ok(StepResult {
            role: step.role,
            pace: step.pace,
            counted_for: last.saturating_sub(counted_from),
            counted,
            tally,
            unbegun: waits.iter().map(|(_, count)| count).sum(),
            latencies,
            processor_time: processor_time.map(|(after, before)| after.saturating_sub(before)),
        })
    }

    /// Workers, and where each says that it has ended.
    fn start_workers(
        &self,
        arrivals: Option<Arc<Arrivals>>,
        until: Duration,
        places: u64,
    ) -> Result<(Vec<Arc<Recorder>>, mpsc::Receiver<()>), String> {
        let shares = shares(self.plan.clients, self.plan.workers);
        let (sender, ended) = mpsc::channel(shares.len());
        let mut recorders = Vec::new();
        for clients in shares {
            let recorder = Arc::new(Recorder::new(places));
            recorders.push(recorder.clone());
            let task = WorkerTask {
                plan: self.plan.clone(),
                name: self.name.clone(),
                shared: Shared { keys: self.keys.clone(), recorder, filler: self.filler.clone() },
                clients,
                arrivals: arrivals.clone(),
                until,
                stop: self.environment.stop.clone(),
            };
            let sender = sender.clone();
            let work = move |surroundings| {
                let task: base::BoxFuture<'static, ()> = Box::pin(async move {
                    task.run(surroundings).await;
                    // There is a slot for each, and the receiver is gone only after a failure.
                    let _ = sender.send(()).await;
                });
                task
            };
            let started = self.environment.seats.start(Box::new(work));
            started.map_err(|error| format!("a worker can't be started: {error}"))?;
        }
        Ok((recorders, ended))
    }

    /// Sleeps until an instant, or until the run is to stop.
    async fn sleep_until(&self, instant: Duration) {
        let clock = &self.environment.surroundings.clock;
        let mut stop = self.environment.stop.clone();
        select(clock.sleep(instant.saturating_sub(clock.monotonic())), pin!(stop.wait())).await;
    }
}

fn second_of(window: &Tally, at: Duration, span: Duration) -> Second {
    let all = window.all();
    let repeated: u64 = window.errors.sorted().iter().map(|(_, count)| count.repeated).sum();
    Second {
        at_s: at.as_secs_f64(),
        done_per_s: per_second(all.done, span),
        items_per_s: per_second(all.items, span),
        failed_per_s: per_second(all.failed, span),
        repeated_per_s: per_second(repeated, span),
        percentiles: all.latencies.percentiles(),
    }
}
