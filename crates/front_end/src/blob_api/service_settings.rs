//! The Blob service's settings: those of all services, and its own: default version, retention, website.

use super::blob_request::BlobRequest;
use super::errors::from_blob;
use super::headers::reply_headers::put;
use crate::error::ApiError;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use crate::request::protocol_version::is_version;
use crate::shared_operations::service_settings;
use crate::shared_operations::service_settings::{DAYS_MISSING_REASON, RETENTION_REASON};
use crate::xml::{MALFORMED, MalformedXml, XmlElement, parse_xml, put_xml_element, put_xml_tag};
use blob::{BlobSettings, BlobSettingsUpdate};
use hyper::StatusCode;

/// Bytes of a document with settings at most.
const SETTINGS_SIZE_BYTES_MAX: usize = 64 << 10;

/// Roots that only this service has.
const OWN_ROOTS: [&str; 3] = ["DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"];

/// Index, error and default index document of a website.
const WEBSITE_DOCUMENTS: [&str; 3] = ["IndexDocument", "ErrorDocument404Path", "DefaultIndexDocumentPath"];

/// What kind of account this is said to be.
pub(crate) fn account_information() -> Reply {
    let mut reply = Reply::new(StatusCode::OK);
    put(&mut reply, "x-ms-sku-name", "Standard_LRS");
    put(&mut reply, "x-ms-account-kind", "StorageV2");
    put(&mut reply, "x-ms-is-hns-enabled", "false");
    reply
}

pub(crate) async fn read_properties(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let account = context.request.account;
    let common = context.service.service_properties(account).await.map_err(from_blob)?;
    let own = context.service.settings(account).await.map_err(from_blob)?;
    let mut out = service_settings::write(&common);
    // The root's end tag is written last.
    out.truncate(out.len() - "</StorageServiceProperties>".len());
    if let Some(version) = &common.default_service_version {
        put_xml_element(&mut out, "DefaultServiceVersion", version);
    }
    let text_of = |value: bool| if value { "true" } else { "false" };
    put_xml_tag(&mut out, "<", "DeleteRetentionPolicy");
    put_xml_element(&mut out, "Enabled", text_of(own.retention_days.is_some()));
    if let Some(days) = own.retention_days {
        put_xml_element(&mut out, "Days", &days.to_string());
    }
    put_xml_element(&mut out, "AllowPermanentDelete", text_of(own.allow_permanent_delete));
    put_xml_tag(&mut out, "</", "DeleteRetentionPolicy");
    put_xml_tag(&mut out, "<", "StaticWebsite");
    put_xml_element(&mut out, "Enabled", text_of(own.website_enabled));
    let documents = [&own.index_document, &own.error_document, &own.default_index_document];
    for (name, document) in WEBSITE_DOCUMENTS.into_iter().zip(documents) {
        if let Some(document) = document {
            put_xml_element(&mut out, name, document);
        }
    }
    put_xml_tag(&mut out, "</", "StaticWebsite");
    put_xml_tag(&mut out, "</", "StorageServiceProperties");
    Ok(Reply::xml(StatusCode::OK, out))
}

fn flag(element: &XmlElement, name: &str) -> Result<Option<bool>, ApiError> {
    match element.child_text(name) {
        Some("true" | "True" | "1") => Ok(Some(true)),
        Some("false" | "False" | "0") => Ok(Some(false)),
        Some(text) => Err(ApiError::invalid_node(name, text, "It must be true or false.")),
        None => Ok(None),
    }
}

fn read_own(document: &[u8], root: &XmlElement) -> Result<BlobSettingsUpdate, ApiError> {
    let malformed = |at| ApiError::invalid_document(document, at, MALFORMED);
    // What each of the service's own settings has to say.
    let enabled = |element: &XmlElement| flag(element, "Enabled")?.ok_or_else(|| malformed(element.end));
    let mut update = BlobSettingsUpdate::default();
    if let Some(retention) = root.child("DeleteRetentionPolicy") {
        let days = match enabled(retention)? {
            false => None,
            true => {
                let missing = || ApiError::invalid_document(document, retention.end, DAYS_MISSING_REASON);
                let days = retention.child("Days").ok_or_else(missing)?;
                let number = days.text.parse();
                let invalid = |_| ApiError::invalid_document(document, days.end, RETENTION_REASON);
                Some(number.map_err(invalid)?)
            }
        };
        update.retention = Some((days, flag(retention, "AllowPermanentDelete")?.unwrap_or(false)));
    }
    if let Some(website) = root.child("StaticWebsite") {
        let website_enabled = enabled(website)?;
        let [index_document, error_document, default_index_document] =
            WEBSITE_DOCUMENTS.map(|name| website.child_text(name).map(str::to_owned));
        let own = [&index_document, &error_document, &default_index_document];
        // A website that is switched off has no documents.
        if !website_enabled && own.into_iter().flatten().any(|document| !document.is_empty()) {
            let reason = "A static website that is not enabled has no documents.";
            return Err(ApiError::invalid_document(document, website.end, reason));
        }
        update.website = Some(BlobSettings {
            website_enabled,
            index_document,
            error_document,
            default_index_document,
            ..BlobSettings::default()
        });
    }
    Ok(update)
}

pub(crate) async fn write_properties<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let document = body.read_up_to(SETTINGS_SIZE_BYTES_MAX).await?;
    let mut common = service_settings::read(&document.bytes, &OWN_ROOTS)?;
    let malformed = |error: MalformedXml| ApiError::invalid_document(&document.bytes, error.at, MALFORMED);
    let root = parse_xml(&document.bytes).map_err(malformed)?;
    common.default_service_version = match root.child_text("DefaultServiceVersion") {
        Some(version) if !is_version(version.as_bytes()) => {
            return Err(ApiError::invalid_node("DefaultServiceVersion", version, "It is no version."));
        }
        version => version.map(str::to_owned),
    };
    let own = read_own(&document.bytes, &root)?;
    let account = context.request.account;
    let result = context.service.set_settings(account, common, own).await;
    context.request.environment.cors.forget(account);
    result.map_err(from_blob)?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}
