//! The balancing of load as the guidance describes it: a place with load for minutes is moved to a server of
//! its own, is away for seconds meanwhile, stays there while there is load, and cools afterwards.
//!
//! ```text
//!          load >= `load` for `begins_after`              `away_for` is over
//! Cold ------------------------------------> Away ------------------------------> Primed
//!   ^                                                                                |
//!   +------------ load < half of `load` for `cools_after` ---------------------------+
//! ```
//!
//! Load is what a place is requested to do as a share of what it may do, refusals included, averaged over
//! [`BalancingSettings::averaged_for`]. Nothing runs by itself: each request brings its place up to date.
//! What always holds: a place goes away only with a request, and comes back.

use std::time::Duration;

/// A place below this share of the load that begins a move has cooled.
const COOL_SHARE: f64 = 0.5;

/// A load that is as good as none.
const NO_LOAD: f64 = 0.001;

/// When load is balanced, and for how long. See `docs/simulate.md` for the sources of the usual values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BalancingSettings {
    /// The share of a place's target from which on it has load.
    pub(crate) load: f64,
    /// For how long it has load before it is moved.
    pub(crate) begins_after: Duration,
    /// The shortest time that it is away.
    pub(crate) away_for_min: Duration,
    /// The longest.
    pub(crate) away_for_max: Duration,
    /// For how long it has little load before it can be moved again.
    pub(crate) cools_after: Duration,
    /// What load is averaged over.
    pub(crate) averaged_for: Duration,
    /// The share of the answers meanwhile that say that time was up; the others say that the server is busy.
    pub(crate) timed_out: f64,
}

impl Default for BalancingSettings {
    fn default() -> Self {
        BalancingSettings {
            load: 0.5,
            begins_after: Duration::from_secs(180),
            away_for_min: Duration::from_secs(5),
            away_for_max: Duration::from_secs(20),
            cools_after: Duration::from_secs(600),
            averaged_for: Duration::from_secs(10),
            timed_out: 0.5,
        }
    }
}

impl BalancingSettings {
    /// The same with all durations divided by `speed`.
    pub(crate) fn at_speed(self, speed: f64) -> Self {
        let faster = |duration: Duration| duration.div_f64(speed);
        BalancingSettings {
            begins_after: faster(self.begins_after),
            away_for_min: faster(self.away_for_min),
            away_for_max: faster(self.away_for_max),
            cools_after: faster(self.cools_after),
            averaged_for: faster(self.averaged_for),
            ..self
        }
    }
}

/// What became of a place with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// It is served.
    Here,
    /// It goes away for so long.
    Leaving(Duration),
    /// It is away.
    Away,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Cold { hot_since: Option<Duration> },
    Away { until: Duration },
    Primed { cool_since: Option<Duration> },
}

/// The load of one place, and what was done about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlaceLoad {
    load: f64,
    load_at: Duration,
    phase: Phase,
}

impl Default for PlaceLoad {
    fn default() -> Self {
        PlaceLoad { load: 0.0, load_at: Duration::ZERO, phase: Phase::Cold { hot_since: None } }
    }
}

impl PlaceLoad {
    /// A request comes that takes `work` of the place's time (its cost by its rate). `chance` decides how
    /// long a move takes: 0 the shortest time, 1 the longest.
    pub(crate) fn note(
        &mut self,
        now: Duration,
        work: Duration,
        settings: &BalancingSettings,
        chance: f64,
    ) -> Whereabouts {
        self.add(now, work, settings);
        let is_hot = self.load >= settings.load;
        match &mut self.phase {
            Phase::Away { .. } => Whereabouts::Away,
            Phase::Cold { hot_since } if is_hot => {
                let since = *hot_since.get_or_insert(now);
                if now.saturating_sub(since) < settings.begins_after {
                    return Whereabouts::Here;
                }
                let longer = settings.away_for_max.saturating_sub(settings.away_for_min).mul_f64(chance);
                let away_for = settings.away_for_min + longer;
                self.phase = Phase::Away { until: now + away_for };
                Whereabouts::Leaving(away_for)
            }
            Phase::Cold { .. } | Phase::Primed { .. } => Whereabouts::Here,
        }
    }

    /// A request turned out to take more `work`.
    pub(crate) fn add(&mut self, now: Duration, work: Duration, settings: &BalancingSettings) {
        self.bring_up_to_date(now, settings);
        self.load += work.as_secs_f64() / settings.averaged_for.as_secs_f64();
    }

    /// Whether it equals the load of a place that is not known.
    pub(crate) fn is_none(mut self, now: Duration, settings: &BalancingSettings) -> bool {
        self.bring_up_to_date(now, settings);
        self.phase == Phase::Cold { hot_since: None } && self.load < NO_LOAD
    }

    /// Lets the load fall, and the phase follow it, for the time in which no request came.
    fn bring_up_to_date(&mut self, now: Duration, settings: &BalancingSettings) {
        let (load_before, load_at) = (self.load, self.load_at.min(now));
        let averaged_for = settings.averaged_for.as_secs_f64();
        self.load *= (-(now - load_at).as_secs_f64() / averaged_for).exp();
        self.load_at = now;
        let cool = settings.load * COOL_SHARE;
        if let Phase::Away { until } = self.phase
            && until <= now
        {
            self.phase = Phase::Primed { cool_since: None };
        }
        match &mut self.phase {
            Phase::Cold { hot_since } if self.load < settings.load => *hot_since = None,
            Phase::Primed { cool_since } if self.load < cool => {
                // It fell below at some instant since the request before.
                let fell_for = (load_before / cool).ln().max(0.0) * averaged_for;
                let fell_at = load_at + Duration::from_secs_f64(fell_for);
                let since = *cool_since.get_or_insert(fell_at.min(now));
                if now.saturating_sub(since) >= settings.cools_after {
                    self.phase = Phase::Cold { hot_since: None };
                }
            }
            Phase::Primed { cool_since } => *cool_since = None,
            Phase::Cold { .. } | Phase::Away { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(10);

    /// Brings a load of `share` from one instant to another; gives when the place left, and how many requests
    /// found it away.
    fn run(
        place: &mut PlaceLoad,
        (from, until): (u64, u64),
        share: f64,
        settings: &BalancingSettings,
    ) -> (Option<u64>, usize) {
        let (mut now, mut left_at, mut away) = (Duration::from_secs(from), None, 0);
        while now < Duration::from_secs(until) {
            match place.note(now, STEP.mul_f64(share), settings, 0.0) {
                Whereabouts::Here => {}
                Whereabouts::Leaving(_) => left_at = Some(now.as_secs()),
                Whereabouts::Away => away += 1,
            }
            now += STEP;
        }
        (left_at, away)
    }

    #[test]
    fn a_place_leaves_after_minutes_of_load_and_leaves_again_once_it_has_cooled() {
        let settings = BalancingSettings::default();
        let mut place = PlaceLoad::default();
        // Load, then too little of it, then load again: only what lasts counts.
        assert_eq!(run(&mut place, (0, 150), 1.0, &settings), (None, 0));
        assert_eq!(run(&mut place, (150, 200), 0.3, &settings), (None, 0));
        let (left_at, away) = run(&mut place, (200, 500), 1.0, &settings);
        let left_at = left_at.expect("it has had load for long enough");
        assert!((380..=390).contains(&left_at), "{left_at}");
        assert!((480..=500).contains(&away), "5 s of requests every 10 ms: {away}");
        // Primed: it stays, however much load there is, and after pauses that are too short.
        assert_eq!(run(&mut place, (500, 2000), 1.0, &settings), (None, 0));
        assert_eq!(run(&mut place, (2500, 3000), 1.0, &settings), (None, 0));
        assert!(!place.is_none(Duration::from_secs(3010), &settings));
        // Cold again after ten minutes without.
        assert!(place.is_none(Duration::from_secs(3700), &settings));
        let (left_at, _) = run(&mut place, (3700, 4000), 1.0, &settings);
        assert!(left_at.is_some());
    }

    #[test]
    fn one_factor_shortens_all_of_it() {
        let settings = BalancingSettings::default().at_speed(60.0);
        assert_eq!(settings.begins_after, Duration::from_secs(3));
        assert_eq!(settings.cools_after, Duration::from_secs(10));
        let mut place = PlaceLoad::default();
        let (left_at, away) = run(&mut place, (0, 10), 1.0, &settings);
        assert_eq!(left_at, Some(3));
        assert!((5..=9).contains(&away), "{away}");
        assert!(run(&mut place, (25, 40), 1.0, &settings).0.is_some());
    }

    #[test]
    fn chance_chooses_how_long_it_is_away() {
        let settings = BalancingSettings { begins_after: Duration::ZERO, ..BalancingSettings::default() };
        let second = Duration::from_secs(1);
        for (chance, expected) in [(0.0, 5), (0.5, 12), (0.999_999, 19)] {
            let mut place = PlaceLoad::default();
            let found = place.note(second, 100 * second, &settings, chance);
            let Whereabouts::Leaving(away_for) = found else { panic!("{found:?}") };
            assert_eq!(away_for.as_secs(), expected);
        }
    }

    #[test]
    fn a_clock_that_stands_still_does_no_harm() {
        let settings = BalancingSettings::default();
        let mut place = PlaceLoad::default();
        for _ in 0..10 {
            place.note(Duration::from_secs(9), STEP, &settings, 0.0);
            place.note(Duration::ZERO, STEP, &settings, 0.0);
        }
        assert!(place.load.is_finite());
    }
}
