//! Items of a scanned file that rules count: functions, structs with named fields, `use` paths, declared
//! modules.
//!
//! Found by keywords and brackets alone. What macros make of their input is not seen.

use super::source::{Source, closing_end, name_end, skip_blanks};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    /// From the line of `fn` to the line of the closing brace.
    pub(super) line_count: usize,
    /// Whether it is under `#[cfg(test)]`.
    pub(super) is_test: bool,
}

/// A struct with named fields.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Structure {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) field_count: usize,
    /// The doc comment in one line.
    pub(super) doc: String,
}

/// One path of a `use` declaration; a declaration with braces has several.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) line: usize,
    /// Modules in the same file around it, from the outside.
    pub(super) inside: Vec<String>,
    /// The segments; a `*` at the end is left out.
    pub(super) path: Vec<String>,
    /// The name it brings; none for `*` and `_`.
    pub(super) name: Option<String>,
    pub(super) is_test: bool,
}

/// The functions of a file.
pub(super) fn functions(source: &Source) -> Vec<Function> {
    let code = source.code();
    let mut found = Vec::new();
    for (position, _) in source.names().filter(|(_, name)| *name == "fn") {
        let name_start = skip_blanks(code, position + 2);
        let name = text(code, name_start);
        if let Some(open) = body_start(code, name_start).filter(|_| !name.is_empty()) {
            let line = source.line_of(position);
            let last_line = source.line_of(closing_end(code, open).saturating_sub(1));
            let line_count = last_line + 1 - line;
            found.push(Function { name, line, line_count, is_test: source.is_test(position) });
        }
    }
    found
}

/// The structs with named fields.
pub(super) fn structures(source: &Source) -> Vec<Structure> {
    let code = source.code();
    let mut found = Vec::new();
    for (position, _) in source.names().filter(|(_, name)| *name == "struct") {
        let name_start = skip_blanks(code, position + 6);
        let name = text(code, name_start);
        if let Some(open) = body_start(code, name_start).filter(|_| !name.is_empty()) {
            let line = source.line_of(position);
            let fields = &code[open + 1..closing_end(code, open).saturating_sub(1)];
            let doc = doc_before(source, position);
            found.push(Structure { name, line, field_count: named_field_count(fields), doc });
        }
    }
    found
}

/// The paths of all `use` declarations.
pub(super) fn uses(source: &Source) -> Vec<Use> {
    let code = source.code();
    let modules = inline_modules(source);
    let mut found = Vec::new();
    for (position, _) in source.names().filter(|(_, name)| *name == "use") {
        let start = skip_blanks(code, position + 3);
        // `impl Trait + use<'a>` captures lifetimes.
        if code.get(start) == Some(&b'<') {
            continue;
        }
        let end = start + code[start..].iter().position(|byte| *byte == b';').unwrap_or(0);
        let mut paths = Vec::new();
        expand(&String::from_utf8_lossy(&code[start..end]), &[], &mut paths);
        let around = modules.iter().filter(|module| module.0 < position && position < module.1);
        let inside: Vec<String> = around.map(|module| module.2.clone()).collect();
        let (line, is_test) = (source.line_of(position), source.is_test(position));
        found.extend(paths.into_iter().map(|(path, name)| Use {
            line,
            inside: inside.clone(),
            path,
            name,
            is_test,
        }));
    }
    found
}

/// The modules that a file declares with `mod x;`, and whether each is under `#[cfg(test)]`.
pub(super) fn declared_modules(source: &Source) -> Vec<(String, bool)> {
    let code = source.code();
    let mut found = Vec::new();
    for (position, _) in source.names().filter(|(_, name)| *name == "mod") {
        let start = skip_blanks(code, position + 3);
        let name = text(code, start);
        if !name.is_empty() && code.get(skip_blanks(code, start + name.len())) == Some(&b';') {
            found.push((name, source.is_test(position)));
        }
    }
    found
}

/// Start, end and name of each `mod x { … }`, the outer ones first.
fn inline_modules(source: &Source) -> Vec<(usize, usize, String)> {
    let code = source.code();
    let mut found = Vec::new();
    for (position, _) in source.names().filter(|(_, name)| *name == "mod") {
        let start = skip_blanks(code, position + 3);
        let name = text(code, start);
        let open = skip_blanks(code, start + name.len());
        if !name.is_empty() && code.get(open) == Some(&b'{') {
            found.push((open, closing_end(code, open), name));
        }
    }
    found
}

fn text(code: &[u8], start: usize) -> String {
    String::from_utf8_lossy(&code[start..name_end(code, start)]).into_owned()
}

/// The brace that opens the body of a function or struct whose name starts here, if it has one.
fn body_start(code: &[u8], mut at: usize) -> Option<usize> {
    while at < code.len() {
        match code[at] {
            b'(' | b'[' => at = closing_end(code, at),
            b'{' => return Some(at),
            b';' | b'}' => return None,
            _ => at += 1,
        }
    }
    None
}

/// Fields between the braces of a struct: parts between commas that are in no bracket and have a `name:`.
fn named_field_count(fields: &[u8]) -> usize {
    let mut count = 0;
    let mut angle_depth = 0_usize;
    let mut has_colon = false;
    let mut at = 0;
    while at < fields.len() {
        match fields[at] {
            b'(' | b'[' | b'{' => {
                at = closing_end(fields, at);
                continue;
            }
            b'<' => angle_depth += 1,
            b'>' if fields[at - 1] != b'-' => angle_depth = angle_depth.saturating_sub(1),
            b':' if angle_depth == 0 => has_colon = true,
            b',' if angle_depth == 0 => count += usize::from(std::mem::take(&mut has_colon)),
            _ => {}
        }
        at += 1;
    }
    count + usize::from(has_colon)
}

/// The doc comment of the item whose keyword is at `position`, in one line.
fn doc_before(source: &Source, position: usize) -> String {
    let code = source.code();
    let mut start = position;
    loop {
        let before = code[..start].trim_ascii_end();
        start = match before.last() {
            Some(b']') => opening(before),
            // The visibility, `pub` or `pub(crate)`.
            Some(b')') => opening(before),
            Some(b'b') if before.ends_with(b"pub") => before.len() - 3,
            Some(b'#') => before.len() - 1,
            _ => {
                let first_line = if before.is_empty() { 0 } else { source.line_of(before.len() - 1) };
                let lines = first_line + 1..source.line_of(position);
                let docs = source.comments().iter().filter(|comment| lines.contains(&comment.line));
                let docs = docs.filter_map(|comment| comment.text.strip_prefix("///"));
                return docs.map(str::trim).collect::<Vec<_>>().join(" ");
            }
        };
    }
}

/// The position of the bracket that the last byte closes.
fn opening(code: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.iter().enumerate().rev() {
        match byte {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    0
}

/// The paths of a tree such as `a::{b, c::{self, D as E}, f::*}`, each with the name it brings.
fn expand(tree: &str, prefix: &[String], found: &mut Vec<(Vec<String>, Option<String>)>) {
    let tree = tree.trim();
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, Some(group.trim_end().strip_suffix('}').unwrap_or(group))),
        None => (tree, None),
    };
    let (head, alias) = match head.split_once(" as ") {
        Some((head, alias)) => (head, Some(alias.trim())),
        None => (head, None),
    };
    let mut path = prefix.to_vec();
    path.extend(head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
    if let Some(group) = group {
        for part in split_at_commas(group) {
            expand(part, &path, found);
        }
        return;
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let is_glob = path.last().is_some_and(|last| last == "*");
    if is_glob {
        path.pop();
    }
    let name = alias.map(str::to_owned).or_else(|| path.last().cloned());
    if !path.is_empty() {
        found.push((path, name.filter(|name| !is_glob && name != "_")));
    }
}

fn split_at_commas(group: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_lines_from_fn_to_the_brace() {
        let source = Source::scan(
            "/// {\nfn a<F: Fn(&[u8; 4]) -> u8>(\n  f: F,\n) {\n  \"}\";\n}\ntrait T { fn b(&self); }\nlet c: fn(u8);\n",
        );
        let found = functions(&source);
        assert_eq!(found, [Function { name: "a".to_owned(), line: 2, line_count: 5, is_test: false }]);
    }

    #[test]
    fn fields_are_counted_whatever_their_types_are() {
        let source = Source::scan(
            "/// What it is.\n/// Why.\n#[derive(Debug)]\npub(crate) struct A<T: B> {\n  /// x: y, z: w\n  #[serde(a, b)]\n  \
             a: Map<u8, Vec<T>>,\n  pub b: Box<dyn Fn(u8, u8) -> u8>,\n  c: [u8; 3],\n}\nstruct D(u8, u8);\nstruct E;",
        );
        let found = structures(&source);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].field_count), ("A", 3));
        assert_eq!(found[0].doc, "What it is. Why.");
    }

    #[test]
    fn a_use_tree_is_expanded() {
        let source = Source::scan(
            "use a::{b, c::{self, D as E}, f::*};\nmod g { use super::h; }\nfn i() -> impl J + use<'a> {}\n",
        );
        let found = uses(&source);
        let paths: Vec<_> = found.iter().map(|found| found.path.join("::")).collect();
        assert_eq!(paths, ["a::b", "a::c", "a::c::D", "a::f", "super::h"]);
        let names: Vec<_> = found.iter().map(|found| found.name.as_deref()).collect();
        assert_eq!(names, [Some("b"), Some("c"), Some("E"), None, Some("h")]);
        assert_eq!(found[4].inside, ["g"]);
    }

    #[test]
    fn modules_of_other_files_are_declared() {
        let source = Source::scan("mod a;\n#[cfg(test)]\nmod tests;\nmod b { }\n");
        assert_eq!(declared_modules(&source), [("a".to_owned(), false), ("tests".to_owned(), true)]);
    }
}
