//! The files run: in each language its own tests pass, whose keys were made here.
#![allow(clippy::disallowed_methods)] // Programs of other languages are run.

use super::*;
use crate::design::{KeyDesign, Kind as DesignKind, Period};
use crate::predict::{Second, Share};
use base::Ticks;
use std::path::Path;
use std::process::Command;

/// Over all times; one is the last tick before 1970, which is of another hour, day and month than 1970.
fn time(index: usize) -> Ticks {
    const LAST_OF_1969: u64 = 116_444_736_000_000_000 - 1;
    if index == 1 { Ticks(LAST_OF_1969) } else { Ticks(index as u64 * 600_000_000_000_000_007) }
}

/// All kinds of parts of all kinds of values, texts that need each escape.
fn prediction() -> (Prediction, Sample) {
    let texts = ["plain", "a/b\\c#d?e=f|g", "it's \"quoted\" ${x} {y}", "ü\u{1f600}\u{85}\t", ""];
    let entities = texts.iter().enumerate().map(|(index, text)| SampleEntity {
        properties: vec![
            ("Class".to_owned(), EdmValue::String((*text).to_owned())),
            ("class".to_owned(), EdmValue::Boolean(index % 2 == 0)),
            ("Größe_1".to_owned(), EdmValue::Int32(index as i32 * 1_000_003)),
            ("Long".to_owned(), EdmValue::Int64(i64::MAX - index as i64)),
            ("At".to_owned(), EdmValue::DateTime(time(index))),
            ("Guid".to_owned(), EdmValue::Guid([index as u8 * 50; 16])),
        ],
    });
    let value = |name: &str| Part::Value(name.to_owned());
    let at = || "At".to_owned();
    let share = Share { share: 0.1, low: 0.0, high: 1.0, seen: 1 };
    let second = |is_table, partition: Vec<Part>, row: Vec<Part>| Second {
        is_table,
        partition,
        row,
        query: "q".to_owned(),
    };
    let prediction = Prediction {
        design: KeyDesign {
            kind: DesignKind::Hashed,
            partition: vec![value("Class"), Part::Bucket("Class".to_owned(), 16), value("class")],
            row: vec![value("Größe_1"), value("Long"), value("At"), value("Guid")],
        },
        seconds: vec![
            second(
                true,
                vec![Part::Bucket("Long".to_owned(), 1000), Part::Period(at(), Period::Month)],
                vec![Part::Reversed(at())],
            ),
            second(
                false,
                Vec::new(),
                vec![
                    Part::Word("by-{x}".to_owned()),
                    Part::Period(at(), Period::Hour),
                    Part::Period(at(), Period::Day),
                ],
            ),
            second(
                true,
                vec![Part::Bucket("At".to_owned(), 7), Part::Bucket("class".to_owned(), 3)],
                Vec::new(),
            ),
        ],
        largest: share,
        hot: share,
        rate_max: 1.0,
        queries: Vec::new(),
        transactions_lost: 0.0,
        duplicated_bytes: 0.0,
        requests_per_day: 0.0,
        warnings: Vec::new(),
    };
    (prediction, Sample { entities: entities.collect(), share: 1.0 })
}

fn file(folder: &Path, name: &str, language: Language) -> std::path::PathBuf {
    let (prediction, sample) = prediction();
    let path = folder.join(name);
    std::fs::write(&path, emit(language, &prediction, &sample)).expect("a file");
    path
}

/// Runs a program; none if it is not there.
fn run(command: &mut Command) -> Option<String> {
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.expect("the program"),
    };
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    Some(text(&output.stdout))
}

const COUNT: usize = 30;

#[test]
fn python_makes_the_same_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "keys.py", Language::Python);
    let printed = run(Command::new("python3").arg(path)).expect("Python");
    assert_eq!(printed.trim(), format!("{COUNT} keys are as they must be"));
}

#[test]
fn rust_makes_the_same_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "keys.rs", Language::Rust);
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let binary = folder.path().join("keys");
    run(Command::new(rustc).args(["--edition", "2021", "--test", "-o"]).arg(&binary).arg(path))
        .expect("rustc");
    assert!(run(&mut Command::new(binary)).expect("the tests").contains("1 passed"));
}

/// Node runs JavaScript: the types, which stand behind names and parameters only, are taken out as text.
#[test]
fn typescript_makes_the_same_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "keys.ts", Language::TypeScript);
    let mut text = std::fs::read_to_string(path).expect("a file");
    for kind in ["string", "bigint", "boolean", "number", "Date"] {
        for end in [",", ")", " {", " =>"] {
            text = text.replace(&format!(": {kind}{end}"), end);
        }
    }
    let program = folder.path().join("keys.mjs");
    std::fs::write(&program, text + "\nconsole.log(testKeys());\n").expect("a file");
    let printed = run(Command::new("node").arg(program)).expect("Node");
    assert_eq!(printed.trim(), COUNT.to_string());
}

/// Where Mono is.
#[test]
fn csharp_makes_the_same_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "Keys.cs", Language::CSharp);
    let binary = folder.path().join("keys.exe");
    let Some(_) = run(Command::new("mcs").arg(format!("-out:{}", binary.display())).arg(path)) else {
        println!("there is no Mono: the file in C# was not compiled");
        return;
    };
    let printed = run(Command::new("mono").arg(binary)).expect("Mono");
    assert_eq!(printed.trim(), format!("{COUNT} keys are as they must be"));
}
