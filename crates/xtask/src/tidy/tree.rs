//! The tree as the rules see it: path to text, with Rust sources scanned once.
//!
//! Paths are relative to the checkout, with `/`. Files that hold no text that a rule reads are known by path
//! alone, so that links to them resolve. Tests build a tree from pairs of path and text; rules never touch
//! the disk.

use super::source::Source;
use crate::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Kinds of files whose text rules read.
const TEXT_EXTENSIONS: [&str; 5] = ["rs", "md", "toml", "lock", "txt"];
/// Folders that hold nothing of the project's own: build results and installed packages.
const SKIPPED_FOLDERS: [&str; 5] = ["target", "node_modules", "larimar-data", "__pycache__", "dist"];
/// Hidden folders that belong to the project.
const HIDDEN_FOLDERS: [&str; 3] = [".ci", ".cargo", ".github"];

/// All files of the checkout that are the project's own.
#[derive(Default)]
pub(super) struct Tree {
    texts: BTreeMap<String, String>,
    sources: BTreeMap<String, Source>,
    /// Every file and every folder that holds one; folders without a `/` at the end.
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the checkout.
    pub(super) fn read(root: &Path) -> Outcome<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// A tree of these files.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add_text(path, (*text).to_owned());
        }
        tree
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Outcome<()> {
        for entry in std::fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                let is_hidden = name.starts_with('.') && !HIDDEN_FOLDERS.contains(&name.as_str());
                if !is_hidden && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                    self.read_folder(root, &path)?;
                }
                continue;
            }
            let is_text = path.rsplit_once('.').is_some_and(|(_, kind)| TEXT_EXTENSIONS.contains(&kind));
            let text = is_text.then(|| std::fs::read(root.join(&path))).transpose()?;
            match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(text) => self.add_text(&path, text),
                None => self.add_path(&path),
            }
        }
        Ok(())
    }

    fn add_path(&mut self, path: &str) {
        let folders = path.match_indices('/').map(|(end, _)| path[..end].to_owned());
        self.paths.extend(folders);
        self.paths.insert(path.to_owned());
    }

    fn add_text(&mut self, path: &str, text: String) {
        self.add_path(path);
        if is_rust_source(path) {
            self.sources.insert(path.to_owned(), Source::scan(&text));
        }
        self.texts.insert(path.to_owned(), text);
    }

    /// All texts, in order of their paths.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file, empty if there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    /// The scanned Rust files under `crates/`, in order of their paths.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// Whether a file or folder is there.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// All files and folders.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }
}

fn is_rust_source(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with(".rs")
}

/// Whether a Rust file holds tests or benches only, by its place.
pub(super) fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
}

/// The crate of a path, or its top folder, or `root`: what recorded numbers are kept by, because it outlives
/// renames of files.
pub(super) fn group(path: &str) -> &str {
    let below_crates = path.strip_prefix("crates/").unwrap_or(path);
    below_crates.split_once('/').map_or("root", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_known_by_the_files_in_them() {
        let tree = Tree::of(&[("docs/decisions/a.md", "")]);
        assert!(tree.holds("docs") && tree.holds("docs/decisions") && tree.holds("docs/decisions/a.md"));
        assert!(!tree.holds("docs/decisions/b.md"));
    }

    #[test]
    fn groups_are_crates_or_top_folders() {
        assert_eq!(group("crates/blob/src/lib.rs"), "blob");
        assert_eq!(group("docs/decisions/a.md"), "docs");
        assert_eq!(group("README.md"), "root");
    }
}
