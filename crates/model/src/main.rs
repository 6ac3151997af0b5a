//! `model [--short] [--config NAME] [--coarse] [--traces]`: the search as a program, which `cargo xtask
//! model` builds optimized and runs.

use base::system::SystemClock;
use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask model")]
struct Program {
    #[command(flatten)]
    arguments: model::Arguments,
}

fn main() -> ExitCode {
    let arguments = Program::parse().arguments;
    match model::run(&arguments, &SystemClock::new(), &mut std::io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("model: {error}");
            ExitCode::FAILURE
        }
    }
}
