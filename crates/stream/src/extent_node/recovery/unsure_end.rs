//! What large appends have left behind an extent's length when it is unknown where the journal ended.
//!
//! A large append is written and synced in its extent's file before the journal's record says so. If the
//! journal's last record is not whole, it was never finished, and the append never acknowledged, or it was
//! acknowledged and is damaged. The bytes look the same in both cases, and taking them is right in both: an
//! append that got no answer may be there or not. One that was refused is not among them, because it is cut
//! off for certain before the refusal is returned, and so is one that was left unfinished before the next
//! begins (`append.rs`).
//!
//! What always holds: what is taken reaches from the length to the file's end in whole blocks, as an append
//! that was synced does: of one that was not, some blocks may be whole, and an append is there as a whole or
//! not at all. Anything else was not acknowledged, unless more than the journal is damaged, and is cut off.
//! Either is logged.

use super::whole_blocks::find_end;
use crate::error::{StreamError, write_failed};
use crate::extent_node::extent_path;
use crate::extent_node::state::ExtentState;
use crate::ids::ExtentId;
use base::DiskFile;

/// Bytes that are written again at a time.
const WRITE_SIZE_BYTES: u64 = 8 << 20;

/// Takes what lies behind the length of an extent that takes appends, if it is whole, and has it on the disk
/// for certain.
pub(crate) async fn take_whole_tail(
    file: &dyn DiskFile,
    extent: ExtentId,
    state: &mut ExtentState,
) -> Result<(), StreamError> {
    let place = extent_path(extent);
    let len = file.size().await.map_err(|error| StreamError::read(&place, &error))?;
    let bytes = len.saturating_sub(state.length);
    if bytes == 0 {
        return Ok(());
    }
    let mut found = *state;
    find_end(file, extent, &mut found, len).await;
    if found.length < len {
        tracing::warn!(
            place,
            bytes,
            "the journal's end is not sure, and what lies behind the extent's is not whole: it is cut off as a crash leaves it"
        );
        return Ok(());
    }
    tracing::warn!(
        place,
        bytes,
        "the journal's end is not sure, and whole blocks lie behind the extent's: they are taken, as they may have been \
         acknowledged"
    );
    // A sync of it may have failed, and then only what is written again is synced by the next.
    let mut at = state.length;
    while at < len {
        let size = WRITE_SIZE_BYTES.min(len - at);
        let piece =
            file.read_at(at, size as usize).await.map_err(|error| StreamError::read(&place, &error))?;
        file.write_at(at, piece).await.map_err(|error| write_failed(&place, error))?;
        at += size;
    }
    file.sync_data().await.map_err(|error| write_failed(&place, error))?;
    *state = found;
    Ok(())
}
