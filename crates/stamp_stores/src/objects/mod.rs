//! URLs of object stores, and objects in memory and in a folder.
//!
//! | file | content |
//! |---|---|
//! | `url.rs` | what `--store` may say |
//! | `settings.rs` | what can be set, each with its default |
//! | `open.rs` | a store from its URL |
//! | `memory.rs` | objects in memory |
//! | `folder.rs` | objects in a folder of a file system, each operation on a thread of its own |
//! | `folder_files.rs` | its files: what blocks |
//! | `folder_names.rs` | names of objects as paths, and what a listing enters |

pub(crate) mod folder;
pub(crate) mod folder_files;
pub(crate) mod folder_names;
pub(crate) mod memory;
pub(crate) mod open;
pub(crate) mod settings;
pub(crate) mod url;
