//! Rule: each Rust file opens with a `//!` header.

use crate::tidy::finding::Finding;
use crate::tidy::tree::Tree;

const RULE: &str = "module-header";

/// The files without a header on their first line.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let bare = tree.sources().filter(|(path, source)| {
        let header: String = source.header().collect();
        header.is_empty() || !tree.text(path).starts_with("//!")
    });
    bare.map(|(path, _)| {
        let remedy = "begin it with `//!`: what it is, why, what always holds";
        Finding::new(RULE, path, 1, "the file has no module header".to_owned(), remedy)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        let text = "use a;\n//! Too late.\n";
        assert_eq!(check(&Tree::of(&[("crates/a/src/b.rs", text)]))[0].line, 1);
        assert_eq!(check(&Tree::of(&[("crates/a/tests/b.rs", "//!\n")])).len(), 1);
    }

    #[test]
    fn a_file_with_a_header_passes() {
        assert_eq!(check(&Tree::of(&[("crates/a/src/b.rs", "//! What it is.\n")])), []);
    }
}
