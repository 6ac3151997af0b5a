//! Tables of decisions, and what holds for any.

use super::*;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const READ: Request = Request { is_idempotent: true, has_secondary: false };
const FALLBACK: Request = Request { is_idempotent: true, has_secondary: true };
const INSERT: Request = Request { is_idempotent: false, has_secondary: false };

fn policy() -> Policy {
    Policy::linear(SECOND, 3)
}

fn busy(retry_after_s: u64) -> Outcome {
    Outcome::Status { status: 503, retry_after: Some(SECOND * retry_after_s as u32), is_refusal: true }
}

/// After which wait it is tried again, or why not.
fn decided(policy: &Policy, request: Request, number: u32, outcome: Outcome, elapsed_s: u64) -> Decision {
    let attempt = Attempt { number, ..Attempt::first(request) };
    policy.decide(&attempt, &outcome, Duration::from_secs(elapsed_s), 0)
}

fn again(after_s: u64, number: u32, request: Request) -> Decision {
    let next = Attempt { number, ..Attempt::first(request) };
    Decision::Retry { after: Duration::from_secs(after_s), next }
}

#[test]
fn decisions_at_one_location() {
    let plain = policy();
    let budget = policy().within(SECOND * 10);
    let all = policy().retrying_all();
    let give_up = Decision::GiveUp;
    for (policy, request, number, outcome, elapsed_s, expected) in [
        (plain, READ, 1, Outcome::status(500), 0, again(1, 2, READ)),
        (plain, READ, 3, Outcome::Broken, 0, again(1, 4, READ)),
        (plain, READ, 4, Outcome::Broken, 0, give_up(Reason::RetriesExhausted)),
        (plain, READ, 1, Outcome::status(404), 0, give_up(Reason::Final)),
        (plain, READ, 9, Outcome::status(501), 0, give_up(Reason::Final)),
        (plain, READ, 1, Outcome::status(505), 0, give_up(Reason::Final)),
        (Policy::none(), READ, 1, Outcome::Unsent, 0, give_up(Reason::RetriesExhausted)),
        // What is not idempotent.
        (plain, INSERT, 1, Outcome::Broken, 0, give_up(Reason::NotIdempotent)),
        (plain, INSERT, 1, Outcome::TimedOut, 0, give_up(Reason::NotIdempotent)),
        (plain, INSERT, 1, Outcome::status(500), 0, give_up(Reason::NotIdempotent)),
        (plain, INSERT, 1, Outcome::Unsent, 0, again(1, 2, INSERT)),
        (plain, INSERT, 1, busy(0), 0, again(1, 2, INSERT)),
        (all, INSERT, 1, Outcome::Broken, 0, again(1, 2, INSERT)),
        // The budget: an attempt must begin before its end.
        (budget, READ, 1, Outcome::Broken, 8, again(1, 2, READ)),
        (budget, READ, 1, Outcome::Broken, 9, give_up(Reason::BudgetExhausted)),
        (budget, READ, 1, busy(3), 7, give_up(Reason::BudgetExhausted)),
        // What the service asks for.
        (plain, READ, 1, busy(7), 0, again(7, 2, READ)),
        (plain, READ, 1, busy(0), 0, again(1, 2, READ)),
        (plain, READ, 1, busy(300), 0, again(300, 2, READ)),
        (plain, READ, 1, busy(301), 0, give_up(Reason::RetryAfterTooLong)),
    ] {
        let found = decided(&policy, request, number, outcome, elapsed_s);
        assert_eq!(found, expected, "{policy:?} {request:?} {number} {outcome:?} {elapsed_s}");
    }
}

/// The way of a request: locations and waits in seconds.
fn way(outcomes: &[Outcome]) -> Vec<(Location, u64)> {
    let policy = Policy { retries_max: 9, ..policy() };
    let mut attempt = Attempt::first(FALLBACK);
    let mut way = Vec::new();
    for outcome in outcomes {
        let Decision::Retry { after, next } = policy.decide(&attempt, outcome, Duration::ZERO, 0) else {
            panic!("{attempt:?} {outcome:?}");
        };
        way.push((next.location, after.as_secs()));
        attempt = next;
    }
    way
}

#[test]
fn reads_alternate_between_locations() {
    use Location::{Primary, Secondary};
    let broken = Outcome::Broken;
    assert_eq!(way(&[broken; 4]), [(Secondary, 0), (Primary, 1), (Secondary, 1), (Primary, 1)]);
    // The busy primary's wait is not the secondary's.
    assert_eq!(way(&[busy(9), broken]), [(Secondary, 0), (Primary, 1)]);
    // Not replicated yet: the primary from now on.
    let absent = Outcome::status(404);
    assert_eq!(
        way(&[broken, absent, broken, busy(9)]),
        [(Secondary, 0), (Primary, 1), (Primary, 1), (Primary, 9)]
    );
}

#[test]
fn the_last_answer_of_the_primary_is_final() {
    let attempt = Attempt { number: 3, secondary: Secondary::No, ..Attempt::first(FALLBACK) };
    let decision = policy().decide(&attempt, &Outcome::status(404), Duration::ZERO, 0);
    assert_eq!(decision, Decision::GiveUp(Reason::Final));
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let waits = proptest::option::of((0..1_000_000u64).prop_map(Duration::from_millis));
    prop_oneof![
        Just(Outcome::Unsent),
        Just(Outcome::Broken),
        Just(Outcome::TimedOut),
        (100..600u16, waits, any::<bool>()).prop_map(|(status, retry_after, is_refusal)| Outcome::Status {
            status,
            retry_after,
            is_refusal
        }),
    ]
}

proptest! {
    /// Whatever happens, a request ends: no more attempts than the policy has, none after the budget, none
    /// at a location it must not go to, and none twice if it is not idempotent.
    #[test]
    fn every_request_ends_within_its_bounds(
        outcomes in proptest::collection::vec((outcomes(), 0..20_000u64, any::<u64>()), 40),
        retries_max in 0..8u32, budget_ms in 0..200_000u64, is_idempotent: bool, has_secondary: bool, all: bool,
        profile in 0..crate::PROFILES.len(),
    ) {
        let base = crate::PROFILES[profile].1;
        let budget = Duration::from_millis(budget_ms);
        let mut policy = Policy { retries_max, ..base }.within(budget);
        policy.retries_not_idempotent = all;
        let mut attempt = Attempt::first(Request { is_idempotent, has_secondary });
        let mut elapsed = Duration::ZERO;
        let mut count = 0;
        for (outcome, took_ms, draw) in outcomes {
            count += 1;
            prop_assert_eq!(attempt.number, count);
            prop_assert!(count <= retries_max + 1);
            prop_assert!(has_secondary || attempt.location == Location::Primary);
            elapsed += Duration::from_millis(took_ms);
            let decision = policy.decide(&attempt, &outcome, elapsed, draw);
            prop_assert_eq!(decision, policy.decide(&attempt, &outcome, elapsed, draw));
            let Decision::Retry { after, next } = decision else { break };
            prop_assert!(elapsed + after < budget);
            prop_assert!(after <= policy.backoff.wait_max().max(RETRY_AFTER_FOR_MAX));
            if !is_idempotent && !all {
                let is_undone = matches!(outcome, Outcome::Unsent | Outcome::Status { is_refusal: true, .. });
                let is_404 = matches!(outcome, Outcome::Status { status: 404, .. });
                let is_absent = attempt.location == Location::Secondary && is_404;
                prop_assert!(is_undone || is_absent);
            }
            elapsed += after;
            attempt = next;
        }
    }
}
