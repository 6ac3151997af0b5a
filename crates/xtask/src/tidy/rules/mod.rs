//! The rules, a file each: a pure function from the tree to its breaches.

pub(super) mod circles;
pub(super) mod comment_columns;
pub(super) mod dependencies;
pub(super) mod documented;
pub(super) mod layers;
pub(super) mod lengths;
pub(super) mod links;
pub(super) mod module_headers;
pub(super) mod rust_version;
pub(super) mod struct_fields;
pub(super) mod words;
