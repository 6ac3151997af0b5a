//! Values as they are written in a file of settings.

use crate::settings::kind::Kind;

/// A value in TOML.
pub(crate) fn value(kind: Kind, values: &[String]) -> String {
    match kind {
        Kind::Texts => {
            let quoted: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("[{}]", quoted.join(", "))
        }
        _ => {
            let text = values.first().map_or("", String::as_str);
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            match kind {
                Kind::Bool | Kind::Switch => text.to_owned(),
                Kind::Port | Kind::PortOrNone | Kind::Whole { .. } | Kind::Size { .. } if is_number => {
                    text.to_owned()
                }
                _ => quoted(text),
            }
        }
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_toml() {
        let one = |text: &str| vec![text.to_owned()];
        for (kind, values, expected) in [
            (Kind::Port, one("7"), "7"),
            (Kind::PortOrNone, one("none"), "\"none\""),
            (Kind::Size { least: 0 }, one("4MiB"), "\"4MiB\""),
            (Kind::Bool, one("true"), "true"),
            (Kind::Path, one("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\""),
            (Kind::Path, one("7"), "\"7\""),
            (Kind::Texts, vec!["a".to_owned(), "b".to_owned()], "[\"a\", \"b\"]"),
            (Kind::Texts, Vec::new(), "[]"),
        ] {
            assert_eq!(value(kind, &values), expected);
        }
    }
}
