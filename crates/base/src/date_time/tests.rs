//! Date texts: all accepted forms, the ends of the range, and near misses that are refused.

use super::*;
use proptest::prelude::*;

#[test]
fn the_ends_of_the_range_have_texts() {
    assert_eq!(parse_date_time("1601-01-01T00:00:00Z"), Ok(Ticks(0)));
    assert_eq!(date_time_text(Ticks(0)), "1601-01-01T00:00:00Z");
    assert_eq!(parse_date_time("9999-12-31T23:59:59.9999999Z"), Ok(TICKS_MAX));
    assert_eq!(date_time_text(TICKS_MAX), "9999-12-31T23:59:59.9999999Z");
    assert_eq!(date_time_text(Ticks(u64::MAX)), "9999-12-31T23:59:59.9999999Z");
}

#[test]
fn the_unix_epoch_is_where_the_clock_says() {
    let epoch = Ticks::from_unix(std::time::Duration::ZERO);
    assert_eq!(parse_date_time("1970-01-01T00:00:00Z"), Ok(epoch));
}

#[test]
fn every_accepted_form() {
    let noon = parse_date_time("2020-02-29T12:00:00Z").unwrap();
    for text in [
        "2020-02-29T12:00:00",
        "2020-02-29T12:00",
        "2020-02-29T12:00Z",
        "2020-02-29T12:00:00.0Z",
        "2020-02-29T12:00:00.00000009Z",
        "2020-02-29T12:00:00.0000000Z",
        "2020-02-29T13:30:00+01:30",
        "2020-02-29T01:00:00.000-11:00",
        "2020-03-01T00:00+12:00",
    ] {
        assert_eq!(parse_date_time(text), Ok(noon), "{text}");
    }
    let midnight = parse_date_time("2020-02-29T00:00:00Z").unwrap();
    assert_eq!(parse_date_time("2020-02-29"), Ok(midnight));
    assert_eq!(parse_date_time("2020-02-29T12:00:00.1234567Z"), Ok(Ticks(noon.0 + 1_234_567)));
    assert_eq!(parse_date_time("2020-02-29T12:00:00.12Z"), Ok(Ticks(noon.0 + 1_200_000)));
}

#[test]
fn outside_the_range_is_told_apart_from_nonsense() {
    for (text, error) in [
        ("1600-12-31T23:59:59.9999999Z", DateTimeError::TooEarly),
        ("0001-01-01T00:00:00Z", DateTimeError::TooEarly),
        ("1601-01-01T00:00:00+00:01", DateTimeError::TooEarly),
        ("9999-12-31T23:59:59-00:01", DateTimeError::TooLate),
    ] {
        assert_eq!(parse_date_time(text), Err(error), "{text}");
    }
    for text in [
        "",
        "0000-12-31T00:00:00Z",
        "2020",
        "2020-1-1",
        "2021-02-29",
        "2020-13-01",
        "2020-00-01",
        "2020-01-00",
        "2020-01-32",
        "2020-01-01T",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:60:00Z",
        "2020-01-01T00:00:60Z",
        "2020-01-01T00:00:00.Z",
        "2020-01-01T00:00:00ZZ",
        "2020-01-01T00:00:00+1:00",
        "2020-01-01 00:00:00",
        "2020-01-01T00:00:00+15:00",
        "20é0-01-01",
        "12020-01-01",
        "2020-01-01Z",
    ] {
        assert_eq!(parse_date_time(text), Err(DateTimeError::Malformed), "{text}");
    }
}

#[test]
fn zeros_at_the_end_are_cut() {
    let base = parse_date_time("2021-02-12T08:28:27Z").unwrap();
    assert_eq!(date_time_text(Ticks(base.0 + 4_746_800)), "2021-02-12T08:28:27.47468Z");
    assert_eq!(date_time_text(Ticks(base.0 + 1)), "2021-02-12T08:28:27.0000001Z");
}

proptest! {
    #[test]
    fn text_comes_back(ticks in 0..=TICKS_MAX.0) {
        prop_assert_eq!(parse_date_time(&date_time_text(Ticks(ticks))), Ok(Ticks(ticks)));
    }

    #[test]
    fn any_day_comes_back(days in 0..3_067_671i64) {
        let (year, month, day) = civil_from_days(days);
        prop_assert_eq!(days_since_1601(year, month, day), days);
        prop_assert!((1..=days_in_month(year, month)).contains(&day));
    }

    #[test]
    fn later_instants_are_later_texts_in_whole_seconds(a in 0..=TICKS_MAX.0, b in 0..=TICKS_MAX.0) {
        let (a, b) = (a / TICKS_PER_SECOND * TICKS_PER_SECOND, b / TICKS_PER_SECOND * TICKS_PER_SECOND);
        prop_assert_eq!(a.cmp(&b), date_time_text(Ticks(a)).cmp(&date_time_text(Ticks(b))));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let _ = parse_date_time(&text);
    }

    #[test]
    fn near_misses_are_read_or_refused(text in "[0-9TZ:.+-]{0,36}") {
        let _ = parse_date_time(&text);
    }
}

#[test]
fn seven_digits_where_they_are_asked_for() {
    for (at, expected) in [
        ("2026-11-20T10:00:00.12Z", "2026-11-20T10:00:00.1200000Z"),
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00.0000000Z"),
    ] {
        assert_eq!(seven_digits_text(parse_date_time(at).unwrap()), expected);
    }
}
