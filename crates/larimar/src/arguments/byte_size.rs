//! Sizes as people type them: `256MiB`, `4GiB`, `1073741824`.

/// The bytes that `text` asks for. Units are binary, with or without the `iB`.
pub(crate) fn parse_byte_size(text: &str) -> Result<u64, String> {
    let digits = text.trim().len() - text.trim().trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.trim().split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err("give a number of bytes, or one with KiB, MiB, GiB or TiB".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "give a whole number, such as 512MiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "it is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_or_refused() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("1KiB", 1 << 10),
            ("256MiB", 256 << 20),
            ("256m", 256 << 20),
            (" 4 GiB ", 4 << 30),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse_byte_size(text), Ok(size), "{text}");
        }
        for text in ["", "MiB", "1.5GiB", "-1", "1 MB", "99999999999999999999", "99999999TiB", "1GiBs"] {
            assert!(parse_byte_size(text).is_err(), "{text}");
        }
    }
}
