//! Code and message of an answer with an error, in whatever form they come.
//!
//! ```text
//! x-ms-error-code: Code                                        the only code of an answer without body
//! {"odata.error":{"code":"Code","message":{"lang":"en-US","value":"text\nRequestId:…\nTime:…"}}}
//! <Error><Code>Code</Code><Message>text\nRequestId:…\nTime:…</Message></Error>
//! <m:error><m:code>Code</m:code><m:message>text</m:message></m:error>
//! ```
//!
//! What always holds: any body gives an error; one that can't be read has its beginning as the message.

use crate::wire::header_text::text;
use http_client::xml;
use hyper::header::HeaderMap;

/// Characters of a body that can't be read, as the message.
const EXCERPT_CHARACTERS_MAX: usize = 200;

/// What the service says went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceError {
    pub(crate) code: String,
    pub(crate) message: String,
}

pub(crate) fn read_service_error(headers: &HeaderMap, body: &[u8]) -> ServiceError {
    let mut error = match body.trim_ascii_start().first() {
        Some(b'{') => read_json(body),
        Some(b'<' | 0xef) => read_xml(body),
        _ => None,
    }
    .unwrap_or_else(|| ServiceError { code: String::new(), message: excerpt(body) });
    let header = text(headers, "x-ms-error-code");
    if !header.is_empty() {
        error.code = header.to_owned();
    }
    // The ids and times behind the text are in headers, too.
    if let Some(end) = error.message.find("\nRequestId:") {
        error.message.truncate(end);
    }
    error.message = error.message.trim().to_owned();
    error
}

fn read_json(body: &[u8]) -> Option<ServiceError> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let error = value.get("odata.error")?;
    let text = |value: Option<&serde_json::Value>| {
        value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let message = error.get("message");
    Some(ServiceError {
        code: text(error.get("code")),
        message: text(message.and_then(|message| message.get("value"))),
    })
}

fn read_xml(body: &[u8]) -> Option<ServiceError> {
    let root = xml::parse(body).ok().filter(|root| root.name.eq_ignore_ascii_case("error"))?;
    let detail = root.text_of("AuthenticationErrorDetail");
    let mut message = root.text_of("Message").to_owned();
    if let Some(end) = message.find("\nRequestId:") {
        message.truncate(end);
    }
    if !detail.is_empty() {
        message = format!("{} ({})", message.trim(), detail.trim());
    }
    Some(ServiceError { code: root.text_of("Code").trim().to_owned(), message })
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(EXCERPT_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    fn read(code: &str, body: &str) -> (String, String) {
        let mut headers = HeaderMap::new();
        if !code.is_empty() {
            headers.insert("x-ms-error-code", HeaderValue::from_str(code).expect("a code"));
        }
        let error = read_service_error(&headers, body.as_bytes());
        (error.code, error.message)
    }

    #[test]
    fn errors_are_read_in_each_form() {
        let pair = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        let json =
            r#"{"odata.error":{"code":"C","message":{"lang":"en-US","value":"text\nRequestId:x\nTime:y"}}}"#;
        assert_eq!(read("", json), pair("C", "text"));
        assert_eq!(read("D", json), pair("D", "text"));
        let xml = "\u{feff}<?xml version=\"1.0\"?><Error><Code>C</Code><Message>a &lt;\nRequestId:x\nTime:y</Message></Error>";
        assert_eq!(read("", xml), pair("C", "a <"));
        let xml = "<error xmlns=\"x\"><code>C</code><message xml:lang=\"en-US\">text</message></error>";
        assert_eq!(read("", xml), pair("C", "text"));
        let detail = "<Error><Code>C</Code><Message>text\nRequestId:x</Message><AuthenticationErrorDetail>why</AuthenticationErrorDetail></Error>";
        assert_eq!(read("", detail), pair("C", "text (why)"));
        assert_eq!(read("C", ""), pair("C", ""));
        assert_eq!(read("", "<html>busy</html>"), pair("", "<html>busy</html>"));
        assert_eq!(read("", "{}"), pair("", "{}"));
    }

    proptest! {
        #[test]
        fn any_body_is_an_error(body in any::<Vec<u8>>()) {
            let _ = read_service_error(&HeaderMap::new(), &body);
        }
    }
}
