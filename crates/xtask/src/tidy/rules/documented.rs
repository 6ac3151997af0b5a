//! Rules: each setting is in `docs/settings.md`, each error code of an answer in `docs/error-codes.md` with
//! its status.
//!
//! Settings are read from where the program declares them: options from clap's attributes, variables of the
//! environment from literals in capitals with a `_`. Error codes are read from the table that answers are
//! made from.

use crate::tidy::finding::Finding;
use crate::tidy::source::{Source, closing_end, name_end, skip_blanks};
use crate::tidy::tree::Tree;
use std::collections::BTreeMap;

const SETTING: &str = "settings-documented";
const ERROR_CODE: &str = "error-codes-documented";
const SETTINGS_PAGE: &str = "docs/settings.md";
const ERROR_CODES_PAGE: &str = "docs/error-codes.md";
/// Where the program's own sources are.
const PROGRAM: &str = "crates/larimar/src/";
/// How the table of error codes begins.
const TABLE: &str = "\nerror_codes! {";
/// The number of each status that the table names as a constant.
const STATUSES: [(&str, &str); 17] = [
    ("NOT_MODIFIED", "304"),
    ("BAD_REQUEST", "400"),
    ("UNAUTHORIZED", "401"),
    ("FORBIDDEN", "403"),
    ("NOT_FOUND", "404"),
    ("METHOD_NOT_ALLOWED", "405"),
    ("NOT_ACCEPTABLE", "406"),
    ("CONFLICT", "409"),
    ("GONE", "410"),
    ("LENGTH_REQUIRED", "411"),
    ("PRECONDITION_FAILED", "412"),
    ("PAYLOAD_TOO_LARGE", "413"),
    ("UNSUPPORTED_MEDIA_TYPE", "415"),
    ("RANGE_NOT_SATISFIABLE", "416"),
    ("INTERNAL_SERVER_ERROR", "500"),
    ("NOT_IMPLEMENTED", "501"),
    ("SERVICE_UNAVAILABLE", "503"),
];

/// Settings and error codes that no page has.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = undocumented_settings(tree);
    findings.extend(undocumented_error_codes(tree));
    findings
}

fn undocumented_settings(tree: &Tree) -> Vec<Finding> {
    let page = tree.text(SETTINGS_PAGE);
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| path.starts_with(PROGRAM)) {
        let mut settings = options(tree.text(path), source);
        settings.extend(variables(source));
        for (line, setting) in settings {
            if !names(page, &setting) {
                let what = format!("{SETTINGS_PAGE} does not have `{setting}`");
                let remedy = "add it there: what it sets, its default, its bounds";
                findings.push(Finding::new(SETTING, path, line, what, remedy));
            }
        }
    }
    findings
}

/// Whether a page has the setting behind a backquote and as a whole: `--host` is not in `--hosts`.
fn names(page: &str, setting: &str) -> bool {
    page.match_indices(&format!("`{setting}")).any(|(at, found)| {
        let next = page[at + found.len()..].chars().next();
        !next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-' || next == '_')
    })
}

/// The options that `#[arg(long…)]` declares, as they are typed.
fn options(text: &str, source: &Source) -> Vec<(usize, String)> {
    const ATTRIBUTE: &[u8] = b"#[arg(";
    let code = source.code();
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(code, ATTRIBUTE).filter(|at| !source.is_test(*at)) {
        let open = at + ATTRIBUTE.len() - 1;
        let end = closing_end(code, open);
        let mut after = skip_blanks(code, end + 1);
        while code[after..].starts_with(b"#[") {
            after = skip_blanks(code, closing_end(code, after + 1));
        }
        let arguments = text.get(open + 1..end - 1).unwrap_or_default();
        let field = field_name(code, after);
        let line = source.line_of(at);
        if let Some(long) = argument(arguments, "long") {
            let name = if long.is_empty() { field.replace('_', "-") } else { long };
            found.push((line, format!("--{name}")));
        }
        if let Some(variable) = argument(arguments, "env") {
            let name = if variable.is_empty() { field.to_ascii_uppercase() } else { variable };
            found.push((line, name));
        }
    }
    found
}

/// The string that an argument of an attribute is set to, empty if it has none; none if the argument is not
/// there.
fn argument(arguments: &str, name: &str) -> Option<String> {
    let mut is_quoted = false;
    let parts = arguments.split(|character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    });
    let part = parts.map(str::trim).find(|part| part.split(['=', ' ']).next() == Some(name))?;
    Some(part.split_once('=').map_or("", |(_, value)| value).trim().trim_matches('"').to_owned())
}

/// The name of the field that is declared here, behind its visibility.
fn field_name(code: &[u8], mut at: usize) -> String {
    if code[at..].starts_with(b"pub") {
        at = skip_blanks(code, at + 3);
        if code.get(at) == Some(&b'(') {
            at = skip_blanks(code, closing_end(code, at));
        }
    }
    String::from_utf8_lossy(&code[at..name_end(code, at)]).into_owned()
}

/// Literals that can only be names of variables of the environment.
fn variables(source: &Source) -> Vec<(usize, String)> {
    let is_variable = |text: &str| {
        // Cargo's own are for the compiler.
        text.contains('_')
            && !text.starts_with("CARGO_")
            && text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let literals = source.literals().filter(|literal| is_variable(&literal.text));
    literals.map(|literal| (source.line_of(literal.position), literal.text.clone())).collect()
}

fn undocumented_error_codes(tree: &Tree) -> Vec<Finding> {
    let page = tree.text(ERROR_CODES_PAGE);
    let documented: BTreeMap<&str, &str> = page.lines().filter_map(documented_code).collect();
    let tables = tree.texts().filter(|(path, _)| path.starts_with("crates/front_end/src/"));
    let mut findings = Vec::new();
    for (path, text) in tables.filter(|(_, text)| text.contains(TABLE)) {
        for (line, code, status) in error_codes(text) {
            let what = match documented.get(code.as_str()) {
                None => format!("{ERROR_CODES_PAGE} does not have `{code}`"),
                Some(statuses) if !statuses.split(", ").any(|one| one == status) => {
                    format!("{ERROR_CODES_PAGE} has `{code}` with {statuses}, and it is {status}")
                }
                Some(_) => continue,
            };
            let remedy = "write its row there: code, status, when it is answered";
            findings.push(Finding::new(ERROR_CODE, path, line, what, remedy));
        }
    }
    findings
}

/// The code and the status of a row: ``| `Code` | 400 | when |``.
fn documented_code(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    Some((cells.next()?.trim_end_matches('`'), cells.next()?))
}

/// Line, name on the wire, and status of each row of the table.
fn error_codes(text: &str) -> Vec<(usize, String, String)> {
    let others: BTreeMap<&str, &str> = text.lines().filter_map(other_name).collect();
    let start = text.find(TABLE).unwrap_or(0) + 1;
    let first_line = text[..start].lines().count() + 1;
    let rows = text[start..].lines().enumerate().skip(1).take_while(|(_, row)| *row != "}");
    rows.filter_map(|(index, row)| {
        let mut words = row.split_whitespace();
        let (name, status) = (words.next()?, words.next()?);
        let number =
            STATUSES.iter().find(|(constant, _)| *constant == status).map_or(status, |(_, number)| number);
        let name = others.get(name).unwrap_or(&name);
        (!name.starts_with("//")).then(|| (first_line + index, (*name).to_owned(), number.to_owned()))
    })
    .collect()
}

/// `ErrorCode::Ours => "Theirs",`: a row with another name on the wire.
fn other_name(line: &str) -> Option<(&str, &str)> {
    let (ours, theirs) = line.trim().strip_prefix("ErrorCode::")?.split_once(" => \"")?;
    Some((ours, theirs.strip_suffix("\",")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENTS: &str = "//! A.\n/// `--not-this`\nstruct A {\n    #[arg(long, value_name = \"A, long\", env)]\n    \
                             pub(crate) one_two: u8,\n    #[arg(long = \"three\", requires = \"four\")]\n    #[cfg(unix)]\n    \
                             threes: u8,\n    #[arg(value_name = \"DIR\")]\n    folder: u8,\n}\nconst B: &str = \"NO_COLOR\";\n";

    fn settings(page: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/larimar/src/a.rs", ARGUMENTS), ("docs/settings.md", page)]);
        check(&tree).iter().map(|finding| format!("{} {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn a_setting_that_no_page_has_is_found() {
        assert_eq!(
            settings("`--one-two-three`, `--three X`, `NO_COLOR`"),
            ["4 docs/settings.md does not have `--one-two`", "4 docs/settings.md does not have `ONE_TWO`"]
        );
        assert_eq!(settings("`--one-two` `ONE_TWO` `NO_COLOR`").len(), 1);
        assert_eq!(settings("`--one-two` `ONE_TWO` `--three`").len(), 1);
    }

    #[test]
    fn documented_settings_pass() {
        assert_eq!(settings("`--one-two N`, `ONE_TWO`, `--three`, `NO_COLOR`"), [""; 0]);
    }

    fn codes(page: &str) -> Vec<String> {
        let table = "impl A {\n    ErrorCode::Ours => \"Theirs\",\n}\n\nerror_codes! {\n    One BAD_REQUEST \"a\"\n    \
                     Ours NOT_FOUND \"b\"\n}\n";
        let tree = Tree::of(&[("crates/front_end/src/a.rs", table), ("docs/error-codes.md", page)]);
        check(&tree).iter().map(|finding| format!("{} {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn an_error_code_without_a_row_or_with_another_status_is_found() {
        assert_eq!(codes("| `Theirs` | 404 | when |"), ["6 docs/error-codes.md does not have `One`"]);
        assert_eq!(
            codes("| `One` | 400 | when |\n| `Theirs` | 409 | when |"),
            ["7 docs/error-codes.md has `Theirs` with 409, and it is 404"]
        );
    }

    #[test]
    fn documented_error_codes_pass() {
        assert_eq!(codes("| `One` | 400 | when |\n| `Theirs` | 304, 404 | when |"), [""; 0]);
    }
}
