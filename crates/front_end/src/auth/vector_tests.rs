//! Worked signatures: every example of the protocol pack, and whole requests as official clients sent them.

use super::delegation::{BoundRequest, write_delegation_string};
use super::sas::{SasService, SasToken};
use super::shared_key::{HeaderOrder, SharedKeyScheme, SignedRequest, SignedService, write_string_to_sign};
use super::signature::SigningKey;
use super::{Credentials, SharedKeyRequest, credentials, verify_shared_key};
use crate::accounts::Account;
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

const SHARED_KEY: &str = include_str!("../../tests/vectors/shared-key.json");
const SAS: &str = include_str!("../../tests/vectors/sas.json");
const CLIENT_REQUESTS: &str = include_str!("../../tests/vectors/client-requests.json");

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("vectors are JSON")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} of {value}"))
}

fn headers(value: &Value) -> HeaderMap {
    let mut map = HeaderMap::new();
    for pair in value["headers"].as_array().expect("headers") {
        let name: HeaderName = pair[0].as_str().expect("name").parse().expect("name");
        let value = HeaderValue::from_bytes(pair[1].as_str().expect("value").as_bytes()).expect("value");
        map.append(name, value);
    }
    map
}

fn key(vectors: &Value, account: &str) -> SigningKey {
    let key = STANDARD.decode(text(&vectors["accounts"], account)).expect("Base64");
    SigningKey::new(&key)
}

fn sent_at(headers: &HeaderMap) -> Ticks {
    let date = std::str::from_utf8(super::shared_key::table_date(headers)).expect("text");
    let at = httpdate::parse_http_date(date).expect("date");
    Ticks::from_unix(at.duration_since(std::time::UNIX_EPOCH).expect("after 1970"))
}

/// A worked signature.
struct SignatureExample<'a> {
    id: &'a str,
    service: SignedService,
    account: &'a str,
    method: &'a str,
    url: &'a Uri,
    headers: &'a HeaderMap,
    scheme: SharedKeyScheme,
    string_to_sign: &'a str,
    signature: &'a str,
}

/// All strings that this request may sign; the right one must be among them and give the signature.
fn check(worked: &SignatureExample<'_>, key: &SigningKey) {
    let SignatureExample { id, service, account, method, url, headers, scheme, string_to_sign, signature } =
        *worked;
    let label = match service {
        SignedService::Table => "table",
        SignedService::BlobOrQueue if url.host().is_some_and(|host| host.contains(".queue.")) => "queue",
        SignedService::BlobOrQueue => "blob",
    };
    let host = url.host().unwrap_or("127.0.0.1");
    let address = Address::parse(host, url.path(), label);
    assert_eq!(address.account, account, "{id}");
    let query = QueryParameters::parse(url.query()).expect("query");
    let mut strings = Vec::new();
    for path in address.signed_paths() {
        for order in [HeaderOrder::Collation, HeaderOrder::Ordinal] {
            let request = SignedRequest { service, method, account, path, query: &query, headers };
            let mut string = Vec::new();
            write_string_to_sign(&request, scheme, order, &mut string);
            strings.push(String::from_utf8(string).expect("text"));
        }
    }
    assert!(strings.iter().any(|string| string == string_to_sign), "{id}: {strings:#?}\n{}", string_to_sign);
    let computed = key.sign(|sink| super::signature::SignSink::put(sink, string_to_sign.as_bytes()));
    assert_eq!(computed, signature, "{id}");
}

fn scheme(name: &str) -> SharedKeyScheme {
    match name {
        "SharedKey" => SharedKeyScheme::Full,
        "SharedKeyLite" => SharedKeyScheme::Lite,
        other => panic!("scheme {other}"),
    }
}

fn service(name: &str) -> SignedService {
    match name {
        "table" => SignedService::Table,
        "blob" | "queue" => SignedService::BlobOrQueue,
        other => panic!("service {other}"),
    }
}

#[test]
fn worked_shared_key_examples() {
    let vectors = parse(SHARED_KEY);
    let mut checked = 0;
    for vector in vectors["vectors"].as_array().expect("vectors") {
        let account = text(vector, "account");
        let url: Uri = text(vector, "url").parse().expect("url");
        let headers = headers(vector);
        let worked = SignatureExample {
            id: text(vector, "id"),
            service: service(text(vector, "service")),
            account,
            method: text(vector, "method"),
            url: &url,
            headers: &headers,
            scheme: scheme(text(vector, "scheme")),
            string_to_sign: text(vector, "string_to_sign"),
            signature: text(vector, "signature"),
        };
        check(&worked, &key(&vectors, account));
        checked += 1;
    }
    assert_eq!(checked, 23);
}

#[test]
fn requests_of_official_clients() {
    let vectors = parse(CLIENT_REQUESTS);
    let account = Account::development();
    let (mut tables, mut others) = (0, 0);
    for request in vectors["requests"].as_array().expect("requests") {
        let client = text(request, "client");
        let headers = headers(request);
        let url: Uri = text(request, "target").parse().expect("target");
        let query = QueryParameters::parse(url.query()).expect("query");
        let id = format!("{client} {} {url}", text(request, "method"));
        let found = credentials(&headers, &query).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        let Credentials::SharedKey { scheme, account: claimed_account, signature } = found else {
            panic!("{id}: signed by key")
        };
        if client.ends_with("-table") {
            let host = headers.get("host").and_then(|host| host.to_str().ok()).expect("host");
            let address = Address::parse(host, url.path(), "table");
            let signed = SharedKeyRequest {
                service: SignedService::Table,
                address: &address,
                method: text(request, "method"),
                query: &query,
                headers: &headers,
            };
            let now = sent_at(&headers);
            let verify =
                |now, claimed| verify_shared_key(&account, &signed, scheme, claimed_account, claimed, now);
            verify(now, signature).unwrap_or_else(|error| panic!("{id}: {error:?}"));
            let late = now.plus(super::DATE_SKEW_MAX).plus(std::time::Duration::from_secs(1));
            assert!(verify(late, signature).is_err(), "{id}: too old");
            let error = verify(now, &signature.replace(&signature[..1], "_")).expect_err("tampered");
            assert!(error.detail().is_some(), "{id}");
            tables += 1;
        } else {
            let vectors = parse(SHARED_KEY);
            let worked = SignatureExample {
                id: &id,
                service: SignedService::BlobOrQueue,
                account: account.name(),
                method: text(request, "method"),
                url: &url,
                headers: &headers,
                scheme,
                string_to_sign: text(request, "string_to_sign"),
                signature,
            };
            check(&worked, &key(&vectors, account.name()));
            others += 1;
        }
    }
    assert_eq!((tables, others), (30, 53));
}

#[test]
fn worked_sas_examples() {
    let vectors = parse(SAS);
    let (mut checked, mut delegated) = (0, 0);
    for vector in vectors["vectors"].as_array().expect("vectors") {
        let id = text(vector, "id");
        let account = text(vector, "account");
        // The parameter that one of the signatures binds.
        let query = format!("{}&comp=block", text(vector, "query"));
        let query = QueryParameters::parse(Some(&query)).expect("query");
        let token = SasToken::find(&query).expect("token");
        let expected = text(vector, "string_to_sign");
        let mut string = Vec::new();
        match text(vector, "kind") {
            "account" => token.write_account_string(account, &mut string),
            "service" => {
                let service = match id {
                    _ if id.contains("-table") => SasService::Table,
                    _ if id.contains("-queue") => SasService::Queue,
                    _ => SasService::Blob,
                };
                // The request names blob or queue; here its name is taken from the string itself.
                let resource = match service {
                    SasService::Table => token.field("tn").expect("tn"),
                    _ => {
                        let line = expected.split('\n').nth(3).expect("resource");
                        line.split_once("contoso/").expect("account").1
                    }
                };
                let snapshot = vector["request_snapshot_or_version"].as_str().unwrap_or_default();
                token.write_service_string(service, account, resource, snapshot, &mut string);
            }
            "user-delegation" => {
                let service = if id.contains("-queue") { SasService::Queue } else { SasService::Blob };
                let line = expected.split('\n').nth(3).expect("resource");
                let resource = line.split_once("contoso/").expect("account").1;
                let mut headers = HeaderMap::new();
                headers.insert("x-ms-blob-type", "BlockBlob".parse().expect("value"));
                headers.insert("content-type", "text/plain".parse().expect("value"));
                let bound = BoundRequest { headers: &headers, query: &query };
                write_delegation_string(&token, (service, account, resource, ""), bound, &mut string);
                delegated += 1;
            }
            other => panic!("kind {other}"),
        }
        assert_eq!(String::from_utf8(string.clone()).expect("text"), expected, "{id}");
        let signing = match vector["user_delegation_key"].as_str() {
            Some(key) => SigningKey::new(&STANDARD.decode(key).expect("Base64")),
            None => key(&vectors, account),
        };
        let signature = signing.sign(|sink| super::signature::SignSink::put(sink, &string));
        assert_eq!(signature, text(vector, "signature"), "{id}");
        assert_eq!(signature, token.signature(), "{id}");
        checked += 1;
    }
    assert_eq!((checked, delegated), (28, 9));
}
