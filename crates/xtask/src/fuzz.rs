//! Fuzzing guided by coverage, with the stable toolchain: libFuzzer drives the targets of `crates/fuzz`.
//!
//! The counters are LLVM's, switched on by flags that every compiler takes (no sanitizer, which would need
//! nightly: the workspace has no unsafe code for one to watch). What is found is written to `target/fuzz/`; a
//! find that was fixed is kept as a small file in `crates/fuzz/finds/TARGET/`, which ordinary tests replay.

use crate::{Outcome, workspace};
use std::path::Path;
use std::process::Command;

/// Every target, as `crates/fuzz` names them.
const TARGETS: [&str; 5] = ["filter", "batch", "headers", "sas", "bodies"];

/// What `cargo fuzz` passes as well: counters for each edge, a table of what they count, and compared values.
const COVERAGE_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Ccodegen-units=1";
/// Longest input, in bytes.
const INPUT_SIZE_BYTES_MAX: u32 = 8 << 10;
/// An input that takes longer is a find, in seconds.
const INPUT_TIMEOUT_S: u32 = 20;
/// A process that holds more is a find, in MiB.
const MEMORY_SIZE_MIB_MAX: u32 = 4096;

#[derive(clap::Args)]
pub(crate) struct FuzzArguments {
    /// filter, batch, headers, sas or bodies; else each of them in turn.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

pub(crate) fn run(arguments: &FuzzArguments) -> Outcome<()> {
    let targets: Vec<&str> = match &arguments.target {
        None => TARGETS.to_vec(),
        Some(asked) => {
            let known = TARGETS.iter().find(|target| *target == asked);
            vec![known.ok_or_else(|| format!("there is no target {asked}; see --help"))?]
        }
    };
    let folder = workspace::target()?.join("fuzz");
    let triple = host_triple()?;
    build(&folder, &triple)?;
    let program = folder.join(&triple).join("release/coverage");
    for target in targets {
        fuzz(&program, &folder, target, arguments.seconds)?;
    }
    Ok(())
}

fn build(folder: &Path, triple: &str) -> Outcome<()> {
    // With a target given, build scripts and macros are compiled without counters.
    let mut cargo = workspace::cargo()?;
    cargo.args(["build", "--release", "--manifest-path", "crates/fuzz/coverage/Cargo.toml"]);
    cargo.arg("--target").arg(triple).arg("--target-dir").arg(folder).env("RUSTFLAGS", COVERAGE_FLAGS);
    if cargo.status()?.success() { Ok(()) } else { Err("the fuzzer does not build".into()) }
}

fn fuzz(program: &Path, folder: &Path, target: &str, seconds: u32) -> Outcome<()> {
    let corpus = folder.join("corpus").join(target);
    let found = folder.join("found");
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&found)?;
    let sources = workspace::root()?.join("crates/fuzz");
    let mut command = Command::new(program);
    command.env("LARIMAR_FUZZ_TARGET", target);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={INPUT_SIZE_BYTES_MAX}"));
    command.arg(format!("-timeout={INPUT_TIMEOUT_S}"));
    command.arg(format!("-rss_limit_mb={MEMORY_SIZE_MIB_MAX}"));
    command.arg(format!("-dict={}", sources.join(format!("dictionaries/{target}.dict")).display()));
    command.arg(format!("-artifact_prefix={}/{target}-", found.display()));
    command.args(["-print_final_stats=1", "-use_value_profile=1"]).arg(corpus);
    for kept in ["seeds", "finds"] {
        let kept = sources.join(kept).join(target);
        if kept.is_dir() {
            command.arg(kept);
        }
    }
    println!("$ LARIMAR_FUZZ_TARGET={target} {command:?}");
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{target} ended with {status}").into()) }
}

/// What the compiler builds for, such as `x86_64-unknown-linux-gnu`.
fn host_triple() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}
