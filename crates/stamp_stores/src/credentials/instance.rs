//! Credentials of the machine, from its own metadata service, version 2.

use crate::credentials::Found;
use crate::credentials::json_document::read_document;
use crate::credentials::search::Search;
use crate::exchange::hidden;
use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};

const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";
const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const HOST: &str = "http://169.254.169.254";
const ROLES: &str = "latest/meta-data/iam/security-credentials";
const TOKEN: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token");
const TOKEN_TTL: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
/// How long the service takes a token, in seconds: it is used at once.
const TOKEN_TTL_S: &str = "60";
/// What is wrong if there are none at all.
const NOWHERE: &str = "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, a web identity or a role of the machine";

/// Those of the machine.
pub(crate) async fn from_instance(search: &Search) -> Result<Found, String> {
    if search.surroundings.variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Err(NOWHERE.to_owned());
    }
    let host = search.surroundings.variable(ENDPOINT).unwrap_or(HOST).trim_end_matches('/');
    let dialer = search.near();
    let ttl = vec![(TOKEN_TTL, HeaderValue::from_static(TOKEN_TTL_S))];
    let token =
        search.fetch(&dialer, &format!("{host}/latest/api/token"), Method::PUT, ttl, Bytes::new()).await;
    let token = token.map_err(|error| format!("{NOWHERE} (its service: {})", error.shown()))?;
    let token = std::str::from_utf8(&token).ok().and_then(|token| hidden(token.trim()));
    let token = token.ok_or("the machine's service gives a token that can't be in a header")?;
    let header = || vec![(TOKEN, token.clone())];
    let roles = search.fetch(&dialer, &format!("{host}/{ROLES}/"), Method::GET, header(), Bytes::new()).await;
    let roles = roles.map_err(|error| format!("the machine has no role: {}", error.shown()))?;
    let roles = String::from_utf8_lossy(&roles).into_owned();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "+=,.@-_".contains(letter);
    let role = roles.lines().next().unwrap_or_default().trim();
    if role.is_empty() || !role.chars().all(is_letter) {
        return Err("the machine has no role".to_owned());
    }
    let url = format!("{host}/{ROLES}/{role}");
    let document = search.fetch(&dialer, &url, Method::GET, header(), Bytes::new()).await;
    let document =
        document.map_err(|error| format!("the role {role} gives no credentials: {}", error.shown()))?;
    read_document(&document).map_err(|why| format!("what the role {role} gives can't be read: {why}"))
}
