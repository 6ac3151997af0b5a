//! What the tree looks like, kept by a program: each rule is a file of `rules/`, a pure function from the
//! tree to its breaches.
//!
//! A breach is a line `path:line: what is wrong; remedy`, and one is enough to fail. Exemptions
//! (`exemptions.txt`) are few and have reasons; numbers of old breaches are recorded (`records.txt`) and may
//! only fall.

mod count;
mod exemptions;
mod finding;
mod items;
mod manifest;
mod records;
mod rules;
mod source;
mod tree;

use crate::{Outcome, workspace};
use finding::Finding;
use rules::{
    circles, comment_columns, dependencies, documented, layers, lengths, links, module_headers, rust_version,
    struct_fields, words,
};
use tree::Tree;

#[derive(Default, clap::Args)]
pub(crate) struct TidyArguments {
    /// Lower the recorded numbers to what is there now; none is raised.
    #[arg(long)]
    record: bool,
    /// Print a table of totals and judge nothing.
    #[arg(long)]
    count: bool,
}

/// All rules; one file may have several that look at the same thing.
const RULES: [fn(&Tree) -> Vec<Finding>; 11] = [
    module_headers::check,
    lengths::check,
    comment_columns::check,
    words::check,
    dependencies::check,
    layers::check,
    circles::check,
    links::check,
    documented::check,
    struct_fields::check,
    rust_version::check,
];

pub(crate) fn run(arguments: &TidyArguments) -> Outcome<()> {
    let root = workspace::root()?;
    let tree = Tree::read(&root)?;
    if arguments.count {
        for (name, value) in count::table(&tree) {
            println!("{name:<45} {value}");
        }
        return Ok(());
    }
    let mut recorded = tree.text(records::PATH).to_owned();
    if arguments.record {
        recorded = records::lowered(&recorded, &findings(&tree));
        std::fs::write(root.join(records::PATH), &recorded)?;
    }
    let breaches = breaches(&tree, &recorded);
    for breach in &breaches {
        println!("{breach}");
    }
    match breaches.len() {
        0 => Ok(()),
        count => Err(format!("{count} breaches of the rules").into()),
    }
}

/// What all rules find, without what is exempt.
fn findings(tree: &Tree) -> Vec<Finding> {
    let all = RULES.iter().flat_map(|rule| rule(tree)).collect();
    exemptions::apply(tree.text(exemptions::PATH), all)
}

/// What is beyond the recorded numbers, sorted by place.
fn breaches(tree: &Tree, recorded: &str) -> Vec<Finding> {
    let mut breaches = records::apply(recorded, findings(tree));
    breaches.sort();
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A rule that no one calls would pass for ever.
    #[test]
    fn a_breach_of_each_rule_fails() {
        let long_function = format!("fn a() {{\n{}}}\n", "b();\n".repeat(600));
        let wide_struct = format!("struct A {{\n{}}}\n", "a: u8,\n".repeat(13));
        let wide_comment = format!("// {}\n", "a".repeat(110));
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\n\"crates/a\",\n\"crates/b\",\n]\n[workspace.dependencies]\nc = \"1\"\n",
            ),
            ("Cargo.lock", "name = \"openssl\"\nname = \"ring\"\n"),
            ("crates/a/Cargo.toml", "[dependencies]\nb.workspace = true\n"),
            ("crates/a/src/lib.rs", &[long_function.as_str(), &wide_struct, &wide_comment].concat()),
            ("crates/a/tests/a.rs", &long_function),
            ("crates/b/src/one.rs", "use crate::two::Two;\n"),
            ("crates/b/src/two.rs", "use crate::one::One;\n"),
            ("crates/front_end/src/codes.rs", "//!\nerror_codes! {\n    One BAD_REQUEST \"a\"\n}\n"),
            ("crates/larimar/src/settings.rs", "struct A {\n    #[arg(long)]\n    one: u8,\n}\n"),
            ("docs/a.md", "[b](b.md) `c.rs` plugh\n"),
            (words::PATH, "text plugh => a word\n"),
            (exemptions::PATH, "words docs/b.md because it is so\n"),
        ]);
        let found: BTreeSet<&str> =
            breaches(&tree, "links gone 1\n").iter().map(|breach| breach.rule).collect();
        let expected = [
            "circle-reason",
            "circles",
            "code-references",
            "comment-columns",
            "dependency-reason",
            "error-codes-documented",
            "exemptions",
            "file-lines",
            "function-lines",
            "layers",
            "links",
            "module-header",
            "one-crypto-library",
            "records",
            "rust-version",
            "settings-documented",
            "struct-fields",
            "test-file-lines",
            "test-function-lines",
            "words",
        ];
        assert_eq!(found, BTreeSet::from(expected));
    }

    #[test]
    fn a_clean_tree_passes() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace.package]\nrust-version = \"1.95\"\n"),
            ("README.md", "You need Rust 1.95.\n"),
            ("crates/a/src/lib.rs", "//! What it is.\n"),
            ("docs/a.md", "[a](a.md)\n"),
        ]);
        assert_eq!(breaches(&tree, ""), []);
    }
}
