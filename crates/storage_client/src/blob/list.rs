//! Lists of blobs and of containers, page by page. A page may be empty and yet not be the last one.

use super::super::queue::message::ticks_of;
use super::container_client::ContainerClient;
use super::properties::BlobProperties;
use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::list_page::list_page;
use http_client::xml::Element;
use hyper::Method;
use percent_encoding::percent_decode_str;

/// Which blobs are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobQuery {
    /// What their names begin with.
    pub prefix: String,
    /// Names that go on after the prefix and have this are listed as one prefix up to it; empty for none.
    pub delimiter: String,
    /// With their metadata.
    pub with_metadata: bool,
    /// Entries of a page, at most; the service has 5,000 as its own bound.
    pub page_size_max: Option<u32>,
    /// Where to start: a former page's marker.
    pub marker: Option<String>,
}

/// A blob in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedBlob {
    /// Its name.
    pub name: String,
    /// Its properties.
    pub properties: BlobProperties,
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobPage {
    /// In the order of their names.
    pub blobs: Vec<ListedBlob>,
    /// Names up to the delimiter.
    pub prefixes: Vec<String>,
    /// For the next page; none at the end.
    pub marker: Option<String>,
}

/// Names of containers, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerPage {
    /// In the service's order.
    pub names: Vec<String>,
    /// For the next page; none at the end.
    pub marker: Option<String>,
}

impl ContainerClient {
    /// One page of its blobs.
    pub async fn list_page(&self, query: &BlobQuery) -> Result<BlobPage, Error> {
        let mut operation = self.operation("list blobs", Method::GET).query("comp", "list");
        if !query.delimiter.is_empty() {
            operation = operation.query("delimiter", &query.delimiter);
        }
        if query.with_metadata {
            operation = operation.query("include", "metadata");
        }
        if let Some(count) = query.page_size_max {
            operation = operation.query("maxresults", count.to_string());
        }
        let (root, marker) =
            list_page(&self.client, operation, &query.prefix, query.marker.as_deref()).await?;
        let entries = root.child("Blobs").map(|blobs| blobs.children.as_slice()).unwrap_or_default();
        let of = |kind: &'static str| entries.iter().filter(move |entry| entry.name == kind);
        Ok(BlobPage {
            blobs: of("Blob").map(listed_blob).collect(),
            prefixes: of("BlobPrefix").map(name).collect(),
            marker,
        })
    }

    /// All its blobs that match, at most `count_max`.
    pub async fn list(&self, query: &BlobQuery, count_max: usize) -> Result<Vec<ListedBlob>, Error> {
        let mut query = query.clone();
        let mut blobs = Vec::new();
        loop {
            let page = self.list_page(&query).await?;
            blobs.extend(page.blobs);
            if page.marker.is_none() || blobs.len() >= count_max {
                blobs.truncate(count_max);
                return Ok(blobs);
            }
            query.marker = page.marker;
        }
    }
}

/// One page of containers whose names begin with the prefix.
pub(crate) async fn container_page(
    client: &Client,
    prefix: &str,
    marker: Option<&str>,
) -> Result<ContainerPage, Error> {
    let operation =
        Operation::new("list containers", Service::Blob, Method::GET, "/".to_owned()).query("comp", "list");
    let (root, marker) = list_page(client, operation, prefix, marker).await?;
    let entries = root.child("Containers").map(|entries| entries.children.as_slice()).unwrap_or_default();
    Ok(ContainerPage { names: entries.iter().map(name).collect(), marker })
}

fn name(entry: &Element) -> String {
    match entry.child("Name") {
        Some(name) if name.is_encoded => percent_decode_str(&name.text).decode_utf8_lossy().into_owned(),
        Some(name) => name.text.clone(),
        None => String::new(),
    }
}

fn listed_blob(entry: &Element) -> ListedBlob {
    let none = Element::default();
    let properties = entry.child("Properties").unwrap_or(&none);
    let metadata = entry.child("Metadata").map(|metadata| metadata.children.as_slice()).unwrap_or_default();
    let etag = properties.text_of("Etag").trim();
    ListedBlob {
        name: name(entry),
        properties: BlobProperties {
            size_bytes: properties.text_of("Content-Length").trim().parse().unwrap_or_default(),
            // Conditions take it in quotes, lists show it without.
            etag: if etag.is_empty() || etag.starts_with('"') {
                etag.to_owned()
            } else {
                format!("\"{etag}\"")
            },
            modified_at: ticks_of(properties.text_of("Last-Modified")).unwrap_or_default(),
            kind: properties.text_of("BlobType").to_owned(),
            content_type: properties.text_of("Content-Type").to_owned(),
            content_encoding: properties.text_of("Content-Encoding").to_owned(),
            content_language: properties.text_of("Content-Language").to_owned(),
            content_disposition: properties.text_of("Content-Disposition").to_owned(),
            cache_control: properties.text_of("Cache-Control").to_owned(),
            content_md5: properties.text_of("Content-MD5").to_owned(),
            metadata: metadata.iter().map(|one| (one.name.to_lowercase(), one.text.clone())).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_client::xml::parse;

    #[test]
    fn a_listed_blob_is_read() {
        let document = "<Blob><Name Encoded=\"true\">a%01b</Name><Properties><Content-Length>5</Content-Length><Etag>0x1</Etag>\
            <BlobType>BlockBlob</BlobType><Last-Modified>Sat, 21 Nov 2026 09:00:00 GMT</Last-Modified></Properties>\
            <Metadata><K>v</K></Metadata></Blob>";
        let blob = listed_blob(&parse(document.as_bytes()).expect("a document"));
        assert_eq!(blob.name, "a\u{1}b");
        assert_eq!((blob.properties.size_bytes, blob.properties.etag.as_str()), (5, "\"0x1\""));
        assert_eq!(blob.properties.metadata.get("k").map(String::as_str), Some("v"));
    }
}
