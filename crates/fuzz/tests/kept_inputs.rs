//! Every input in the tree passes: seeds, and finds, each named after the failure it once caused.

use fuzz::mutation::{read_dictionary, read_inputs};
use fuzz::{Fuzzer, Target};

fn replay(target: Target) {
    let mut fuzzer = Fuzzer::new(target);
    let [seeds, finds] = target.folders();
    let seeds = read_inputs(&seeds).expect("seeds");
    assert!(!seeds.is_empty(), "{} has no seeds", target.name());
    for (name, input) in seeds.into_iter().chain(read_inputs(&finds).expect("finds")) {
        println!("{} {name}", target.name());
        fuzzer.run(&input);
    }
}

#[test]
fn filter() {
    replay(Target::Filter);
}

#[test]
fn batch() {
    replay(Target::Batch);
}

#[test]
fn headers() {
    replay(Target::Headers);
}

#[test]
fn sas() {
    replay(Target::Sas);
}

#[test]
fn bodies() {
    replay(Target::Bodies);
}

#[test]
fn dictionaries_can_be_read() {
    for target in Target::ALL {
        #[allow(clippy::disallowed_methods)] // A file of the source tree.
        let text = std::fs::read_to_string(target.dictionary()).expect("a dictionary");
        let words = read_dictionary(&text).unwrap_or_else(|error| panic!("{}: {error}", target.name()));
        assert!(!words.is_empty());
    }
}
