//! Rules: each dependency has its reason where it is declared, and there is one crypto library.
//!
//! A reason is a comment on the line of the dependency in the workspace's `Cargo.toml`, or on the line
//! before. Crates take dependencies from there and declare none of their own, so none comes in without a
//! reason.

use crate::tidy::finding::Finding;
use crate::tidy::manifest::{comment, entries, members};
use crate::tidy::tree::Tree;

const REASON: &str = "dependency-reason";
const CRYPTO: &str = "one-crypto-library";

/// Libraries of ciphers and signatures that TLS is built on; one is enough to build and to watch.
const CRYPTO_LIBRARIES: [&str; 14] = [
    "aws-lc-fips-sys",
    "aws-lc-rs",
    "aws-lc-sys",
    "boring",
    "boring-sys",
    "botan",
    "graviola",
    "mbedtls",
    "native-tls",
    "openssl",
    "openssl-sys",
    "ring",
    "rustls-rustcrypto",
    "wolfssl-sys",
];

/// Dependencies without a reason, and crypto libraries beside the one in use.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = without_reason(tree);
    findings.extend(further_crypto_libraries(tree));
    findings
}

fn without_reason(tree: &Tree) -> Vec<Finding> {
    let workspace = tree.text("Cargo.toml");
    let mut findings = Vec::new();
    for entry in entries(workspace).iter().filter(|entry| entry.section == "workspace.dependencies") {
        let is_ours = entry.rest.contains("path = ");
        let reason = comment(entry.rest).or(entry.comment_before).unwrap_or("");
        if !is_ours && reason.is_empty() {
            let what = format!("`{}` has no reason", entry.name);
            let remedy = "say in a comment on the line what it is taken for";
            findings.push(Finding::new(REASON, "Cargo.toml", entry.line, what, remedy));
        }
    }
    for member in members(workspace) {
        let path = format!("{member}/Cargo.toml");
        for entry in entries(tree.text(&path)).iter().filter(|entry| entry.section.ends_with("dependencies"))
        {
            if !entry.rest.contains("workspace = true") {
                let what = format!("`{}` is declared for this crate alone", entry.name);
                let remedy = "declare it in the workspace's Cargo.toml, with its reason";
                findings.push(Finding::new(REASON, &path, entry.line, what, remedy));
            }
        }
    }
    findings
}

fn further_crypto_libraries(tree: &Tree) -> Vec<Finding> {
    let lock = tree.text("Cargo.lock");
    let packages = lock.lines().enumerate().filter_map(|(index, line)| {
        let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
        CRYPTO_LIBRARIES.contains(&name).then_some((index + 1, name))
    });
    let found: Vec<(usize, &str)> = packages.collect();
    // The library in use is the one that the workspace names as a feature of TLS, else the last of them.
    let tls = entries(tree.text("Cargo.toml")).into_iter().find(|entry| entry.name == "tokio-rustls");
    let features = tls.map_or("", |entry| entry.rest);
    let in_use = found.iter().map(|(_, name)| *name).find(|name| features.contains(&format!("\"{name}\"")));
    let in_use = in_use.or(found.last().map(|(_, name)| *name));
    let further = found.into_iter().filter(|(_, name)| Some(*name) != in_use);
    further
        .map(|(line, name)| {
            let what = format!("`{name}` is a crypto library beside `{}`", in_use.unwrap_or_default());
            let remedy = "turn off the feature that asks for it (cargo tree --invert names the way)";
            Finding::new(CRYPTO, "Cargo.lock", line, what, remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(manifest: &str) -> Vec<usize> {
        check(&Tree::of(&[("Cargo.toml", manifest)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        assert_eq!(lines("[workspace.dependencies]\na = \"1\" # why\nb = { version = \"#1\" }\n"), [3]);
    }

    #[test]
    fn reasons_on_the_line_or_before_and_our_own_crates_pass() {
        assert_eq!(
            lines(
                "[workspace.dependencies]\na = \"1\" # why\n# why\nb = \"1\"\n\nc = { path = \"crates/c\" }\n"
            ),
            [0; 0]
        );
    }

    #[test]
    fn a_dependency_of_one_crate_alone_is_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "members = [\n\"crates/a\",\n]\n"),
            ("crates/a/Cargo.toml", "[dev-dependencies]\nb.workspace = true\nc = \"1\" # why\n"),
        ]);
        assert_eq!(check(&tree)[0].line, 3);
    }

    #[test]
    fn a_second_crypto_library_is_found() {
        let manifest = "[workspace.dependencies]\ntokio-rustls = { features = [\"ring\"] } # TLS\n";
        let lock = "name = \"openssl\"\n\nname = \"ring\"\n";
        let findings = check(&Tree::of(&[("Cargo.toml", manifest), ("Cargo.lock", lock)]));
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].to_string().starts_with("Cargo.lock:1: `openssl` is a crypto library beside `ring`")
        );
        assert_eq!(check(&Tree::of(&[("Cargo.toml", manifest), ("Cargo.lock", "name = \"ring\"\n")])), []);
    }
}
