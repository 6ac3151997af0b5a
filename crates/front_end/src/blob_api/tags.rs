//! Tags of blobs, and blobs by their tags.

use super::blob_request::BlobRequest;
use super::errors::from_blob;
use super::headers::request_headers::{check_together, tag_conditions};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use crate::xml::{MALFORMED, XML_DECLARATION, parse_xml_with_blanks, put_xml_element, put_xml_tag};
use blob::limits::LIST_PAGE_MAX;
use blob::{BlobError, Pairs, TagFilter};
use hyper::StatusCode;

/// Bytes of a document with tags at most.
const TAGS_SIZE_BYTES_MAX: usize = 64 << 10;

/// Writes tags.
pub(crate) fn put_tags(out: &mut Vec<u8>, tags: &Pairs) {
    put_xml_tag(out, "<", "Tags");
    put_xml_tag(out, "<", "TagSet");
    for (key, value) in tags {
        put_xml_tag(out, "<", "Tag");
        put_xml_element(out, "Key", key);
        put_xml_element(out, "Value", value);
        put_xml_tag(out, "</", "Tag");
    }
    put_xml_tag(out, "</", "TagSet");
    put_xml_tag(out, "</", "Tags");
}

fn read_document(document: &[u8]) -> Result<Pairs, ApiError> {
    let malformed = |at| ApiError::invalid_document(document, at, MALFORMED);
    let root = parse_xml_with_blanks(document).map_err(|error| malformed(error.at))?;
    if root.name != "Tags" {
        return Err(malformed(root.at));
    }
    let Some(set) = root.child("TagSet") else { return Ok(Pairs::new()) };
    set.children
        .iter()
        .map(|tag| {
            let text = |name| tag.child_text(name).ok_or_else(|| malformed(tag.end));
            let (key, value) = (text("Key")?, text("Value")?);
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect()
}

pub(crate) async fn read_tags(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let at = context.blob().await?;
    let conditions = tag_conditions(context.headers())?;
    let present = context.service.find(&at, context.revision()?, &blob::Conditions::default()).await;
    let present = present.map_err(from_blob)?;
    // As recorded: the reader's own ETag is answered with 304, a date before which nothing changed with 412.
    let lasting = blob::Conditions { if_none_match: None, ..conditions.clone() };
    lasting.check_write(Some(present.record.present())).map_err(from_blob)?;
    if conditions.check_write(Some(present.record.present())).is_err() {
        return Err(ErrorCode::NotModified.into());
    }
    let conditions = blob::Conditions { lease_id: conditions.lease_id, ..blob::Conditions::default() };
    let found = context.service.find(&at, context.revision()?, &conditions).await.map_err(from_blob)?;
    let mut out = XML_DECLARATION.to_vec();
    put_tags(&mut out, &found.record.tags);
    Ok(Reply::xml(StatusCode::OK, out))
}

pub(crate) async fn write_tags<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let at = context.blob().await?;
    let document = body.read_up_to(TAGS_SIZE_BYTES_MAX).await?;
    let tags = read_document(&document.bytes)?;
    let conditions = check_together(tag_conditions(context.headers())?)?;
    context.service.set_tags(&at, context.revision()?, tags, conditions).await.map_err(from_blob)?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

pub(crate) async fn find_blobs(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let text = context.query("where").ok_or_else(|| ApiError::missing_parameter("where"))?;
    let refused = |why: String| {
        let facts = [
            ("QueryParameterName", "where".to_owned()),
            ("QueryParameterValue", text.to_owned()),
            ("Reason", why.clone()),
        ];
        ApiError::with_message(ErrorCode::InvalidQueryParameterValue, why).and_facts(facts)
    };
    let filter = TagFilter::parse(text, true).map_err(|error| match error {
        BlobError::InvalidTagFilter(why) => refused(why),
        other => from_blob(other),
    })?;
    if context.target.container().is_some() && filter.names().contains(&TagFilter::CONTAINER) {
        return Err(refused("Error parsing query: Cannot have container in both uri and query".to_owned()));
    }
    let container = match context.target.container() {
        Some(_) => Some(context.container().await?),
        None => None,
    };
    let max = super::lists::page_size(context, LIST_PAGE_MAX)?;
    let found = context.service.find_by_tags(
        context.request.account,
        container.as_deref(),
        &filter,
        context.query("marker"),
        max,
    );
    let (found, next) = found.await.map_err(from_blob)?;
    let mut out = XML_DECLARATION.to_vec();
    out.extend_from_slice(b"<EnumerationResults ServiceEndpoint=\"");
    crate::xml::put_xml_text(&mut out, &format!("{}/", context.request.base_address()));
    out.extend_from_slice(b"\">");
    put_xml_element(&mut out, "Where", text);
    put_xml_tag(&mut out, "<", "Blobs");
    for blob in found {
        put_xml_tag(&mut out, "<", "Blob");
        put_xml_element(&mut out, "Name", &blob.name);
        put_xml_element(&mut out, "ContainerName", &blob.container);
        put_tags(&mut out, &blob.tags);
        put_xml_tag(&mut out, "</", "Blob");
    }
    put_xml_tag(&mut out, "</", "Blobs");
    put_xml_element(&mut out, "NextMarker", next.as_deref().unwrap_or_default());
    put_xml_tag(&mut out, "</", "EnumerationResults");
    Ok(Reply::xml(StatusCode::OK, out))
}
