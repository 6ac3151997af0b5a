//! The alert rules, the dashboard and the runbook as text: which alerts there are, which metrics are named,
//! and the same rules with little patience. What always holds: nothing here reads a file or starts a process.

use serde_json::Value;
use std::collections::BTreeSet;

/// How long a condition holds before its alert fires in a run, whatever the rule says.
const FOR: &str = "2s";
/// The window of rates in a run, and what it is in the rules.
const WINDOW: &str = "[15s]";
const WINDOW_IN_RULES: &str = "[5m]";
/// What a dashboard has in place of a window and of the servers that were chosen, and a value of each.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "5m"), ("$instance", ".*")];

/// Names of the alerts, in their order.
pub(super) fn alert_names(rules: &str) -> Vec<String> {
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ").map(str::to_owned)).collect()
}

/// The same rules, but their conditions need to hold for two seconds only, and rates are those of the last
/// 15 seconds.
pub(super) fn shortened(rules: &str) -> String {
    let line = |line: &str| match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: {FOR}\n"),
        _ => format!("{line}\n"),
    };
    rules.lines().map(line).collect::<String>().replace(WINDOW_IN_RULES, WINDOW)
}

/// Families that a text names, with what Prometheus makes of a histogram's name taken off.
pub(super) fn families(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_')
        .filter(|word| word.starts_with("larimar_") || word.starts_with("process_"))
        .map(|word| {
            let bare = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix));
            bare.unwrap_or(word).to_owned()
        })
        .collect()
}

/// Families that the reference has a row for.
pub(super) fn documented_families(reference: &str) -> BTreeSet<String> {
    let row = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    reference.lines().filter_map(row).collect()
}

/// What is wrong between rules and runbook: each alert has one section with all its parts, each section is
/// an alert's, and each rule leads to its section.
pub(super) fn disagreements(rules: &str, runbook: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let alerts = alert_names(rules);
    let sections: Vec<(&str, &str)> =
        runbook.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect();
    for alert in &alerts {
        let link = format!("runbook: docs/runbook.md#{}", alert.to_lowercase());
        if !rules.lines().any(|line| line.trim() == link) {
            wrong.push(format!("{alert} has no \"{link}\""));
        }
        match sections.iter().find(|(title, _)| title == alert) {
            None => wrong.push(format!("{alert} has no section in the runbook")),
            Some((_, text)) => {
                for part in ["**Symptom.**", "**How to look.**", "**What to do.**"] {
                    if !text.contains(part) {
                        wrong.push(format!("the section of {alert} has no {part}"));
                    }
                }
            }
        }
    }
    for (title, _) in &sections {
        if !alerts.iter().any(|alert| alert == title) {
            wrong.push(format!("the runbook has a section {title}, which no alert has"));
        }
    }
    wrong
}

/// The queries of a dashboard, as Prometheus would get them.
pub(super) fn queries(dashboard: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_queries(dashboard, &mut found);
    found
}

fn collect_queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_queries(value, found)),
        Value::Object(members) => {
            if let Some(Value::String(query)) = members.get("expr") {
                let put = |query: String, (name, value): &(&str, &str)| query.replace(name, value);
                found.push(VARIABLES.iter().fold(query.clone(), put));
            }
            members.values().for_each(|value| collect_queries(value, found));
        }
        _ => {}
    }
}

/// Queries as rules that record them, which `promtool` parses.
pub(super) fn recorded(queries: &[String]) -> String {
    let rules: Vec<Value> = queries
        .iter()
        .enumerate()
        .map(|(index, query)| serde_json::json!({ "record": format!("dashboard:query_{index}"), "expr": query }))
        .collect();
    // JSON is YAML.
    serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = include_str!("../../../../deploy/prometheus/alerts.yml");
    const RULE_TESTS: &str = include_str!("../../../../deploy/prometheus/alerts-test.yml");
    const DASHBOARD: &str = include_str!("../../../../deploy/grafana/larimar.json");
    const RUNBOOK: &str = include_str!("../../../../docs/runbook.md");
    const REFERENCE: &str = include_str!("../../../../docs/metrics.md");

    #[test]
    fn each_alert_has_its_section_and_each_section_its_alert() {
        assert!(alert_names(RULES).len() >= 10);
        assert_eq!(disagreements(RULES, RUNBOOK), Vec::<String>::new());
    }

    #[test]
    fn each_alert_is_tested_to_fire_and_to_stay_quiet() {
        for alert in alert_names(RULES) {
            for kind in ["fires", "stays quiet"] {
                let name = format!("- name: {alert} {kind}");
                assert!(RULE_TESTS.lines().any(|line| line.trim() == name), "{name}");
            }
        }
    }

    /// A metric that was renamed leaves an alert that never fires, and a panel that stays empty.
    #[test]
    fn every_metric_that_is_named_is_documented() {
        let documented = documented_families(REFERENCE);
        for (name, text) in [("rules", RULES), ("dashboard", DASHBOARD), ("runbook", RUNBOOK)] {
            let named = families(text);
            assert!(named.len() >= 10, "{name} names {named:?}");
            let unknown: Vec<&String> = named.difference(&documented).collect();
            assert!(unknown.is_empty(), "{name} names {unknown:?}, which docs/metrics.md does not have");
        }
    }

    #[test]
    fn what_is_wrong_between_rules_and_runbook_is_found() {
        let rules = "- alert: One\n  runbook: docs/runbook.md#one\n";
        let section = "\n## One\n**Symptom.** a **How to look.** b **What to do.** c\n";
        assert_eq!(disagreements(rules, section), Vec::<String>::new());
        for (rules, runbook) in [
            (rules, ""),
            ("- alert: One\n", section),
            (rules, "\n## One\n**Symptom.** a **How to look.** b\n"),
            (rules, "\n## One\n**Symptom.** a **How to look.** b **What to do.** c\n\n## Two\nd\n"),
        ] {
            assert_eq!(disagreements(rules, runbook).len(), 1, "{rules}{runbook}");
        }
    }

    #[test]
    fn patience_is_taken_from_rules_and_nothing_else() {
        let rules = "  - alert: A\n    expr: rate(a_total[5m]) > changes(b[30m])\n    for: 10m\n  - alert: B\n    for: 0m\n";
        let expected = "  - alert: A\n    expr: rate(a_total[15s]) > changes(b[30m])\n    for: 2s\n  - alert: B\n    for: 2s\n";
        assert_eq!(shortened(rules), expected);
    }

    #[test]
    fn queries_of_a_dashboard_are_found_wherever_they_are() {
        let dashboard = serde_json::json!({
            "panels": [{ "targets": [{ "expr": "rate(a{instance=~\"$instance\"}[$__rate_interval])" }] }],
            "annotations": { "list": [{ "expr": "b" }] },
        });
        let mut found = queries(&dashboard);
        found.sort();
        assert_eq!(found, ["b", "rate(a{instance=~\".*\"}[5m])"]);
        assert!(recorded(&found).contains(r#""record":"dashboard:query_1""#));
    }
}
