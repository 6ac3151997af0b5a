//! Files of entities, and of states of unfinished work.

pub(crate) mod columns;
pub(crate) mod format;
pub(crate) mod output;
pub(crate) mod records;
pub(crate) mod state_file;
pub(crate) mod text;
pub(crate) mod window;

/// The folder that a path is in; `""` is the one that the program runs in.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder })
}
