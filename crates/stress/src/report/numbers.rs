//! Numbers as reports show them.

/// A whole number with a comma between thousands: `12,345`.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate: with a digit behind the point if it is small.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 10.0 { format!("{per_second:.1}") } else { thousands(per_second) }
}

/// A span in the unit that suits it: `870 µs`, `1.25 ms`, `3.40 s`.
pub(crate) fn span(us: u64) -> String {
    let us = us as f64;
    if us < 1e3 {
        format!("{us:.0} µs")
    } else if us < 1e6 {
        format!("{:.2} ms", us / 1e3)
    } else {
        format!("{:.2} s", us / 1e6)
    }
}

/// Bytes in the unit that suits them, whole where they are: `4 KiB`, `1.5 MiB`.
pub(crate) fn bytes(count: f64) -> String {
    let mut rest = count;
    for unit in ["B", "KiB", "MiB"] {
        if rest < 1024.0 {
            return size(rest, unit);
        }
        rest /= 1024.0;
    }
    size(rest, "GiB")
}

fn size(number: f64, unit: &str) -> String {
    if number.fract() == 0.0 || unit == "B" {
        format!("{number:.0} {unit}")
    } else {
        format!("{number:.1} {unit}")
    }
}

/// A share of 1 in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown() {
        assert_eq!([0.0, 999.4, 12_345.0, 1_234_567.0].map(thousands), ["0", "999", "12,345", "1,234,567"]);
        assert_eq!([0.0, 0.25, 9.94, 1234.0].map(rate), ["0", "0.2", "9.9", "1,234"]);
        assert_eq!([870, 1_250, 3_400_000].map(span), ["870 µs", "1.25 ms", "3.40 s"]);
        assert_eq!([12.0, 4096.0, 1_572_864.0, 3.5e9].map(bytes), ["12 B", "4 KiB", "1.5 MiB", "3.3 GiB"]);
        assert_eq!(percent(0.984), "98 %");
    }
}
