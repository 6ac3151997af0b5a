//! Limits in virtual time: which rates are admitted of one place, of several, of an account.

use super::*;
use crate::simulate::rule_file::parse_rule_file;

const TABLE: Requester<'_> = Requester { account: "one", account_number: 0, service: "table" };

fn azure() -> Simulation {
    // Without balancing: what is measured lasts for minutes.
    let settings = parse_rule_file("profile = \"azure\"\n[balancing]\nenabled = false");
    Simulation::new(settings.expect("a good file"))
}

fn operation<'a>(key: &'a [&'a str], target: Target, cost: u64) -> Operation<'a> {
    Operation { name: "InsertEntity", key, target, cost }
}

/// Requests as fast as the clock ticks; gives the cost that was admitted in each second after the first.
fn admitted_a_second(
    simulation: &Simulation,
    requester: &Requester<'_>,
    operations: &[Operation<'_>],
) -> Vec<f64> {
    let mut admitted = vec![0; operations.len()];
    let (tick, seconds) = (Duration::from_micros(20), 5);
    let mut now = Duration::ZERO;
    let mut turn = 0;
    while now < Duration::from_secs(seconds) {
        let index = turn % operations.len();
        let found = simulation.admit(now, requester, &operations[index], "");
        if found.refusal.is_none() && now >= Duration::from_secs(1) {
            admitted[index] += operations[index].cost;
        }
        turn += 1;
        now += tick;
    }
    admitted.into_iter().map(|cost| cost as f64 / (seconds - 1) as f64).collect()
}

fn is_within_5_percent(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected * 0.05
}

#[test]
fn places_have_their_published_rates() {
    let blob = Requester { service: "blob", ..TABLE };
    let queue = Requester { service: "queue", ..TABLE };
    let table: [(&str, Requester<'_>, Target, u64, f64); 5] = [
        ("entities", TABLE, Target::Partition, 1, 2000.0),
        ("batches", TABLE, Target::Partition, 100, 2000.0),
        ("messages", queue, Target::Queue, 1, 2000.0),
        ("block blob", blob, Target::Blob { is_page: false }, 1, 3000.0),
        ("page blob", blob, Target::Blob { is_page: true }, 1, 500.0),
    ];
    for (name, requester, target, cost, expected) in table {
        let found = admitted_a_second(&azure(), &requester, &[operation(&["a", "b"], target, cost)]);
        assert!(is_within_5_percent(found[0], expected), "{name}: {found:?}");
    }
}

#[test]
fn two_partitions_have_their_rates_at_the_same_time() {
    let keys = [["t", "p"], ["t", "q"]];
    let found =
        admitted_a_second(&azure(), &TABLE, &keys.each_ref().map(|key| operation(key, Target::Partition, 1)));
    assert!(found.iter().all(|found| is_within_5_percent(*found, 2000.0)), "{found:?}");
}

/// Eleven partitions could do 22,000 entities a second.
#[test]
fn an_account_has_its_rate_over_eleven_partitions() {
    let names: Vec<String> = (0..11).map(|number| format!("p{number}")).collect();
    let keys: Vec<[&str; 2]> = names.iter().map(|name| ["t", name.as_str()]).collect();
    let operations: Vec<Operation<'_>> =
        keys.iter().map(|key| operation(key, Target::Partition, 1)).collect();
    let simulation = azure();
    let found: f64 = admitted_a_second(&simulation, &TABLE, &operations).iter().sum();
    assert!(is_within_5_percent(found, 20_000.0), "{found}");
    // Another account has its own.
    let other = Requester { account: "two", account_number: 1, ..TABLE };
    let found = simulation.admit(Duration::from_secs(6), &other, &operations[0], "");
    assert_eq!(found.refusal, None);
}

#[test]
fn what_was_found_out_afterwards_is_paid_for() {
    let simulation = azure();
    let now = Duration::from_secs(1);
    let blob = Requester { service: "blob", ..TABLE };
    let page = operation(&["box", "b"], Target::Blob { is_page: false }, 1);
    let moved = Moved { ingress_bytes: 0, egress_bytes: 120 << 20 };
    assert_eq!(simulation.admit(now, &blob, &page, "").refusal, None);
    simulation.charge_page_blob(now, &blob, &page, moved);
    let busy = Some(Refusal::Throttled(Bucket::Place));
    assert_eq!(simulation.admit(now, &blob, &page, "").refusal, busy, "60 MiB a second");
    assert_eq!(simulation.admit(now + Duration::from_millis(1001), &blob, &page, "").refusal, None);
    // 500 requests a second, each found to be a page blob's.
    let mut admitted = 0;
    for tick in 0..40_000 {
        let now = Duration::from_secs(60) + Duration::from_micros(100 * tick);
        if simulation.admit(now, &blob, &page, "").refusal.is_none() {
            simulation.charge_page_blob(now, &blob, &page, Moved::default());
            admitted += 1;
        }
    }
    assert!(is_within_5_percent(f64::from(admitted), 500.0 * 5.0), "{admitted}");
    // Bandwidth of the account, each way.
    let moved = Moved { ingress_bytes: 6_250_000_000, egress_bytes: 0 };
    simulation.charge_bytes(Duration::from_secs(100), 0, moved);
    let found =
        simulation.admit(Duration::from_secs(100), &TABLE, &operation(&["t"], Target::Account, 1), "");
    assert_eq!(found.refusal, Some(Refusal::Throttled(Bucket::Ingress)));
    let moved = Moved { ingress_bytes: 0, egress_bytes: 12_500_000_000 };
    simulation.charge_bytes(Duration::from_secs(200), 0, moved);
    let found =
        simulation.admit(Duration::from_secs(200), &TABLE, &operation(&["t"], Target::Account, 1), "");
    assert_eq!(found.refusal, Some(Refusal::Throttled(Bucket::Egress)));
}

#[test]
fn rows_of_queries_count_where_they_are() {
    let simulation = azure();
    let now = Duration::from_secs(1);
    let rows =
        |partition: &'static [&'static str], count| (operation(partition, Target::Partition, 0), count);
    let page = [rows(&["t", "p"], 3000), rows(&["t", "q"], 1)];
    assert_eq!(simulation.admit_rows(now, &TABLE, &page), Ok(()));
    assert_eq!(simulation.admit_rows(now, &TABLE, &page), Err(Refusal::Throttled(Bucket::Place)));
    assert_eq!(simulation.admit_rows(now, &TABLE, &page[1..]), Ok(()));
    let insert = operation(&["t", "p", "r"], Target::Partition, 1);
    assert_eq!(simulation.admit(now, &TABLE, &insert, "").refusal, Some(Refusal::Throttled(Bucket::Place)));
    let later = now + Duration::from_millis(501);
    assert_eq!(simulation.admit(later, &TABLE, &insert, "").refusal, None);
}

/// 1,500 entities a second: three quarters of what a partition may do.
#[test]
fn a_partition_with_load_goes_away_for_seconds_and_comes_back() {
    let settings = parse_rule_file("profile = \"azure\"\nspeed = 60").expect("a good file");
    let simulation = Simulation::new(settings);
    let insert = operation(&["t", "p", "r"], Target::Partition, 1);
    let (mut begins, mut timed_out, mut busy, mut served_after) = (Vec::new(), 0, 0, 0);
    for tick in 0..15_000u64 {
        let now = Duration::from_secs_f64(tick as f64 / 1500.0);
        let found = simulation.admit(now, &TABLE, &insert, "");
        begins.extend(found.move_begins.map(|away_for| (now, away_for)));
        match found.refusal {
            Some(Refusal::Away { timed_out: true }) => timed_out += 1,
            Some(Refusal::Away { timed_out: false }) => busy += 1,
            Some(other) => panic!("{other:?}"),
            None => served_after += u64::from(!begins.is_empty()),
        }
    }
    let [(at, away_for)] = begins[..] else { panic!("{begins:?}") };
    assert!((3.0..3.5).contains(&at.as_secs_f64()), "{at:?}");
    let expected = away_for.as_secs_f64() * 1500.0;
    assert!(is_within_5_percent(f64::from(timed_out + busy), expected), "{timed_out} {busy} {expected}");
    assert!(timed_out > 0 && busy > 0 && served_after > 8000, "{timed_out} {busy} {served_after}");
}

#[test]
fn rules_come_first_and_are_replaced() {
    let rules = |text: &str| parse_rule_file(text).expect("good rules");
    let simulation = Simulation::new(rules(
        "[limits]\npartition_entities_per_second = 1\n[[fault]]\nevery = 2\nstatus = 500",
    ));
    let insert = operation(&["t", "p", "r"], Target::Partition, 1);
    let admit = |at_ms| {
        let found = simulation.admit(Duration::from_millis(at_ms), &TABLE, &insert, "t/p/r");
        (found.fault.map(|fault| fault.nth), found.refusal.is_some())
    };
    assert_eq!(admit(0), (None, false));
    assert_eq!(admit(0), (Some(2), false), "before the limit is looked at");
    assert_eq!(admit(0), (None, true));
    simulation.replace_settings(rules(
        "[limits]\npartition_entities_per_second = 1\n[[fault]]\nevery = 2\ndelay_ms = 5\nreset = \"after\"",
    ));
    assert_eq!(admit(999), (None, true), "the bucket is the one from before");
    assert_eq!(admit(1000), (Some(2), false), "a reset after the work leaves it to be done");
    assert_eq!(admit(1000), (None, true));
}
