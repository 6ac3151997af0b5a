//! `cargo xtask tidy --count`: totals that show where the tree stands, without a judgement.

use super::items::structures;
use super::rules::{circles, comment_columns, lengths, words};
use super::tree::{Tree, group, is_test_file};
use regex::bytes::RegexBuilder;
use std::collections::BTreeMap;

/// The field's terms, as a pattern of their forms.
const FIELD_TERMS: [(&str, &str); 12] = [
    ("compaction", r"compact(ion|ions|s|ed|ing|or|ors)?"),
    ("tombstone", r"tombstones?"),
    ("group commit", r"group[ _-]?commits?"),
    ("back-pressure", r"back[ _-]?pressure"),
    ("evict", r"evict(s|ed|ing|ion|ions)?"),
    ("bloom filter", r"bloom[ _-]?filters?"),
    ("block index", r"block[ _-]?ind(ex|exes|ices)"),
    ("orphan", r"orphan(s|ed)?"),
    ("idle compaction", r"idle[ _-]?compactions?"),
    ("fence", r"fenc(e|es|ed|ing)"),
    ("snapshot", r"snapshots?"),
    ("reclaim", r"reclaim(s|ed|ing)?"),
];
/// The phrases of the coined language that were counted before the field's words came in.
const COINED_PHRASES: [[&str; 2]; 4] = [["in", "quiet"], ["left", "tails"], ["is", "told"], ["are", "told"]];

/// The table, a line each.
pub(super) fn table(tree: &Tree) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    row("comment lines over 110 columns", comment_columns::check(tree).len().to_string());
    row("forbidden words and names (words.txt)", words::check(tree).len().to_string());
    let texts = prose(tree);
    let phrases = COINED_PHRASES.map(|phrase| uses(&texts, &phrase.join(" ")));
    for (phrase, count) in COINED_PHRASES.iter().zip(phrases) {
        row(&format!("coined phrase: {}", phrase.join(" ")), count.to_string());
    }
    row("coined phrases together", phrases.iter().sum::<usize>().to_string());
    let terms = FIELD_TERMS.map(|(name, pattern)| (name, uses(&texts, pattern)));
    for (name, count) in terms {
        row(&format!("field term: {name}"), count.to_string());
    }
    row("field terms together", terms.iter().map(|(_, count)| count).sum::<usize>().to_string());
    row("largest struct", largest_struct(tree));
    row("most Rust files flat in one folder", fullest_folder(tree));
    let circles: Vec<_> =
        circles::check(tree).into_iter().filter(|finding| finding.rule == circles::RULE).collect();
    let in_circles: usize = circles.iter().filter_map(|circle| circle.size).sum();
    row("circles", format!("{} of {in_circles} files", circles.len()));
    let lengths = lengths::check(tree);
    let count = |rule: &str| lengths.iter().filter(|finding| finding.rule == rule).count();
    let functions = lengths::FUNCTION_LINES_MAX;
    row(
        &format!("functions over {functions} lines"),
        format!("{}, and {} of tests", count("function-lines"), count("test-function-lines")),
    );
    let files = lengths::FILE_LINES_MAX;
    row(
        &format!("files over {files} lines"),
        format!("{}, and {} of tests", count("file-lines"), count("test-file-lines")),
    );
    rows
}

/// The Rust and Markdown files with their lines joined; the rules' own files, which list words, are left out.
fn prose(tree: &Tree) -> Vec<words::Joined> {
    let texts = tree.texts().filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".md"));
    let texts = texts.filter(|(path, _)| !path.starts_with("crates/xtask/src/tidy"));
    texts.map(|(_, text)| words::Joined::new(text)).collect()
}

/// Uses of a pattern as whole words, in names of several words as well.
fn uses(texts: &[words::Joined], pattern: &str) -> usize {
    let whole = format!(r"(\b|_)({pattern})(\b|_)");
    let Ok(pattern) = RegexBuilder::new(&whole).unicode(false).case_insensitive(true).build() else {
        return 0;
    };
    texts.iter().map(|joined| pattern.find_iter(joined.text.as_bytes()).count()).sum()
}

fn largest_struct(tree: &Tree) -> String {
    let all = tree.sources().flat_map(|(path, source)| {
        structures(source).into_iter().map(move |found| (found.field_count, found.name, group(path)))
    });
    let largest = all.max_by_key(|(count, _, _)| *count);
    largest.map_or(String::new(), |(count, name, group)| format!("{name} of {group}, {count} fields"))
}

fn fullest_folder(tree: &Tree) -> String {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in tree.sources().filter(|(path, _)| !is_test_file(path)) {
        *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    let fullest = folders.into_iter().max_by_key(|(_, count)| *count);
    fullest.map_or(String::new(), |(folder, count)| format!("{count} in {folder}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_counted_by_whole_words() {
        let tree = Tree::of(&[
            ("docs/a.md", "Fenced fences; offence. Idle compaction, compacting."),
            ("crates/a/src/idle_compaction.rs", "fn choose_idle_compaction() {}"),
        ]);
        let rows: BTreeMap<String, String> = table(&tree).into_iter().collect();
        assert_eq!(rows["field term: fence"], "2");
        assert_eq!(rows["field term: compaction"], "3");
        assert_eq!(rows["field term: idle compaction"], "2");
        assert_eq!(rows["most Rust files flat in one folder"], "1 in crates/a/src");
    }
}
