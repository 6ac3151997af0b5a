//! Runs the searches and prints a line for each: states, bounds, seconds, what was found.

use crate::configs::CONFIGS;
use crate::faults::{FAULTS, Fault};
use crate::search::explore::{Explored, Finding, explore};
use crate::search::goes_on::first_stuck;
use crate::setting::{Grain, Setting};
use crate::start::start;
use base::Clock;
use std::io::{self, Write};

/// States of one search: about 4 GiB. A search that meets more is not exhausted, and says so.
const STATES_MAX: usize = 16_000_000;

/// What to search.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Arguments {
    /// Small bounds.
    #[arg(long)]
    pub short: bool,
    /// Only the setting or the fault of this name.
    #[arg(long, value_name = "NAME")]
    pub config: Option<String>,
    /// Coarse steps for all of them, planted faults too.
    #[arg(long)]
    pub coarse: bool,
    /// Prints the shortest trace to each planted fault, step by step.
    #[arg(long)]
    pub traces: bool,
}

impl Arguments {
    fn setting(&self, setting: Setting) -> Setting {
        if self.coarse { Setting { grain: Grain::Coarse, ..setting } } else { setting }
    }
}

/// A search and how it ended.
struct Searched {
    explored: Explored,
    found: Option<Finding>,
    seconds: f64,
}

/// Runs what the arguments name; whether all of it is as it must be.
pub fn run(arguments: &Arguments, clock: &dyn Clock, out: &mut dyn Write) -> io::Result<bool> {
    let is_named = |name: &str| arguments.config.as_ref().is_none_or(|wanted| wanted == name);
    let configs: Vec<_> = CONFIGS.iter().filter(|config| is_named(config.name)).collect();
    let faults: Vec<_> = FAULTS.iter().filter(|fault| is_named(fault.name)).collect();
    if configs.is_empty() && faults.is_empty() {
        let names = CONFIGS.iter().map(|config| config.name).chain(FAULTS.iter().map(|fault| fault.name));
        let names: Vec<&str> = names.collect();
        writeln!(out, "there is no setting of this name; there are {}", names.join(", "))?;
        return Ok(false);
    }
    let began_at = clock.monotonic();
    let (mut is_fine, mut states) = (true, 0);
    for config in configs {
        let setting = arguments.setting(config.setting(arguments.short));
        let searched = search(&setting, clock);
        states += searched.explored.states;
        is_fine &= report_config(&setting, &searched, out)?;
        // Small bounds are meant to be exhausted.
        is_fine &= searched.explored.is_complete || !arguments.short;
    }
    for fault in faults {
        let searched = search(&arguments.setting(fault.setting()), clock);
        states += searched.explored.states;
        is_fine &= report_fault(fault, &searched, arguments.traces, out)?;
    }
    let seconds = (clock.monotonic() - began_at).as_secs_f64();
    writeln!(
        out,
        "model: {states} states, {seconds:.1} s, {}",
        if is_fine { "as it must be" } else { "FAILED" }
    )?;
    Ok(is_fine)
}

fn search(setting: &Setting, clock: &dyn Clock) -> Searched {
    let began_at = clock.monotonic();
    let (mut explored, trace) = explore(&start(setting), setting, STATES_MAX);
    let mut found = explored.found.take();
    if explored.is_complete && found.is_none() {
        found = first_stuck(&explored.graph).map(|state| Finding {
            what: "from here on no owner ever appends again".to_owned(),
            trace: trace.to(&explored.graph, setting, state),
        });
    }
    Searched { explored, found, seconds: (clock.monotonic() - began_at).as_secs_f64() }
}

fn report_config(setting: &Setting, searched: &Searched, out: &mut dyn Write) -> io::Result<bool> {
    let Explored { states, steps, depth, is_complete, .. } = &searched.explored;
    let verdict = match (&searched.found, is_complete) {
        (Some(_), _) => "VIOLATION",
        (None, true) => "holds, and goes on from every state",
        (None, false) => "NOT EXHAUSTED, no violation so far, whether it goes on is not known",
    };
    let Setting { name, processes, window, bounds, .. } = setting;
    let grain = match setting.grain {
        Grain::Fine => "fine",
        Grain::Coarse => "coarse",
    };
    writeln!(
        out,
        "{name}: {verdict}: {states} states, {steps} steps, depth {depth}, {:.1} s; \
         {processes} processes, window {window}, {grain} steps; {bounds}",
        searched.seconds
    )?;
    if let Some(finding) = &searched.found {
        write_trace(finding, out)?;
    }
    out.flush()?;
    Ok(searched.found.is_none())
}

fn report_fault(fault: &Fault, searched: &Searched, traces: bool, out: &mut dyn Write) -> io::Result<bool> {
    let (states, seconds) = (searched.explored.states, searched.seconds);
    match &searched.found {
        Some(finding) => {
            let steps = finding.trace.len();
            writeln!(
                out,
                "fault {}: found after {states} states, {steps} steps, {seconds:.1} s",
                fault.name
            )?;
            if traces {
                let without = if fault.without.is_empty() { "nothing" } else { fault.without };
                writeln!(out, "  {}; switched off: {without}", fault.what)?;
                write_trace(finding, out)?;
            }
        }
        None => writeln!(out, "fault {}: NOT FOUND in {states} states, {seconds:.1} s", fault.name)?,
    }
    out.flush()?;
    Ok(searched.found.is_some())
}

fn write_trace(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    for (number, step) in (1..).zip(&finding.trace) {
        writeln!(out, "  {number:>3} {step}")?;
    }
    writeln!(out, "      {}", finding.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::system::SystemClock;

    fn report_of(name: &str) -> (bool, String) {
        let config = Some(name.to_owned());
        let arguments = Arguments { short: true, traces: true, config, ..Arguments::default() };
        let mut out = Vec::new();
        let is_fine = run(&arguments, &SystemClock::new(), &mut out).unwrap();
        (is_fine, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_setting_holds_and_a_fault_has_a_trace() {
        let (is_fine, report) = report_of("stray-seal");
        assert!(is_fine && report.contains("stray-seal: holds, and goes on from every state"), "{report}");
        let (is_fine, report) = report_of("release-then-read");
        assert!(is_fine && report.contains("fault release-then-read: found after"), "{report}");
        assert!(report.contains("p1 takes range"), "{report}");
        let (is_fine, report) = report_of("no-such-setting");
        assert!(!is_fine && report.contains("there are append, "), "{report}");
    }

    #[test]
    fn names_of_settings_and_faults_are_unique() {
        let names = CONFIGS.iter().map(|config| config.name).chain(FAULTS.iter().map(|fault| fault.name));
        let mut names: Vec<&str> = names.collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
