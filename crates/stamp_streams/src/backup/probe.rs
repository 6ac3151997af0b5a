//! Whether an object store can carry a stamp.
//!
//! What always holds: a store passes only if of racing creations of one name exactly one has succeeded, and
//! its content is what is read. An answer that leaves it open is no failure: the same is sent again, as a
//! stamp does.

use crate::error::StampError;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use futures_util::future::join_all;
use stamp::PutAnswer;

/// Creations of one name that race.
const RACING_CREATES: usize = 16;
/// How often one thing is sent.
const TRIES_MAX: usize = 20;

/// What became of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tried {
    /// The last answer.
    answer: PutAnswer,
    /// An earlier answer left it open: it may have been done then.
    may_be_done: bool,
}

/// Whether the object store creates a name once only, and again after it was deleted.
///
/// # Errors
///
/// If it does not, or can't be reached: no stamp can be kept in it.
pub async fn probe(surroundings: &Surroundings) -> Result<(), StampError> {
    let raced = format!("{}/probe/{:032x}", surroundings.settings.stamp, surroundings.draw_wide());
    let again = format!("{raced}-again");
    let contents: Vec<Bytes> = (0..RACING_CREATES).map(|number| Bytes::from(vec![number as u8])).collect();
    let tried = join_all(contents.iter().map(|content| create(surroundings, &raced, content))).await;
    if tried.iter().any(|tried| tried.answer == PutAnswer::Unknown) {
        return Err(no_answer());
    }
    let there = match failure(&tried) {
        None => surroundings.read_object(&raced, 1).await?,
        Some(why) => return Err(unfit(&why)),
    };
    let winner = contents.iter().position(|content| *content == there);
    verdict(&tried, winner).map_err(|why| unfit(&why))?;
    delete(surroundings, &raced).await?;
    // A creation that was given up may arrive late, and make the raced name again: then another one is tried.
    let is_clear = !tried.iter().any(|tried| tried.may_be_done);
    let name = if is_clear { &raced } else { &again };
    for _ in 0..if is_clear { 1 } else { 2 } {
        let tried = create(surroundings, name, &contents[0]).await;
        match tried.answer {
            PutAnswer::Created => {}
            PutAnswer::Refused if tried.may_be_done => {}
            PutAnswer::Unknown => return Err(no_answer()),
            _ => return Err(unfit("a name that was deleted can't be created")),
        }
        delete(surroundings, name).await?;
    }
    Ok(())
}

fn unfit(why: &str) -> StampError {
    StampError::Setup(format!("the object store can't carry a stamp: {why}"))
}

fn no_answer() -> StampError {
    StampError::store("probe", StoreError::Unavailable("no answer".to_owned()))
}

/// Creates an object; sends the same again until the outcome is known.
async fn create(surroundings: &Surroundings, name: &str, content: &Bytes) -> Tried {
    let mut back_off = surroundings.back_off();
    let mut tried = Tried { answer: PutAnswer::Unknown, may_be_done: false };
    for _ in 0..TRIES_MAX {
        tried.answer = surroundings.put_named(name, content).await;
        if tried.answer != PutAnswer::Unknown {
            break;
        }
        tried.may_be_done = true;
        back_off.wait().await;
    }
    tried
}

async fn delete(surroundings: &Surroundings, name: &str) -> Result<(), StampError> {
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        match surroundings.try_object(surroundings.objects.delete(name)).await {
            Some(Ok(()) | Err(StoreError::NotThere)) => return Ok(()),
            Some(Err(StoreError::Refused(why))) => {
                return Err(unfit(&format!("an object can't be deleted: {why}")));
            }
            Some(Err(_)) | None => back_off.wait().await,
        }
    }
    Err(no_answer())
}

/// A definite failure among racing creations.
fn failure(tried: &[Tried]) -> Option<String> {
    tried.iter().find_map(|tried| match tried.answer {
        PutAnswer::Failed { status } => Some(format!("it answers a creation with status {status}")),
        _ => None,
    })
}

/// What follows from racing creations whose outcomes are known, and from whose content is there; none if it
/// is nobody's.
fn verdict(tried: &[Tried], winner: Option<usize>) -> Result<(), String> {
    let created: Vec<usize> =
        (0..tried.len()).filter(|index| tried[*index].answer == PutAnswer::Created).collect();
    let content = "the content is not that of the creation that succeeded";
    match (created.as_slice(), winner) {
        ([_, _, ..], _) => Err("several creations of one name succeed".to_owned()),
        ([created], Some(winner)) if *created == winner => Ok(()),
        ([_], _) => Err(content.to_owned()),
        // One of unknown outcome was done, and refused when it was sent again.
        ([], Some(winner)) if tried[winner].may_be_done => Ok(()),
        ([], _) => Err("no creation of a new name succeeds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_racing_creations_one_has_succeeded() {
        let of = |answer| Tried { answer, may_be_done: false };
        let created = of(PutAnswer::Created);
        let refused = of(PutAnswer::Refused);
        let late = Tried { answer: PutAnswer::Refused, may_be_done: true };
        for (tried, winner, is_fine) in [
            ([created, refused, refused], Some(0), true),
            ([refused, created, late], Some(1), true),
            ([refused, late, refused], Some(1), true),
            ([created, created, refused], Some(1), false),
            ([created, refused, refused], Some(1), false),
            ([created, refused, late], Some(2), false),
            ([created, refused, refused], None, false),
            ([refused, refused, refused], Some(0), false),
            ([refused, refused, late], Some(0), false),
        ] {
            assert_eq!(verdict(&tried, winner).is_ok(), is_fine, "{tried:?} {winner:?}");
        }
        assert_eq!(failure(&[created, refused]), None);
        assert!(
            failure(&[created, of(PutAnswer::Failed { status: 403 })]).is_some_and(|why| why.contains("403"))
        );
    }
}
