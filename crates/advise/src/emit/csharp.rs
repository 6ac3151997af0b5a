//! The file in C#.

use super::{Argument, KeyFunction, Kind, camel, pascal, quoted};
use crate::design::Part;
use crate::design::part::TICKS_LAST;
use std::fmt::Write;

const HELPERS: &str = r#"    static string Text(string value)
    {
        var made = new StringBuilder();
        foreach (char one in value)
        {
            bool isBad = "=|/\\#?".IndexOf(one) >= 0 || one < 0x20 || (one >= 0x7f && one < 0xa0);
            if (isBad) made.Append('=').Append(((int)one).ToString("X4")); else made.Append(one);
        }
        return made.ToString();
    }

    static string Whole(long value, int digits)
    {
        if (value < 0) throw new ArgumentException("negative numbers don't sort as texts");
        return value.ToString(CultureInfo.InvariantCulture).PadLeft(digits, '0');
    }

    static string Period(long value, int length)
    {
        return new DateTime(value).ToString("yyyy-MM-ddTHH:mm:ss", CultureInfo.InvariantCulture).Substring(0, length);
    }

    static string Bucket(string value, int buckets)
    {
        ulong crc = ulong.MaxValue;
        foreach (byte one in Encoding.UTF8.GetBytes(value))
        {
            crc ^= one;
            for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) == 1 ? 0x9a6c9329ac4bc9b5UL : 0UL);
        }
        int digits = (buckets - 1).ToString(CultureInfo.InvariantCulture).Length;
        return (~crc % (ulong)buckets).ToString(CultureInfo.InvariantCulture).PadLeft(digits, '0');
    }
"#;

pub(super) fn file(about: &str, functions: &[KeyFunction]) -> String {
    let about = about.replace(['\n', '\r'], " ");
    let mut out = format!(
        "// {about}\nusing System;\nusing System.Globalization;\nusing System.Text;\n\npublic static class Keys\n{{\n{HELPERS}"
    );
    let mut checks = String::new();
    for function in functions {
        let name = pascal(&function.name);
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|one| format!("{} {}", type_of(one.kind), camel(&one.name)))
            .collect();
        let parts: Vec<String> = function.parts.iter().map(|part| expression(function, part)).collect();
        let parts = if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" + \"|\" + ") };
        // Text takes everything.
        let _ = write!(
            out,
            "\n    public static string {name}({})\n    {{\n        return {parts};\n    }}\n",
            parameters.join(", ")
        );
        for (arguments, key) in &function.examples {
            let arguments: Vec<String> = arguments.iter().map(literal).collect();
            let key = quoted(key, escape);
            let _ = writeln!(checks, "        Same(Keys.{name}({}), {key});", arguments.join(", "));
        }
    }
    let _ = write!(
        out,
        "}}\n\npublic static class KeysTest\n{{\n    static int count = 0;\n\n    static void Same(string made, string wanted)\n    \
         {{\n        if (made != wanted) throw new Exception(made + \" is not \" + wanted);\n        count++;\n    }}\n\n    \
         public static void Main()\n    {{\n{checks}        Console.WriteLine(count + \" keys are as they must be\");\n    }}\n}}\n"
    );
    out
}

fn escape(code: u32) -> String {
    format!("\\U{code:08x}")
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "string",
        Kind::Flag => "bool",
        Kind::Whole { .. } | Kind::Time => "long",
    }
}

fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Text(text) => quoted(text, escape),
        Argument::Flag(value) => value.to_string(),
        Argument::Whole(value, _) => format!("{value}L"),
        Argument::Time(value) => format!("{value}L"),
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
        Kind::Text => format!("Text({name})"),
        Kind::Flag => format!("({name} ? \"true\" : \"false\")"),
        Kind::Whole { digits } => format!("Whole({name}, {digits})"),
        Kind::Time => format!("Whole({name}, 19)"),
    };
    match part {
        Part::Period(_, period) => format!("Period({name}, {})", period.len()),
        Part::Reversed(_) => format!("Whole({TICKS_LAST}L - {name}, 19)"),
        Part::Bucket(_, buckets) => format!("Bucket({value}, {buckets})"),
        _ => value,
    }
}
