//! What a writer does after an answer to the PUT of a part: a pure choice.
//!
//! | answer | header that is there | lease | choice |
//! |---|---|---|---|
//! | created | | holds | acknowledge |
//! | refused | not read yet | holds | read it |
//! | refused | our own part | holds | acknowledge: an earlier try made it |
//! | refused | our own seal | | stop: closed |
//! | refused | anything else | | stop: sealed by another |
//! | refused | none (404) | | stop: the extent was deleted |
//! | refused | could not be read | holds | read it again |
//! | unknown | | holds | the same bytes again, after a wait |
//! | failed | | | stop |
//! | any other | | has ended | stop: outcome unknown |
//!
//! The lease is read from the clock after the answer. An answer that comes later than the lease's end proves
//! nothing: by then a successor may have sealed, read and dropped the extent, and the store may have made the
//! part anew. Nothing is sent after the lease's end. What always holds: nothing is acknowledged but a part
//! that the store has, in an extent that no successor has read.

use crate::error::StoredError;
use crate::extent::part_header::{PartHeader, PartKind};
use crate::extent::put_answer::PutAnswer;

/// What a read of a header found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// This header.
    Header(PartHeader),
    /// No object of this name.
    NotThere,
    /// The store gave no answer, or one that says nothing.
    Unknown,
    /// An object that can't be used.
    Damaged(StoredError),
}

/// What the writer does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterAppend {
    /// The part is there. It is acknowledged once all before it are.
    Acknowledge,
    /// Read the header that is there.
    ReadHeader,
    /// Send the same bytes again, after a wait.
    SendAgain,
    /// Send nothing more for this extent.
    Stop(AppendStop),
}

/// Why a writer stopped appending to an extent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum AppendStop {
    /// The lease ended first. Whether the part is there is unknown.
    #[error("the lease ended before the answer")]
    LeaseEnded,
    /// The extent is not there any more: a successor has dropped it.
    #[error("the extent was deleted")]
    Deleted,
    /// Another owner sealed the extent, or something else has the name.
    #[error("the extent was sealed by another")]
    SealedOut,
    /// This process sealed the extent before.
    #[error("the extent was closed by this process")]
    Closed,
    /// The store refused for certain.
    #[error("the store refused with status {0}")]
    Failed(u16),
    /// The caller gave up on the part. Whether it is there is unknown.
    #[error("given up")]
    GivenUp,
}

/// Chooses by the answer to the PUT of `sent`, what a read of the name found since then, and whether the
/// lease holds by a clock that was read after both.
pub fn choose_after_append(
    answer: PutAnswer,
    found: Option<&Found>,
    sent: &PartHeader,
    lease_holds: bool,
) -> AfterAppend {
    let unless_ended = |choice| if lease_holds { choice } else { AfterAppend::Stop(AppendStop::LeaseEnded) };
    match (answer, found) {
        (PutAnswer::Created, _) => unless_ended(AfterAppend::Acknowledge),
        (PutAnswer::Unknown, _) => unless_ended(AfterAppend::SendAgain),
        (PutAnswer::Failed { status }, _) => AfterAppend::Stop(AppendStop::Failed(status)),
        (PutAnswer::Refused, None | Some(Found::Unknown)) => unless_ended(AfterAppend::ReadHeader),
        (PutAnswer::Refused, Some(Found::NotThere)) => AfterAppend::Stop(AppendStop::Deleted),
        (PutAnswer::Refused, Some(Found::Damaged(_))) => AfterAppend::Stop(AppendStop::SealedOut),
        (PutAnswer::Refused, Some(Found::Header(header))) => {
            let is_ours = header.writer.incarnation == sent.writer.incarnation;
            if is_ours && header == sent {
                unless_ended(AfterAppend::Acknowledge)
            } else if is_ours && header.kind == PartKind::Seal {
                AfterAppend::Stop(AppendStop::Closed)
            } else {
                AfterAppend::Stop(AppendStop::SealedOut)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::fixtures::{part, seal, writer};

    const W: u128 = 1;
    const N: u128 = 2;

    #[test]
    fn every_answer_with_and_without_a_lease() {
        let sent = part(writer(W, 1), 0, 10, 0);
        let own_seal = seal(writer(W, 1), 0, 0);
        let other_seal = seal(writer(N, 2), 0, 0);
        let other_bytes = PartHeader { body_checksum: sent.body_checksum + 1, ..sent };
        let of_another = part(writer(N, 2), 0, 10, 0);
        let damaged = Found::Damaged(StoredError::Missing { what: "it".to_owned() });
        let stop = |why| AfterAppend::Stop(why);
        use AfterAppend::{Acknowledge, ReadHeader, SendAgain};
        use AppendStop::{Closed, Deleted, Failed, LeaseEnded, SealedOut};
        use PutAnswer::{Created, Refused, Unknown};
        let failed = PutAnswer::Failed { status: 403 };
        let cases = [
            (Created, None, Acknowledge, stop(LeaseEnded)),
            (Unknown, None, SendAgain, stop(LeaseEnded)),
            (failed, None, stop(Failed(403)), stop(Failed(403))),
            (Refused, None, ReadHeader, stop(LeaseEnded)),
            (Refused, Some(Found::Unknown), ReadHeader, stop(LeaseEnded)),
            (Refused, Some(Found::NotThere), stop(Deleted), stop(Deleted)),
            (Refused, Some(Found::Header(sent)), Acknowledge, stop(LeaseEnded)),
            (Refused, Some(Found::Header(own_seal)), stop(Closed), stop(Closed)),
            (Refused, Some(Found::Header(other_seal)), stop(SealedOut), stop(SealedOut)),
            (Refused, Some(Found::Header(other_bytes)), stop(SealedOut), stop(SealedOut)),
            (Refused, Some(Found::Header(of_another)), stop(SealedOut), stop(SealedOut)),
            (Refused, Some(damaged), stop(SealedOut), stop(SealedOut)),
        ];
        for (answer, found, holding, ended) in cases {
            let chosen = |lease_holds| choose_after_append(answer, found.as_ref(), &sent, lease_holds);
            assert_eq!(chosen(true), holding, "{answer:?}, {found:?}");
            assert_eq!(chosen(false), ended, "{answer:?}, {found:?}, lease ended");
        }
    }
}
