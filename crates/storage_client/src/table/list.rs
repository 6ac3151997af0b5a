//! The tables of an account, page by page.

use super::json::read_table_names;
use super::table_client::table_operation;
use crate::client::Client;
use crate::error::Error;
use hyper::Method;

/// Names of tables, and where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePage {
    /// In the service's order; perhaps none.
    pub names: Vec<String>,
    /// For the next page; none at the end.
    pub continuation: Option<String>,
}

/// One page of tables whose names match the `$filter`.
pub(crate) async fn table_page(
    client: &Client,
    filter: Option<&str>,
    from: Option<&str>,
) -> Result<TablePage, Error> {
    let mut operation = table_operation("list tables", Method::GET, "/Tables".to_owned());
    if let Some(filter) = filter {
        operation = operation.query("$filter", filter);
    }
    if let Some(from) = from {
        operation = operation.query("NextTableName", from);
    }
    let answer = client.send(&operation).await?;
    let names = read_table_names(&answer.body).map_err(|why| Error::unreadable(operation.name, why))?;
    let next = answer.header("x-ms-continuation-nexttablename");
    if !next.is_empty() && from == Some(next) {
        return Err(Error::unreadable(operation.name, "the page continues where it began"));
    }
    Ok(TablePage { names, continuation: (!next.is_empty()).then(|| next.to_owned()) })
}
