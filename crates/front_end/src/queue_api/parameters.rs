//! The query parameters of the Queue service: numbers with bounds, and pop receipts.
//!
//! A refusal names the parameter, its value and what it may be, as the service's clients expect.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use hyper::header::HeaderMap;
use queue::limits::{INVISIBLE_FOR_MAX, LIVES_FOR_DEFAULT, MESSAGES_TAKEN_MAX};
use queue::{MessageId, PopReceipt};
use std::ops::RangeInclusive;
use std::time::Duration;

/// From this `x-ms-version` on, a message may live for ever, and for longer than a week.
const LONG_LIVES_SINCE: &[u8] = b"2017-07-29";

const VISIBILITY_TIMEOUT: &str = "visibilitytimeout";

/// A number, if the parameter is there.
pub(crate) fn number(query: &QueryParameters<'_>, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = query.find(name) else {
        return Ok(None);
    };
    let parsed = text.parse().map(Some);
    parsed.map_err(|_| ApiError::invalid_parameter(name, text, "Failed to parse the value as an integer."))
}

fn number_in(
    query: &QueryParameters<'_>,
    name: &str,
    range: RangeInclusive<i64>,
) -> Result<Option<u64>, ApiError> {
    match number(query, name)? {
        None => Ok(None),
        Some(number) if range.contains(&number) => Ok(Some(number.unsigned_abs())),
        Some(number) => Err(ApiError::out_of_range_parameter(name, &number.to_string(), &range)),
    }
}

/// `visibilitytimeout`: how long a message is invisible.
pub(crate) fn invisible_for(
    query: &QueryParameters<'_>,
    seconds_min: i64,
) -> Result<Option<Duration>, ApiError> {
    let range = seconds_min..=INVISIBLE_FOR_MAX.as_secs() as i64;
    Ok(number_in(query, VISIBILITY_TIMEOUT, range)?.map(Duration::from_secs))
}

/// The same where it has to be said.
pub(crate) fn required_invisible_for(query: &QueryParameters<'_>) -> Result<Duration, ApiError> {
    // The service's code for it, not that of other parameters that are missing.
    let missing = || ApiError::invalid_parameter(VISIBILITY_TIMEOUT, "", "The parameter is required.");
    invisible_for(query, 0)?.ok_or_else(missing)
}

/// `numofmessages`: how many messages to get or peek.
pub(crate) fn message_count(query: &QueryParameters<'_>) -> Result<usize, ApiError> {
    let count = number_in(query, "numofmessages", 1..=MESSAGES_TAKEN_MAX as i64)?;
    Ok(count.unwrap_or(1) as usize)
}

/// `messagettl`: how long a message lives; `None` for ever.
pub(crate) fn lives_for(
    query: &QueryParameters<'_>,
    headers: &HeaderMap,
) -> Result<Option<Duration>, ApiError> {
    const NAME: &str = "messagettl";
    let Some(seconds) = number(query, NAME)? else {
        return Ok(Some(LIVES_FOR_DEFAULT));
    };
    let is_old = headers.get("x-ms-version").is_some_and(|version| version.as_bytes() < LONG_LIVES_SINCE);
    let range = 1..=if is_old { LIVES_FOR_DEFAULT.as_secs() as i64 } else { i64::MAX };
    match seconds {
        -1 if !is_old => Ok(None),
        seconds if range.contains(&seconds) => Ok(Some(Duration::from_secs(seconds.unsigned_abs()))),
        seconds if is_old => Err(ApiError::out_of_range_parameter(NAME, &seconds.to_string(), &range)),
        seconds => Err(ApiError::invalid_parameter(
            NAME,
            &seconds.to_string(),
            "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.",
        )),
    }
}

/// `popreceipt`: required where a message is updated or deleted.
pub(crate) fn pop_receipt(query: &QueryParameters<'_>) -> Result<PopReceipt, ApiError> {
    const NAME: &str = "popreceipt";
    let text = query.find(NAME).ok_or_else(|| ApiError::missing_parameter(NAME))?;
    PopReceipt::parse(text)
        .ok_or_else(|| ApiError::invalid_parameter(NAME, text, "Invalid pop receipt format"))
}

/// The id in a path. Text that is no id names no message.
pub(crate) fn message_id(text: &str) -> Result<MessageId, ApiError> {
    MessageId::parse(text).ok_or_else(|| ErrorCode::MessageNotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn query(text: &'static str) -> QueryParameters<'static> {
        QueryParameters::parse(Some(text)).expect("query")
    }

    #[test]
    fn numbers_have_bounds() {
        let count = |text| message_count(&query(text)).map_err(|error| error.code);
        assert_eq!(count(""), Ok(1));
        assert_eq!(count("numofmessages=32"), Ok(32));
        for text in ["numofmessages=0", "numofmessages=33", "numofmessages=-1"] {
            assert_eq!(count(text), Err(ErrorCode::OutOfRangeQueryParameterValue), "{text}");
        }
        for text in ["numofmessages=", "numofmessages=x", "numofmessages=99999999999999999999"] {
            assert_eq!(count(text), Err(ErrorCode::InvalidQueryParameterValue), "{text}");
        }
        let hidden = |text, least| invisible_for(&query(text), least).map_err(|error| error.code);
        assert_eq!(hidden("visibilitytimeout=0", 0), Ok(Some(Duration::ZERO)));
        assert_eq!(hidden("visibilitytimeout=0", 1), Err(ErrorCode::OutOfRangeQueryParameterValue));
        assert_eq!(hidden("visibilitytimeout=604800", 1), Ok(Some(INVISIBLE_FOR_MAX)));
        assert_eq!(hidden("visibilitytimeout=604801", 1), Err(ErrorCode::OutOfRangeQueryParameterValue));
        assert_eq!(hidden("", 1), Ok(None));
    }

    #[test]
    fn lives() {
        let lives = |text, version: Option<&'static str>| {
            let version = version.map(|version| ("x-ms-version", version));
            let headers = version
                .into_iter()
                .map(|(name, value)| (name.parse().expect("name"), HeaderValue::from_static(value)))
                .collect();
            lives_for(&query(text), &headers).map_err(|error| error.code)
        };
        assert_eq!(lives("", None), Ok(Some(LIVES_FOR_DEFAULT)));
        assert_eq!(lives("messagettl=-1", None), Ok(None));
        assert_eq!(
            lives("messagettl=9007199254740991", None),
            Ok(Some(Duration::from_secs(9007199254740991)))
        );
        for text in ["messagettl=0", "messagettl=-2", "messagettl=x"] {
            assert_eq!(lives(text, None), Err(ErrorCode::InvalidQueryParameterValue), "{text}");
        }
        for text in ["messagettl=-1", "messagettl=604801"] {
            let refused = lives(text, Some("2016-05-31"));
            assert_eq!(refused, Err(ErrorCode::OutOfRangeQueryParameterValue), "{text}");
        }
    }

    #[test]
    fn receipts() {
        let receipt = |text| pop_receipt(&query(text)).map_err(|error| error.code);
        assert_eq!(receipt(""), Err(ErrorCode::MissingRequiredQueryParameter));
        assert_eq!(receipt("popreceipt=x"), Err(ErrorCode::InvalidQueryParameterValue));
        assert!(receipt("popreceipt=AAAAAAAAAAEAAAAAAAAAAg").is_ok());
    }
}
