//! Rules: links of Markdown pages resolve, and the Rust files that they name exist.
//!
//! A link is a relative path, an `#anchor` of a heading, or both. A code reference is a span in backquotes
//! that ends with `.rs`: a bare name, or the end of a path, of a file of the tree. What is in a fenced block
//! is not looked at.

use crate::tidy::finding::Finding;
use crate::tidy::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

const LINK: &str = "links";
const CODE: &str = "code-references";

/// Links and code references that lead nowhere.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let files: BTreeSet<&str> = tree.paths().filter(|path| path.ends_with(".rs")).flat_map(ends).collect();
    let mut anchors = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (line, text) in prose_lines(text) {
            let spans = code_spans(text);
            for reference in spans.iter().filter_map(|span| code_reference(span)) {
                if !files.contains(reference) {
                    let remedy = "name the file that has it now";
                    findings.push(Finding::new(
                        CODE,
                        path,
                        line,
                        format!("there is no `{reference}`"),
                        remedy,
                    ));
                }
            }
            for link in links(text) {
                if !resolves(tree, path, &link, &mut anchors) {
                    let remedy = "link to what is there now";
                    findings.push(Finding::new(
                        LINK,
                        path,
                        line,
                        format!("the link {link} leads nowhere"),
                        remedy,
                    ));
                }
            }
        }
    }
    findings
}

/// `a/b/c.rs`, `b/c.rs`, `c.rs`.
fn ends(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..]))
}

/// The lines outside of fenced blocks, with their numbers.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then_some((index + 1, line))
    })
}

/// What is between backquotes.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The file that a span names, if it names one: `NAME.rs` and `*.rs` stand for many.
fn code_reference(span: &str) -> Option<&str> {
    let span = span.split(':').next()?;
    let is_path = span.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    let name = span.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"))?;
    let is_one = name.bytes().any(|byte| byte.is_ascii_lowercase());
    (is_path && is_one).then_some(span)
}

/// The targets of `[text](target)` and `[name]: target`, outside of code spans.
fn links(line: &str) -> Vec<String> {
    let without_code: String = line
        .split('`')
        .enumerate()
        .map(|(index, part)| if index % 2 == 0 { part.to_owned() } else { "x".repeat(part.len()) })
        .collect();
    let inline = without_code.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut found: Vec<String> = inline.map(str::to_owned).collect();
    if let Some((_, target)) = without_code.split_once("]: ").filter(|_| without_code.starts_with('[')) {
        found.push(target.trim().to_owned());
    }
    found
}

fn resolves(tree: &Tree, page: &str, link: &str, known: &mut BTreeMap<String, BTreeSet<String>>) -> bool {
    let link = link.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
    if ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme)) {
        return true;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let file = if file.is_empty() { Some(page.to_owned()) } else { resolve(page, file) };
    let Some(file) = file.filter(|file| file.is_empty() || tree.holds(file)) else { return false };
    match anchor {
        Some(anchor) if file.ends_with(".md") => {
            let anchors = known.entry(file.clone()).or_insert_with(|| anchors(tree.text(&file)));
            anchors.contains(anchor)
        }
        _ => true,
    }
}

/// The path of a link from the root of the tree; none if it leaves the tree.
fn resolve(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a page's headings, as GitHub makes them, and those that it writes itself.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose_lines(text) {
        for own in ["id=\"", "name=\""] {
            found
                .extend(line.split(own).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading);
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone()).chain(numbered).find(|slug| !found.contains(slug));
        found.extend(free);
    }
    found
}

fn slug(heading: &str) -> String {
    // Of a link in a heading only the text counts.
    let shown: String = heading
        .split("](")
        .enumerate()
        .map(
            |(index, part)| if index == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) },
        )
        .collect();
    let kept = shown.trim().chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        character if character.is_alphanumeric() => Some(character),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let files = [
            ("docs/a.md", text),
            ("docs/b.md", "# One `Two`: three\n\n## Same\n\n## Same\n\n```sh\n# no heading\n```\n"),
            ("crates/c/src/deep/d.rs", ""),
        ];
        check(&Tree::of(&files)).iter().map(|finding| format!("{} {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn a_link_to_no_file_is_found() {
        assert_eq!(found("a [b](b.md)\n[c](c.md)"), ["2 the link c.md leads nowhere"]);
        assert_eq!(found("[c](../../c.md)").len(), 1);
        assert_eq!(found("[c]: c.md").len(), 1);
    }

    #[test]
    fn a_link_to_no_heading_is_found() {
        assert_eq!(found("[b](b.md#two)"), ["1 the link b.md#two leads nowhere"]);
        assert_eq!(found("[b](b.md#no-heading)").len(), 1);
        assert_eq!(found("[a](#two)\n"), ["1 the link #two leads nowhere"]);
    }

    #[test]
    fn a_reference_to_no_file_is_found() {
        assert_eq!(found("`e.rs`, `c/src/d.rs`"), ["1 there is no `e.rs`", "1 there is no `c/src/d.rs`"]);
    }

    #[test]
    fn what_is_there_passes() {
        let text = "[b](b.md#one-two-three) [b](./b.md#same-1) [c](../crates/c/src) [a](#top) [d](https://e.f)\n# Top\n\
                    `d.rs`, `deep/d.rs:7`, `crates/c/src/deep/d.rs`, `*.rs`, `NAME.rs`, `[e](e.md)`\n```\n[e](e.md) `e.rs`\n```\n";
        assert_eq!(found(text), [""; 0]);
    }
}
