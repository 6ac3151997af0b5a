//! The text form of instants: Edm.DateTime values, ETags, `$filter` literals, policy dates.
//!
//! ```text
//! YYYY-MM-DD [ T hh:mm [ :ss [ .f… ] ] [ Z | (+|-)hh:mm ] ]
//! ```
//!
//! Read: a missing zone means UTC, digits of the fraction after the seventh are cut off. Written: always UTC
//! with `Z`, seconds always there, up to seven digits of fraction without trailing zeros. What always holds:
//! every instant from 1601-01-01T00:00:00Z to 9999-12-31T23:59:59.9999999Z is written so that it is read back
//! as the same ticks; nothing outside is ever read.

use crate::Ticks;
use crate::clock::TICKS_PER_SECOND;

/// The last instant that has a text form: 9999-12-31T23:59:59.9999999Z.
pub const TICKS_MAX: Ticks = Ticks(2_650_467_743_999_999_999);

/// Bytes of the longest text that [`format_date_time`] writes.
pub const DATE_TIME_LEN_MAX: usize = "9999-12-31T23:59:59.9999999Z".len();

/// Why a text is no instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DateTimeError {
    /// It is not written as a date-time, or names a year, day or hour that doesn't exist.
    #[error("not a date-time")]
    Malformed,
    /// It lies before 1601.
    #[error("the date-time is before 1601-01-01")]
    TooEarly,
    /// It lies after 9999.
    #[error("the date-time is after 9999-12-31")]
    TooLate,
}

const SECONDS_PER_DAY: i64 = 86_400;
const DAYS_PER_400_YEARS: i64 = 146_097;
/// The Gregorian calendar repeats every 400 years, and 1601 begins such a cycle.
const FIRST_YEAR: i64 = 1601;

/// The instant that `text` names.
pub fn parse_date_time(text: &str) -> Result<Ticks, DateTimeError> {
    parse(text.as_bytes())
}

fn parse(text: &[u8]) -> Result<Ticks, DateTimeError> {
    let mut rest = Digits { rest: text };
    let year = rest.number(4)?;
    rest.expect(b'-')?;
    let month = rest.number(2)?;
    rest.expect(b'-')?;
    let day = rest.number(2)?;
    if year < 1 || !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return Err(DateTimeError::Malformed);
    }
    let (mut seconds, mut fraction) = (0, 0);
    if rest.skip(b'T') {
        let hour = rest.number(2)?;
        rest.expect(b':')?;
        let minute = rest.number(2)?;
        let mut second = 0;
        if rest.skip(b':') {
            second = rest.number(2)?;
            if rest.skip(b'.') {
                fraction = rest.fraction()?;
            }
        }
        if hour > 23 || minute > 59 || second > 59 {
            return Err(DateTimeError::Malformed);
        }
        seconds = hour * 3600 + minute * 60 + second - rest.offset_seconds()?;
    }
    if !rest.rest.is_empty() {
        return Err(DateTimeError::Malformed);
    }
    let seconds = days_since_1601(year, month, day) * SECONDS_PER_DAY + seconds;
    let seconds = u64::try_from(seconds).map_err(|_| DateTimeError::TooEarly)?;
    let ticks = Ticks(seconds * TICKS_PER_SECOND + fraction);
    if ticks > TICKS_MAX {
        return Err(DateTimeError::TooLate);
    }
    Ok(ticks)
}

/// The text of an instant, where it stands: answers carry several each.
#[derive(Clone, Copy, Debug)]
pub struct DateTimeText {
    bytes: [u8; DATE_TIME_LEN_MAX],
    len: usize,
}

impl DateTimeText {
    /// The text of `at`; an instant after 9999 is written as the last one.
    pub fn new(at: Ticks) -> Self {
        let at = at.min(TICKS_MAX);
        let seconds = (at.0 / TICKS_PER_SECOND) as i64;
        let (year, month, day) = civil_from_days(seconds / SECONDS_PER_DAY);
        let second_of_day = (seconds % SECONDS_PER_DAY) as u32;
        let fraction = (at.0 % TICKS_PER_SECOND) as u32;
        let mut bytes = *b"0000-00-00T00:00:00.0000000Z";
        bytes[0..4].copy_from_slice(&digits::<4>(year as u32));
        bytes[5..7].copy_from_slice(&digits::<2>(month as u32));
        bytes[8..10].copy_from_slice(&digits::<2>(day as u32));
        bytes[11..13].copy_from_slice(&digits::<2>(second_of_day / 3600));
        bytes[14..16].copy_from_slice(&digits::<2>(second_of_day / 60 % 60));
        bytes[17..19].copy_from_slice(&digits::<2>(second_of_day % 60));
        bytes[20..27].copy_from_slice(&digits::<7>(fraction));
        let mut end = 27;
        while bytes[end - 1] == b'0' && end > 20 {
            end -= 1;
        }
        if end == 20 {
            // The point goes with the last digit of the fraction.
            end = 19;
        }
        bytes[end] = b'Z';
        DateTimeText { bytes, len: end + 1 }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Appends the text of `at`; an instant after 9999 is written as the last one.
pub fn format_date_time(at: Ticks, out: &mut Vec<u8>) {
    out.extend_from_slice(DateTimeText::new(at).as_bytes());
}

/// The text of `at` on its own.
pub fn date_time_text(at: Ticks) -> String {
    DateTimeText::new(at).as_bytes().iter().copied().map(char::from).collect()
}

/// The text of `at` with seven digits of a second, always: snapshots and stored policies are written so.
pub fn seven_digits_text(at: Ticks) -> String {
    let text = date_time_text(at);
    let text = text.trim_end_matches('Z');
    match text.split_once('.') {
        Some((seconds, fraction)) => format!("{seconds}.{fraction:0<7}Z"),
        None => format!("{text}.0000000Z"),
    }
}

/// The last `N` digits of `value`.
fn digits<const N: usize>(mut value: u32) -> [u8; N] {
    let mut out = [b'0'; N];
    for digit in out.iter_mut().rev() {
        *digit += (value % 10) as u8;
        value /= 10;
    }
    out
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of a common year before each month.
const DAYS_BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Days from 1601-01-01; negative before it. The month must be 1 to 12.
fn days_since_1601(year: i64, month: i64, day: i64) -> i64 {
    let years = year - FIRST_YEAR;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let leap_day = i64::from(month > 2 && is_leap(year));
    years * 365 + leap_days + DAYS_BEFORE_MONTH[(month - 1) as usize] + leap_day + day - 1
}

/// Year, month and day of a count of days since 1601-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let cycle = days / DAYS_PER_400_YEARS;
    let mut day = days % DAYS_PER_400_YEARS;
    // Each cycle ends with the day that makes its last century, four years or year longer: hence the caps.
    let century = (day / 36_524).min(3);
    day -= century * 36_524;
    let four_years = day / 1461;
    day -= four_years * 1461;
    let single = (day / 365).min(3);
    day -= single * 365;
    let year = FIRST_YEAR + cycle * 400 + century * 100 + four_years * 4 + single;
    let mut month = 1;
    while day >= days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    (year, month, day + 1)
}

struct Digits<'a> {
    rest: &'a [u8],
}

impl Digits<'_> {
    fn number(&mut self, count: usize) -> Result<i64, DateTimeError> {
        let (digits, rest) = self.rest.split_at_checked(count).ok_or(DateTimeError::Malformed)?;
        let mut value = 0;
        for &digit in digits {
            if !digit.is_ascii_digit() {
                return Err(DateTimeError::Malformed);
            }
            value = value * 10 + i64::from(digit - b'0');
        }
        self.rest = rest;
        Ok(value)
    }

    fn skip(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), DateTimeError> {
        self.skip(byte).then_some(()).ok_or(DateTimeError::Malformed)
    }

    /// Ticks in a fraction of a second: one digit or more, those after the seventh cut off.
    fn fraction(&mut self) -> Result<u64, DateTimeError> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(DateTimeError::Malformed);
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let mut value = 0;
        for index in 0..7 {
            let digit = digits.get(index).map_or(0, |digit| u64::from(digit - b'0'));
            value = value * 10 + digit;
        }
        Ok(value)
    }

    /// How far local time is ahead of UTC.
    fn offset_seconds(&mut self) -> Result<i64, DateTimeError> {
        let sign = match self.rest.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => {
                self.skip(b'Z');
                return Ok(0);
            }
        };
        self.rest = &self.rest[1..];
        let hours = self.number(2)?;
        self.expect(b':')?;
        let minutes = self.number(2)?;
        if hours > 14 || minutes > 59 {
            return Err(DateTimeError::Malformed);
        }
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

#[cfg(test)]
mod tests;
