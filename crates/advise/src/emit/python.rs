//! The file in Python.

use super::{Argument, KeyFunction, Kind, quoted, snake};
use crate::design::Part;
use crate::design::part::TICKS_LAST;
use std::fmt::Write;

const HELPERS: &str = r#"from datetime import datetime, timedelta, timezone


def ticks(at: datetime) -> int:
    """Ticks of 100 ns since the year 1; a time without zone is taken as UTC."""
    if at.tzinfo is not None:
        at = at.astimezone(timezone.utc).replace(tzinfo=None)
    return (at - datetime(1, 1, 1)) // timedelta(microseconds=1) * 10


def _text(text: str) -> str:
    def is_bad(one: str) -> bool:
        return one in "=|/\\#?" or ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0

    return "".join(f"={ord(one):04X}" if is_bad(one) else one for one in text)


def _whole(value: int, digits: int) -> str:
    if not 0 <= value < 1 << 63:
        raise ValueError("negative and larger numbers don't sort as texts")
    return str(value).zfill(digits)


def _period(value: int, length: int) -> str:
    at = datetime(1, 1, 1) + timedelta(microseconds=value // 10)
    return at.isoformat(timespec="seconds")[:length]


def _bucket(text: str, buckets: int) -> str:
    crc = 0xFFFFFFFFFFFFFFFF
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x9A6C9329AC4BC9B5 if crc & 1 else 0)
    return str((crc ^ 0xFFFFFFFFFFFFFFFF) % buckets).zfill(len(str(buckets - 1)))
"#;

pub(super) fn file(about: &str, functions: &[KeyFunction]) -> String {
    let mut out = format!("{}\n\n{HELPERS}", quoted(about, escape));
    let mut checks = String::new();
    for function in functions {
        let name = snake(&function.name);
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|one| format!("{}: {}", snake(&one.name), type_of(one.kind)))
            .collect();
        let parts: Vec<String> = function.parts.iter().map(|part| expression(function, part)).collect();
        let parts = if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" + \"|\" + ") };
        // Text takes everything.
        let _ = write!(out, "\n\ndef {name}({}) -> str:\n    return {parts}\n", parameters.join(", "));
        for (arguments, key) in &function.examples {
            let arguments: Vec<String> = arguments.iter().map(literal).collect();
            let _ =
                writeln!(checks, "    assert {name}({}) == {}", arguments.join(", "), quoted(key, escape));
        }
    }
    let count = functions.iter().map(|function| function.examples.len()).sum::<usize>();
    let _ = write!(
        out,
        "\n\ndef test_keys() -> None:\n{checks}    assert ticks(datetime(1, 1, 2)) == 864000000000\n\n\n\
         if __name__ == \"__main__\":\n    test_keys()\n    print(\"{count} keys are as they must be\")\n"
    );
    out
}

fn escape(code: u32) -> String {
    format!("\\U{code:08x}")
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "str",
        Kind::Flag => "bool",
        Kind::Whole { .. } | Kind::Time => "int",
    }
}

fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Text(text) => quoted(text, escape),
        Argument::Flag(true) => "True".to_owned(),
        Argument::Flag(false) => "False".to_owned(),
        Argument::Whole(value, _) => value.to_string(),
        Argument::Time(value) => value.to_string(),
    }
}

fn expression(function: &KeyFunction, part: &Part) -> String {
    let Some(parameter) = function.parameter(part) else {
        return match part {
            Part::Word(word) => quoted(word, escape),
            _ => "\"\"".to_owned(),
        };
    };
    let name = snake(&parameter.name);
    let value = match parameter.kind {
        Kind::Text => format!("_text({name})"),
        Kind::Flag => format!("(\"true\" if {name} else \"false\")"),
        Kind::Whole { digits } => format!("_whole({name}, {digits})"),
        Kind::Time => format!("_whole({name}, 19)"),
    };
    match part {
        Part::Period(_, period) => format!("_period({name}, {})", period.len()),
        Part::Reversed(_) => format!("_whole({TICKS_LAST} - {name}, 19)"),
        Part::Bucket(_, buckets) => format!("_bucket({value}, {buckets})"),
        _ => value,
    }
}
