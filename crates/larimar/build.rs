//! Tells the program which commit it is built from: `LARIMAR_VERSION` is what `larimar --version` says.
//!
//! A source tree without Git, a release archive for example, may give the commit in `LARIMAR_COMMIT` and its
//! date in `LARIMAR_COMMIT_DATE`; else only the version is shown.
#![allow(clippy::disallowed_methods)] // A build script hands nothing in: it is run once, by cargo.

use std::process::Command;

fn main() {
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = given_or("LARIMAR_COMMIT", &["rev-parse", "--short=12", "HEAD"]);
    let date = given_or("LARIMAR_COMMIT_DATE", &["log", "-1", "--format=%cs"]);
    let version = match (commit, date) {
        (Some(commit), Some(date)) => format!("{version} ({commit} {date})"),
        (Some(commit), None) => format!("{version} ({commit})"),
        (None, _) => version,
    };
    println!("cargo::rustc-env=LARIMAR_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD gets a line with each commit and checkout.
    if let Some(path) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && std::path::Path::new(&path).exists()
    {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// What this variable of the environment says, or else Git.
fn given_or(name: &str, arguments: &[&str]) -> Option<String> {
    println!("cargo::rerun-if-env-changed={name}");
    std::env::var(name).ok().filter(|given| !given.is_empty()).or_else(|| git(arguments))
}

/// What Git prints, if there is one and this is a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
