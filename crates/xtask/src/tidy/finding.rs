//! What a rule finds: a place, what is wrong there, and the remedy.

use super::tree::group;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    /// The name of the rule in records and exemptions.
    pub(super) rule: &'static str,
    pub(super) what: String,
    pub(super) remedy: String,
    /// What the rule's breaches are counted by: the crate, unless the rule says otherwise.
    pub(super) key: String,
    /// How large the thing is, if the rule bounds a size: the largest is recorded beside the count.
    pub(super) size: Option<usize>,
}

impl Finding {
    pub(super) fn new(rule: &'static str, path: &str, line: usize, what: String, remedy: &str) -> Self {
        let key = group(path).to_owned();
        Self { path: path.to_owned(), line, rule, what, remedy: remedy.to_owned(), key, size: None }
    }

    pub(super) fn sized(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }

    pub(super) fn counted_by(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_place_and_remedy() {
        let finding = Finding::new("rule", "crates/blob/src/lib.rs", 7, "it is wrong".to_owned(), "mend it");
        assert_eq!(finding.to_string(), "crates/blob/src/lib.rs:7: it is wrong; mend it");
        assert_eq!(finding.key, "blob");
    }
}
