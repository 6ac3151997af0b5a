//! Kept inputs, mutated under a seed. A failure prints seed and input; `LARIMAR_FUZZ_SEED` and
//! `LARIMAR_FUZZ_RUNS` run others, and more.

use fuzz::mutation::{Mutator, read_dictionary, read_inputs};
use fuzz::{Fuzzer, Target};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const SEED: u64 = 20_261_121;
/// Some seconds for each target without optimization.
const RUNS: u64 = 5_000;

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => otherwise,
    }
}

fn mutate(target: Target) {
    let kept = target.folders().into_iter().flat_map(|folder| read_inputs(&folder).expect("inputs"));
    let kept = kept.map(|(_, input)| input).collect();
    #[allow(clippy::disallowed_methods)] // A file of the source tree.
    let words = std::fs::read_to_string(target.dictionary()).expect("a dictionary");
    let words = read_dictionary(&words).expect("a dictionary");
    let (seed, runs) = (number("LARIMAR_FUZZ_SEED", SEED), number("LARIMAR_FUZZ_RUNS", RUNS));
    println!("{}: {runs} runs, seed {seed}", target.name());
    let mut mutator = Mutator::new(seed, kept, words);
    let mut fuzzer = Fuzzer::new(target);
    for run in 0..runs {
        let input = mutator.next_input();
        if let Err(failure) = catch_unwind(AssertUnwindSafe(|| fuzzer.run(&input))) {
            println!(
                "{}: run {run} of seed {seed} failed on {:?}",
                target.name(),
                input.escape_ascii().to_string()
            );
            resume_unwind(failure);
        }
    }
}

#[test]
fn filter() {
    mutate(Target::Filter);
}

#[test]
fn batch() {
    mutate(Target::Batch);
}

#[test]
fn headers() {
    mutate(Target::Headers);
}

#[test]
fn sas() {
    mutate(Target::Sas);
}

#[test]
fn bodies() {
    mutate(Target::Bodies);
}
