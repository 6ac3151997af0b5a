//! Why a `$filter` is refused. The texts are sent to the client.

/// Why a `$filter` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It can't be read: 400 `InvalidInput`. Positions count UTF-16 units from 0.
    #[error("Syntax error at position {position} in '{text}'.")]
    Syntax {
        /// Where reading failed.
        position: usize,
        /// The whole filter.
        text: String,
    },
    /// A literal that its type can't hold: 400 `InvalidInput`.
    #[error("{message}")]
    Literal {
        /// Where the literal begins, in UTF-16 units from 0.
        position: usize,
        /// What is sent.
        message: String,
    },
    /// `null` beside an operator: 400 `InvalidInput`.
    #[error("{message}")]
    Null {
        /// Where the operator is, in UTF-16 units from 0.
        position: usize,
        /// What is sent.
        message: String,
    },
    /// A call of a function of the extended grammar that is none: 400 `InvalidInput`.
    #[error("{message}")]
    Call {
        /// What was found instead of the call's next part, in UTF-16 units from 0.
        position: usize,
        /// What is sent.
        message: String,
    },
    /// Longer, deeper or with more comparisons than is served: 400 `InvalidInput`.
    #[error("{0}")]
    TooComplex(String),
    /// Readable, but not served (property against property and the like): 501 `NotImplemented`.
    #[error("The requested operation is not implemented on the specified resource.")]
    NotImplemented {
        /// Where the operator is, in UTF-16 units from 0.
        position: usize,
    },
}

impl FilterError {
    /// Where the filter can't be read, in UTF-16 units from 0; none if it is too long or too deep as a whole.
    pub fn position(&self) -> Option<usize> {
        match self {
            FilterError::Syntax { position, .. }
            | FilterError::Literal { position, .. }
            | FilterError::Null { position, .. }
            | FilterError::Call { position, .. }
            | FilterError::NotImplemented { position } => Some(*position),
            FilterError::TooComplex(_) => None,
        }
    }
}
