//! Rule: the oldest Rust that builds this is named once, as `rust-version` of the workspace. Each crate takes
//! it from there; what the README says, and packages outside the workspace, agree with it.

use crate::tidy::finding::Finding;
use crate::tidy::manifest::{entries, members};
use crate::tidy::tree::Tree;

const RULE: &str = "rust-version";
const README: &str = "README.md";
/// What the README says before the version.
const README_WORDS: &str = "Rust ";
/// Packages with a workspace of their own.
const OTHERS: [&str; 2] = ["clients/rust/Cargo.toml", "examples/rust/Cargo.toml"];

/// Where another version is named, or none.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = "Cargo.toml";
    let Some((_, wanted)) = version_in(tree.text(root), "workspace.package") else {
        let what = "the workspace names no `rust-version`".to_owned();
        return vec![Finding::new(RULE, root, 1, what, "name the oldest Rust that builds it")];
    };
    for folder in members(tree.text(root)) {
        let path = format!("{folder}/Cargo.toml");
        let (line, rest) = version_in(tree.text(&path), "package").unwrap_or((1, "none"));
        if rest != "workspace = true" {
            let what = "its `rust-version` is not that of the workspace".to_owned();
            findings.push(Finding::new(RULE, &path, line, what, "write `rust-version.workspace = true`"));
        }
    }
    for path in OTHERS.into_iter().filter(|path| !tree.text(path).is_empty()) {
        let (line, version) = version_in(tree.text(path), "package").unwrap_or((1, "none"));
        if version != wanted {
            let what = format!("its `rust-version` is {version}, the workspace's is {wanted}");
            findings.push(Finding::new(RULE, path, line, what, "name the same"));
        }
    }
    let said = format!("{README_WORDS}{}", wanted.trim_matches('"'));
    let is_said = |line: &str| {
        let behind = line.split(&said).skip(1);
        behind.into_iter().any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    };
    if !tree.text(README).lines().any(is_said) {
        let what = format!("it does not say `{said}`, which is the workspace's `rust-version`");
        findings.push(Finding::new(RULE, README, 1, what, "say it where it says what is needed"));
    }
    findings
}

/// The line and the value of `rust-version` in a section.
fn version_in<'a>(manifest: &'a str, section: &str) -> Option<(usize, &'a str)> {
    let found = entries(manifest).into_iter();
    let mut found = found.filter(|entry| entry.section == section && entry.name == "rust-version");
    found.next().map(|entry| (entry.line, entry.rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str =
        "[workspace]\nmembers = [\n\"crates/a\",\n]\n[workspace.package]\nrust-version = \"1.95\"\n";
    const MEMBER: &str = "[package]\nrust-version.workspace = true\n";

    fn paths(readme: &str, member: &str, other: &str) -> Vec<String> {
        let files =
            [("Cargo.toml", ROOT), (README, readme), ("crates/a/Cargo.toml", member), (OTHERS[1], other)];
        check(&Tree::of(&files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn all_who_name_a_version_name_the_same() {
        let other = "[package]\nrust-version = \"1.95\"\n";
        assert_eq!(paths("You need Rust 1.95 or newer.", MEMBER, other), [] as [&str; 0]);
        assert_eq!(paths("You need Rust 1.95.", MEMBER, ""), [] as [&str; 0]);
        assert_eq!(paths("You need Rust 1.9 or 1.951.", MEMBER, other), [README]);
        assert_eq!(paths("Rust 1.951", MEMBER, other), [README]);
        assert_eq!(
            paths("Rust 1.95", "[package]\nrust-version = \"1.95\"\n", other),
            ["crates/a/Cargo.toml"]
        );
        assert_eq!(paths("Rust 1.95", "[package]\n", other), ["crates/a/Cargo.toml"]);
        assert_eq!(paths("Rust 1.95", MEMBER, "[package]\nrust-version = \"1.96\"\n"), [OTHERS[1]]);
    }

    #[test]
    fn a_workspace_without_a_version_is_found() {
        assert_eq!(check(&Tree::of(&[("Cargo.toml", "[workspace]\n")])).len(), 1);
    }
}
