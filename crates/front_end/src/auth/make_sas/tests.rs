//! Tokens that are made here are verified as the pipeline verifies those of requests.

use super::*;
use crate::auth::delegation::BoundRequest;
use crate::auth::grant::Grant;
use crate::auth::{SasRequest, verify_sas};
use crate::error::error_code::ErrorCode;
use hyper::header::HeaderMap;
use serde_json::Value;
use service::parse_date_time;

const NOW: &str = "2026-11-21T09:00:00Z";

fn at(text: &str) -> Ticks {
    parse_date_time(text).expect("a date")
}

fn account() -> Account {
    Account::new("contoso", &["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "AAEC"]).expect("an account")
}

fn terms(permissions: &str) -> SasTerms {
    SasTerms {
        permissions: permissions.to_owned(),
        start: None,
        expiry: at("2026-12-01"),
        addresses: None,
        https_only: false,
    }
}

fn blob(container: &str, blob: &str) -> SasScope {
    SasScope::Blob { container: container.to_owned(), blob: blob.to_owned() }
}

/// Verifies a token on a request to `path`, `more` being its own parameters.
fn verify<Api: ServiceApi>(token: &str, path: &str, more: &str) -> Result<Grant, ErrorCode> {
    let query = format!("{token}{more}");
    let query = QueryParameters::parse(Some(&query)).expect("parameters");
    let address = format!("/contoso{path}");
    let address = Address::parse("127.0.0.1", &address, Api::LABEL);
    let headers = HeaderMap::new();
    let request = SasRequest {
        token: SasToken::find(&query).expect("a token"),
        resource: Api::signed_resource(&address, &query),
        bound: BoundRequest { headers: &headers, query: &query },
        peer: Some("10.0.0.5".parse().expect("an address")),
        encrypted: false,
        now: at(NOW),
    };
    verify_sas(&account(), &request, &[]).map_err(|error| error.code)
}

fn make(scope: &SasScope, terms: &SasTerms) -> String {
    make_sas(&account(), 0, scope, terms).expect("a token")
}

#[test]
fn account_tokens_are_verified_and_grant_what_they_say() {
    let scope = SasScope::Account {
        services: vec![SasService::Blob, SasService::Table],
        resource_types: vec![SasResourceType::Container, SasResourceType::Object],
    };
    let token = make(&scope, &terms("lr"));
    let granted = Grant::Account {
        services: "bt".to_owned(),
        resource_types: "co".to_owned(),
        permissions: "rl".to_owned(),
    };
    assert_eq!(verify::<BlobApi>(&token, "/box/a", ""), Ok(granted.clone()));
    assert_eq!(verify::<TableApi>(&token, "/People", ""), Ok(granted));
    let forged = token.replace("sp=rl", "sp=rwl");
    assert_eq!(verify::<TableApi>(&forged, "/People", ""), Err(ErrorCode::AuthenticationFailed));
}

#[test]
fn service_tokens_are_verified_at_what_they_are_for_and_nowhere_else() {
    let token = make(&SasScope::Container("box".to_owned()), &terms("rl"));
    assert!(verify::<BlobApi>(&token, "/box", "&restype=container&comp=list").is_ok());
    assert!(verify::<BlobApi>(&token, "/box/a/b", "").is_ok());
    assert!(verify::<BlobApi>(&token, "/boy/a/b", "").is_err());
    for (name, path) in [
        ("a", "/box/a"),
        ("a b/ä+&?#%.txt", "/box/a%20b/%C3%A4%2B%26%3F%23%25.txt"),
        ("a\\b", "/box/a/b"),
        ("x/", "/box/x/"),
    ] {
        let scope = blob("box", name);
        let token = make(&scope, &terms("r"));
        assert!(verify::<BlobApi>(&token, path, "").is_ok(), "{name}");
        assert!(verify::<BlobApi>(&token, &scope.path(), "").is_ok(), "{name} at {}", scope.path());
        assert!(verify::<BlobApi>(&token, "/box/other", "").is_err(), "{name}");
    }
    let token = make(&blob("$root", "page"), &terms("r"));
    assert!(
        verify::<BlobApi>(&token, "/page", "").is_ok()
            && verify::<BlobApi>(&token, "/$root/page", "").is_ok()
    );
    let token = make(&SasScope::Queue("tasks".to_owned()), &terms("raup"));
    assert!(verify::<QueueApi>(&token, "/tasks/messages", "").is_ok());
    assert!(verify::<QueueApi>(&token, "/others/messages", "").is_err());
    let token = make(&SasScope::Table("People".to_owned()), &terms("raud"));
    assert!(matches!(
        verify::<TableApi>(&token, "/People", ""),
        Ok(Grant::Service { resource, permissions, .. }) if resource == "People" && permissions == "raud"
    ));
}

#[test]
fn times_addresses_and_protocol_are_kept() {
    let scope = SasScope::Queue("tasks".to_owned());
    let verified = |terms: &SasTerms| verify::<QueueApi>(&make(&scope, terms), "/tasks", "").err();
    let usual = terms("r");
    assert_eq!(verified(&SasTerms { start: Some(at(NOW)), ..usual.clone() }), None);
    let later = Some(at("2026-11-21T09:00:01Z"));
    assert_eq!(verified(&SasTerms { start: later, ..usual.clone() }), Some(ErrorCode::AuthenticationFailed));
    let ended = SasTerms { expiry: at(NOW), ..usual.clone() };
    assert_eq!(verified(&ended), Some(ErrorCode::AuthenticationFailed));
    let from = |first: &str, last: &str| {
        let addresses = Some((first.parse().expect("an address"), last.parse().expect("an address")));
        verified(&SasTerms { addresses, ..usual.clone() })
    };
    assert_eq!(from("10.0.0.5", "10.0.0.5"), None);
    assert_eq!(from("10.0.0.1", "10.0.0.9"), None);
    assert_eq!(from("10.0.0.6", "10.0.0.9"), Some(ErrorCode::AuthorizationSourceIPMismatch));
    let https_only = SasTerms { https_only: true, ..usual.clone() };
    assert_eq!(verified(&https_only), Some(ErrorCode::AuthorizationProtocolMismatch));
    // Fractions of a second would be refused by some clients.
    let expiry = Ticks(at("2026-12-01").0 + 1);
    let token = make(&scope, &SasTerms { expiry, ..usual });
    assert!(token.contains("se=2026-12-01T00%3A00%3A00Z&"), "{token}");
}

#[test]
fn the_second_key_signs_if_it_is_chosen() {
    let scope = SasScope::Queue("tasks".to_owned());
    let made = |key_index| make_sas(&account(), key_index, &scope, &terms("r")).expect("a token");
    assert_ne!(made(0), made(1));
    assert!(verify::<QueueApi>(&made(1), "/tasks", "").is_ok());
}

#[test]
fn letters_are_sorted_or_refused() {
    let all = SasScope::Account {
        services: vec![SasService::Blob, SasService::Queue, SasService::Table],
        resource_types: vec![SasResourceType::Object],
    };
    let queues = SasScope::Account {
        services: vec![SasService::Queue],
        resource_types: vec![SasResourceType::Object],
    };
    let container = SasScope::Container("box".to_owned());
    let table = SasScope::Table("People".to_owned());
    for (scope, given, sorted) in [
        (&all, "ftpucalxdwr", "rwdxlacuptf"),
        (&all, "rr", "r"),
        (&all, "iy", "yi"),
        (&queues, "pu", "up"),
        (&container, "ltr", "rlt"),
        (&blob("box", "a"), "wcar", "racw"),
        (&table, "duar", "raud"),
    ] {
        assert_eq!(scope.sort_permissions(given).as_deref(), Ok(sorted), "{given}");
    }
    for (scope, given, letter) in [
        (&all, "rz", 'z'),
        (&all, "R", 'R'),
        (&queues, "rt", 't'),
        (&blob("box", "a"), "rl", 'l'),
        (&table, "rl", 'l'),
        (&SasScope::Queue("tasks".to_owned()), "rd", 'd'),
    ] {
        let refused = scope.sort_permissions(given);
        assert!(
            matches!(&refused, Err(SasError::UnknownPermission { letter: found, .. }) if *found == letter),
            "{given}: {refused:?}"
        );
    }
    assert_eq!(table.sort_permissions(""), Err(SasError::NoPermission));
    assert_eq!(all.served_permissions(), "rwdxlacuptf");
    assert_eq!(blob("box", "a").served_permissions(), "racwdxt");
}

#[test]
fn names_that_nothing_has_are_refused() {
    for scope in [
        SasScope::Container("Box".to_owned()),
        blob("b", "a"),
        blob("box", ""),
        SasScope::Queue("a_b".to_owned()),
        SasScope::Table("a-b".to_owned()),
    ] {
        let refused = make_sas(&account(), 0, &scope, &terms("r"));
        assert!(matches!(refused, Err(SasError::Name { .. })), "{scope:?}: {refused:?}");
    }
}

/// The worked examples that fit: what was signed there is signed here in the same way.
#[test]
fn worked_examples_are_made_as_they_are() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../tests/vectors/sas.json")).expect("vectors are JSON");
    let queue = SasScope::Queue("myq".to_owned());
    let mut made = 0;
    for vector in vectors["vectors"].as_array().expect("vectors") {
        let scope = match vector["id"].as_str().expect("an id") {
            "account-sas-queue-emulator" => SasScope::Account {
                services: vec![SasService::Queue],
                resource_types: vec![SasResourceType::Object],
            },
            "service-sas-blob" => blob("cont", "dir/a b.txt"),
            "service-sas-container" => SasScope::Container("cont".to_owned()),
            "service-sas-queue" => queue.clone(),
            "service-sas-table-emulator" => SasScope::Table("People".to_owned()),
            _ => continue,
        };
        let name = vector["account"].as_str().expect("an account");
        let key = vectors["accounts"][name].as_str().expect("a key");
        let account = Account::new(name, &[key]).expect("an account");
        // All but version, protocol and signature: clients write the newest version, and no protocol.
        let query = QueryParameters::parse(vector["query"].as_str()).expect("a query");
        let signed = sign(&account, 0, &scope, &format!("/{name}{}", scope.path()), &query);
        assert_eq!(signed.as_deref(), Ok(vector["signature"].as_str().expect("a signature")), "{vector}");
        made += 1;
    }
    assert_eq!(made, 5);
}
