//! One program for all targets: `LARIMAR_FUZZ_TARGET` names the one that libFuzzer feeds.
#![no_main]

use fuzz::{Fuzzer, Target};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

fn open() -> RefCell<Fuzzer> {
    let name = std::env::var("LARIMAR_FUZZ_TARGET").unwrap_or_default();
    let target = Target::from_name(&name);
    RefCell::new(Fuzzer::new(target.unwrap_or_else(|| panic!("LARIMAR_FUZZ_TARGET={name} is no target"))))
}

thread_local! {
    // libFuzzer calls from one thread.
    static FUZZER: RefCell<Fuzzer> = open();
}

fuzz_target!(|input: &[u8]| {
    FUZZER.with(|fuzzer| fuzzer.borrow_mut().run(input));
});
