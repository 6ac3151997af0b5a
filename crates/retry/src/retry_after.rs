//! The wait that an answer names before the next try.
//!
//! ```text
//! retry-after-ms: 1500         milliseconds
//! x-ms-retry-after-ms: 1500    milliseconds
//! Retry-After: 2               seconds (RFC 9110, 10.2.3)
//! Retry-After: Sat, 21 Nov 2026 09:00:00 GMT
//! ```
//!
//! The first one that can be read counts, in this order. What always holds: any text is read or ignored.

use std::time::{Duration, SystemTime};

const MILLISECONDS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];
const SECONDS_OR_DATE: &str = "retry-after";

/// What the headers name. `header` gives the value of a header by its name in lower case; `now` is the wall
/// clock, which a date is compared with: one that has passed means no wait.
pub fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<Duration> {
    let milliseconds = MILLISECONDS.iter().find_map(|name| whole(header(name)?));
    if let Some(milliseconds) = milliseconds {
        return Some(Duration::from_millis(milliseconds));
    }
    let value = header(SECONDS_OR_DATE)?;
    if let Some(seconds) = whole(value) {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value.trim()).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

fn whole(value: &str) -> Option<u64> {
    let value = value.trim();
    // `parse` alone would take a sign.
    value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_UNIX_S: u64 = 1_795_251_600; // Sat, 21 Nov 2026 09:00:00 GMT

    fn read(headers: &[(&str, &str)]) -> Option<Duration> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_UNIX_S);
        retry_after(|name| headers.iter().find(|(one, _)| *one == name).map(|(_, value)| *value), now)
    }

    #[test]
    fn headers_are_read_in_their_order() {
        let ms = Duration::from_millis;
        for (headers, expected) in [
            (&[][..], None),
            (&[("retry-after", "2")][..], Some(ms(2000))),
            (&[("retry-after", " 0 ")][..], Some(ms(0))),
            (&[("retry-after-ms", "15")][..], Some(ms(15))),
            (&[("x-ms-retry-after-ms", "1500"), ("retry-after", "9")][..], Some(ms(1500))),
            (&[("retry-after-ms", "1"), ("x-ms-retry-after-ms", "2")][..], Some(ms(1))),
            (&[("x-ms-retry-after-ms", "soon"), ("retry-after", "9")][..], Some(ms(9000))),
            (&[("retry-after", "-1")][..], None),
            (&[("retry-after", "+1")][..], None),
            (&[("retry-after", "1.5")][..], None),
            (&[("retry-after", "Sat, 21 Nov 2026 09:00:07 GMT")][..], Some(ms(7000))),
            (&[("retry-after", "Sat, 21 Nov 2026 08:00:00 GMT")][..], Some(ms(0))),
            (&[("retry-after", "")][..], None),
        ] {
            assert_eq!(read(headers), expected, "{headers:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_ignored(name in "[a-z-]{0,20}", value in any::<String>()) {
            let _ = read(&[(&name, &value), ("retry-after", &value), ("retry-after-ms", &value)]);
        }
    }
}
