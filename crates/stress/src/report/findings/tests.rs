//! What is concluded from which numbers.

use super::*;
use crate::measure::latency::Latencies;
use crate::measure::tally::Tally;
use crate::plan::Load;
use crate::run::step::Counted;
use crate::workload::key_space::{Distribution, KeyPlan};
use crate::workload::mix::Mix;
use std::time::Duration;
use storage_client::{AccountAddress, ErrorKind, RepeatedAttempt, Settings};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn plan(service: Service, partitions: u64) -> Plan {
    Plan {
        service,
        address: AccountAddress::development(),
        settings: Settings::default(),
        retry_name: "none".to_owned(),
        mix: Mix::named(service, "mixed").expect("a mix"),
        keys: KeyPlan { distribution: Distribution::Uniform, loaded: 100, partitions },
        load: Load::Closed { counted_for: SECOND },
        ceiling_for: None,
        warm_up_for: Duration::ZERO,
        clients: 8,
        workers: 2,
        seed: 1,
    }
}

/// A second in which so many gets were done.
pub(crate) fn result(pace: Pace, done: u64) -> StepResult {
    let mut tally = Tally::new(2);
    let get = tally.of(OperationKind::Get);
    get.done = done;
    get.items = done;
    let mut latencies = Latencies::new();
    (0..done).for_each(|number| latencies.record(Duration::from_micros(1000 + number)));
    get.latencies = latencies.clone();
    tally.heat.count(Some(0), done);
    StepResult {
        role: StepRole::Main,
        pace,
        counted_for: SECOND,
        counted: vec![(OperationKind::Get, Counted { done, items: done, bytes: 0 })],
        tally,
        unbegun: 0,
        latencies,
        processor_time: Some(SECOND),
    }
}

pub(crate) fn throttled(mut result: StepResult, count: usize) -> StepResult {
    let busy = RepeatedAttempt { kind: ErrorKind::Service, status: Some(503), code: "ServerBusy".to_owned() };
    (0..count).for_each(|_| result.tally.errors.repeated(std::slice::from_ref(&busy), true));
    result
}

#[test]
fn rates_stand_beside_what_is_published() {
    let rates = |service, partitions, result: &StepResult| -> Vec<(&'static str, f64, f64)> {
        let rows = targets(&plan(service, partitions), result);
        rows.iter().map(|row| (row.what, row.per_s, row.published_per_s)).collect()
    };
    let mut spread = result(Pace::Closed, 4000);
    assert_eq!(
        rates(Service::Table, 1, &spread),
        [("the partition", 4000.0, 2000.0), ("the account", 4000.0, 20000.0)]
    );
    spread.tally.heat.count(Some(1), 4000);
    assert_eq!(rates(Service::Table, 2, &spread)[0], ("the hottest partition", 2000.0, 2000.0));
    assert_eq!(rates(Service::Queue, 1, &spread)[0], ("the queue", 4000.0, 2000.0));
    assert_eq!(rates(Service::Blob, 1, &spread)[0], ("the hottest blob", 2000.0, 3000.0));
}

#[test]
fn the_ceiling_is_the_best_of_what_shows_it() {
    let of = |results: &[StepResult]| {
        let found = ceiling(&plan(Service::Table, 1), results);
        (found.per_s, found.is_reached, found.why)
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(of(&[result(Pace::Closed, 900)]), (900.0, true, text("closed loop with 8 clients")));
    let open = |due: f64, done| result(Pace::Open(due), done);
    assert_eq!(of(&[open(100.0, 100)]), (100.0, false, text("it kept up with 100/s")));
    assert_eq!(
        of(&[open(100.0, 100), open(200.0, 150), open(300.0, 140)]),
        (150.0, true, text("it did not keep up with 200/s"))
    );
    let busy = throttled(result(Pace::Closed, 900), 3);
    assert!(of(&[open(100.0, 100), busy]).2.ends_with("beyond it the server answers 503 or 429"));
    assert!(!of(&[]).1);
}

#[test]
fn what_stands_out_is_said() {
    let said = |result: &StepResult, own_share: f64, part: &str| {
        let own = Some(OwnTime { us_per_operation: 1.0, share: own_share });
        findings(&plan(Service::Table, 1), result, own).iter().any(|finding| finding.contains(part))
    };
    let calm = result(Pace::Open(1000.0), 1000);
    assert_eq!(findings(&plan(Service::Table, 1), &calm, None), Vec::<String>::new());
    assert!(said(&result(Pace::Closed, 2001), 0.0, "more than the 2,000 that are published"));
    assert!(said(&throttled(calm.clone(), 7), 0.0, "7 attempts were refused"));
    assert!(said(
        &result(Pace::Open(2000.0), 1000),
        0.0,
        "did not keep up: of 2,000/s that were due 1,000/s"
    ));
    assert!(said(&calm, 0.9, "used 90 % of its threads' time"));
    let mut appended = calm.clone();
    (0..1000).for_each(|row| appended.tally.keys.inserted("p", &format!("{row:04}"), 1));
    assert!(said(&appended, 0.0, "append-only pattern: new keys fall behind all"));
    let mut dry = calm;
    dry.tally.of(OperationKind::Get).empty = 600;
    assert!(said(&dry, 0.0, "60 % of the receives found no message"));
}
