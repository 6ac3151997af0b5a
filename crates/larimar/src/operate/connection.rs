//! One request to the admin side of a server, and its answer.
//!
//! What always holds: time and bytes are bounded; a token goes out in the clear to this machine only.

use super::request::Request;
use crate::arguments::admin_arguments::AdminConnectionArguments;
use crate::bounded_file::read_bounded;
use crate::configuration::is_loopback;
use base::connector::SystemConnector;
use base::{Connector, Socket};
use http_body_util::{BodyExt, Full, Limited};
use hyper::Uri;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use storage_client::{Tls, TlsRoots};

/// Bytes of an answer at most.
const ANSWER_SIZE_BYTES_MAX: usize = 64 << 20;
/// How long a connection may take.
const CONNECT_FOR_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take: longer than the server has a client wait.
const ANSWER_FOR_MAX: Duration = Duration::from_secs(90);
/// Bytes of a file with certificates at most.
const CA_SIZE_BYTES_MAX: usize = 1 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("--endpoint {0}: give http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    #[error("--endpoint {0}: a token goes in the clear to this machine only; use https")]
    InTheClear(String),
    #[error("--ca: {0}")]
    Ca(String),
    #[error("{endpoint} can't be reached: {error}; is the server running, and is its admin side there?")]
    Connect { endpoint: String, error: String },
    #[error("{endpoint} gave no answer: {error}")]
    Answer { endpoint: String, error: String },
}

/// Where a request goes.
struct Place {
    host: String,
    authority: String,
    port: u16,
    is_encrypted: bool,
}

/// Sends the request and gives status and body of the answer.
pub(super) async fn send(
    connection: &AdminConnectionArguments,
    token: &str,
    request: &Request,
) -> Result<(u16, Value), ConnectionError> {
    let endpoint = connection.endpoint.clone();
    let place = place_of(&endpoint)?;
    let connect = |error: String| ConnectionError::Connect { endpoint: endpoint.clone(), error };
    let socket = match tokio::time::timeout(CONNECT_FOR_MAX, connected(connection, &place)).await {
        Ok(socket) => socket.map_err(|error| match error {
            Reach::Ca(error) => ConnectionError::Ca(error),
            Reach::Network(error) => connect(error.to_string()),
        })?,
        Err(_) => return Err(connect("it takes too long".to_owned())),
    };
    let answer = |error: String| ConnectionError::Answer { endpoint: endpoint.clone(), error };
    match tokio::time::timeout(ANSWER_FOR_MAX, exchange(socket, &place, token, request)).await {
        Ok(answered) => answered.map_err(answer),
        Err(_) => Err(answer("it takes too long".to_owned())),
    }
}

fn place_of(endpoint: &str) -> Result<Place, ConnectionError> {
    let wrong = || ConnectionError::Endpoint(endpoint.to_owned());
    let uri: Uri = endpoint.parse().map_err(|_| wrong())?;
    let (Some(scheme), Some(host), Some(port)) = (uri.scheme_str(), uri.host(), uri.port_u16()) else {
        return Err(wrong());
    };
    let is_encrypted = match scheme {
        "http" => false,
        "https" => true,
        _ => return Err(wrong()),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_here = bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(is_loopback);
    if !is_encrypted && !is_here {
        return Err(ConnectionError::InTheClear(endpoint.to_owned()));
    }
    Ok(Place { host: bare, authority: format!("{host}:{port}"), port, is_encrypted })
}

/// Why there is no connection.
enum Reach {
    Ca(String),
    Network(std::io::Error),
}

async fn connected(connection: &AdminConnectionArguments, place: &Place) -> Result<Box<dyn Socket>, Reach> {
    let socket = SystemConnector.connect(&place.host, place.port).await.map_err(Reach::Network)?;
    if !place.is_encrypted {
        return Ok(socket);
    }
    let roots = match &connection.ca {
        None => TlsRoots::System,
        Some(path) => {
            let read = read_bounded(path, CA_SIZE_BYTES_MAX);
            TlsRoots::Pem(read.map_err(|error| Reach::Ca(format!("{}: {error}", path.display())))?)
        }
    };
    let tls = Tls::new(&roots).map_err(Reach::Ca)?;
    tls.shake(&place.host, socket).await.map_err(Reach::Network)
}

async fn exchange(
    socket: Box<dyn Socket>,
    place: &Place,
    token: &str,
    request: &Request,
) -> Result<(u16, Value), String> {
    let body = request.body.as_ref().map_or_else(String::new, Value::to_string);
    let message = hyper::Request::builder()
        .method(request.method)
        .uri(&request.path)
        .header(HOST, &place.authority)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(socket)).await.map_err(|error| error.to_string())?;
    let answered = async {
        let answer = sender.send_request(message).await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_SIZE_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        let answer = serde_json::from_slice(&body);
        // An answer of another server is none of JSON.
        let answer = answer.map_err(|_| format!("status {status}, and no answer of an admin side"))?;
        Ok((status, answer))
    };
    // The connection ends with the answer.
    let (answered, _) = tokio::join!(answered, connection);
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_in_the_clear_to_this_machine_only() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:10010", Ok(("127.0.0.1", 10010))),
            ("http://localhost:7", Ok(("localhost", 7))),
            ("http://[::1]:7", Ok(("::1", 7))),
            ("https://db1.example:7", Ok(("db1.example", 7))),
            ("http://db1.example:7", Err("in the clear")),
            ("http://192.168.0.1:7", Err("in the clear")),
            ("http://127.0.0.1", Err("give http://HOST:PORT")),
            ("ftp://127.0.0.1:7", Err("give http://HOST:PORT")),
            ("127.0.0.1:7", Err("give http://HOST:PORT")),
            ("", Err("give http://HOST:PORT")),
        ] {
            match (place_of(endpoint), expected) {
                (Ok(place), Ok(expected)) => assert_eq!((place.host.as_str(), place.port), expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (Ok(place), Err(_)) => panic!("{endpoint} is {}", place.authority),
                (Err(error), Ok(_)) => panic!("{endpoint}: {error}"),
            }
        }
    }
}
