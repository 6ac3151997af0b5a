//! `larimar stamp init`: makes a stamp that is not there, and does not serve it.

use crate::Failure;
use crate::stamp::founding::{FoundError, found_stamp};
use crate::stamp_commands::opened::{OpenedStamp, failed};
use crate::stamp_commands::print;
use stamp_streams::StampError;
use std::process::ExitCode;

/// Makes it.
pub(super) async fn init(stamp: &OpenedStamp) -> Result<ExitCode, Failure> {
    let name = &stamp.name;
    if stamp.is_founded().await? {
        return Err(Failure::of_words(format!("stamp {name} is there already: nothing was changed")));
    }
    match found_stamp(&stamp.stores).await {
        Ok(()) => {
            print(&format!("stamp {name} is made: larimar serve --stamp {name} serves it\n"));
            Ok(ExitCode::SUCCESS)
        }
        // That of this command stays unfinished, and nobody sees it.
        Err(FoundError::Stamp(StampError::Raced(why))) => {
            Err(Failure::of_words(format!("stamp {name}: {why}")))
        }
        Err(error) => Err(failed(format!("stamp {name} is not made: {error}"))),
    }
}
