//! Whole runs against a service in virtual time: rates and latencies are exactly those that its behaviour
//! gives, and what was made is dropped, whatever happens.
#![allow(clippy::disallowed_methods)] // The clock of tests is tokio's paused one.

mod service;

use retry::Policy;
use service::{Answer, OneThread, Service, answer, healthy, refusal, surroundings};
use std::sync::Arc;
use std::time::Duration;
use storage_client::{AccountAddress, Proxies, Settings};
use stress::{
    Distribution, KeyPlan, Load, Mix, Plan, Progress, Report, RunEnvironment, StressError, Watcher, run,
    stop_channel,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const SECOND: Duration = Duration::from_secs(1);

/// Point gets of four clients, without retries.
fn plan(load: Load) -> Plan {
    let mix = Mix::named(storage_client::Service::Table, "get").expect("a mix");
    Plan {
        service: storage_client::Service::Table,
        address: AccountAddress::development(),
        settings: Settings { retry: Policy::none(), proxies: Proxies::none(), ..Settings::default() },
        retry_name: "none".to_owned(),
        mix,
        keys: KeyPlan { distribution: Distribution::Uniform, loaded: 250, partitions: 1 },
        load,
        ceiling_for: None,
        warm_up_for: SECOND,
        clients: 4,
        workers: 2,
        seed: 7,
    }
}

const CLOSED: Load = Load::Closed { counted_for: Duration::from_secs(10) };

fn open(rate: f64) -> Load {
    Load::Open { rate, counted_for: Duration::from_secs(10) }
}

/// Stops the run at its n-th second.
struct Stopping {
    seconds: u32,
    stop: Option<stress::StopSender>,
}

impl Watcher for Stopping {
    fn progress(&mut self, progress: &Progress<'_>) {
        assert!(!progress.to_string().contains('\n'));
        if matches!(progress, Progress::Running { .. }) {
            self.seconds = self.seconds.saturating_sub(1);
            if let (0, Some(stop)) = (self.seconds, &self.stop) {
                stop.stop();
            }
        }
    }
}

async fn run_stopping(
    plan: Plan,
    service: Option<&Arc<Service>>,
    stop_after: Option<u32>,
) -> Result<Report, StressError> {
    let surroundings = surroundings(service);
    let seats = OneThread(surroundings.clone());
    let (sender, stop) = stop_channel();
    let environment =
        RunEnvironment { surroundings, seats: &seats, stop, processor_time: &|| Some(Duration::ZERO) };
    let mut watcher = Stopping { seconds: stop_after.unwrap_or(u32::MAX), stop: Some(sender) };
    run(plan, &environment, &mut watcher).await
}

async fn run_on(plan: Plan, service: &Arc<Service>) -> Result<Report, StressError> {
    run_stopping(plan, Some(service), None).await
}

/// Healthy, each point get in that time.
fn steady(takes: Duration) -> Arc<Service> {
    Service::new(move |_, line, _| {
        let is_get = line.starts_with("GET");
        Some((if is_get { takes } else { Duration::ZERO }, healthy(line)))
    })
}

/// Within a percent.
fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected * 0.01
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_has_the_rate_of_its_clients() {
    let service = steady(ms(10));
    let report = run_on(plan(CLOSED), &service).await.expect("a report");
    let row = &report.operations[0];
    assert!(is_near(row.done_per_s, 400.0), "{row:?}");
    assert!(is_near(row.percentiles.p50_us as f64, 10_000.0) && row.percentiles.max_us <= 11_000, "{row:?}");
    assert_eq!((report.operations.len(), report.errors.len(), report.seconds.len()), (1, 0, 10));
    assert!(report.seconds.iter().all(|second| is_near(second.done_per_s, 400.0)), "{:?}", report.seconds);
    assert!(report.ceiling.is_reached && is_near(report.ceiling.per_s, 400.0));
    // 250 rows in groups of 100, and the table is made and dropped once.
    assert_eq!(service.count("POST /devstoreaccount1/$batch"), 3);
    assert_eq!(service.count("POST /devstoreaccount1/Tables"), 1);
    assert_eq!(service.count("DELETE /devstoreaccount1/Tables('stress"), 1);
}

/// With coordinated omission four requests would be slow, one of each client, and p99 10 ms.
#[tokio::test(start_paused = true)]
async fn requests_that_were_due_while_the_server_stood_still_are_slow() {
    let stalled = 5 * SECOND..6 * SECOND;
    let service = Service::new(move |_, line, at| {
        let takes = if stalled.contains(&at) { stalled.end - at } else { ms(10) };
        Some((if line.starts_with("GET") { takes } else { Duration::ZERO }, healthy(line)))
    });
    let report = run_on(plan(open(100.0)), &service).await.expect("a report");
    let found = report.operations[0].percentiles;
    assert!(is_near(report.operations[0].done_per_s, 100.0), "{report:?}");
    // A tenth of the requests were due in that second; evenly, so half of them waited for half of it.
    assert!((9_000..=13_000).contains(&found.p50_us), "{found:?}");
    assert!((400_000..=700_000).contains(&found.p95_us), "{found:?}");
    assert!((850_000..=1_020_000).contains(&found.p99_us), "{found:?}");
    assert!((980_000..=1_020_000).contains(&found.max_us), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_were_never_begun_have_waited_too() {
    let report = run_on(plan(open(1000.0)), &steady(ms(10))).await.expect("a report");
    let step = &report.steps[0];
    assert!(is_near(step.done_per_s, 400.0) && !step.has_kept_up, "{step:?}");
    // 1,000 were due in each of 11 seconds, warm-up included, and 400 done.
    assert!(is_near(step.unbegun as f64, 6_600.0), "{step:?}");
    let all = report.operations.last().expect("all");
    assert_eq!(all.name, "all");
    // The last one that was begun had been due more than 6 s before.
    assert!(all.percentiles.max_us > 6_500_000, "{all:?}");
    assert!(report.findings.iter().any(|finding| finding.contains("did not keep up")), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_rises_stops_where_the_server_falls_behind() {
    let load = Load::Until { rate: 1000.0, step_for: 5 * SECOND };
    let report = run_on(plan(load), &steady(ms(10))).await.expect("a report");
    let last = report.steps.last().expect("a step");
    assert!(!last.has_kept_up && report.steps.iter().rev().skip(1).all(|step| step.has_kept_up));
    assert!(report.ceiling.is_reached && is_near(report.ceiling.per_s, 400.0), "{:?}", report.ceiling);
    let reached = run_on(plan(Load::Until { rate: 300.0, step_for: 5 * SECOND }), &steady(ms(10))).await;
    let reached = reached.expect("a report");
    assert!(is_near(reached.steps.last().expect("a step").done_per_s, 300.0));
    assert!(!reached.ceiling.is_reached);
}

/// Each third point get is refused; the next attempt is another request, so it is mostly served.
fn busy() -> Arc<Service> {
    Service::new(|number, line, _| {
        let is_refused = line.starts_with("GET") && number % 3 == 0;
        let text = if is_refused { refusal(503, "ServerBusy") } else { healthy(line) };
        Some((ms(1), text))
    })
}

#[tokio::test(start_paused = true)]
async fn errors_are_counted_by_code_with_what_retries_made_of_them() {
    let report = run_on(plan(CLOSED), &busy()).await.expect("a report");
    let row = &report.errors[0];
    assert_eq!((row.code.to_string().as_str(), row.count.repeated), ("503 ServerBusy", 0));
    assert!(row.count.failed > 1000 && row.count.message.contains("ServerBusy"), "{row:?}");
    assert!(report.ceiling.why.contains("503"), "{:?}", report.ceiling);

    let mut plan = plan(CLOSED);
    plan.settings.retry = Policy::linear(ms(1), 5);
    let report = run_on(plan, &busy()).await.expect("a report");
    let count = &report.errors[0].count;
    assert_eq!((report.errors.len(), report.steps[0].failed), (1, 0));
    assert!(count.repeated >= count.done_after && count.done_after > 1000 && count.failed == 0, "{count:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_ends_with_the_run_and_is_counted() {
    let service = Service::new(|_, line, at| {
        let is_silent = line.starts_with("GET") && at > 6 * SECOND;
        (!is_silent).then(|| (ms(10), healthy(line)))
    });
    let report = run_on(plan(CLOSED), &service).await.expect("a report");
    assert_eq!(report.steps[0].unfinished, 4);
    // They began in the sixth second, and were given up after the grace of 5 s.
    assert!(report.operations[0].percentiles.max_us > 9_000_000, "{report:?}");
    assert_eq!(service.count("DELETE"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_reports_what_it_has_and_cleans_up() {
    let service = steady(ms(10));
    let report = run_stopping(plan(open(0.5)), Some(&service), Some(3)).await.expect("a report");
    assert!(report.end.is_interrupted && report.end.left_behind.is_none());
    assert_eq!((report.seconds.len(), service.count("DELETE")), (3, 1));
    let long = Plan { warm_up_for: Duration::from_secs(3600), ..plan(CLOSED) };
    let service = steady(ms(10));
    let surroundings = surroundings(Some(&service));
    let seats = OneThread(surroundings.clone());
    let (sender, stop) = stop_channel();
    let environment = RunEnvironment { surroundings, seats: &seats, stop, processor_time: &|| None };
    tokio::spawn(async move {
        tokio::time::sleep(SECOND).await;
        sender.stop();
    });
    let mut watcher = Stopping { seconds: u32::MAX, stop: None };
    let stopped = run(long, &environment, &mut watcher).await.expect_err("nothing was measured");
    assert_eq!(stopped.to_string(), "stopped before anything was measured");
    assert_eq!(service.count("DELETE"), 1);
}

async fn refused(service: Option<&Arc<Service>>) -> String {
    match run_stopping(plan(CLOSED), service, None).await {
        Err(StressError::Refused { error, left_behind: None }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_out_of_reach_or_refuses_is_said_at_once() {
    let started = tokio::time::Instant::now();
    let text = refused(None).await;
    assert!(
        text.contains("127.0.0.1:10002 can't be reached") && text.contains("check the endpoint"),
        "{text}"
    );
    assert!(started.elapsed() < SECOND, "{:?}", started.elapsed());
    let skewed = Service::new(|_, _, _| {
        let headers = "x-ms-error-code: AuthenticationFailed\r\ndate: Sat, 21 Nov 2026 10:00:00 GMT\r\n";
        Some((Duration::ZERO, answer(403, headers, "")))
    });
    let text = refused(Some(&skewed)).await;
    assert!(text.contains("this machine's clock is 60 min behind the service's: set it"), "{text}");
    assert_eq!(skewed.requests.lock().len(), 1, "nothing to drop");
    let silent = Service::new(|_, line, _| (!line.starts_with("POST")).then(|| (ms(1), healthy(line))));
    let text = refused(Some(&silent)).await;
    assert!(text.contains("no answer in 15 s"), "{text}");
    assert_eq!(silent.count("DELETE"), 1, "it may have been made");
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_loaded_is_dropped_and_what_can_not_be_dropped_is_named() {
    let failing = |is_stuck: bool| {
        Service::new(move |_, line, _| -> Answer {
            let is_batch = line.contains("$batch");
            let is_refused = is_batch || (is_stuck && line.starts_with("DELETE"));
            let text = if is_refused { refusal(500, "InternalError") } else { healthy(line) };
            Some((ms(1), text))
        })
    };
    let service = failing(false);
    let text = run_on(plan(CLOSED), &service).await.expect_err("it can't be loaded").to_string();
    assert!(text.contains("can't be loaded") && !text.contains("stays behind"), "{text}");
    assert_eq!(service.count("DELETE"), 1);
    let service = failing(true);
    let text = run_on(plan(CLOSED), &service).await.expect_err("it can't be loaded").to_string();
    assert!(text.contains("; table stress") && text.contains("stays behind"), "{text}");
    assert!(service.count("DELETE") > 5, "patiently");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_sends_the_same_requests() {
    let requests = |seed| async move {
        let service = steady(ms(10));
        let mut plan = plan(CLOSED);
        plan.mix = Mix::named(storage_client::Service::Table, "mixed").expect("a mix");
        (plan.seed, plan.clients, plan.workers) = (seed, 1, 1);
        run_on(plan, &service).await.expect("a report");
        let requests = service.requests.lock();
        requests.clone()
    };
    let (first, second) = (requests(7).await, requests(7).await);
    assert!(first.len() > 500 && first == second);
    assert_ne!(first, requests(8).await);
}

/// Clients of tables have connections of their own, or, behind a proxy, share a pool: a server sees no
/// difference, and neither do reports.
#[tokio::test(start_paused = true)]
async fn both_ways_to_a_table_send_the_same_requests_and_report_alike() {
    let load = |proxies: Proxies| async move {
        let service = Service::new(|number, line, _| {
            let is_refused = number > 10 && number % 7 == 0;
            let text = if is_refused { refusal(503, "ServerBusy") } else { healthy(line) };
            Some((ms(10), text))
        });
        let mut plan = plan(CLOSED);
        plan.mix = Mix::named(storage_client::Service::Table, "mixed").expect("a mix");
        (plan.clients, plan.workers, plan.settings.proxies) = (1, 1, proxies);
        plan.settings.retry = Policy::linear(ms(1), 1);
        let report = run_on(plan, &service).await.expect("a report");
        let requests = service.requests.lock().clone();
        let numbers = |row: &stress::ErrorRow| (row.code.clone(), row.count.repeated, row.count.failed);
        let errors: Vec<_> = report.errors.iter().map(numbers).collect();
        (requests, report.operations, errors)
    };
    let (direct, direct_rows, direct_errors) = load(Proxies::none()).await;
    let (pooled, pooled_rows, pooled_errors) = load(Proxies::new("http://proxy:3128", "", "")).await;
    assert!(pooled.iter().all(|line| line.contains(" http://127.0.0.1:10002/")), "{}", pooled[0]);
    let pooled: Vec<String> =
        pooled.iter().map(|line| line.replace(" http://127.0.0.1:10002/", " /")).collect();
    assert!(direct.len() > 500);
    assert_eq!(direct, pooled);
    assert_eq!(format!("{direct_rows:?}"), format!("{pooled_rows:?}"));
    assert_eq!(direct_errors, pooled_errors);
    assert!(!direct_errors.is_empty() && direct_rows.len() > 4, "{direct_rows:?}");
}
