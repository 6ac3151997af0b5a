//! `larimar stamp leave`: takes out a process that is gone for good.
//!
//! What is safe: the beat of a process whose key is gone and that owns nothing. The lease of one that lives
//! is ended by itself alone, because only it knows that it has dropped everything; the beat of an owner
//! proves its silence to whoever takes the stamp.

use crate::Failure;
use crate::stamp_commands::opened::{OpenedStamp, failed};
use crate::stamp_commands::print;
use stamp::Incarnation;
use stamp_streams::{Forgotten, forget_process};
use std::process::ExitCode;

/// Hexadecimal digits of an incarnation.
const DIGITS: usize = 32;

/// Reads the name of a process as `larimar stamp status` prints it.
pub(super) fn parse_process(text: &str) -> Result<Incarnation, Failure> {
    let is_name = text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parsed = is_name.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    parsed.map(Incarnation).ok_or_else(|| {
        let form = format!("give the {DIGITS} hexadecimal digits that larimar stamp status prints");
        Failure::of_words(format!("--process {text}: {form}"))
    })
}

/// Removes what is left of it, if that is safe.
pub(super) async fn leave(stamp: &OpenedStamp, process: Incarnation) -> Result<ExitCode, Failure> {
    // Says what is wrong if there is no stamp.
    stamp.snapshot().await?;
    let forgotten = forget_process(stamp.surroundings(), process).await;
    match forgotten.map_err(|error| Failure::of_work(&error))? {
        Forgotten::Done => {
            print(&format!("process {process} is taken out: nothing is left of it\n"));
            Ok(ExitCode::SUCCESS)
        }
        Forgotten::Unknown => {
            Err(Failure::of_words(format!("stamp {} knows no process {process}", stamp.name)))
        }
        Forgotten::Lives => Err(failed(format!(
            "the lease of process {process} lives, and only the process itself can end it: stop it (SIGTERM), and it \
             hands over and leaves; if its machine is gone, wait for the lease's end"
        ))),
        Forgotten::Owns(_) => Err(failed(format!(
            "process {process} is gone, and its last beat proves that to the process that takes the stamp next: start \
             one, or wait for one that stands by, and try again then"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_its_digits() {
        let good = "0123456789abcdef0123456789abcdef";
        assert!(parse_process(good).is_ok_and(|process| process.to_string() == good));
        for bad in ["", "12", &good[1..], &good.to_uppercase(), &good.replace('f', "g"), &format!("{good}0")]
        {
            assert!(parse_process(bad).is_err_and(|failure| failure.exit_code == 2), "{bad}");
        }
    }
}
