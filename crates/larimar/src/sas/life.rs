//! Instants as people type them: how far away (`30m`, `24h`, `7d`) or a date (`2026-12-01`,
//! `2026-12-01T10:00Z`); and lengths of time in words.

use base::Ticks;
use service::parse_date_time;
use std::time::Duration;

/// The instant that `text` names.
pub(crate) fn parse_instant(text: &str, now: Ticks) -> Result<Ticks, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => {
            return parse_date_time(text).map_err(|_| {
                "give a number with s, m, h, d or w, or a date such as 2026-12-01 or 2026-12-01T10:00Z"
                    .to_owned()
            });
        }
    };
    let seconds = number.parse().ok().and_then(|number: u64| number.checked_mul(unit_seconds));
    let seconds = seconds.ok_or_else(|| "it is not a number that can be counted with".to_owned())?;
    let at = now.plus(Duration::from_secs(seconds));
    if at > service::TICKS_MAX { Err("it is after the year 9999".to_owned()) } else { Ok(at) }
}

/// A length of time by its two largest units.
pub(crate) fn length_text(length: Duration) -> String {
    let seconds = length.as_secs();
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3_600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let largest = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    let shown = parts[largest..].iter().take(2).enumerate();
    let shown = shown.filter(|(index, (count, _))| *index == 0 || *count > 0);
    let words =
        shown.map(|(_, (count, unit))| format!("{count} {unit}{}", if *count == 1 { "" } else { "s" }));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_or_refused() {
        let date = |text: &str| parse_date_time(text).expect("a date");
        let now = date("2026-11-26T10:00:00Z");
        for (text, at) in [
            ("90s", "2026-11-26T10:01:30Z"),
            ("30m", "2026-11-26T10:30:00Z"),
            (" 24h ", "2026-11-27T10:00:00Z"),
            ("7d", "2026-12-03T10:00:00Z"),
            ("2w", "2026-12-10T10:00:00Z"),
            ("2026-12-01", "2026-12-01"),
            ("2026-12-01T10:00Z", "2026-12-01T10:00:00Z"),
        ] {
            assert_eq!(parse_instant(text, now), Ok(date(at)), "{text}");
        }
        for text in [
            "",
            "d",
            "7",
            "7 d",
            "-1d",
            "1.5h",
            "7y",
            "soon",
            "2026-13-01",
            "99999999999999999999d",
            "99999999d",
        ] {
            assert!(parse_instant(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_have_two_units() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (61, "1 minute 1 second"),
            (3_600, "1 hour"),
            (86_399, "23 hours 59 minutes"),
            (86_400, "1 day"),
            (7 * 86_400 + 60, "7 days"),
        ] {
            assert_eq!(length_text(Duration::from_secs(seconds)), text);
        }
    }
}
