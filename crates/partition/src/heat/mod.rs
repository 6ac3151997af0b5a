//! Which keys of a range are read and written, and when: sketches over some hours in bounded memory, for
//! operators.
//!
//! One request in some is noted (`range_heat`), in a bucket of time (`sketch`): what its partition counts
//! (`top_partitions`), where in the key order it lies (`key_sample`), and whether it goes beyond the keys
//! before it (`ends`). `window` puts buckets together for a time that was asked for, `key_map` makes a map of
//! keys and time of them. All but `range_heat` is pure. What always holds: no value of a row gets here, a
//! sketch has a bound in bytes whatever the keys are, and is lost with the process.

pub(crate) mod ends;
pub(crate) mod key_map;
pub(crate) mod key_sample;
pub(crate) mod range_heat;
pub(crate) mod sketch;
pub(crate) mod tally;
pub(crate) mod top_partitions;
pub(crate) mod window;
