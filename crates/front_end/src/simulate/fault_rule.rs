//! Fault rules: which requests they match, which of the matching ones they disturb, and how.
//!
//! What always holds: whether a rule disturbs its nth match depends on the seed, the rule and n only, so the
//! same requests in the same order are disturbed alike in each run.

use super::chance::{hash, hash_number, share};
use hyper::StatusCode;
use std::num::NonZeroU64;
use std::time::Duration;

/// Which requests a rule is about; what it does not name may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) account: Option<String>,
    /// `blob`, `queue` or `table`.
    pub(crate) service: Option<String>,
    /// Any of these operations.
    pub(crate) operations: Vec<String>,
    /// How the key begins, as [`super::operation::Operation::key`] has it, with slashes between its parts.
    pub(crate) key_prefix: String,
}

/// What a request is, as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) account: &'a str,
    pub(crate) service: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) key: &'a str,
}

/// Which of the matching requests are disturbed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    /// Each nth.
    Every(NonZeroU64),
    /// Each with this probability.
    Probability(f64),
}

/// Whether something happens before or after the request's work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// What is done to a request, besides a delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// It is answered so.
    Answer { status: StatusCode, code: String, message: Option<String>, when: When },
    /// Its connection is reset.
    Reset(When),
    /// Of the body of its answer only so many bytes are sent; then the connection breaks off.
    CutBody(u64),
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FaultRule {
    pub(crate) name: String,
    pub(crate) matches: Match,
    pub(crate) choice: Choice,
    /// Requests that are disturbed at most.
    pub(crate) times: Option<u64>,
    /// How long the request is held up before anything else is done to it.
    pub(crate) delay: Option<Duration>,
    pub(crate) disturbance: Option<Disturbance>,
}

/// What a rule has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleCount {
    pub(crate) matched: u64,
    pub(crate) disturbed: u64,
}

impl Disturbance {
    /// Whether the request's work is not done.
    pub(crate) fn is_before(&self) -> bool {
        matches!(self, Disturbance::Answer { when: When::Before, .. } | Disturbance::Reset(When::Before))
    }
}

impl Match {
    pub(crate) fn takes(&self, subject: &Subject<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.account, subject.account)
            && is(&self.service, subject.service)
            && (self.operations.is_empty() || self.operations.iter().any(|name| name == subject.operation))
            && subject.key.starts_with(&self.key_prefix)
    }
}

impl FaultRule {
    /// Whether it disturbs its next match, which is counted.
    pub(crate) fn chooses(&self, seed: u64, count: &mut RuleCount) -> bool {
        count.matched += 1;
        if self.times.is_some_and(|times| count.disturbed >= times) {
            return false;
        }
        let is_chosen = match self.choice {
            Choice::Every(nth) => count.matched.is_multiple_of(nth.get()),
            Choice::Probability(probability) => {
                share(hash_number(hash(seed, &["fault", &self.name]), count.matched)) < probability
            }
        };
        count.disturbed += u64::from(is_chosen);
        is_chosen
    }
}

/// The first rule that disturbs this request, by its place. Each rule that matches counts it.
pub(crate) fn choose_rule(
    rules: &[FaultRule],
    counts: &mut [RuleCount],
    seed: u64,
    subject: &Subject<'_>,
) -> Option<usize> {
    let mut chosen = None;
    for (index, (rule, count)) in rules.iter().zip(counts).enumerate() {
        if rule.matches.takes(subject) && rule.chooses(seed, count) {
            chosen = chosen.or(Some(index));
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, choice: Choice) -> FaultRule {
        let (matches, disturbance) = (Match::default(), Some(Disturbance::Reset(When::Before)));
        FaultRule { name: name.to_owned(), matches, choice, times: None, delay: None, disturbance }
    }

    fn every(nth: u64) -> Choice {
        Choice::Every(NonZeroU64::new(nth).expect("not 0"))
    }

    const SUBJECT: Subject<'_> =
        Subject { account: "one", service: "table", operation: "InsertEntity", key: "tasks/p/r" };

    #[test]
    fn what_matches() {
        let some = |text: &str| Some(text.to_owned());
        let matches = |account, service, operations: &[&str], key_prefix: &str| {
            let operations = operations.iter().map(|name| (*name).to_owned()).collect();
            Match { account, service, operations, key_prefix: key_prefix.to_owned() }.takes(&SUBJECT)
        };
        assert!(matches(None, None, &[], ""));
        assert!(matches(some("one"), some("table"), &["GetEntity", "InsertEntity"], "tasks/p"));
        assert!(!matches(some("two"), None, &[], ""));
        assert!(!matches(None, some("blob"), &[], ""));
        assert!(!matches(None, None, &["GetEntity"], ""));
        assert!(!matches(None, None, &[], "tasks/q"));
        assert!(!matches(None, None, &[], "tasks/p/r/s"));
    }

    fn chosen(rule: &FaultRule, seed: u64) -> Vec<u64> {
        let mut count = RuleCount::default();
        (1..=100).filter(|_| rule.chooses(seed, &mut count)).collect()
    }

    #[test]
    fn each_nth_and_no_more_than_so_many() {
        assert_eq!(chosen(&rule("a", every(40)), 1), [40, 80]);
        assert_eq!(chosen(&rule("a", every(1)), 1).len(), 100);
        let twice = FaultRule { times: Some(2), ..rule("a", every(10)) };
        assert_eq!(chosen(&twice, 1), [10, 20]);
    }

    #[test]
    fn a_seed_and_a_name_decide_over_probabilities() {
        let half = rule("half", Choice::Probability(0.5));
        assert!((30..70).contains(&chosen(&half, 1).len()));
        assert_eq!(chosen(&half, 1), chosen(&half, 1));
        assert_ne!(chosen(&half, 1), chosen(&half, 2));
        assert_ne!(chosen(&half, 1), chosen(&rule("other", Choice::Probability(0.5)), 1));
        assert!(chosen(&rule("never", Choice::Probability(0.0)), 1).is_empty());
        assert_eq!(chosen(&rule("always", Choice::Probability(1.0)), 1).len(), 100);
    }

    /// Otherwise a rule would change what the rules behind it do.
    #[test]
    fn the_first_rule_acts_and_all_count() {
        let rules = [rule("third", every(3)), rule("second", every(2))];
        let mut counts = [RuleCount::default(); 2];
        let chosen: Vec<Option<usize>> =
            (0..6).map(|_| choose_rule(&rules, &mut counts, 1, &SUBJECT)).collect();
        assert_eq!(chosen, [None, Some(1), Some(0), Some(1), None, Some(0)]);
        assert_eq!(counts[1], RuleCount { matched: 6, disturbed: 3 });
    }
}
