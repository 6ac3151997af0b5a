//! Names and files of the simulated disk: which names there are, and which of them a power loss leaves.

use super::content::Content;
use super::faults::Faults;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

#[derive(Default)]
pub(super) struct Tree {
    pub(super) folders: BTreeSet<String>,
    pub(super) names: BTreeMap<String, u64>,
    pub(super) durable_names: BTreeMap<String, u64>,
    pub(super) name_changes: Vec<NameChange>,
    pub(super) files: BTreeMap<u64, Content>,
    pub(super) next_file: u64,
    pub(super) faults: Faults,
    pub(super) operations: u64,
    pub(super) trace: u64,
}

#[derive(Clone)]
pub(super) struct NameChange {
    pub(super) folder: String,
    /// Names set (`Some`) and removed (`None`) by one operation, atomically.
    pub(super) changes: Vec<(String, Option<u64>)>,
}

pub(super) fn set_names(names: &mut BTreeMap<String, u64>, changes: &[(String, Option<u64>)]) {
    for (path, file) in changes {
        match file {
            Some(file) => names.insert(path.clone(), *file),
            None => names.remove(path),
        };
    }
}

impl Tree {
    pub(super) fn change_names(&mut self, path: &str, changes: Vec<(String, Option<u64>)>) {
        set_names(&mut self.names, &changes);
        self.name_changes.push(NameChange { folder: folder_of(path).to_owned(), changes });
    }

    /// Bytes of all files that have a name: what is removed takes no more space, as if it were open nowhere.
    pub(super) fn used_bytes(&self) -> u64 {
        self.names.values().map(|id| self.files[id].current.len() as u64).sum()
    }
}

pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

pub(super) fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file or folder"))
}
