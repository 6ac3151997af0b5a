//! Why a store can't be opened or can't carry a stamp.

/// A store that can't be opened or can't carry a stamp: one line, which says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// An address or a setting makes no sense.
    #[error("{what} can't be used: {why}")]
    Setting {
        /// Which one.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store is there, and can't carry a stamp.
    #[error("{what} can't carry a stamp: {why}")]
    Unfit {
        /// Which store.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store does not answer; another try may help.
    #[error("{what} does not answer: {why}")]
    Unavailable {
        /// Which store.
        what: String,
        /// What happened.
        why: String,
    },
}

impl OpenError {
    pub(crate) fn setting(what: impl Into<String>, why: impl Into<String>) -> Self {
        OpenError::Setting { what: what.into(), why: why.into() }
    }

    pub(crate) fn unfit(what: impl Into<String>, why: impl Into<String>) -> Self {
        OpenError::Unfit { what: what.into(), why: why.into() }
    }
}
