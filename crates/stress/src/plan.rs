//! What a run does: checked settings, and the steps that follow from them.

use crate::workload::key_space::KeyPlan;
use crate::workload::mix::Mix;
use std::time::Duration;
use storage_client::{AccountAddress, Service, Settings};

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is loaded.
    pub service: Service,
    /// Whose.
    pub address: AccountAddress,
    /// How its client retries, trusts and connects; the number of connections is set by the run.
    pub settings: Settings,
    /// What reports call the retry policy.
    pub retry_name: String,
    /// What is done.
    pub mix: Mix,
    /// On which keys.
    pub keys: KeyPlan,
    /// How much at a time.
    pub load: Load,
    /// First it is found out in so much time what the server does at most; none is not at all.
    pub ceiling_for: Option<Duration>,
    /// Each step's beginning that is not counted.
    pub warm_up_for: Duration,
    /// Clients, each with at most one request under way; at least 1.
    pub clients: u64,
    /// Threads that they run on; at least 1.
    pub workers: u64,
    /// Chooses keys and operations.
    pub seed: u64,
}

/// How much load there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Closed loop: each client sends its next request when the last one is answered.
    Closed {
        /// How long.
        counted_for: Duration,
    },
    /// Open loop: requests are due at a steady rate, whether the server keeps up or not.
    Open {
        /// Requests a second.
        rate: f64,
        /// How long.
        counted_for: Duration,
    },
    /// Open loop with a rising rate, until it is reached or the server no longer keeps up.
    Until {
        /// Requests a second.
        rate: f64,
        /// How long each step is.
        step_for: Duration,
    },
}

/// How the requests of a step begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When a client is free.
    Closed,
    /// So many a second.
    Open(f64),
}

/// Why there is a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRole {
    /// It shows what the server does at most.
    Ceiling,
    /// It is what was asked for, or one of the rates before it.
    Main,
}

/// A part of a run with the same load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) role: StepRole,
    pub(crate) pace: Pace,
    pub(crate) counted_for: Duration,
}

/// The first rate of [`Load::Until`] is that part of the last one.
const FIRST_PART: f64 = 0.125;
/// By which the rate rises.
const RISE: f64 = 1.3;

impl Plan {
    /// The first step.
    pub(crate) fn first_step(&self) -> Step {
        match self.ceiling_for {
            Some(counted_for) => Step { role: StepRole::Ceiling, pace: Pace::Closed, counted_for },
            None => self.first_main_step(),
        }
    }

    fn first_main_step(&self) -> Step {
        let (pace, counted_for) = match self.load {
            Load::Closed { counted_for } => (Pace::Closed, counted_for),
            Load::Open { rate, counted_for } => (Pace::Open(rate), counted_for),
            Load::Until { rate, step_for } => (Pace::Open(rate * FIRST_PART), step_for),
        };
        Step { role: StepRole::Main, pace, counted_for }
    }

    /// The step after one, at whose rate the server kept up or not.
    pub(crate) fn next_step(&self, last: &Step, has_kept_up: bool) -> Option<Step> {
        if last.role == StepRole::Ceiling {
            return Some(self.first_main_step());
        }
        match (self.load, last.pace) {
            (Load::Until { rate: goal, .. }, Pace::Open(rate)) if rate < goal && has_kept_up => {
                Some(Step { pace: Pace::Open((rate * RISE).min(goal)), ..*last })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::key_space::Distribution;

    fn plan(load: Load, ceiling_for: Option<Duration>) -> Plan {
        Plan {
            service: Service::Table,
            address: AccountAddress::development(),
            settings: Settings::default(),
            retry_name: "none".to_owned(),
            mix: Mix::named(Service::Table, "get").expect("a mix"),
            keys: KeyPlan { distribution: Distribution::Uniform, loaded: 1, partitions: 1 },
            load,
            ceiling_for,
            warm_up_for: Duration::ZERO,
            clients: 1,
            workers: 1,
            seed: 1,
        }
    }

    /// The paces of all steps, if the server keeps up to that rate.
    fn paces(plan: &Plan, keeps_up_to: f64) -> Vec<Pace> {
        let mut steps = vec![plan.first_step()];
        loop {
            let last = steps[steps.len() - 1];
            let keeps_up = !matches!(last.pace, Pace::Open(rate) if rate > keeps_up_to);
            match plan.next_step(&last, keeps_up) {
                Some(next) => steps.push(next),
                None => return steps.into_iter().map(|step| step.pace).collect(),
            }
        }
    }

    #[test]
    fn steps_follow_from_the_load() {
        const SECOND: Duration = Duration::from_secs(1);
        let closed = plan(Load::Closed { counted_for: SECOND }, None);
        assert_eq!(paces(&closed, 0.0), [Pace::Closed]);
        let open = plan(Load::Open { rate: 5.0, counted_for: SECOND }, Some(SECOND));
        assert_eq!(paces(&open, 0.0), [Pace::Closed, Pace::Open(5.0)]);
        let until = plan(Load::Until { rate: 1000.0, step_for: SECOND }, None);
        let rising = paces(&until, 1e9);
        assert_eq!((rising[0], rising[rising.len() - 1]), (Pace::Open(125.0), Pace::Open(1000.0)));
        assert_eq!(rising.len(), 9);
        let stopped = paces(&until, 300.0);
        assert_eq!(stopped.len(), 5, "{stopped:?}");
        assert!(matches!(stopped[4], Pace::Open(rate) if (rate - 357.0).abs() < 0.1), "{stopped:?}");
        assert_eq!(paces(&until, 0.0).len(), 1);
    }
}
