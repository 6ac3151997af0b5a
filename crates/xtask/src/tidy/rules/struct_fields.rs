//! Rule: a struct with more than 12 named fields says in its doc comment why: `… fields … because …`.

use crate::tidy::finding::Finding;
use crate::tidy::items::structures;
use crate::tidy::tree::Tree;

const RULE: &str = "struct-fields";
const FIELD_COUNT_MAX: usize = 12;

/// The structs that are too wide without a reason.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for found in structures(source) {
            let count = found.field_count;
            if count > FIELD_COUNT_MAX && !has_reason(&found.doc) {
                let what = format!("`{}` has {count} fields, more than {FIELD_COUNT_MAX}", found.name);
                let remedy =
                    "group those that belong together, or write `… fields … because …` in its doc comment";
                findings.push(Finding::new(RULE, path, found.line, what, remedy).sized(count));
            }
        }
    }
    findings
}

/// Whether one sentence has `fields` and, behind it, `because`.
fn has_reason(doc: &str) -> bool {
    doc.split(". ").any(|sentence| {
        let behind = sentence.split_once("fields").map(|(_, behind)| behind);
        behind.is_some_and(|behind| behind.contains("because"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(doc: &str, fields: usize) -> usize {
        let text = format!("{doc}struct A {{\n{}}}\n", "a: u8,\n".repeat(fields));
        check(&Tree::of(&[("crates/a/src/b.rs", &text)])).len()
    }

    #[test]
    fn a_wide_struct_without_a_reason_is_found() {
        assert_eq!(count("/// What it is.\n", 13), 1);
        assert_eq!(count("/// Has fields. It is, because it is.\n", 13), 1);
    }

    #[test]
    fn a_reason_or_fewer_fields_pass() {
        assert_eq!(
            count("/// What it is. 13 fields\n/// because each is a column.\n#[derive(B)]\npub ", 13),
            0
        );
        assert_eq!(count("", 12), 0);
    }
}
