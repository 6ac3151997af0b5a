//! Rules: no file over 600 lines, no function over 100.
//!
//! Tests are counted apart, in files of their own and under `#[cfg(test)]`: they are recorded as they are. A
//! function has the lines from its `fn` to its closing brace.

use crate::tidy::finding::Finding;
use crate::tidy::items::functions;
use crate::tidy::tree::{Tree, is_test_file};

pub(crate) const FILE_LINES_MAX: usize = 600;
pub(crate) const FUNCTION_LINES_MAX: usize = 100;

/// The files and functions that are too long, each with its size.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let is_test = is_test_file(path);
        let line_count = source.line_count();
        if line_count > FILE_LINES_MAX {
            let rule = if is_test { "test-file-lines" } else { "file-lines" };
            let what = format!("the file has {line_count} lines, more than {FILE_LINES_MAX}");
            let remedy = "move one of its jobs to a file of its own";
            findings.push(Finding::new(rule, path, 1, what, remedy).sized(line_count));
        }
        for function in functions(source) {
            let line_count = function.line_count;
            if line_count > FUNCTION_LINES_MAX {
                let rule = if is_test || function.is_test { "test-function-lines" } else { "function-lines" };
                let what =
                    format!("`{}` has {line_count} lines, more than {FUNCTION_LINES_MAX}", function.name);
                let finding = Finding::new(rule, path, function.line, what, "name its steps as functions");
                findings.push(finding.sized(line_count));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let findings = check(&Tree::of(&[(path, text)]));
        findings.iter().map(|finding| (finding.rule, finding.size.unwrap())).collect()
    }

    fn function(line_count: usize) -> String {
        format!("fn a() {{\n{}}}\n", "b();\n".repeat(line_count - 2))
    }

    #[test]
    fn a_long_file_is_found() {
        let long = "use a;\n".repeat(601);
        assert_eq!(rules("crates/a/src/b.rs", &long), [("file-lines", 601)]);
        assert_eq!(rules("crates/a/tests/b.rs", &long), [("test-file-lines", 601)]);
        assert_eq!(rules("crates/a/src/b/tests.rs", &long), [("test-file-lines", 601)]);
        assert_eq!(rules("crates/a/src/b.rs", &"use a;\n".repeat(600)), []);
    }

    #[test]
    fn a_long_function_is_found() {
        assert_eq!(rules("crates/a/src/b.rs", &function(101)), [("function-lines", 101)]);
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(101));
        assert_eq!(rules("crates/a/src/b.rs", &test), [("test-function-lines", 101)]);
        assert_eq!(rules("crates/a/src/b.rs", &function(100)), []);
    }
}
