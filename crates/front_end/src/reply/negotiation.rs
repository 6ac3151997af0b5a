//! The requested form of answer.
//!
//! `$format` beats `Accept`; without either the answer is JSON with minimal metadata. Atom and verbose JSON
//! are refused: no current client requests them alone. Of a list the first entry that can be served counts.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};

/// How much a JSON answer says beside the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MetadataLevel {
    /// Only data: types are lost.
    None,
    /// Types and ETags.
    #[default]
    Minimal,
    /// Also ids, links and types of entities.
    Full,
}

impl MetadataLevel {
    /// The `Content-Type` of an answer.
    pub(crate) fn content_type(self) -> HeaderValue {
        // Constants: from_static looks at each letter.
        const NONE: HeaderValue =
            HeaderValue::from_static("application/json;odata=nometadata;streaming=true;charset=utf-8");
        const MINIMAL: HeaderValue =
            HeaderValue::from_static("application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
        const FULL: HeaderValue =
            HeaderValue::from_static("application/json;odata=fullmetadata;streaming=true;charset=utf-8");
        match self {
            MetadataLevel::None => NONE,
            MetadataLevel::Minimal => MINIMAL,
            MetadataLevel::Full => FULL,
        }
    }
}

/// The level that a request names.
pub(crate) fn metadata_level(headers: &HeaderMap, format: Option<&str>) -> Result<MetadataLevel, ApiError> {
    if let Some(format) = format.filter(|format| !format.is_empty()) {
        return choose_level(format);
    }
    match headers.get(ACCEPT) {
        None => Ok(MetadataLevel::Minimal),
        Some(accept) => match usual_level(accept.as_bytes()) {
            Some(level) => Ok(level),
            None => match accept.to_str() {
                Ok(list) => choose_level(list),
                Err(_) => Err(ApiError::invalid_header(ACCEPT.as_str(), accept.as_bytes())),
            },
        },
    }
}

/// Whether errors are in XML: the client accepts XML and no JSON.
pub(crate) fn prefers_xml(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("xml") && !accept.contains("json")
}

/// The level in the words of official clients.
fn usual_level(list: &[u8]) -> Option<MetadataLevel> {
    match list {
        b"application/json;odata=minimalmetadata" => Some(MetadataLevel::Minimal),
        b"application/json;odata=nometadata" => Some(MetadataLevel::None),
        b"application/json;odata=fullmetadata" => Some(MetadataLevel::Full),
        _ => None,
    }
}

/// The level that a list of media types names.
pub(crate) fn choose_level(list: &str) -> Result<MetadataLevel, ApiError> {
    if let Some(level) = usual_level(list.as_bytes()) {
        return Ok(level);
    }
    let mut refusal = ErrorCode::MediaTypeNotSupported;
    for entry in list.split(',') {
        let mut parts = entry.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let is = |name: &str| media_type.eq_ignore_ascii_case(name);
        if is("application/atom+xml") || is("application/xml") {
            refusal = ErrorCode::AtomFormatNotSupported;
            continue;
        }
        if !(media_type.is_empty() || is("application/json") || is("*/*") || is("application/*")) {
            continue;
        }
        let level = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("odata").then(|| value.trim().trim_matches('"'))
        });
        match level {
            None => return Ok(MetadataLevel::Minimal),
            Some(level) if level.eq_ignore_ascii_case("nometadata") => return Ok(MetadataLevel::None),
            Some(level) if level.eq_ignore_ascii_case("minimalmetadata") => {
                return Ok(MetadataLevel::Minimal);
            }
            Some(level) if level.eq_ignore_ascii_case("fullmetadata") => return Ok(MetadataLevel::Full),
            Some(level) if level.eq_ignore_ascii_case("verbose") => {
                refusal = ErrorCode::JsonVerboseFormatNotSupported;
            }
            Some(_) => {}
        }
    }
    Err(refusal.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(accept: &str) -> Result<MetadataLevel, ErrorCode> {
        choose_level(accept).map_err(|error| error.code)
    }

    #[test]
    fn levels_and_refusals() {
        use MetadataLevel::*;
        assert_eq!(level("application/json"), Ok(Minimal));
        assert_eq!(level("application/json;odata=nometadata"), Ok(None));
        assert_eq!(level("application/json; charset=utf-8 ; OData=FullMetadata"), Ok(Full));
        assert_eq!(level("*/*"), Ok(Minimal));
        assert_eq!(level(""), Ok(Minimal));
        assert_eq!(level("application/atom+xml,application/json;odata=nometadata"), Ok(None));
        assert_eq!(level("text/html, */*;q=0.8"), Ok(Minimal));
        assert_eq!(level("application/atom+xml,application/xml"), Err(ErrorCode::AtomFormatNotSupported));
        assert_eq!(level("application/json;odata=verbose"), Err(ErrorCode::JsonVerboseFormatNotSupported));
        assert_eq!(level("text/plain"), Err(ErrorCode::MediaTypeNotSupported));
    }

    #[test]
    fn the_parameter_beats_the_header() {
        let mut headers = HeaderMap::new();
        assert_eq!(metadata_level(&headers, Option::None), Ok(MetadataLevel::Minimal));
        headers.insert(ACCEPT, HeaderValue::from_static("application/xml"));
        assert!(metadata_level(&headers, Option::None).is_err());
        assert!(prefers_xml(&headers));
        let format = Some("application/json;odata=fullmetadata");
        assert_eq!(metadata_level(&headers, format), Ok(MetadataLevel::Full));
    }
}
