//! An error on its way to the client, and its body in the two shapes that clients read.
//!
//! ```text
//! JSON         {"odata.error":{"code":C,"message":{"lang":"en-US","value":"TEXT\nRequestId:…\nTime:…"}}}
//! Table's XML  <m:error xmlns:m="…/metadata"><m:code>C</m:code><m:message xml:lang="en-US">TEXT…</m:message>
//!              </m:error>
//! other XML    <Error><Code>C</Code><Message>TEXT…</Message><AuthenticationErrorDetail>…</Error>, with
//!              facts of the error before its end
//! ```
//!
//! The JSON form has exactly these members, because one client fails on others; there a detail joins the
//! text. What always holds: texts of the client's are escaped, and details are bounded.

pub(crate) mod error_code;
pub(crate) mod injected;
pub(crate) mod storage_failure;

use crate::error::error_code::ErrorCode;
use crate::error::injected::Injected;
use crate::json::text::put_json_string;
use crate::xml::{XML_DECLARATION, place_of, put_xml_element, put_xml_tag, put_xml_text};
use base::Ticks;
use hyper::StatusCode;
use service::date_time_text;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Bytes of an error's detail at most.
const DETAIL_SIZE_BYTES_MAX: usize = 4096;

/// The namespace of the Table service's XML errors.
const METADATA_NAMESPACE: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";

/// Names and values in the order they are written.
type Facts = [(&'static str, String)];

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// Which row of the table.
    pub(crate) code: ErrorCode,
    /// A better message than the table's.
    message: Option<Cow<'static, str>>,
    /// What helps to mend an authentication failure, such as the server's string-to-sign. Never a key.
    detail: Option<Box<str>>,
    /// Named values beside the message, such as the bounds of a parameter.
    facts: Option<Box<Facts>>,
    /// The error of the read of a copy's source.
    source: Option<ErrorCode>,
    /// Bytes of the whole that a range lies outside of.
    whole_size: Option<u64>,
    /// What is answered in the place of the code's own status and name.
    injected: Option<Box<Injected>>,
}

impl ApiError {
    /// The error with the table's message.
    pub(crate) const fn new(code: ErrorCode) -> Self {
        let (message, detail, facts) = (None, None, None);
        ApiError { code, message, detail, facts, source: None, whole_size: None, injected: None }
    }

    /// The error with a message of its own.
    pub(crate) fn with_message(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        ApiError { message: Some(message.into()), ..ApiError::new(code) }
    }

    /// The error with the table's message and a detail.
    pub(crate) fn with_detail(code: ErrorCode, detail: impl Into<String>) -> Self {
        let mut detail: String = detail.into();
        if detail.len() > DETAIL_SIZE_BYTES_MAX {
            let end =
                (0..=DETAIL_SIZE_BYTES_MAX).rev().find(|&end| detail.is_char_boundary(end)).unwrap_or(0);
            detail.truncate(end);
        }
        ApiError { detail: Some(detail.into_boxed_str()), ..ApiError::new(code) }
    }

    /// The error with the table's message and named values, which clients of the XML services can read.
    pub(crate) fn with_facts(code: ErrorCode, facts: impl Into<Box<Facts>>) -> Self {
        ApiError { facts: Some(facts.into()), ..ApiError::new(code) }
    }

    /// The same error with named values, which join its message.
    pub(crate) fn and_facts(self, facts: impl Into<Box<Facts>>) -> Self {
        ApiError { facts: Some(facts.into()), ..self }
    }

    /// The refusal of a request that lacks a query parameter.
    pub(crate) fn missing_parameter(name: &str) -> Self {
        let code = ErrorCode::MissingRequiredQueryParameter;
        ApiError::with_facts(code, [("QueryParameterName", name.to_owned())])
    }

    /// The refusal of a query parameter, for a reason.
    pub(crate) fn invalid_parameter(name: &str, value: &str, reason: &str) -> Self {
        ApiError::with_facts(
            ErrorCode::InvalidQueryParameterValue,
            [
                ("QueryParameterName", name.to_owned()),
                ("QueryParameterValue", value.to_owned()),
                ("Reason", reason.to_owned()),
            ],
        )
    }

    /// The refusal of a number in a query parameter that is outside its bounds.
    pub(crate) fn out_of_range_parameter(name: &str, value: &str, range: &RangeInclusive<i64>) -> Self {
        ApiError::with_facts(
            ErrorCode::OutOfRangeQueryParameterValue,
            [
                ("QueryParameterName", name.to_owned()),
                ("QueryParameterValue", value.to_owned()),
                ("MinimumAllowed", range.start().to_string()),
                ("MaximumAllowed", range.end().to_string()),
            ],
        )
    }

    /// The refusal of a header for its value.
    pub(crate) fn invalid_header(name: &str, value: &[u8]) -> Self {
        ApiError::of_header(ErrorCode::InvalidHeaderValue, name, value)
    }

    /// An error about one header, which it names with its value.
    pub(crate) fn of_header(code: ErrorCode, name: &str, value: &[u8]) -> Self {
        let value = String::from_utf8_lossy(value).into_owned();
        ApiError::with_facts(code, [("HeaderName", name.to_owned()), ("HeaderValue", value)])
    }

    /// The refusal of a body whose length is not announced.
    pub(crate) fn missing_length() -> Self {
        let facts = [("HeaderName", "Content-Length".to_owned())];
        ApiError::with_facts(ErrorCode::MissingContentLengthHeader, facts)
    }

    /// The refusal of a body of more than `size_max` bytes.
    pub(crate) fn body_too_large(size_max: u64) -> Self {
        ApiError::with_facts(ErrorCode::RequestBodyTooLarge, [("MaxLimit", size_max.to_string())])
    }

    /// The refusal of a document for what is at this byte of it.
    pub(crate) fn invalid_document(document: &[u8], at: usize, reason: &str) -> Self {
        ApiError::invalid_document_at(place_of(document, at), reason)
    }

    /// The refusal of a document as a whole: recorded answers of the service tell line and position 0.
    pub(crate) fn invalid_document_whole(reason: &str) -> Self {
        ApiError::invalid_document_at((0, 0), reason)
    }

    fn invalid_document_at((line, position): (usize, usize), reason: &str) -> Self {
        ApiError::with_facts(
            ErrorCode::InvalidXmlDocument,
            [
                ("LineNumber", line.to_string()),
                ("LinePosition", position.to_string()),
                ("Reason", reason.to_owned()),
            ],
        )
    }

    /// The refusal of an element of a document for its text.
    pub(crate) fn invalid_node(name: &str, text: &str, reason: &str) -> Self {
        ApiError::with_facts(
            ErrorCode::InvalidXmlNodeValue,
            [
                ("XmlNodeName", name.to_owned()),
                ("XmlNodeValue", text.to_owned()),
                ("Reason", reason.to_owned()),
            ],
        )
    }

    /// The same with a better message than the table's.
    pub(crate) fn saying(self, message: &'static str) -> Self {
        ApiError { message: Some(Cow::Borrowed(message)), ..self }
    }

    /// The failure to read a copy's source, which is returned with the source's own status and code.
    pub(crate) fn of_source(error: &ApiError) -> Self {
        let message = Cow::Borrowed(error.code.message());
        let code = ErrorCode::CannotVerifyCopySource;
        ApiError { message: Some(message), source: Some(error.code), ..ApiError::new(code) }
    }

    /// The refusal of a range of something that has `whole_size` bytes.
    pub(crate) fn of_range(code: ErrorCode, whole_size: u64) -> Self {
        ApiError { whole_size: Some(whole_size), ..ApiError::new(code) }
    }

    /// The same, answered with another status and code.
    pub(crate) fn injected(self, injected: Injected) -> Self {
        ApiError { injected: Some(Box::new(injected)), ..self }
    }

    /// What is answered in the place of the code's own status and name.
    pub(crate) fn injection(&self) -> Option<&Injected> {
        self.injected.as_deref()
    }

    /// The code as it is written.
    pub(crate) fn code_text(&self) -> &str {
        self.injection().map_or(self.code.as_str(), |injected| &injected.code)
    }

    /// Bytes of the whole that a range lies outside of.
    pub(crate) fn whole_size(&self) -> Option<u64> {
        self.whole_size
    }

    /// The error of the read of a copy's source.
    pub(crate) fn source(&self) -> Option<ErrorCode> {
        self.source
    }

    /// The status that it is answered with.
    pub(crate) fn status(&self) -> StatusCode {
        match self.injection() {
            Some(injected) => injected.status,
            None => self.source.unwrap_or(self.code).status(),
        }
    }

    /// The message without the request's id and time.
    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or(self.code.message())
    }

    /// The detail of an authentication failure.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The body in JSON. `index` is the failed operation's place in its batch.
    pub(crate) fn json_body(&self, request_id: &str, now: Ticks, index: Option<usize>) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"odata.error\":{\"code\":\"");
        out.extend_from_slice(self.code_text().as_bytes());
        out.extend_from_slice(b"\",\"message\":{\"lang\":\"en-US\",\"value\":");
        let mut text = String::with_capacity(160);
        if let Some(index) = index {
            text.push_str(itoa::Buffer::new().format(index));
            text.push(':');
        }
        text.push_str(self.message());
        if let Some(detail) = &self.detail {
            text.push_str("\nAuthenticationErrorDetail:");
            text.push_str(detail);
        }
        push_trace(&mut text, request_id, now);
        put_json_string(&mut out, &text);
        out.extend_from_slice(b"}}}");
        out
    }

    /// The body in XML.
    pub(crate) fn xml_body(&self, request_id: &str, now: Ticks) -> Vec<u8> {
        let mut out = XML_DECLARATION.to_vec();
        put_xml_tag(&mut out, "<", "Error");
        put_xml_element(&mut out, "Code", self.code_text());
        let mut text = self.message().to_owned();
        push_trace(&mut text, request_id, now);
        put_xml_element(&mut out, "Message", &text);
        if let Some(detail) = &self.detail {
            put_xml_element(&mut out, "AuthenticationErrorDetail", detail);
        }
        for (name, value) in self.facts.as_deref().unwrap_or_default() {
            put_xml_element(&mut out, name, value);
        }
        if let Some(source) = self.source {
            put_xml_element(&mut out, "CopySourceStatusCode", source.status().as_str());
            put_xml_element(&mut out, "CopySourceErrorCode", source.as_str());
            put_xml_element(&mut out, "CopySourceErrorMessage", source.message());
        }
        put_xml_tag(&mut out, "</", "Error");
        out
    }

    /// The body in the Table service's XML, which has no place for a detail.
    pub(crate) fn metadata_xml_body(&self, request_id: &str, now: Ticks) -> Vec<u8> {
        if self.detail.is_some() {
            return self.xml_body(request_id, now);
        }
        let mut out = XML_DECLARATION.to_vec();
        out.extend_from_slice(b"<m:error xmlns:m=\"");
        out.extend_from_slice(METADATA_NAMESPACE.as_bytes());
        out.extend_from_slice(b"\"><m:code>");
        out.extend_from_slice(self.code_text().as_bytes());
        out.extend_from_slice(b"</m:code><m:message xml:lang=\"en-US\">");
        let mut text = self.message().to_owned();
        push_trace(&mut text, request_id, now);
        put_xml_text(&mut out, &text);
        out.extend_from_slice(b"</m:message></m:error>");
        out
    }
}

impl ApiError {
    /// The secondary of an account is for reads.
    pub(crate) fn write_at_secondary() -> Self {
        ApiError::with_message(ErrorCode::InsufficientAccountPermissions, "Write operations are not allowed.")
    }
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        ApiError::new(code)
    }
}

fn push_trace(text: &mut String, request_id: &str, now: Ticks) {
    text.push_str("\nRequestId:");
    text.push_str(request_id);
    text.push_str("\nTime:");
    text.push_str(&date_time_text(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_in_both_shapes() {
        let error = ApiError::new(ErrorCode::TableNotFound);
        let now = Ticks(130_463_002_004_307_735);
        assert_eq!(
            String::from_utf8(error.json_body("ID", now, Some(3))).expect("text"),
            "{\"odata.error\":{\"code\":\"TableNotFound\",\"message\":{\"lang\":\"en-US\",\"value\":\"3:The table \
             specified does not exist.\\nRequestId:ID\\nTime:2014-06-03T20:16:40.4307735Z\"}}}"
        );
        let xml = String::from_utf8(error.metadata_xml_body("ID", now)).expect("text");
        assert!(xml.contains("<m:code>TableNotFound</m:code>"), "{xml}");
        let error = ApiError::with_detail(ErrorCode::AuthenticationFailed, "GET\n<a>&");
        let xml = String::from_utf8(error.metadata_xml_body("ID", now)).expect("text");
        assert!(
            xml.contains("<AuthenticationErrorDetail>GET\n&lt;a&gt;&amp;</AuthenticationErrorDetail>"),
            "{xml}"
        );
    }

    #[test]
    fn details_are_bounded_at_a_character() {
        let error = ApiError::with_detail(ErrorCode::AuthenticationFailed, "ä".repeat(5000));
        assert!(error.detail().is_some_and(|detail| detail.len() <= DETAIL_SIZE_BYTES_MAX));
    }
}
