//! Fuzz targets: requests to the Table service from unknown clients, as plain functions over bytes.
//!
//! A target turns bytes into requests to a whole stamp in memory, without sockets, signed so that the code
//! behind authentication is reached, and checks the responses. Three drivers feed the same targets:
//! `tests/kept_inputs.rs` replays `seeds/` and `finds/`, `tests/mutations.rs` mutates them under a seed
//! ([`mutation`]), and the program in `coverage/` is guided by coverage (`cargo xtask fuzz`).
//!
//! What a target checks for any bytes: nothing panics; no response is an internal error; an error has its
//! code in header and body; a refused request has changed nothing that is stored; and the checks of its own
//! file. A violation is a panic.
//!
//! ```text
//! seeds/TARGET/NAME         inputs written by hand, where mutation starts
//! finds/TARGET/NAME         inputs that once failed, named after the failure
//! dictionaries/TARGET.dict  words that inputs are made of, in libFuzzer's form
//! ```

pub mod mutation;
mod stamp;
mod targets;

use stamp::Stamp;
use std::path::{Path, PathBuf};

/// A fuzzed part of the Table service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `$filter`.
    Filter,
    /// The body of a `$batch`.
    Batch,
    /// A whole request: verb, address, headers, body.
    Headers,
    /// The query string of a shared access signature.
    Sas,
    /// JSON and XML bodies.
    Bodies,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 5] =
        [Target::Filter, Target::Batch, Target::Headers, Target::Sas, Target::Bodies];

    /// The name of its folders.
    pub fn name(self) -> &'static str {
        match self {
            Target::Filter => "filter",
            Target::Batch => "batch",
            Target::Headers => "headers",
            Target::Sas => "sas",
            Target::Bodies => "bodies",
        }
    }

    /// The target of that name.
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// Its inputs in the tree: seeds and former failures, by path.
    pub fn folders(self) -> [PathBuf; 2] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        [root.join("seeds").join(self.name()), root.join("finds").join(self.name())]
    }

    /// Its dictionary.
    pub fn dictionary(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("dictionaries").join(format!("{}.dict", self.name()))
    }
}

/// A target and the stamp that gets its requests. Between two inputs the stamp's fixture is restored.
pub struct Fuzzer {
    target: Target,
    stamp: Stamp,
}

impl Fuzzer {
    /// Opens a stamp of its own.
    pub fn new(target: Target) -> Fuzzer {
        Fuzzer { target, stamp: Stamp::open() }
    }

    /// Runs one input and checks the responses. Panics if a check fails.
    pub fn run(&mut self, input: &[u8]) {
        match self.target {
            Target::Filter => targets::filter::run(&mut self.stamp, input),
            Target::Batch => targets::batch::run(&mut self.stamp, input),
            Target::Headers => targets::headers::run(&mut self.stamp, input),
            Target::Sas => targets::sas::run(&mut self.stamp, input),
            Target::Bodies => targets::bodies::run(&mut self.stamp, input),
        }
        self.stamp.restore();
    }
}
