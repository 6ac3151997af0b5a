//! Continuation tokens: where the next page starts, as header and query text.
//!
//! ```text
//! 1!LEN!DATA    DATA is the Base64 of the key's UTF-8 with + / = written * _ -, LEN the length of DATA
//! ```
//!
//! Those of a scan in reverse have `r!` in front. Clients return them unread. What always holds: a key comes
//! back as it was, any other text is refused, and so is a token of the other direction.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a token at most: a key of 1024 UTF-16 units in UTF-8, and then some.
const TOKEN_SIZE_BYTES_MAX: usize = 16 * 1024;

/// The token for a key.
pub(crate) fn encode_token(key: &str) -> String {
    let data = STANDARD.encode(key);
    let mut token = String::with_capacity(data.len() + 8);
    token.push_str("1!");
    token.push_str(itoa::Buffer::new().format(data.len()));
    token.push('!');
    token.extend(data.chars().map(|character| match character {
        '+' => '*',
        '/' => '_',
        '=' => '-',
        other => other,
    }));
    token
}

/// The key in a token.
pub(crate) fn decode_token(token: &str) -> Result<String, ApiError> {
    decode(token).ok_or_else(|| ErrorCode::InvalidInput.into())
}

/// What tokens of scans in reverse begin with.
const REVERSE: &str = "r!";

/// The token for a key of a scan, in reverse or not.
pub(crate) fn encode_scan_token(key: &str, is_reverse: bool) -> String {
    let token = encode_token(key);
    if is_reverse { format!("{REVERSE}{token}") } else { token }
}

/// The key in a token of such a scan.
pub(crate) fn decode_scan_token(token: &str, is_reverse: bool) -> Result<String, ApiError> {
    match (token.strip_prefix(REVERSE), is_reverse) {
        (Some(token), true) => decode_token(token),
        (None, false) => decode_token(token),
        (found, _) => {
            let (own, wanted) =
                if found.is_some() { ("in reverse", "forward") } else { ("forward", "in reverse") };
            let message = format!("A continuation of a scan {own} can't be gone on with {wanted}.");
            Err(ApiError::with_message(ErrorCode::InvalidInput, message))
        }
    }
}

fn decode(token: &str) -> Option<String> {
    if token.len() > TOKEN_SIZE_BYTES_MAX {
        return None;
    }
    let (length, data) = token.strip_prefix("1!")?.split_once('!')?;
    if length.parse::<usize>().ok()? != data.len() {
        return None;
    }
    let data: Vec<u8> = data
        .bytes()
        .map(|byte| match byte {
            b'*' => b'+',
            b'_' => b'/',
            b'-' => b'=',
            other => other,
        })
        .collect();
    String::from_utf8(STANDARD.decode(data).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_known_example() {
        assert_eq!(encode_token("Smith"), "1!8!U21pdGg-");
        assert_eq!(decode_token("1!8!U21pdGg-"), Ok("Smith".to_owned()));
        for wrong in ["", "Smith", "1!7!U21pdGg-", "1!8!U21pdGg", "2!8!U21pdGg-", "1!4!_-__", "1!2!/w"] {
            assert!(decode_token(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_of_one_direction() {
        for is_reverse in [false, true] {
            let token = encode_scan_token("Smith", is_reverse);
            assert_eq!(decode_scan_token(&token, is_reverse), Ok("Smith".to_owned()));
            let error = decode_scan_token(&token, !is_reverse).expect_err("the other direction");
            assert_eq!(error.code, ErrorCode::InvalidInput);
        }
        assert_eq!(encode_scan_token("Smith", false), encode_token("Smith"));
    }

    proptest! {
        #[test]
        fn keys_come_back(key in any::<String>()) {
            prop_assert_eq!(decode_token(&encode_token(&key)), Ok(key));
        }

        #[test]
        fn any_text_is_read_or_refused(token in any::<String>()) {
            let _ = decode_token(&token);
        }
    }
}
