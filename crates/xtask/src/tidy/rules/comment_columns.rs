//! Rule: a line with a comment has at most 110 columns. rustfmt keeps code there, and leaves comments as they
//! are.

use crate::tidy::finding::Finding;
use crate::tidy::tree::Tree;

pub(crate) const RULE: &str = "comment-columns";
const COLUMNS_MAX: usize = 110;

/// The comments that are too wide.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for comment in source.comments().iter().filter(|comment| comment.columns > COLUMNS_MAX) {
            let what = format!("a comment of {} columns, more than {COLUMNS_MAX}", comment.columns);
            findings.push(Finding::new(RULE, path, comment.line, what, "wrap it"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("crates/a/src/b.rs", text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_wide_comment_is_found() {
        let wide = format!("// {}\n", "é".repeat(108));
        assert_eq!(lines(&format!("use a;\n{wide}/{wide}{wide}")), [2, 3, 4]);
        assert_eq!(lines(&format!("    let a = 1; // {}\n", "b".repeat(94))), [1]);
    }

    #[test]
    fn a_comment_that_fits_and_code_pass() {
        assert_eq!(lines(&format!("// {}\nlet a = \"{}\";\n", "é".repeat(107), "b // ".repeat(30))), [0; 0]);
    }
}
