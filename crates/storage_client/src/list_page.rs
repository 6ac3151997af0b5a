//! One page of a list in XML, of queues, containers or blobs.
//!
//! What always holds: a page is not requested twice in a row, which a service that repeats its marker would
//! make endless.

use crate::client::{Client, Operation};
use crate::error::Error;
use http_client::xml::{Element, parse};

/// The document of a page, and the marker of the next one; none at the end.
pub(crate) async fn list_page(
    client: &Client,
    mut operation: Operation,
    prefix: &str,
    marker: Option<&str>,
) -> Result<(Element, Option<String>), Error> {
    if !prefix.is_empty() {
        operation = operation.query("prefix", prefix);
    }
    if let Some(marker) = marker {
        operation = operation.query("marker", marker);
    }
    let answer = client.send(&operation).await?;
    let root = parse(&answer.body).map_err(|why| Error::unreadable(operation.name, why))?;
    let next = root.text_of("NextMarker").trim();
    if !next.is_empty() && marker == Some(next) {
        return Err(Error::unreadable(operation.name, "the page continues where it began"));
    }
    let next = (!next.is_empty()).then(|| next.to_owned());
    Ok((root, next))
}
