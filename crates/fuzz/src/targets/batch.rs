//! `$batch`: the input is the `Content-Type` in its first line, and the body after that.
//!
//! Beyond the checks of all targets: a change set is applied whole or not at all, a failed part is the only
//! one, and a response has at most as many parts as a change set may have operations.

use crate::stamp::Stamp;
use hyper::header::HeaderValue;

/// Operations of a change set at most.
const OPERATIONS_MAX: usize = 100;

pub(crate) fn run(stamp: &mut Stamp, input: &[u8]) {
    let Some(line_end) = input.iter().position(|&byte| byte == b'\n') else {
        return;
    };
    let Ok(content_type) = HeaderValue::from_bytes(input[..line_end].trim_ascii()) else {
        return;
    };
    let Ok(content_type) = content_type.to_str() else {
        return;
    };
    let headers = [("content-type", content_type), ("accept", "application/json;odata=fullmetadata")];
    let answer = stamp.request("POST", "/$batch", &headers, &input[line_end + 1..]);
    if answer.is_refusal() {
        stamp.check_unchanged("the batch was refused");
        return;
    }
    assert_eq!(answer.status, 202);
    let text = answer.text();
    let statuses: Vec<u16> = text
        .split("\r\n\r\nHTTP/1.1 ")
        .skip(1)
        .map(|part| part.get(..3).and_then(|digits| digits.parse().ok()).expect("a status"))
        .collect();
    assert!(statuses.len() <= OPERATIONS_MAX, "{text}");
    if statuses.is_empty() {
        // Only an empty change set has this response.
        assert!(text.contains("changesetresponse_"), "{text}");
        stamp.check_unchanged("the change set was empty");
        return;
    }
    if statuses.iter().any(|&status| status >= 400) {
        assert_eq!(statuses.len(), 1, "{text}");
        assert!(statuses[0] < 500 || statuses[0] == 501, "{text}");
        stamp.check_unchanged("a part of the batch failed");
    } else {
        assert!(statuses.iter().all(|status| matches!(status, 200 | 201 | 204)), "{text}");
    }
}
