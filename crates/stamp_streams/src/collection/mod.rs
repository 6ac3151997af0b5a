//! Deleting what no document names: `sweep.rs` carries out `stamp::choose_sweep`.

pub(crate) mod sweep;
