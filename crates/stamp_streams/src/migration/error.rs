//! Why a migration did not come to its end.

use crate::error::StampError;
use stream::StreamError;

/// A migration did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The stamp or the folder is in no state for it: nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// The folder does not read.
    #[error("the folder can't be copied: {0}{advice}", advice = advice(.0))]
    Folder(StreamError),
    /// The folder that is made can't be.
    #[error("{0}")]
    Target(StreamError),
    /// The stamp is damaged, or refuses for certain.
    #[error(transparent)]
    Stamp(StampError),
    /// What was copied is not what is there now.
    #[error("the copy differs: {0}")]
    Differs(String),
    /// A store did not answer, or the lease ended: it goes on from here when it is run again.
    #[error("{0}")]
    Away(String),
    /// It was asked to stop: it goes on from here when it is run again.
    #[error("it was stopped")]
    Stopped,
}

/// What helps against damage; other errors say what they need.
fn advice(error: &StreamError) -> &'static str {
    match error {
        StreamError::Corrupt(_) => "; larimar check tells what is damaged, larimar repair mends it",
        _ => "",
    }
}

impl From<StampError> for MigrationError {
    fn from(error: StampError) -> Self {
        match error {
            StampError::Store { .. }
            | StampError::LeaseEnded
            | StampError::NotMine(_)
            | StampError::Raced(_) => MigrationError::Away(error.to_string()),
            StampError::Setup(why) => MigrationError::Refused(why),
            other => MigrationError::Stamp(other),
        }
    }
}

impl From<StreamError> for MigrationError {
    fn from(error: StreamError) -> Self {
        MigrationError::Folder(error)
    }
}
