//! What is done: operations in which shares, on which keys, of which sizes. Pure, and under a seed.

pub(crate) mod chance;
pub(crate) mod key_space;
pub(crate) mod keys;
pub(crate) mod mix;
pub(crate) mod mix_file;
pub(crate) mod operation;
pub(crate) mod zipf;
