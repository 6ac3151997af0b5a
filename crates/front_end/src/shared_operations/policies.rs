//! Get and set a container's stored access policies, in XML.
//!
//! ```text
//! <SignedIdentifiers><SignedIdentifier><Id>p1</Id><AccessPolicy>
//!   <Start>…</Start><Expiry>…</Expiry><Permission>raud</Permission>
//! </AccessPolicy></SignedIdentifier></SignedIdentifiers>
//! ```

use crate::error::ApiError;
use crate::pipeline::{ApiRequest, ServiceApi};
use crate::reply::Reply;
use crate::xml::{MALFORMED, XML_DECLARATION, XmlElement, parse_xml, put_xml_element, put_xml_tag};
use base::Ticks;
use hyper::StatusCode;
use service::{StoredPolicy, parse_date_time, seven_digits_text};

/// From this `x-ms-version` on, a bearer token may read and write stored access policies.
const BY_TOKEN_SINCE: &[u8] = b"2025-07-05";

/// Whether a request that is allowed to do everything may do this, too.
pub(crate) fn are_open_to(request: &ApiRequest<'_>) -> bool {
    let version = request.headers().get("x-ms-version");
    request.principal.is_none() || version.is_some_and(|version| version.as_bytes() >= BY_TOKEN_SINCE)
}

/// Gets the policies.
pub(crate) async fn read_policies(
    service: &impl ServiceApi,
    request: &ApiRequest<'_>,
    container: &str,
) -> Result<Reply, ApiError> {
    let policies = service.policies(request.account, container).await?;
    Ok(Reply::xml(StatusCode::OK, write(&policies)))
}

/// Replaces the policies.
pub(crate) async fn write_policies<S: ServiceApi>(
    service: &S,
    request: &ApiRequest<'_>,
    container: &str,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let policies = read(body, S::POLICY_PERMISSIONS)?;
    service.set_policies(request.account, container, policies).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

pub(crate) fn write(policies: &[StoredPolicy]) -> Vec<u8> {
    let mut out = XML_DECLARATION.to_vec();
    put_xml_tag(&mut out, "<", "SignedIdentifiers");
    for policy in policies {
        put_xml_tag(&mut out, "<", "SignedIdentifier");
        put_xml_element(&mut out, "Id", &policy.id);
        if policy.start.is_none() && policy.expiry.is_none() && policy.permission.is_none() {
            // Clients tell a policy that says nothing from one that is not there.
            put_xml_tag(&mut out, "</", "SignedIdentifier");
            continue;
        }
        put_xml_tag(&mut out, "<", "AccessPolicy");
        for (name, at) in [("Start", policy.start), ("Expiry", policy.expiry)] {
            if let Some(at) = at {
                put_xml_element(&mut out, name, &seven_digits_text(at));
            }
        }
        if let Some(permission) = &policy.permission {
            put_xml_element(&mut out, "Permission", permission);
        }
        put_xml_tag(&mut out, "</", "AccessPolicy");
        put_xml_tag(&mut out, "</", "SignedIdentifier");
    }
    put_xml_tag(&mut out, "</", "SignedIdentifiers");
    out
}

/// Reads policies; an empty body clears them. `letters` are the permissions that there are.
pub(crate) fn read(body: &[u8], letters: &str) -> Result<Vec<StoredPolicy>, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let malformed = |at| ApiError::invalid_document(body, at, MALFORMED);
    let root = parse_xml(body).map_err(|error| malformed(error.at))?;
    if root.name != "SignedIdentifiers" {
        return Err(malformed(root.at));
    }
    let mut policies = Vec::with_capacity(root.children.len());
    for element in &root.children {
        let id = element.child_text("Id").filter(|_| element.name == "SignedIdentifier");
        let id = id.ok_or_else(|| malformed(element.at))?;
        policies.push(read_policy(element, id, letters)?);
    }
    Ok(policies)
}

fn read_policy(element: &XmlElement, id: &str, letters: &str) -> Result<StoredPolicy, ApiError> {
    let mut policy = StoredPolicy { id: id.to_owned(), ..StoredPolicy::default() };
    if let Some(access) = element.child("AccessPolicy") {
        policy.start = read_date(access, "Start")?;
        policy.expiry = read_date(access, "Expiry")?;
        policy.permission =
            access.child_text("Permission").filter(|text| !text.is_empty()).map(str::to_owned);
    }
    let known = |text: &String| text.chars().all(|letter| letters.contains(letter));
    match policy.permission.as_ref().is_none_or(known) {
        true => Ok(policy),
        // As recorded of the Queue service: no value of a node, and no place.
        false => Err(ApiError::invalid_document_whole(
            "The permissions of a policy are not those of this service.",
        )),
    }
}

fn read_date(access: &XmlElement, name: &str) -> Result<Option<Ticks>, ApiError> {
    match access.child_text(name) {
        None | Some("") => Ok(None),
        Some(text) => match parse_date_time(text) {
            Ok(at) => Ok(Some(at)),
            Err(_) => Err(ApiError::invalid_node(name, text, "It is not a date.")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::error_code::ErrorCode;

    #[test]
    fn policies_come_back() {
        let body = b"<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier><Id>pol1</Id>\
            <AccessPolicy><Start>2020-01-01T00:00:00Z</Start><Expiry>2030-01-01</Expiry><Permission>raud</Permission>\
            </AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id><AccessPolicy/></SignedIdentifier>\
            </SignedIdentifiers>";
        let policies = read(body, "raud").expect("policies");
        assert_eq!(policies.len(), 2);
        assert_eq!(policies[0].permission.as_deref(), Some("raud"));
        assert!(policies[0].expiry > policies[0].start);
        assert_eq!(policies[1], StoredPolicy { id: "empty".into(), ..StoredPolicy::default() });
        assert_eq!(read(&write(&policies), "raud"), Ok(policies));
        assert_eq!(read(b"", "raud"), Ok(vec![]));
    }

    #[test]
    fn refused() {
        let policy = |inside: &str| {
            let body = format!(
                "<SignedIdentifiers><SignedIdentifier>{inside}</SignedIdentifier></SignedIdentifiers>"
            );
            read(body.as_bytes(), "raud").err().map(|error| error.code)
        };
        assert_eq!(policy(""), Some(ErrorCode::InvalidXmlDocument));
        let with = |field: &str| policy(&format!("<Id>a</Id><AccessPolicy>{field}</AccessPolicy>"));
        assert_eq!(with("<Permission>x</Permission>"), Some(ErrorCode::InvalidXmlDocument));
        assert_eq!(with("<Start>soon</Start>"), Some(ErrorCode::InvalidXmlNodeValue));
        assert_eq!(with("<Start></Start>"), None);
        assert!(read(b"<Other/>", "raud").is_err());
    }
}
