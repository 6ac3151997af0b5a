//! The report as one page: tables and plots, with all that it needs in the file itself.
//!
//! What always holds: nothing is loaded from elsewhere, and nothing of the page runs; texts that came from a
//! server are escaped.

use super::data::{Report, StepRow};
use super::numbers::{bytes, percent, rate, span, thousands};
use super::plot::{Axis, Line, Plot, Scale, escaped, svg};
use crate::measure::latency::Percentiles;
use crate::plan::{Pace, StepRole};

const STYLE: &str = "\
:root { color-scheme: light dark; --text: #1c2024; --soft: #62686f; --rule: #d8dce1; --page: #fcfcfd;
  --l0: #1664c0; --l1: #c2410c; --l2: #14803c; --mark: #8b5cf6; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --soft: #9ba1a8; --rule: #363a3f; --page: #16181a;
  --l0: #69b1ff; --l1: #ff9a62; --l2: #5fd38d; --mark: #b79cff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  margin: 0 auto; max-width: 62rem; padding: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0 0 1rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
.about th, .about td { text-align: left; border: 0; padding-top: .1rem; padding-bottom: .1rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 500; }
figcaption span { display: inline-block; font-weight: 400; font-size: .85rem; margin-left: .9rem; color: var(--soft); }
figcaption span::before { content: ''; display: inline-block; width: .8rem; height: .2rem; margin-right: .3rem;
  vertical-align: middle; background: currentColor; }
figcaption .l0::before { background: var(--l0); } figcaption .l1::before { background: var(--l1); }
figcaption .l2::before { background: var(--l2); } figcaption .mark::before { background: var(--mark); }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--soft); }
svg .grid { stroke: var(--rule); stroke-width: 1; } svg .mark { stroke: var(--mark); stroke-dasharray: 5 4; }
polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
polyline.l0 { stroke: var(--l0); } polyline.l1 { stroke: var(--l1); } polyline.l2 { stroke: var(--l2); }
circle.l0 { fill: var(--l0); } circle.l1 { fill: var(--l1); } circle.l2 { fill: var(--l2); }
ul { padding-left: 1.2rem; } p, li, .about td { overflow-wrap: anywhere; } .soft { color: var(--soft); }
";

/// The report as a page.
pub fn html(report: &Report) -> String {
    let title = format!("larimar stress: {}", value_of(report, "mix"));
    let title = escaped(&title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    put_about(&mut out, report);
    put_findings(&mut out, report);
    heading(&mut out, "Operations");
    put_operations(&mut out, report);
    heading(&mut out, "Plots");
    out.push_str("<div class=\"plots\">\n");
    plots(report).iter().for_each(|plot| out.push_str(&svg(plot)));
    out.push_str("</div>\n");
    if report.steps.len() > 1 {
        heading(&mut out, "Steps");
        put_steps(&mut out, report);
    }
    heading(&mut out, "Errors, and what retries made of them");
    put_errors(&mut out, report);
    heading(&mut out, "Beside the published targets");
    put_targets(&mut out, report);
    out.push_str("</body>\n</html>\n");
    out
}

fn value_of<'a>(report: &'a Report, name: &str) -> &'a str {
    let mut found = report.about.iter().filter(|(one, _)| *one == name);
    found.next().map_or("", |(_, value)| value)
}

fn heading(out: &mut String, text: &str) {
    out.push_str(&format!("<h2>{}</h2>\n", escaped(text)));
}

/// A table; the first row is its head.
fn put_table(out: &mut String, rows: &[Vec<String>]) {
    out.push_str("<div class=\"wide\"><table>\n");
    for (index, row) in rows.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        out.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
    }
    out.push_str("</table></div>\n");
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn put_about(out: &mut String, report: &Report) {
    out.push_str("<div class=\"wide\"><table class=\"about\">\n");
    for (name, value) in &report.about {
        out.push_str(&format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(value)));
    }
    out.push_str("</table></div>\n");
}

fn put_findings(out: &mut String, report: &Report) {
    let end = &report.end;
    let stopped = end.is_interrupted.then(|| "the run was stopped before its time".to_owned());
    let all: Vec<String> = stopped
        .iter()
        .chain(&report.findings)
        .chain(&end.left_behind)
        .map(|finding| format!("<li>{}</li>\n", escaped(finding)))
        .collect();
    if !all.is_empty() {
        heading(out, "What stands out");
        out.push_str(&format!("<ul>\n{}</ul>\n", all.concat()));
    }
}

fn latencies(percentiles: &Percentiles) -> [String; 5] {
    [percentiles.p50_us, percentiles.p95_us, percentiles.p99_us, percentiles.p999_us, percentiles.max_us]
        .map(span)
}

fn put_operations(out: &mut String, report: &Report) {
    let items = format!("{}/s", report.items);
    let head = ["operation", "done/s", &items, "bytes/s", "p50", "p95", "p99", "p99.9", "longest", "failed"];
    let mut rows = vec![texts(&head)];
    for row in &report.operations {
        let mut cells = vec![row.name.to_owned(), rate(row.done_per_s), rate(row.items_per_s)];
        cells.push(if row.bytes_per_s > 0.0 { bytes(row.bytes_per_s) } else { "–".to_owned() });
        cells.extend(latencies(&row.percentiles));
        cells.push(thousands(row.failed as f64));
        rows.push(cells);
    }
    put_table(out, &rows);
    let step = report.steps.last();
    if let Some(step) = step.filter(|step| step.unfinished > 0) {
        out.push_str(&format!(
            "<p class=\"soft\">{} had no answer at the end, {} of them were never begun: they are in the percentiles \
             with the time that they have waited.</p>\n",
            thousands(step.unfinished as f64),
            thousands(step.unbegun as f64)
        ));
    }
    if let Some(own) = report.own {
        out.push_str(&format!(
            "<p class=\"soft\">Own processor time: {:.1} µs an operation, {} of this program's threads.</p>\n",
            own.us_per_operation,
            percent(own.share)
        ));
    }
}

fn step_name(step: &StepRow) -> String {
    match (step.role, step.pace) {
        (StepRole::Ceiling, _) => "ceiling".to_owned(),
        (StepRole::Main, Pace::Closed) => "closed loop".to_owned(),
        (StepRole::Main, Pace::Open(per_s)) => format!("{}/s due", rate(per_s)),
    }
}

fn put_steps(out: &mut String, report: &Report) {
    let head = ["step", "done/s", "p50", "p95", "p99", "p99.9", "longest", "failed", "never begun", ""];
    let mut rows = vec![texts(&head)];
    for step in &report.steps {
        let mut cells = vec![step_name(step), rate(step.done_per_s)];
        cells.extend(latencies(&step.percentiles));
        cells.extend([thousands(step.failed as f64), thousands(step.unbegun as f64)]);
        cells.push(if step.has_kept_up { String::new() } else { "falls behind".to_owned() });
        rows.push(cells);
    }
    put_table(out, &rows);
}

fn put_errors(out: &mut String, report: &Report) {
    if report.errors.is_empty() {
        out.push_str("<p>None.</p>\n");
        return;
    }
    let head = ["error", "attempts", "sent again", "operations done after it", "failed with it"];
    let mut rows = vec![texts(&head)];
    for row in &report.errors {
        let count = &row.count;
        let numbers = [count.repeated + count.failed, count.repeated, count.done_after, count.failed];
        let mut cells = vec![row.code.to_string()];
        cells.extend(numbers.map(|number| thousands(number as f64)));
        rows.push(cells);
    }
    put_table(out, &rows);
    for row in report.errors.iter().filter(|row| row.count.failed > 0) {
        let reasons = row.count.reasons.iter().map(|(why, count)| format!("; {count} not sent again: {why}"));
        let text = format!("{}: {}{}", row.code, row.count.message, reasons.collect::<String>());
        out.push_str(&format!("<p class=\"soft\">{}</p>\n", escaped(&text)));
    }
}

fn put_targets(out: &mut String, report: &Report) {
    let mut rows = vec![texts(&["", "measured", "published", "share"])];
    for target in &report.targets {
        rows.push(vec![
            target.what.to_owned(),
            format!("{} {}/s", rate(target.per_s), target.unit),
            format!("{} {}/s", thousands(target.published_per_s), target.unit),
            percent(target.per_s / target.published_per_s),
        ]);
    }
    put_table(out, &rows);
    let ceiling = &report.ceiling;
    let reached = if ceiling.is_reached { "" } else { "not reached, at least " };
    out.push_str(&format!(
        "<p>The server's ceiling: {reached}{}/s ({}).</p>\n",
        rate(ceiling.per_s),
        escaped(&ceiling.why)
    ));
}

fn axis(label: &'static str, scale: Scale, text: fn(f64) -> String) -> Axis {
    Axis { label, scale, ticks: None, text }
}

fn time() -> Axis {
    axis("seconds", Scale::Linear, thousands)
}

fn latency() -> Axis {
    axis("latency", Scale::Log, |us| match us {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.0} s", us / 1e6),
    })
}

fn line(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Line {
    Line { name: name.to_owned(), points: points.collect() }
}

fn plots(report: &Report) -> Vec<Plot> {
    let seconds = || report.seconds.iter();
    let mut all = vec![
        Plot {
            title: "Rate",
            x: time(),
            y: axis("a second", Scale::Linear, thousands),
            lines: vec![
                line(report.items, seconds().map(|second| (second.at_s, second.items_per_s))),
                line("failed operations", seconds().map(|second| (second.at_s, second.failed_per_s))),
                line("attempts sent again", seconds().map(|second| (second.at_s, second.repeated_per_s))),
            ],
            // Of the place, in the unit of the line; the account's counts requests.
            marks: report
                .targets
                .iter()
                .filter(|target| target.unit == report.items)
                .map(|target| (format!("published for {}", target.what), target.published_per_s))
                .collect(),
        },
        Plot {
            title: "Latency over time",
            x: time(),
            y: latency(),
            lines: vec![
                line("p50", seconds().map(|second| (second.at_s, second.percentiles.p50_us as f64))),
                line("p99", seconds().map(|second| (second.at_s, second.percentiles.p99_us as f64))),
                line("longest", seconds().map(|second| (second.at_s, second.percentiles.max_us as f64))),
            ],
            marks: Vec::new(),
        },
        Plot {
            title: "Latency by share of operations",
            x: Axis {
                label: "share of operations that are at least as fast",
                scale: Scale::Linear,
                ticks: Some(share_ticks(report)),
                text: thousands,
            },
            y: latency(),
            lines: vec![line("latency", report.curve.iter().map(|(share, us)| (nines(*share), *us as f64)))],
            marks: Vec::new(),
        },
    ];
    if report.steps.iter().filter(|step| matches!(step.pace, Pace::Open(_))).count() > 1 {
        all.push(steps_plot(report));
    }
    all
}

/// A share on an axis on which each nine is as wide as the one before: 0.9 is 1, 0.99 is 2.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

fn share_ticks(report: &Report) -> Vec<(f64, String)> {
    let end = report.curve.last().map_or(1.0, |(share, _)| nines(*share));
    let ticks = [
        (0.0, "0 %"),
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9999, "99.99 %"),
        (0.99999, "99.999 %"),
        (0.999_999, "99.9999 %"),
    ];
    let ticks = ticks.into_iter().map(|(share, text)| (nines(share), text.to_owned()));
    ticks.filter(|(at, _)| *at <= end.max(1.0)).collect()
}

fn steps_plot(report: &Report) -> Plot {
    let steps = || {
        report.steps.iter().filter_map(|step| match step.pace {
            Pace::Open(due) => Some((due, step)),
            Pace::Closed => None,
        })
    };
    Plot {
        title: "What was done of what was due",
        x: axis("operations due a second", Scale::Linear, thousands),
        y: axis("done a second", Scale::Linear, thousands),
        lines: vec![
            line("done", steps().map(|(due, step)| (due, step.done_per_s))),
            line("due", steps().map(|(due, _)| (due, due))),
        ],
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::errors::{ErrorCode, ErrorCount};
    use crate::report::data::ErrorRow;
    use crate::report::findings::tests::{plan, result};
    use crate::run::step::Second;
    use base::Ticks;
    use storage_client::Service;

    fn report() -> Report {
        let results = [result(Pace::Open(500.0), 500), result(Pace::Open(3000.0), 2500)];
        let second = |at_s| Second { at_s, done_per_s: 500.0, items_per_s: 500.0, ..Second::default() };
        let seconds = vec![second(1.0), second(2.0)];
        Report::new(&plan(Service::Table, 1), "stress1".to_owned(), Ticks::default(), &results, seconds)
    }

    #[test]
    fn a_page_has_its_tables_and_plots_and_loads_nothing() {
        let page = html(&report());
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert_eq!(page.matches("<svg ").count(), 4);
        assert!(page.contains("<td>3,000/s due</td>") && page.contains("published for the partition"));
        for way in ["<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import", "http-equiv"] {
            assert!(!page.contains(way), "{way}");
        }
    }

    #[test]
    fn what_a_server_says_is_text() {
        let mut report = report();
        let code = ErrorCode { status: Some(500), code: "<b>".to_owned() };
        let message = "<script>alert(1)</script> & \"more\"".to_owned();
        report.errors =
            vec![ErrorRow { code, count: ErrorCount { failed: 1, message, ..ErrorCount::default() } }];
        let page = html(&report);
        assert!(
            page.contains("500 &lt;b&gt;: &lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;"),
            "{page}"
        );
        assert!(!page.contains("<script") && !page.contains("<b>"));
    }
}
