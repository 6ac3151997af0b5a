//! The file in TypeScript.

use super::{Argument, KeyFunction, Kind, camel, quoted};
use crate::design::Part;
use crate::design::part::TICKS_LAST;
use std::fmt::Write;

const HELPERS: &str = r#"/** Ticks of 100 ns since the year 1. */
export function ticks(at: Date): bigint {
  return BigInt(at.getTime()) * 10000n + 621355968000000000n;
}

function text(value: string): string {
  return value.replace(/[=|\/\\#?\u0000-\u001f\u007f-\u009f]/g, (one) => {
    return "=" + one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  });
}

function whole(value: bigint, digits: number): string {
  if (value < 0n || value >= 1n << 63n) throw new RangeError("negative and larger numbers don't sort as texts");
  return value.toString().padStart(digits, "0");
}

function period(value: bigint, length: number): string {
  return new Date(Number(value / 10000n - 62135596800000n)).toISOString().slice(0, length);
}

function bucket(value: string, buckets: number): string {
  let crc = 0xffffffffffffffffn;
  for (const byte of new TextEncoder().encode(value)) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = (crc >> 1n) ^ (crc & 1n ? 0x9a6c9329ac4bc9b5n : 0n);
  }
  const digits = String(buckets - 1).length;
  return ((crc ^ 0xffffffffffffffffn) % BigInt(buckets)).toString().padStart(digits, "0");
}
"#;

pub(super) fn file(about: &str, functions: &[KeyFunction]) -> String {
    let mut out = format!("// {}\n\n{HELPERS}", about.replace(['\n', '\r'], " "));
    let mut checks = String::new();
    for function in functions {
        let name = camel(&function.name);
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|one| format!("{}: {}", camel(&one.name), type_of(one.kind)))
            .collect();
        let parts: Vec<String> = function.parts.iter().map(|part| expression(function, part)).collect();
        let parts = if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" + \"|\" + ") };
        // Text takes everything.
        let _ = write!(
            out,
            "\nexport function {name}({}): string {{\n  return {parts};\n}}\n",
            parameters.join(", ")
        );
        for (arguments, key) in &function.examples {
            let arguments: Vec<String> = arguments.iter().map(literal).collect();
            let _ = writeln!(checks, "  same({name}({}), {});", arguments.join(", "), quoted(key, escape));
        }
    }
    let _ = write!(
        out,
        "\nexport function testKeys(): number {{\n  let count = 0;\n  const same = (made: string, wanted: string) => {{\n    \
         if (made !== wanted) throw new Error(made + \" is not \" + wanted);\n    count++;\n  }};\n{checks}  return count;\n}}\n"
    );
    out
}

fn escape(code: u32) -> String {
    format!("\\u{{{code:x}}}")
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "string",
        Kind::Flag => "boolean",
        Kind::Whole { .. } | Kind::Time => "bigint",
    }
}

fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Text(text) => quoted(text, escape),
        Argument::Flag(value) => value.to_string(),
        Argument::Whole(value, _) => format!("{value}n"),
        Argument::Time(value) => format!("{value}n"),
    }
}

fn expression(function: &KeyFunction, part: &Part) -> String {
    let Some(parameter) = function.parameter(part) else {
        return match part {
            Part::Word(word) => quoted(word, escape),
            _ => "\"\"".to_owned(),
        };
    };
    let name = camel(&parameter.name);
    let value = match parameter.kind {
        Kind::Text => format!("text({name})"),
        Kind::Flag => format!("String({name})"),
        Kind::Whole { digits } => format!("whole({name}, {digits})"),
        Kind::Time => format!("whole({name}, 19)"),
    };
    match part {
        Part::Period(_, period) => format!("period({name}, {})", period.len()),
        Part::Reversed(_) => format!("whole({TICKS_LAST}n - {name}, 19)"),
        Part::Bucket(_, buckets) => format!("bucket({value}, {buckets})"),
        _ => value,
    }
}
