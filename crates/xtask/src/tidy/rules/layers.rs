//! Rule: arrows between layers point one way. A crate depends only on crates above it in the workspace's list
//! of members.
//!
//! Dependencies of tests are left out: a test may set up what lies above.

use crate::tidy::finding::Finding;
use crate::tidy::manifest::{entries, members};
use crate::tidy::tree::Tree;

const RULE: &str = "layers";

/// The dependencies that point the wrong way.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let folders = members(tree.text("Cargo.toml"));
    let names: Vec<&str> = folders.iter().map(|folder| folder.rsplit('/').next().unwrap_or(folder)).collect();
    let mut findings = Vec::new();
    for (place, folder) in folders.iter().enumerate() {
        let path = format!("{folder}/Cargo.toml");
        for entry in entries(tree.text(&path)) {
            let section = entry.section.rsplit('.').next().unwrap_or_default();
            let is_of_the_crate = matches!(section, "dependencies" | "build-dependencies");
            if is_of_the_crate && names[place..].contains(&entry.name) {
                let what = format!("`{}` depends on `{}`, which is not above it", names[place], entry.name);
                let remedy = "turn the arrow round: hand in what is needed, or move it to a crate above";
                findings.push(Finding::new(RULE, &path, entry.line, what, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "members = [\n\"crates/low\",\n\"crates/high\",\n]\n";

    fn found(path: &str, manifest: &str) -> Vec<Finding> {
        check(&Tree::of(&[("Cargo.toml", WORKSPACE), (path, manifest)]))
    }

    #[test]
    fn an_arrow_to_a_crate_below_is_found() {
        let findings =
            found("crates/low/Cargo.toml", "[dependencies]\nbytes.workspace = true\nhigh.workspace = true\n");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3);
        assert!(findings[0].what.contains("`low` depends on `high`"));
    }

    #[test]
    fn arrows_to_crates_above_and_of_tests_pass() {
        assert_eq!(found("crates/high/Cargo.toml", "[dependencies]\nlow.workspace = true\n"), []);
        assert_eq!(found("crates/low/Cargo.toml", "[dev-dependencies]\nhigh.workspace = true\n"), []);
    }
}
