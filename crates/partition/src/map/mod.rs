//! The partition map: which range serves which keys, where operations are routed, when ranges split or merge,
//! and which containers are deleted.

pub(crate) mod check_cover;
pub(crate) mod choose_owner;
pub(crate) mod choose_range_changes;
pub(crate) mod choose_split_key;
pub(crate) mod container_marks;
pub(crate) mod dead_containers;
pub(crate) mod dead_filter;
pub(crate) mod map_copy;
pub(crate) mod partition_map;
pub(crate) mod range_load;
pub(crate) mod routes;
