//! Credentials that a platform of containers gives over HTTP.
//!
//! What always holds: the token goes to an address over TLS, or to one on this machine or its platform.

use crate::credentials::Found;
use crate::credentials::json_document::read_document;
use crate::credentials::search::Search;
use crate::exchange::hidden;
use bytes::Bytes;
use http_client::Endpoint;
use hyper::Method;
use hyper::header::AUTHORIZATION;

const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
/// What a relative address is of.
const HOST: &str = "http://169.254.170.2";
/// Hosts that are reached without TLS.
const NEAR: [&str; 6] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23", "127.0.0.1", "::1", "localhost"];

/// Those of the container; none if no variable names an address.
pub(crate) async fn from_container(search: &Search) -> Result<Option<Found>, String> {
    let surroundings = &search.surroundings;
    let url = match (surroundings.variable(RELATIVE), surroundings.variable(FULL)) {
        (Some(relative), _) => format!("{HOST}{relative}"),
        (None, Some(full)) => full.to_owned(),
        (None, None) => return Ok(None),
    };
    check_address(&url).map_err(|why| format!("the address of the container's credentials: {why}"))?;
    let token = match surroundings.variable(TOKEN_FILE) {
        Some(file) => {
            let token = surroundings.read_file(file).await;
            let token = token.map_err(|error| format!("the token file {file}: {error}"))?;
            Some(String::from_utf8_lossy(&token).trim().to_owned())
        }
        None => surroundings.variable(TOKEN).map(str::to_owned),
    };
    let header = token.map(|token| hidden(&token).ok_or("the container's token can't be in a header"));
    let headers = header.transpose()?.map(|value| (AUTHORIZATION, value)).into_iter().collect();
    let fetched = search.fetch(&search.near(), &url, Method::GET, headers, Bytes::new()).await;
    let body = fetched.map_err(|error| format!("the container gives no credentials: {}", error.shown()))?;
    read_document(&body).map(Some).map_err(|why| format!("what the container gives can't be read: {why}"))
}

fn check_address(url: &str) -> Result<(), String> {
    let path = url.split_once('?').map_or(url, |(path, _)| path);
    let origin = Endpoint::parse(path)?.origin;
    if origin.is_tls || NEAR.contains(&origin.host.as_str()) {
        Ok(())
    } else {
        Err("it is far away, and not over TLS".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_near_or_over_tls() {
        for url in
            ["http://169.254.170.2/v2/x?a=b", "http://127.0.0.1:1/x", "http://[::1]/x", "https://far.test/x"]
        {
            assert_eq!(check_address(url), Ok(()), "{url}");
        }
        for url in ["http://far.test/x", "ftp://127.0.0.1", "http://169.254.170.2.far.test/"] {
            assert!(check_address(url).is_err(), "{url}");
        }
    }
}
