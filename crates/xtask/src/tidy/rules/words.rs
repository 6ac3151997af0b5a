//! Rule: words and coined phrases that field terms replace are not used, nor names that say nothing.
//!
//! `words.txt` lists them, a line each: `text` or `name`, a regular expression, ` => `, what to say instead.
//! `text` is looked for in Rust and Markdown files, with the lines of a comment or paragraph joined, so that
//! a line break hides nothing; `name` is compared with whole names of files (without `.rs`) and folders. Case
//! does not matter. What remains is recorded as one number for the whole tree.

use crate::tidy::finding::Finding;
use crate::tidy::tree::Tree;
use regex::bytes::{Regex, RegexBuilder};

/// The file with the words.
pub(crate) const PATH: &str = "crates/xtask/src/tidy/words.txt";
pub(crate) const RULE: &str = "words";

/// A forbidden pattern, and what takes its place.
struct Word<'a> {
    pattern: Regex,
    is_name: bool,
    instead: &'a str,
}

/// All uses of what the list forbids, and its lines that can't be read.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (words, mut findings) = parse(tree.text(PATH));
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".md")) {
        let joined = Joined::new(text);
        for word in words.iter().filter(|word| !word.is_name) {
            for found in word.pattern.find_iter(joined.text.as_bytes()) {
                let used = String::from_utf8_lossy(found.as_bytes()).into_owned();
                findings.push(breach(path, joined.line_of(found.start()), &used, word.instead));
            }
        }
    }
    for path in tree.paths().filter(|path| path.starts_with("crates/")) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let name = name.strip_suffix(".rs").unwrap_or(name);
        for word in words.iter().filter(|word| word.is_name && word.pattern.is_match(name.as_bytes())) {
            findings.push(breach(path, 1, name, word.instead));
        }
    }
    findings
}

fn breach(path: &str, line: usize, used: &str, instead: &str) -> Finding {
    Finding::new(RULE, path, line, format!("`{used}`"), &format!("say instead: {instead}")).counted_by("all")
}

fn parse(list: &str) -> (Vec<Word<'_>>, Vec<Finding>) {
    let mut words = Vec::new();
    let mut findings = Vec::new();
    for (index, line) in list.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Some(word) => words.push(word),
            None => {
                let what = format!("`{line}` is no entry of the list");
                findings.push(Finding::new(RULE, PATH, index + 1, what, "write `text PATTERN => INSTEAD`"));
            }
        }
    }
    (words, findings)
}

fn parse_line(line: &str) -> Option<Word<'_>> {
    let (pattern, instead) = line.split_once(" => ")?;
    let (kind, pattern) = pattern.trim().split_once(' ')?;
    let pattern = match kind {
        "name" => format!("^({})$", pattern.trim()),
        "text" => pattern.trim().to_owned(),
        _ => return None,
    };
    let pattern = RegexBuilder::new(&pattern).unicode(false).case_insensitive(true).build().ok()?;
    Some(Word { pattern, is_name: kind == "name", instead: instead.trim() })
}

/// A text whose lines are joined with single blanks, without indentation and markers of comments.
pub(crate) struct Joined {
    pub(crate) text: String,
    line_starts: Vec<usize>,
}

impl Joined {
    pub(crate) fn new(text: &str) -> Self {
        let mut joined = Self { text: String::with_capacity(text.len()), line_starts: Vec::new() };
        for line in text.lines() {
            joined.line_starts.push(joined.text.len());
            let line = line.trim();
            let without_marker = ["///", "//!", "//"].iter().find_map(|marker| line.strip_prefix(marker));
            joined.text.push_str(without_marker.unwrap_or(line).trim_start());
            joined.text.push(' ');
        }
        joined
    }

    fn line_of(&self, position: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# comment\ntext \\bgrue(s|some)?\\b => lamp\nname zork|plugh => what it does\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(PATH, LIST), (path, text)])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_forbidden_word_is_found_in_code_comments_and_pages() {
        let place = "crates/a/src/b.rs:2: `Grues`; say instead: lamp";
        assert_eq!(found("crates/a/src/b.rs", "//! A.\n// Grues.\n"), [place]);
        assert_eq!(found("docs/a.md", "The grue waits.\n"), ["docs/a.md:1: `grue`; say instead: lamp"]);
    }

    #[test]
    fn a_line_break_hides_no_phrase() {
        let list = "text dark\\s+room => cache\n";
        let text = "/// A dark\n/// room.\n";
        let findings = check(&Tree::of(&[(PATH, list), ("crates/a/src/b.rs", text)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert_eq!(
            found("crates/a/src/zork.rs", ""),
            ["crates/a/src/zork.rs:1: `zork`; say instead: what it does"]
        );
        assert_eq!(found("crates/a/src/plugh/b.rs", "").len(), 1);
        assert_eq!(found("crates/a/src/zorkmid.rs", "gruel"), [""; 0]);
    }

    #[test]
    fn an_entry_that_can_not_be_read_is_found() {
        let findings = check(&Tree::of(&[(PATH, "text ( => b\nword a => b\n")]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 2]);
    }
}
