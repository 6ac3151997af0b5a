//! The queues of an account, page by page.

use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::list_page::list_page;
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
    let operation =
        Operation::new("list queues", Service::Queue, Method::GET, "/".to_owned()).query("comp", "list");
    let (root, marker) = list_page(client, operation, prefix, marker).await?;
    let queues = root.child("Queues").map(|queues| queues.children.as_slice()).unwrap_or_default();
    Ok(QueuePage { names: queues.iter().map(|queue| queue.text_of("Name").to_owned()).collect(), marker })
}
