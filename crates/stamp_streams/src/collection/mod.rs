//! Deleting what no document names: `sweep.rs` carries out `stamp::choose_sweep`.

mod age_clock;
mod ages;
pub(crate) mod sweep;
