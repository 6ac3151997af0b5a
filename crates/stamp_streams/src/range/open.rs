//! A range between its take and its first read: every extent without a recorded length is sealed, the
//! lengths are recorded. Carries out `stamp::Taking`.
//!
//! What always holds: a range is not read before its lengths are recorded; only an owner that was just
//! confirmed says that a broken chain is damage.

use crate::error::StampError;
use crate::extents::load::listed_parts;
use crate::extents::seal::seal_all;
use crate::membership::cut_off::note_answer;
use crate::membership::life::Life;
use crate::range::owned_range::OwnedRange;
use crate::settings::Breach;
use stamp::{
    AfterBroken, Change, ExtentName, HeldRange, Key, OwnEntry, Owner, RangeId, SealWalk, StoredError, Taking,
    TakingStep, WalkStep, WalkStop, choose_after_broken,
};
use std::sync::Arc;

/// Seals and records what is open of a range that is held.
pub(crate) async fn open(life: &Arc<Life>, held: HeldRange) -> Result<Arc<OwnedRange>, StampError> {
    let (range, owner) = (held.document().range, held.owner());
    let mut taking = Taking::new(held);
    seal_all(&life.surroundings, &mut taking, || life.holds()).await;
    let changes = match taking.step() {
        TakingStep::Record(changes) => counted(life, changes).await?,
        TakingStep::Stopped(WalkStop::Broken(why)) => return Err(broken(life, range, owner, why).await),
        TakingStep::Stopped(_) => return Err(StampError::NotMine(range)),
        TakingStep::Seal => return Err(StampError::LeaseEnded),
    };
    let opened = Arc::new(OwnedRange::new(life, taking.into_held(), None));
    if !changes.is_empty() {
        note_answer(life);
        opened.change(&changes).await?;
    }
    Ok(opened)
}

/// A planted fault: lengths reach to the end of the last part that is listed.
async fn counted(life: &Arc<Life>, mut changes: Vec<Change>) -> Result<Vec<Change>, StampError> {
    if life.surroundings.settings.planted.has(Breach::CountBehindHole) {
        for change in &mut changes {
            if let Change::RecordLength { extent, length, .. } = change {
                let parts = listed_parts(&life.surroundings, *extent).await?;
                *length = parts.iter().map(|part| part.header.end()).max().unwrap_or(0);
            }
        }
    }
    Ok(changes)
}

/// A planted fault: what is open and has no part is written again from its start, without a seal. Its name,
/// if there is such an extent, and nothing else is open.
pub(crate) async fn unsealed_again(life: &Arc<Life>, held: &HeldRange) -> Option<ExtentName> {
    if !life.surroundings.settings.planted.has(Breach::ReloadWithoutSeal) {
        return None;
    }
    let taking = Taking::new(held.clone());
    let mut walks: Vec<SealWalk> = taking.walks().cloned().collect();
    let mut walk = walks.pop().filter(|_| walks.is_empty())?;
    let extent = walk.place().extent;
    let found = life.surroundings.read_header(extent, 0).await;
    walk.found(&found);
    matches!(walk.step(), WalkStep::Create(_)).then_some(extent)
}

/// A chain is broken: damage, if the range is still this owner's; else it was being changed by its owner.
pub(crate) async fn broken(life: &Arc<Life>, range: RangeId, owner: Owner, why: String) -> StampError {
    match own_entry(life, range).await {
        Err(error) => error,
        Ok(own) => match choose_after_broken(own, owner) {
            AfterBroken::Damage => {
                StampError::Stored(StoredError::Malformed { what: format!("range {range}"), why })
            }
            AfterBroken::Forget => StampError::NotMine(range),
        },
    }
}

/// Reads the own entry of a range until there is an answer.
pub(crate) async fn own_entry(life: &Arc<Life>, range: RangeId) -> Result<Option<OwnEntry>, StampError> {
    let mut back_off = life.surroundings.back_off();
    loop {
        if !life.holds() {
            return Err(StampError::LeaseEnded);
        }
        match life.metadata.read(&[Key::Own(range)]).await {
            Ok(values) => return Ok(values.own(range)),
            Err(error @ (StampError::Stored(_) | StampError::LeaseEnded)) => return Err(error),
            Err(_) => back_off.wait().await,
        }
    }
}
