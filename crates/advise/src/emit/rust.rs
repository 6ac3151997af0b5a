//! The file in Rust.

use super::{Argument, KeyFunction, Kind, quoted, snake};
use crate::design::Part;
use crate::design::part::TICKS_LAST;
use std::fmt::Write;

const HELPERS: &str = r#"#![allow(dead_code)]

/// Ticks of 100 ns since the year 1, of a time since 1970.
pub fn ticks(since_unix: std::time::Duration) -> u64 {
    621_355_968_000_000_000 + (since_unix.as_nanos() / 100) as u64
}

fn text(value: &str) -> String {
    let is_bad = |one: char| "=|/\\#?".contains(one) || one < ' ' || ('\u{7f}'..'\u{a0}').contains(&one);
    value.chars().map(|one| if is_bad(one) { format!("={:04X}", one as u32) } else { one.to_string() }).collect()
}

fn whole(value: i64, digits: usize) -> String {
    assert!(value >= 0, "negative numbers don't sort as texts");
    format!("{value:0digits$}")
}

fn period(value: u64, length: usize) -> String {
    let (days, hour) = (value / 864_000_000_000, value / 36_000_000_000 % 24);
    // Days since 0000-03-01, so that a leap day is the last of its year.
    let days = days + 306;
    let era = days / 146_097;
    let day = days % 146_097;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + month / 10;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}")[..length].to_owned()
}

fn bucket(value: &str, buckets: u64) -> String {
    let mut crc = u64::MAX;
    for byte in value.bytes() {
        crc ^= u64::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x9a6c_9329_ac4b_c9b5 } else { 0 };
        }
    }
    let digits = (buckets - 1).to_string().len();
    format!("{:0digits$}", !crc % buckets)
}
"#;

pub(super) fn file(about: &str, functions: &[KeyFunction]) -> String {
    let mut out = format!("//! {}\n{HELPERS}", about.replace(['\n', '\r'], " "));
    let mut checks = String::new();
    for function in functions {
        let name = snake(&function.name);
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|one| format!("{}: {}", snake(&one.name), type_of(one.kind)))
            .collect();
        let parts: Vec<String> = function.parts.iter().map(|part| expression(function, part)).collect();
        // Text takes everything.
        let _ = write!(
            out,
            "\npub fn {name}({}) -> String {{\n    let parts: Vec<String> = vec![{}];\n    parts.join(\"|\")\n}}\n",
            parameters.join(", "),
            parts.join(", ")
        );
        for (arguments, key) in &function.examples {
            let arguments: Vec<String> = arguments.iter().map(literal).collect();
            let key = quoted(key, escape);
            let _ = writeln!(checks, "    assert_eq!({name}({}), {key});", arguments.join(", "));
        }
    }
    let _ = write!(out, "\n#[test]\nfn keys_are_as_they_must_be() {{\n{checks}}}\n");
    out
}

fn escape(code: u32) -> String {
    format!("\\u{{{code:x}}}")
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "&str",
        Kind::Flag => "bool",
        Kind::Whole { .. } => "i64",
        Kind::Time => "u64",
    }
}

fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Text(text) => quoted(text, escape),
        Argument::Flag(value) => value.to_string(),
        Argument::Whole(value, _) => value.to_string(),
        Argument::Time(value) => value.to_string(),
    }
}

fn expression(function: &KeyFunction, part: &Part) -> String {
    let Some(parameter) = function.parameter(part) else {
        return match part {
            Part::Word(word) => format!("{}.to_owned()", quoted(word, escape)),
            _ => "String::new()".to_owned(),
        };
    };
    let name = snake(&parameter.name);
    let value = match parameter.kind {
        Kind::Text => format!("text({name})"),
        Kind::Flag => format!("{name}.to_string()"),
        Kind::Whole { digits } => format!("whole({name}, {digits})"),
        Kind::Time => format!("whole({name} as i64, 19)"),
    };
    match part {
        Part::Period(_, period) => format!("period({name}, {})", period.len()),
        Part::Reversed(_) => format!("whole(({TICKS_LAST} - {name}) as i64, 19)"),
        Part::Bucket(_, buckets) => format!("bucket(&{value}, {buckets})"),
        _ => value,
    }
}
