//! The queues of an account, page by page.

use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::wire::xml::parse;
use hyper::Method;

/// Names of queues, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePage {
    /// In the service's order; perhaps none.
    pub names: Vec<String>,
    /// For the next page; none at the end.
    pub marker: Option<String>,
}

/// One page of queues whose names begin with the prefix.
pub(crate) async fn queue_page(
    client: &Client,
    prefix: &str,
    marker: Option<&str>,
) -> Result<QueuePage, Error> {
    let mut operation =
        Operation::new("list queues", Service::Queue, Method::GET, "/".to_owned()).query("comp", "list");
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
    let queues = root.child("Queues").map(|queues| queues.children.as_slice()).unwrap_or_default();
    Ok(QueuePage {
        names: queues.iter().map(|queue| queue.text_of("Name").to_owned()).collect(),
        marker: (!next.is_empty()).then(|| next.to_owned()),
    })
}
