//! Files that a rule does not hold for, each with its reason: `exemptions.txt`, a line each, `rule path
//! reason`.
//!
//! There are few of them, and one that exempts nothing is a breach itself: so the file says what is true
//! today.

use super::finding::Finding;

/// The file with the exemptions.
pub(super) const PATH: &str = "crates/xtask/src/tidy/exemptions.txt";
const RULE: &str = "exemptions";
const COUNT_MAX: usize = 20;
/// Fewer words give no reason.
const REASON_WORDS_MIN: usize = 3;

struct Exemption<'a> {
    line: usize,
    rule: &'a str,
    path: &'a str,
    reason: &'a str,
}

/// Removes what is exempt, and adds what is wrong with the exemptions.
pub(super) fn apply(text: &str, findings: Vec<Finding>) -> Vec<Finding> {
    let exemptions: Vec<Exemption<'_>> =
        text.lines().enumerate().filter_map(|(index, line)| parse(index + 1, line)).collect();
    let is_exempt = |finding: &Finding| exemptions.iter().any(|exemption| applies(exemption, finding));
    let mut left: Vec<Finding> = findings.iter().filter(|finding| !is_exempt(finding)).cloned().collect();
    for (index, exemption) in exemptions.iter().enumerate() {
        let wrong = if !findings.iter().any(|finding| applies(exemption, finding)) {
            Some((format!("{} exempts nothing of {}", exemption.path, exemption.rule), "remove the line"))
        } else if exemption.reason.split_whitespace().count() < REASON_WORDS_MIN {
            Some((format!("{} has no reason", exemption.path), "write it behind the path"))
        } else if index >= COUNT_MAX {
            Some((format!("more than {COUNT_MAX} exemptions"), "mend what the line exempts"))
        } else {
            None
        };
        left.extend(wrong.map(|(what, remedy)| Finding::new(RULE, PATH, exemption.line, what, remedy)));
    }
    left
}

fn parse(line: usize, text: &str) -> Option<Exemption<'_>> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let (rule, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (path, reason) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
    Some(Exemption { line, rule, path, reason })
}

fn applies(exemption: &Exemption<'_>, finding: &Finding) -> bool {
    exemption.rule == finding.rule && exemption.path == finding.path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> Vec<String> {
        let finding = Finding::new("rule", "a.rs", 1, "wrong".to_owned(), "mend");
        apply(text, vec![finding]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn an_exempt_finding_is_gone() {
        assert_eq!(left("# comment\nrule a.rs because it is so\n"), [""; 0]);
    }

    #[test]
    fn an_exemption_needs_a_reason_and_something_to_exempt() {
        assert!(left("rule a.rs\n")[0].contains("has no reason"));
        let found = left("rule b.rs because it is so\n");
        assert!(found.len() == 2 && found[1].contains(":1: b.rs exempts nothing of rule"), "{found:?}");
    }

    #[test]
    fn there_are_few_exemptions() {
        let found = left(&"rule a.rs because it is so\n".repeat(COUNT_MAX + 1));
        assert!(found.len() == 1 && found[0].contains("more than 20"), "{found:?}");
    }
}
