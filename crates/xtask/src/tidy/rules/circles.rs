//! Rules: circles of files are few, and each has its reason.
//!
//! A circle is a strongly connected set of more than one file of a crate. An arrow is a `use` path outside of
//! tests, from the file with the declaration to the file that defines what it names: a name that the file on
//! the way only passes on (`pub use`) is followed to its own file. `mod x;` is no arrow. A circle's reason is
//! a line of the header of one of its files that starts with `Circle:`.

use crate::tidy::finding::Finding;
use crate::tidy::items::{Use, declared_modules, uses};
use crate::tidy::source::Source;
use crate::tidy::tree::{Tree, group, is_test_file};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const RULE: &str = "circles";
const REASON: &str = "circle-reason";
/// Names that are passed on more often are taken for a circle of `pub use`.
const PASSED_ON_MAX: usize = 8;

/// A file that is a module of its crate.
struct Module<'a> {
    path: &'a str,
    source: &'a Source,
    uses: Vec<Use>,
}

/// The modules of a crate by their paths from its root.
type Modules<'a> = BTreeMap<Vec<String>, Module<'a>>;

/// The circles, each at the first of its files, and those without a reason.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for modules in crates(tree).into_values() {
        let modules = without_tests(modules);
        for circle in circles(&modules) {
            let files: Vec<&Module<'_>> = circle.iter().map(|module| &modules[module]).collect();
            let mut paths: Vec<&str> = files.iter().map(|module| module.path).collect();
            paths.sort_unstable();
            let what = format!("a circle of {} files: {}", paths.len(), paths.join(", "));
            let remedy = "move what two of them share to a file of its own";
            findings.push(Finding::new(RULE, paths[0], 1, what, remedy).sized(paths.len()));
            let has_reason =
                |module: &&Module<'_>| module.source.header().any(|line| line.starts_with("Circle:"));
            if !files.iter().any(has_reason) {
                let what = format!("no reason for the circle of {}", paths.join(", "));
                let remedy = "break it, or say why it stays in a line `//! Circle: …` of a header";
                findings.push(Finding::new(REASON, paths[0], 1, what, remedy));
            }
        }
    }
    findings
}

/// The modules of each crate.
fn crates(tree: &Tree) -> BTreeMap<&str, Modules<'_>> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for (path, source) in tree.sources().filter(|(path, _)| !is_test_file(path)) {
        let name = group(path);
        let Some(inner) = path.strip_prefix(&format!("crates/{name}/src/")) else { continue };
        let mut module: Vec<String> = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        let last = module.last().map(String::as_str);
        let is_root = module.len() == 1 && matches!(last, Some("lib" | "main"));
        if is_root || last == Some("mod") {
            module.pop();
        }
        let uses = uses(source).into_iter().filter(|declared| !declared.is_test).collect();
        crates.entry(name).or_default().insert(module, Module { path, source, uses });
    }
    crates
}

/// Without the modules that are declared under `#[cfg(test)]`, and what is inside them.
fn without_tests(mut modules: Modules<'_>) -> Modules<'_> {
    let mut tests = BTreeSet::new();
    for (module, file) in &modules {
        for (name, is_test) in declared_modules(file.source) {
            if is_test {
                tests.insert([module.as_slice(), &[name]].concat());
            }
        }
    }
    modules.retain(|module, _| !(0..=module.len()).any(|length| tests.contains(&module[..length])));
    modules
}

/// The circles of a crate, each as its sorted modules.
fn circles(modules: &Modules<'_>) -> Vec<Vec<Vec<String>>> {
    let names: Vec<&Vec<String>> = modules.keys().collect();
    let mut arrows = vec![BTreeSet::new(); names.len()];
    for (index, (module, file)) in modules.iter().enumerate() {
        for declared in &file.uses {
            let target = target(modules, module, declared, 0);
            arrows[index].extend(
                target
                    .filter(|target| *target != module)
                    .and_then(|target| names.binary_search(&target).ok()),
            );
        }
    }
    let reached: Vec<BTreeSet<usize>> = (0..names.len()).map(|start| reached_from(&arrows, start)).collect();
    let mut circles = Vec::new();
    let mut is_in_one = vec![false; names.len()];
    for start in 0..names.len() {
        if is_in_one[start] {
            continue;
        }
        let members = reached[start].iter().filter(|other| reached[**other].contains(&start));
        let members: Vec<usize> = members.copied().collect();
        members.iter().for_each(|member| is_in_one[*member] = true);
        if members.len() > 1 {
            circles.push(members.iter().map(|member| names[*member].clone()).collect());
        }
    }
    circles
}

/// All that arrows lead to from one file; the file itself only if they lead back to it.
fn reached_from(arrows: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![start];
    while let Some(at) = waiting.pop() {
        for next in &arrows[at] {
            if reached.insert(*next) {
                waiting.push(*next);
            }
        }
    }
    reached
}

/// The module whose file defines what a `use` path names; none for other crates.
fn target<'a>(
    modules: &'a Modules<'_>,
    module: &[String],
    declared: &Use,
    passed_on: usize,
) -> Option<&'a Vec<String>> {
    let path = absolute(modules, module, declared)?;
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]))?;
    let (found, file) = modules.get_key_value(&path[..length])?;
    let item = path.get(length);
    let passes_on =
        |other: &&Use| other.name.is_some() && other.name.as_ref() == item && other.inside.is_empty();
    match file.uses.iter().find(passes_on) {
        Some(other) if passed_on < PASSED_ON_MAX && !std::ptr::eq(other, declared) => {
            target(modules, found, other, passed_on + 1).or(Some(found))
        }
        _ => Some(found),
    }
}

/// The path from the root of the crate; none if it starts in another crate.
fn absolute(modules: &Modules<'_>, module: &[String], declared: &Use) -> Option<Vec<String>> {
    let mut at = [module, &declared.inside].concat();
    let mut rest = declared.path.as_slice();
    if rest.first()? == "crate" {
        return Some(rest[1..].to_vec());
    }
    if rest[0] == "self" {
        rest = &rest[1..];
    } else if rest[0] == "super" {
        while rest.first().is_some_and(|first| first == "super") {
            at.pop();
            rest = &rest[1..];
        }
    } else {
        let child = [at.as_slice(), &rest[..1]].concat();
        if !modules.contains_key(&child) {
            return None;
        }
    }
    Some([at.as_slice(), rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let with_paths: Vec<(String, &str)> =
            files.iter().map(|(file, text)| (format!("crates/a/src/{file}"), *text)).collect();
        let files: Vec<(&str, &str)> = with_paths.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let findings = check(&Tree::of(&files));
        findings.iter().map(|finding| format!("{} {}", finding.rule, finding.what)).collect()
    }

    #[test]
    fn a_circle_and_its_lack_of_a_reason_are_found() {
        let found =
            found(&[("lib.rs", "mod b; mod c;"), ("b.rs", "use crate::c::D;"), ("c.rs", "use super::b::E;")]);
        assert_eq!(
            found,
            [
                "circles a circle of 2 files: crates/a/src/b.rs, crates/a/src/c.rs",
                "circle-reason no reason for the circle of crates/a/src/b.rs, crates/a/src/c.rs"
            ]
        );
    }

    #[test]
    fn a_reason_in_one_header_is_enough() {
        let found = found(&[
            ("lib.rs", "mod b;"),
            ("b/mod.rs", "//! B.\n//!\n//! Circle: they are one thing.\nmod c; use c::D;"),
            ("b/c.rs", "use super::E;"),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_name_that_is_passed_on_is_followed_to_its_file() {
        let lib = "mod b; mod c; pub use b::B; pub use c::C;";
        assert_eq!(found(&[("lib.rs", lib), ("b.rs", "use crate::C;"), ("c.rs", "struct C;")]), [""; 0]);
        assert_eq!(found(&[("lib.rs", lib), ("b.rs", "use crate::C;"), ("c.rs", "use crate::B;")]).len(), 2);
    }

    #[test]
    fn tests_and_declarations_are_no_arrows() {
        let found = found(&[
            ("lib.rs", "mod b; #[cfg(test)] mod model;"),
            ("b.rs", "use crate::D; #[cfg(test)] mod tests { use super::*; use crate::model::E; }"),
            ("model.rs", "use crate::b::F; mod deep;"),
            ("model/deep.rs", "use crate::model::G;"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
