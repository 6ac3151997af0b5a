//! Listings of containers and blobs, in XML.

use super::blob_request::BlobRequest;
use super::containers::{default_scope, public_access_text};
use super::errors::{from_blob, from_container};
use super::headers::reply_headers::{
    http_date, lease_duration, lease_status, smart_tier, snapshot_text, without_signature,
};
use crate::error::ApiError;
use crate::reply::Reply;
use crate::simulate::ListedPage;
use crate::xml::{XML_DECLARATION, put_xml_element, put_xml_tag, put_xml_text};
use base::Ticks;
use blob::limits::LIST_PAGE_MAX;
use blob::{
    BlobRecord, BlobType, Lease, ListEntry, ListQuery, Pairs, Revision, etag_text, with_forward_slashes,
};
use hyper::StatusCode;

/// Things that a listing of containers may include.
const INCLUDES_OF_CONTAINERS: [&str; 3] = ["metadata", "deleted", "system"];

/// Things that a listing of blobs may include.
const INCLUDES: [&str; 11] = [
    "snapshots",
    "metadata",
    "uncommittedblobs",
    "copy",
    "deleted",
    "tags",
    "versions",
    "deletedwithversions",
    "immutabilitypolicy",
    "legalhold",
    "permissions",
];

/// Entries of a page: the requested count, but no more than `most`.
pub(crate) fn page_size(context: &BlobRequest<'_>, most: usize) -> Result<usize, ApiError> {
    let Some(text) = context.query("maxresults") else { return Ok(most) };
    match text.parse::<i64>() {
        Ok(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(most).min(most)),
        Ok(_) => Err(ApiError::out_of_range_parameter("maxresults", text, &(1..=i64::from(i32::MAX)))),
        Err(_) => Err(ApiError::invalid_parameter("maxresults", text, "It is not a number.")),
    }
}

/// Entries that a page of `max` has if pages end early on purpose.
fn simulated_page_size(context: &BlobRequest<'_>, max: usize) -> usize {
    context.request.environment.simulated.map_or(max, |simulated| simulated.list_page(max))
}

/// The answer of a list, marked if its page ended early on purpose.
fn list_reply(context: &BlobRequest<'_>, out: Vec<u8>, listed: ListedPage) -> Reply {
    let mut reply = Reply::xml(StatusCode::OK, out);
    if let Some(simulated) = context.request.environment.simulated {
        simulated.note_list_end(&mut reply, listed);
    }
    reply
}

/// Begins the answer of a list that has pages of `max` entries.
fn open_results(context: &BlobRequest<'_>, container: Option<&str>, max: usize) -> Vec<u8> {
    let mut out = XML_DECLARATION.to_vec();
    out.extend_from_slice(b"<EnumerationResults ServiceEndpoint=\"");
    put_attribute(&mut out, &format!("{}/", context.request.base_address()));
    if let Some(container) = container {
        out.extend_from_slice(b"\" ContainerName=\"");
        put_attribute(&mut out, container);
    }
    out.extend_from_slice(b"\">");
    let parameters = [
        ("Prefix", "prefix"),
        ("Marker", "marker"),
        ("MaxResults", "maxresults"),
        ("Delimiter", "delimiter"),
    ];
    for (element, parameter) in parameters {
        match context.query(parameter) {
            None => {}
            Some(_) if parameter == "maxresults" => put_xml_element(&mut out, element, &max.to_string()),
            Some(value) => put_xml_element(&mut out, element, value),
        }
    }
    out
}

fn put_attribute(out: &mut Vec<u8>, text: &str) {
    put_xml_text(out, &text.replace('"', ""));
}

fn put_pairs(out: &mut Vec<u8>, metadata: &Pairs) {
    put_xml_tag(out, "<", "Metadata");
    for (name, value) in metadata {
        put_xml_element(out, name, value);
    }
    put_xml_tag(out, "</", "Metadata");
}

fn put_lease(out: &mut Vec<u8>, lease: &Lease, now: Ticks) {
    let state = lease.state(now);
    put_xml_element(out, "LeaseStatus", lease_status(state));
    put_xml_element(out, "LeaseState", state.as_str());
    if let Some(is_infinite) = lease.is_infinite(now) {
        put_xml_element(out, "LeaseDuration", lease_duration(is_infinite));
    }
}

pub(crate) async fn list_containers(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let max = page_size(context, LIST_PAGE_MAX)?;
    let prefix = context.query("prefix").unwrap_or_default();
    context.request.includes(&INCLUDES_OF_CONTAINERS)?;
    let with_metadata = includes(context, "metadata");
    let with_system = includes(context, "system");
    let (account, marker) = (context.request.account, context.query("marker"));
    let page_max = simulated_page_size(context, max);
    let page = context.service.list_containers(account, prefix, marker, page_max, with_system);
    let (rows, next) = page.await.map_err(from_container)?;
    let (count, has_next) = (rows.len(), next.is_some());
    context.request.environment.operation.note_rows(None, count as u64, count as u64);
    let listed = ListedPage { requested_max: max, count_max: page_max, count, has_next };
    let mut out = open_results(context, None, max);
    put_xml_tag(&mut out, "<", "Containers");
    for row in rows {
        put_xml_tag(&mut out, "<", "Container");
        put_xml_element(&mut out, "Name", &row.name);
        put_xml_tag(&mut out, "<", "Properties");
        put_xml_element(&mut out, "Last-Modified", &http_date(row.modified_at));
        put_xml_element(&mut out, "Etag", &format!("\"{}\"", etag_text(row.etag)));
        let now = context.service.container_now(account, &row.name).map_err(from_container)?;
        put_lease(&mut out, &row.lease, now);
        if let Some(access) = public_access_text(row.public_access) {
            put_xml_element(&mut out, "PublicAccess", access);
        }
        put_xml_element(&mut out, "HasImmutabilityPolicy", "false");
        put_xml_element(&mut out, "HasLegalHold", "false");
        put_xml_element(&mut out, "ImmutableStorageWithVersioningEnabled", "false");
        put_xml_element(&mut out, "DefaultEncryptionScope", default_scope(&row.encryption));
        let denies = if row.encryption.denies_override { "true" } else { "false" };
        put_xml_element(&mut out, "DenyEncryptionScopeOverride", denies);
        put_xml_tag(&mut out, "</", "Properties");
        if with_metadata {
            put_pairs(&mut out, &row.metadata);
        }
        put_xml_tag(&mut out, "</", "Container");
    }
    put_xml_tag(&mut out, "</", "Containers");
    put_xml_element(&mut out, "NextMarker", next.as_deref().unwrap_or_default());
    put_xml_tag(&mut out, "</", "EnumerationResults");
    Ok(list_reply(context, out, listed))
}

/// What a listing shows of a blob besides the usual.
#[derive(Clone, Copy)]
struct Shown {
    metadata: bool,
    tags: bool,
    copy: bool,
}

/// Whether a listing has to include something, in any case.
pub(crate) fn includes(context: &BlobRequest<'_>, what: &str) -> bool {
    context.request.query.list("include").any(|part| part.eq_ignore_ascii_case(what))
}

/// Whether it has to include what a public container does not show by itself: blobs that were never
/// committed, and deleted ones.
pub(crate) fn includes_hidden(context: &BlobRequest<'_>) -> bool {
    ["uncommittedblobs", "deleted", "deletedwithversions"].iter().any(|what| includes(context, what))
}

pub(crate) async fn list_blobs(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    context.request.includes(&INCLUDES)?;
    let has = |name: &str| includes(context, name);
    let shown = Shown { metadata: has("metadata"), tags: has("tags"), copy: has("copy") };
    let container = context.container().await?;
    let name = |parameter| context.query(parameter).map(|text| with_forward_slashes(text.to_owned()));
    let max = page_size(context, LIST_PAGE_MAX)?;
    let page_max = simulated_page_size(context, max);
    let query = ListQuery {
        prefix: name("prefix").unwrap_or_default(),
        delimiter: context.query("delimiter").map(str::to_owned),
        marker: context.query("marker").map(str::to_owned),
        max: page_max,
        snapshots: has("snapshots"),
        uncommitted: has("uncommittedblobs"),
        deleted: has("deleted"),
        versions: has("versions"),
        deleted_with_versions: has("deletedwithversions"),
        start_from: name("startFrom"),
        end_before: name("endBefore"),
    };
    let shows_versions = query.versions || query.deleted_with_versions;
    let page =
        context.service.list_blobs(context.request.account, &container, query).await.map_err(from_blob)?;
    let mut out = open_results(context, Some(&container.name), max);
    put_xml_tag(&mut out, "<", "Blobs");
    for entry in &page.entries {
        match entry {
            ListEntry::Prefix(prefix) => {
                put_xml_tag(&mut out, "<", "BlobPrefix");
                put_name(&mut out, prefix);
                put_xml_tag(&mut out, "</", "BlobPrefix");
            }
            ListEntry::Blob { name, revision, has_versions_only, record, lease, now } => {
                put_xml_tag(&mut out, "<", "Blob");
                put_name(&mut out, name);
                if record.as_ref().is_some_and(|record| record.deleted.is_some()) {
                    put_xml_element(&mut out, "Deleted", "true");
                }
                if let Revision::Snapshot(snapshot) = revision {
                    put_xml_element(&mut out, "Snapshot", &snapshot_text(*snapshot));
                }
                if let Some(version) = record.as_ref().and_then(|record| record.version.id)
                    && (shows_versions || *revision == Revision::Current)
                {
                    put_xml_element(&mut out, "VersionId", &snapshot_text(version));
                    if *revision == Revision::Current {
                        put_xml_element(&mut out, "IsCurrentVersion", "true");
                    }
                }
                if *has_versions_only {
                    put_xml_element(&mut out, "HasVersionsOnly", "true");
                }
                put_xml_tag(&mut out, "<", "Properties");
                match record {
                    Some(record) => put_record(&mut out, record, shown, *now),
                    None => {
                        put_xml_element(&mut out, "Content-Length", "0");
                        put_xml_element(&mut out, "BlobType", "BlockBlob");
                        // As recorded: the tier it will have unless its commit names another.
                        put_xml_element(&mut out, "AccessTier", "Hot");
                        put_xml_element(&mut out, "AccessTierInferred", "true");
                    }
                }
                if *revision == Revision::Current {
                    put_lease(&mut out, lease, *now);
                }
                put_xml_element(&mut out, "ServerEncrypted", if record.is_some() { "true" } else { "false" });
                put_xml_tag(&mut out, "</", "Properties");
                if let Some(record) = record {
                    if shown.metadata {
                        put_pairs(&mut out, &record.metadata);
                    }
                    if shown.tags && !record.tags.is_empty() {
                        super::tags::put_tags(&mut out, &record.tags);
                    }
                }
                put_xml_element(&mut out, "OrMetadata", "");
                put_xml_tag(&mut out, "</", "Blob");
            }
        }
    }
    put_xml_tag(&mut out, "</", "Blobs");
    put_xml_element(&mut out, "NextMarker", page.marker.as_deref().unwrap_or_default());
    put_xml_tag(&mut out, "</", "EnumerationResults");
    let (count, has_next) = (page.entries.len(), page.marker.is_some());
    context.request.environment.operation.note_rows(None, count as u64, count as u64);
    Ok(list_reply(context, out, ListedPage { requested_max: max, count_max: page_max, count, has_next }))
}

/// A name; one that XML can't hold is percent-encoded and marked so.
fn put_name(out: &mut Vec<u8>, name: &str) {
    let fits = |char: char| !matches!(char, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if name.chars().all(fits) {
        return put_xml_element(out, "Name", name);
    }
    out.extend_from_slice(b"<Name Encoded=\"true\">");
    let encoded = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string();
    put_xml_text(out, &encoded);
    put_xml_tag(out, "</", "Name");
}

fn put_record(out: &mut Vec<u8>, record: &BlobRecord, shown: Shown, now: Ticks) {
    put_xml_element(out, "Creation-Time", &http_date(record.version.created_at));
    put_xml_element(out, "Last-Modified", &http_date(record.version.modified_at));
    put_xml_element(out, "Etag", &etag_text(record.version.etag));
    put_xml_element(out, "Content-Length", &record.size.to_string());
    let properties = &record.properties;
    let texts = [
        ("Content-Type", &properties.content_type),
        ("Content-Encoding", &properties.content_encoding),
        ("Content-Language", &properties.content_language),
        ("Content-CRC64", &None),
        ("Content-MD5", &properties.content_md5),
        ("Cache-Control", &properties.cache_control),
        ("Content-Disposition", &properties.content_disposition),
    ];
    for (name, text) in texts {
        put_xml_element(out, name, text.as_deref().unwrap_or_default());
    }
    if record.blob_type == BlobType::Page {
        put_xml_element(out, "x-ms-blob-sequence-number", &record.by_type.sequence_number.to_string());
    }
    put_xml_element(out, "BlobType", record.blob_type.as_str());
    if let Some(tier) = &record.tier.name {
        put_xml_element(out, "AccessTier", tier);
        if let Some(now_in) = smart_tier(tier) {
            put_xml_element(out, "SmartAccessTier", now_in);
        }
        if record.tier.inferred {
            put_xml_element(out, "AccessTierInferred", "true");
        }
        if let Some(at) = record.tier.changed_at {
            put_xml_element(out, "AccessTierChangeTime", &http_date(at));
        }
        if let Some(status) = &record.tier.archive_status {
            put_xml_element(out, "ArchiveStatus", status);
        }
        if let Some(priority) = &record.tier.rehydrate_priority {
            put_xml_element(out, "RehydratePriority", priority);
        }
    }
    if let Some(hash) = &record.encryption.key_sha256 {
        put_xml_element(out, "CustomerProvidedKeySha256", hash);
    }
    if let Some(scope) = &record.encryption.scope {
        put_xml_element(out, "EncryptionScope", scope);
    }
    if record.by_type.sealed {
        put_xml_element(out, "Sealed", "true");
    }
    if !record.tags.is_empty() {
        put_xml_element(out, "TagCount", &record.tags.len().to_string());
    }
    if shown.copy
        && let Some(copy) = &record.copy
    {
        put_xml_element(out, "CopyId", &copy.id);
        put_xml_element(out, "CopySource", &without_signature(&copy.source));
        put_xml_element(out, "CopyStatus", &copy.status);
        put_xml_element(out, "CopyProgress", &format!("{}/{}", copy.done, copy.total));
        if let Some(at) = copy.completed_at {
            put_xml_element(out, "CopyCompletionTime", &http_date(at));
        }
    }
    if let Some(deleted) = record.deleted {
        put_xml_element(out, "DeletedTime", &http_date(deleted.at));
        let days = deleted.days_left(now).unwrap_or(0);
        put_xml_element(out, "RemainingRetentionDays", &days.to_string());
    }
}
