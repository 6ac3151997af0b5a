//! The client tests of tables against servers that end every page where they may: before each partition,
//! after each row, and once more without a row. What fails then is a client that ignores a token.
//!
//! `clients/boundaries.txt` lists such tests, a line each: the suite, the test, and the client's line that
//! ignores the token. What always holds: there are at most [`EXCEPTIONS_MAX`], and each still fails.

use crate::workspace::Scratch;
use crate::{Outcome, programs};
use std::path::Path;
use std::process::Command;

const RULES: &str = "[boundaries]\npartitions = 1\nempty = 1\npage_rows = 1\n";
const EXCEPTIONS: &str = "clients/boundaries.txt";
const EXCEPTIONS_MAX: usize = 5;

/// Tests of tables and entities.
const PYTHON_FILES: [&str; 8] = [
    "test_readme.py",
    "test_tables.py",
    "test_entities.py",
    "test_queries.py",
    "test_transactions.py",
    "test_types.py",
    "test_metadata.py",
    "test_async.py",
];
const JAVASCRIPT_FILES: [&str; 4] =
    ["tables.test.js", "entities.test.js", "queries.test.js", "transactions.test.js"];

/// A test whose client ignores a token.
#[derive(Debug, PartialEq, Eq)]
struct Exception {
    suite: String,
    test: String,
}

pub(crate) fn run(root: &Path, binary: &Path, python: &Path) -> Outcome<()> {
    let scratch = Scratch::create("boundaries")?;
    let rules = scratch.path().join("boundaries.toml");
    std::fs::write(&rules, RULES)?;
    let exceptions = read_exceptions(&std::fs::read_to_string(root.join(EXCEPTIONS))?)?;
    let of = |suite: &str| -> Vec<&str> {
        exceptions.iter().filter(|one| one.suite == suite).map(|one| one.test.as_str()).collect()
    };
    let with_rules = |command: &mut Command, folder: &str| {
        command.current_dir(root.join(folder)).env("LARIMAR_BIN", binary).env("LARIMAR_SIMULATE", &rules);
    };
    let pytest = |more: &[String]| {
        let mut command = Command::new(python);
        command.args(["-m", "pytest", "--quiet"]).args(more);
        with_rules(&mut command, "clients/python");
        programs::finish(&mut command)
    };
    let deselected = of("python").into_iter().map(|test| format!("--deselect={test}"));
    pytest(&PYTHON_FILES.map(str::to_owned).into_iter().chain(deselected).collect::<Vec<_>>())?;
    let node = |more: &[String]| {
        let mut command = Command::new("node");
        command.args(["--test", "--test-reporter", "spec"]).args(more);
        with_rules(&mut command, "clients/javascript");
        programs::finish(&mut command)
    };
    let files = || JAVASCRIPT_FILES.map(|name| format!("test/{name}")).into_iter();
    let skipped = without(&of("javascript"));
    node(&skipped.into_iter().chain(files()).collect::<Vec<_>>())?;
    for exception in &exceptions {
        println!("an exception, which has to fail:");
        let passes = match exception.suite.as_str() {
            "python" => pytest(std::slice::from_ref(&exception.test)),
            _ => node(&std::iter::once(only(&exception.test)).chain(files()).collect::<Vec<_>>()),
        };
        if passes.is_ok() {
            return Err(format!("{} passes: take it out of {EXCEPTIONS}", exception.test).into());
        }
    }
    Ok(())
}

/// Node's filter for one test.
fn only(name: &str) -> String {
    format!("--test-name-pattern=/^{}$/", escaped(name))
}

/// Node's filter for all others: older versions can only say which tests run.
fn without(names: &[&str]) -> Option<String> {
    let names: Vec<String> = names.iter().map(|name| escaped(name)).collect();
    (!names.is_empty()).then(|| format!("--test-name-pattern=/^(?!({})$)/", names.join("|")))
}

fn escaped(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        if !character.is_alphanumeric() && character != ' ' && character != '_' {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// `SUITE TEST => the client's line that ignores the token`.
fn read_exceptions(text: &str) -> Outcome<Vec<Exception>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut exceptions = Vec::new();
    for line in lines {
        let wrong = || {
            format!("{EXCEPTIONS}: `{line}`: write SUITE TEST => the client's line that ignores the token")
        };
        let (test, why) = line.split_once(" => ").ok_or_else(wrong)?;
        let (suite, test) = test.split_once(' ').ok_or_else(wrong)?;
        // A file and the number of its line.
        let names_a_line = why.split_whitespace().any(|word| {
            word.rsplit_once(':')
                .is_some_and(|(_, number)| number.trim_end_matches([',', '.']).parse::<u32>().is_ok())
        });
        if !matches!(suite, "python" | "javascript") || !names_a_line {
            return Err(wrong().into());
        }
        exceptions.push(Exception { suite: suite.to_owned(), test: test.trim().to_owned() });
    }
    if exceptions.len() > EXCEPTIONS_MAX {
        return Err(format!("{EXCEPTIONS} has more than {EXCEPTIONS_MAX} exceptions").into());
    }
    Ok(exceptions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_name_the_line_that_ignores_the_token() {
        let read =
            read_exceptions("# a comment\n\npython a.py::b => tables/_client.py:12 stops at an empty page\n");
        let expected = Exception { suite: "python".to_owned(), test: "a.py::b".to_owned() };
        assert_eq!(read.expect("good"), [expected]);
        for wrong in ["python a.py::b", "python a.py::b => it fails", "ruby a => b.rb:1", "python => b.py:1"]
        {
            assert!(read_exceptions(wrong).is_err(), "{wrong}");
        }
        let many = "python a => b.py:1\n".repeat(EXCEPTIONS_MAX + 1);
        assert!(read_exceptions(&many).is_err());
    }

    #[test]
    fn filters_take_names_as_they_are() {
        assert_eq!(only("a (b)"), "--test-name-pattern=/^a \\(b\\)$/");
        assert_eq!(without(&["a.b", "c"]).as_deref(), Some("--test-name-pattern=/^(?!(a\\.b|c)$)/"));
        assert_eq!(without(&[]), None);
    }
}
