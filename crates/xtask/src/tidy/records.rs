//! The ratchet: numbers of breaches that are tolerated because they were there, and may only fall.
//!
//! `records.txt` has a line each, `rule key number`: of a rule's breaches with that key (a crate, as a rule)
//! there are exactly so many. `rule-largest` is the size of the largest one, for rules that bound a size.
//! What is not recorded is zero. A higher number is a breach, and all places are named, because which one is
//! new can't be known by a number. A lower one is a breach, too: so the record follows. Keys are coarse, so
//! that files can be renamed and moved.

use super::finding::Finding;
use std::collections::BTreeMap;

/// The file with the records.
pub(super) const PATH: &str = "crates/xtask/src/tidy/records.txt";
const RULE: &str = "records";

/// Rule and key.
type Name = (String, String);

struct Record {
    line: usize,
    number: usize,
}

/// What is left of the findings when each rule and key with the recorded numbers is taken away, and what is
/// wrong with the records.
pub(super) fn apply(text: &str, findings: Vec<Finding>) -> Vec<Finding> {
    let (records, mut wrong) = parse(text);
    let numbers = numbers(&findings);
    let recorded = |name: &Name| records.get(name).map_or(0, |record| record.number);
    let is_more = |name: &Name| numbers.get(name).copied().unwrap_or(0) > recorded(name);
    for (name, record) in &records {
        let (rule, key) = name;
        let number = numbers.get(name).copied().unwrap_or(0);
        if number > record.number {
            let what = format!("{rule} of {key} is {number}, and {} is recorded", record.number);
            wrong.push(Finding::new(RULE, PATH, record.line, what, "mend what is new of it"));
        } else if number < record.number {
            let what = format!("{rule} of {key} is {number}, and {} is recorded", record.number);
            let remedy = format!("lower the record to {number} (cargo xtask tidy --record does)");
            wrong.push(Finding::new(RULE, PATH, record.line, what, &remedy));
        }
    }
    let left = findings.into_iter().filter(|finding| {
        let [count, largest] = names(finding);
        is_more(&count) || (is_more(&largest) && finding.size > Some(recorded(&largest)))
    });
    wrong.extend(left);
    wrong
}

/// The text with lower numbers where they are lower now; comments stay, and nothing is added.
pub(super) fn lowered(text: &str, findings: &[Finding]) -> String {
    let numbers = numbers(findings);
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((name, recorded)) = parse_line(line) else {
            lines.push(line.to_owned());
            continue;
        };
        let number = numbers.get(&name).copied().unwrap_or(0).min(recorded);
        if number > 0 {
            lines.push(format!("{} {} {number}", name.0, name.1));
        }
    }
    lines.join("\n") + "\n"
}

/// The names that a finding counts for: its rule's count and its rule's largest size.
fn names(finding: &Finding) -> [Name; 2] {
    [
        (finding.rule.to_owned(), finding.key.clone()),
        (format!("{}-largest", finding.rule), finding.key.clone()),
    ]
}

fn numbers(findings: &[Finding]) -> BTreeMap<Name, usize> {
    let mut numbers = BTreeMap::new();
    for finding in findings {
        let [count, largest] = names(finding);
        *numbers.entry(count).or_default() += 1;
        if let Some(size) = finding.size {
            let number: &mut usize = numbers.entry(largest).or_default();
            *number = size.max(*number);
        }
    }
    numbers
}

/// The name and number of a line that is no comment.
fn parse_line(line: &str) -> Option<(Name, usize)> {
    let [rule, key, number] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let is_comment = rule.starts_with('#');
    let number = number.parse().ok().filter(|_| !is_comment)?;
    Some(((rule.to_owned(), key.to_owned()), number))
}

fn parse(text: &str) -> (BTreeMap<Name, Record>, Vec<Finding>) {
    let mut records = BTreeMap::new();
    let mut wrong = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number_line = index + 1;
        let parsed = parse_line(line);
        let is_comment = line.trim().is_empty() || line.starts_with('#');
        let is_new = match parsed {
            Some((name, number)) => records.insert(name, Record { line: number_line, number }).is_none(),
            None => is_comment,
        };
        if !is_new {
            let what = format!("`{line}` is no record, or a second one");
            wrong.push(Finding::new(RULE, PATH, number_line, what, "write `rule key number` once"));
        }
    }
    (records, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breach(path: &str, size: usize) -> Finding {
        Finding::new("rule", path, size, "wrong".to_owned(), "mend").sized(size)
    }

    fn shown(text: &str) -> Vec<String> {
        let findings = vec![breach("crates/a/src/b.rs", 7), breach("crates/a/src/c.rs", 9)];
        apply(text, findings).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn as_many_as_recorded_pass() {
        assert_eq!(shown("# comment\nrule a 2\nrule-largest a 9\n"), [""; 0]);
    }

    #[test]
    fn one_more_names_all_places() {
        let found = shown("rule a 1\nrule-largest a 9\n");
        assert!(found[0].ends_with("rule of a is 2, and 1 is recorded; mend what is new of it"), "{found:?}");
        assert!(found[1..] == ["crates/a/src/b.rs:7: wrong; mend", "crates/a/src/c.rs:9: wrong; mend"]);
        assert_eq!(shown("").len(), 2);
    }

    #[test]
    fn a_larger_one_is_named_alone() {
        let found = shown("rule a 2\nrule-largest a 8\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], "crates/a/src/c.rs:9: wrong; mend");
    }

    #[test]
    fn a_record_follows_a_lower_number() {
        let found = shown("rule a 3\nrule-largest a 9\n");
        assert!(found.len() == 1 && found[0].contains(":1: ") && found[0].contains("lower the record to 2"));
        let gone = shown("rule a 2\nrule-largest a 9\nother b 1\n");
        assert!(gone.len() == 1 && gone[0].contains("lower the record to 0"), "{gone:?}");
    }

    #[test]
    fn recording_lowers_and_never_raises() {
        let findings = [breach("crates/a/src/b.rs", 7)];
        let text = "# why\nrule a 3\nrule-largest a 5\nother b 1\n";
        assert_eq!(lowered(text, &findings), "# why\nrule a 1\nrule-largest a 5\n");
    }

    #[test]
    fn what_is_no_record_is_named() {
        assert!(shown("rule a 2\nrule-largest a 9\nrule a\n")[0].contains(":3: `rule a` is no record"));
    }
}
