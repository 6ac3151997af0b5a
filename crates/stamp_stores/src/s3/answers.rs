//! What statuses, error codes and listings of a bucket say.
//!
//! What always holds: an object counts as not there only if the answer says so of the object itself; what is
//! shown of an answer is its status and its code, never its text, which may repeat what was signed.

use crate::exchange::Lost;
use http_client::xml;
use percent_encoding::percent_decode_str;
use stamp_streams::{ListPage, StoreError};

/// Bytes of an answer with an error, at most.
pub(crate) const ERROR_SIZE_BYTES_MAX: usize = 64 << 10;
/// Letters of an error's code that are shown, at most.
const CODE_LEN_MAX: usize = 64;
/// Codes that say that the credentials were right once.
const EXPIRED: [&str; 4] = ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"];

/// Codes that say that the credentials are not those of the store, or not any more.
const UNKNOWN_KEYS: [&str; 2] = ["InvalidAccessKeyId", "SignatureDoesNotMatch"];

/// The code of an error; empty if the answer has none.
pub(crate) fn error_code(body: &[u8]) -> String {
    let Ok(root) = xml::parse(body) else { return String::new() };
    let code = root.text_of("Code");
    let letters = code.chars().filter(|letter| letter.is_ascii_alphanumeric());
    letters.take(CODE_LEN_MAX).collect()
}

/// Whether the credentials have ended, and others may do.
pub(crate) fn is_expired(code: &str) -> bool {
    EXPIRED.contains(&code)
}

/// Whether the credentials are wrong, and may have been replaced where they come from.
pub(crate) fn has_wrong_keys(code: &str) -> bool {
    UNKNOWN_KEYS.contains(&code)
}

/// How an answer with an error is shown.
pub(crate) fn shown(status: u16, code: &str) -> String {
    let hint = match (status, code) {
        (301 | 307 | 308, _)
        | (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
            ": is the region right?"
        }
        (_, "RequestTimeTooSkewed") => ": is this machine's clock right?",
        (_, "NoSuchBucket") => ": make the bucket first",
        (403, "SignatureDoesNotMatch" | "InvalidAccessKeyId") => ": are the credentials right?",
        _ => "",
    };
    let space = if code.is_empty() { "" } else { " " };
    format!("it answers {status}{space}{code}{hint}")
}

/// What an unsuccessful answer to a read or a listing says.
pub(crate) fn read_error(status: u16, code: &str) -> StoreError {
    match status {
        404 if code == "NoSuchKey" => StoreError::NotThere,
        408 | 409 | 425 | 429 | 500.. => StoreError::Unavailable(shown(status, code)),
        _ if is_expired(code) || code == "RequestTimeTooSkewed" => {
            StoreError::Unavailable(shown(status, code))
        }
        _ => StoreError::Refused(shown(status, code)),
    }
}

/// What an answer to a deletion says.
pub(crate) fn delete_answer(status: u16, code: &str) -> Result<(), StoreError> {
    match status {
        200 | 204 => Ok(()),
        404 if code == "NoSuchKey" => Ok(()),
        _ => Err(match read_error(status, code) {
            StoreError::Unavailable(what) => StoreError::UnknownOutcome(what),
            other => other,
        }),
    }
}

/// A read without an answer.
pub(crate) fn read_lost(lost: &Lost) -> StoreError {
    StoreError::Unavailable(lost.what().to_owned())
}

/// A page of a listing (ListObjectsV2, encoded as URLs); names without `base`.
///
/// # Errors
///
/// Why it can't be read.
pub(crate) fn list_page(body: &[u8], base: &str) -> Result<ListPage, String> {
    let root = xml::parse(body)?;
    if root.name != "ListBucketResult" {
        return Err(format!("it is a {}, not a ListBucketResult", root.name));
    }
    let is_encoded = root.text_of("EncodingType").eq_ignore_ascii_case("url");
    let has_more = root.text_of("IsTruncated") == "true";
    let mut names: Vec<String> = Vec::new();
    for content in root.children.iter().filter(|child| child.name == "Contents") {
        let key = content
            .child("Key")
            .ok_or("an entry has no key")?
            .text
            .replace('+', if is_encoded { "%20" } else { "+" });
        let key = match is_encoded {
            true => percent_decode_str(&key).decode_utf8().map_err(|_| "a key is no UTF-8")?.into_owned(),
            false => key,
        };
        let name = key.strip_prefix(base).ok_or("a key does not begin with the prefix")?;
        if names.last().is_some_and(|last| last.as_str() >= name) {
            return Err(
                "its keys are not in order: the bucket is of a kind that can't carry a stamp".to_owned()
            );
        }
        names.push(name.to_owned());
    }
    Ok(ListPage { names, has_more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_errors() {
        let body = b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>secret</Message></Error>";
        assert_eq!(error_code(body), "NoSuchKey");
        assert_eq!(error_code(b"<html>"), "");
        assert_eq!(
            error_code(format!("<Error><Code>{}</Code></Error>", "x<!-- -->y".repeat(99)).as_bytes()).len(),
            64
        );
    }

    #[test]
    fn reads_and_what_their_answers_say() {
        let is = |status, code| match read_error(status, code) {
            StoreError::NotThere => "not there",
            StoreError::Unavailable(_) => "unavailable",
            StoreError::Refused(_) => "refused",
            StoreError::UnknownOutcome(_) => "unknown",
        };
        for (status, code, expected) in [
            (404, "NoSuchKey", "not there"),
            (404, "NoSuchBucket", "refused"),
            (404, "", "refused"),
            (403, "AccessDenied", "refused"),
            (403, "ExpiredToken", "unavailable"),
            (403, "RequestTimeTooSkewed", "unavailable"),
            (400, "InvalidRequest", "refused"),
            (301, "PermanentRedirect", "refused"),
            (408, "", "unavailable"),
            (409, "", "unavailable"),
            (429, "", "unavailable"),
            (500, "InternalError", "unavailable"),
            (503, "SlowDown", "unavailable"),
            (599, "", "unavailable"),
        ] {
            assert_eq!(is(status, code), expected, "{status} {code}");
        }
    }

    #[test]
    fn deletions_and_what_their_answers_say() {
        for (status, code) in [(200, ""), (204, ""), (404, "NoSuchKey")] {
            assert_eq!(delete_answer(status, code), Ok(()));
        }
        for (status, code) in [(500, ""), (503, "SlowDown"), (408, ""), (409, ""), (429, "")] {
            assert!(matches!(delete_answer(status, code), Err(StoreError::UnknownOutcome(_))), "{status}");
        }
        for (status, code) in [(403, "AccessDenied"), (404, "NoSuchBucket"), (400, ""), (301, "")] {
            assert!(matches!(delete_answer(status, code), Err(StoreError::Refused(_))), "{status}");
        }
    }

    #[test]
    fn a_page_of_names() {
        let page = "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
             <Contents><Key>p/a%2Fb</Key><Size>1</Size></Contents><Contents><Key>p/a+c%2B</Key></Contents>\
             </ListBucketResult>";
        // ' ' is before '/': the order is that of names as they are sent.
        let page = page.replace("a+c", "b+c");
        let names = vec!["a/b".to_owned(), "b c+".to_owned()];
        assert_eq!(list_page(page.as_bytes(), "p/"), Ok(ListPage { names, has_more: true }));
        let plain = "<ListBucketResult><Contents><Key>a+b</Key></Contents></ListBucketResult>";
        let names = vec!["a+b".to_owned()];
        assert_eq!(list_page(plain.as_bytes(), ""), Ok(ListPage { names, has_more: false }));
        assert_eq!(list_page(b"<ListBucketResult/>", "p/"), Ok(ListPage::default()));
    }

    #[test]
    fn what_is_no_page_is_refused() {
        for page in [
            "",
            "<Error/>",
            "<ListBucketResult><Contents/></ListBucketResult>",
            "<ListBucketResult><Contents><Key>other</Key></Contents></ListBucketResult>",
            "<ListBucketResult><Contents><Key>p/b</Key></Contents><Contents><Key>p/a</Key></Contents></ListBucketResult>",
        ] {
            assert!(list_page(page.as_bytes(), "p/").is_err(), "{page}");
        }
    }
}
