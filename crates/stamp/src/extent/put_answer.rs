//! What the answer of the object store to a create-only PUT says about the object.
//!
//! What always holds: an answer that is not understood is of unknown outcome. Only an answer that says for
//! certain that nothing was created is a definite failure.

/// The outcome of one PUT that creates or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PutAnswer {
    /// The object was made by this request.
    Created,
    /// An object of this name was there.
    Refused,
    /// The object may have been made, and may still be: no answer came, or one that says so.
    Unknown,
    /// This request made nothing and never will.
    Failed {
        /// The status of the answer.
        status: u16,
    },
}

/// The outcome of a PUT by its status; none if there was no answer (time-out, reset).
pub fn put_answer(status: Option<u16>) -> PutAnswer {
    match status {
        Some(200 | 201 | 204) => PutAnswer::Created,
        Some(412) => PutAnswer::Refused,
        // 409: the store was asked to create the same name twice at a time, and may have done either.
        None | Some(408 | 409 | 429) => PutAnswer::Unknown,
        // 507: no space is left; the object store refused before it wrote.
        Some(status) if status == 507 || (400..500).contains(&status) => PutAnswer::Failed { status },
        Some(_) => PutAnswer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_what_they_mean() {
        for (status, answer) in [
            (Some(200), PutAnswer::Created),
            (Some(201), PutAnswer::Created),
            (Some(204), PutAnswer::Created),
            (Some(412), PutAnswer::Refused),
            (None, PutAnswer::Unknown),
            (Some(408), PutAnswer::Unknown),
            (Some(409), PutAnswer::Unknown),
            (Some(429), PutAnswer::Unknown),
            (Some(500), PutAnswer::Unknown),
            (Some(503), PutAnswer::Unknown),
            (Some(504), PutAnswer::Unknown),
            (Some(307), PutAnswer::Unknown),
            (Some(100), PutAnswer::Unknown),
            (Some(507), PutAnswer::Failed { status: 507 }),
            (Some(400), PutAnswer::Failed { status: 400 }),
            (Some(403), PutAnswer::Failed { status: 403 }),
            (Some(404), PutAnswer::Failed { status: 404 }),
        ] {
            assert_eq!(put_answer(status), answer, "{status:?}");
        }
    }
}
