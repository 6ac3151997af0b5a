//! Shared access signatures: the input's first byte chooses an operation, the rest is the query string
//! without `sig`.
//!
//! The string is signed with the account's key, so that the code behind the signature check is reached.
//! Beyond the checks of all targets: a wrong signature grants nothing; an accepted request was granted, by a
//! plain reading of the fields; and no row outside the granted keys is read or written.

use crate::stamp::{Answer, ROOT, Stamp, TABLE, entity_path, rows};
use front_end::QueryParameters;
use front_end::accounts::DEVELOPMENT_ACCOUNT_NAME;
use front_end::auth::sas::{SasService, SasToken};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

/// A request with a token: verb, resource, the resource type that account tokens need, and the permission
/// letters, of which all are needed.
struct Attempt {
    method: &'static str,
    path: String,
    body: &'static str,
    key: Option<(&'static str, &'static str)>,
    resource_types: &'static str,
    letters: &'static str,
}

const ATTEMPT_COUNT: u8 = 9;

fn attempt(choice: u8) -> Attempt {
    let table = format!("/{TABLE}");
    let entity = |method, body, letters| Attempt {
        method,
        path: entity_path("p", "a"),
        body,
        key: Some(("p", "a")),
        resource_types: "o",
        letters,
    };
    let other = |method, path, body, resource_types, letters| Attempt {
        method,
        path,
        body,
        key: None,
        resource_types,
        letters,
    };
    match choice % ATTEMPT_COUNT {
        0 => other("GET", format!("{table}()"), "", "o", "r"),
        1 => entity("GET", "", "r"),
        2 => entity("PUT", r#"{"Text":"x"}"#, "au"),
        3 => entity("DELETE", "", "d"),
        4 => Attempt {
            key: Some(("p", "new")),
            ..other("POST", table, r#"{"PartitionKey":"p","RowKey":"new"}"#, "o", "a")
        },
        5 => other("GET", "/Tables".to_owned(), "", "cs", "l"),
        6 => other("POST", "/Tables".to_owned(), r#"{"TableName":"Other"}"#, "c", "cw"),
        7 => other("DELETE", format!("/Tables('{TABLE}')"), "", "c", "d"),
        _ => other("GET", format!("{table}?comp=acl"), "", "", ""),
    }
}

pub(crate) fn run(stamp: &mut Stamp, input: &[u8]) {
    let Some((&choice, fields)) = input.split_first() else {
        return;
    };
    let Ok(fields) = std::str::from_utf8(fields) else {
        return;
    };
    let attempt = attempt(choice);
    // Parameters that make it another operation belong to another target.
    let names = QueryParameters::parse(Some(fields));
    let reroutes = |name: &str| ["comp", "restype"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if names.is_ok_and(|names| names.iter().any(|(name, _)| reroutes(name))) {
        return;
    }
    let Some(wrong) = send(stamp, &attempt, fields, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") else {
        return;
    };
    assert!(wrong.is_refusal(), "a wrong signature was taken: {}", wrong.text());
    stamp.check_unchanged("the signature is wrong");

    let unsigned = format!("{fields}&sig=x");
    let Ok(parameters) = QueryParameters::parse(Some(&unsigned)) else {
        return;
    };
    let token = SasToken::find(&parameters).expect("there is a signature");
    let mut text = Vec::new();
    if token.is_account() {
        token.write_account_string(DEVELOPMENT_ACCOUNT_NAME, &mut text);
    } else {
        let table = token.field("tn").unwrap_or_default();
        token.write_service_string(SasService::Table, DEVELOPMENT_ACCOUNT_NAME, table, "", &mut text);
    }
    let signature = stamp.sign(std::str::from_utf8(&text).expect("fields are text"));
    let Some(answer) = send(stamp, &attempt, fields, &signature) else {
        return;
    };
    if answer.is_refusal() {
        stamp.check_unchanged("the token was refused");
    }
    let served = !answer.is_refusal() || answer.status == 404 || answer.status == 409;
    if served {
        assert!(
            is_granted(&attempt, &token),
            "not granted by {fields:?}: {} {}",
            answer.status,
            answer.text()
        );
    }
    if !answer.is_refusal() {
        check_keys(&attempt, &token, &answer);
    }
}

fn send(stamp: &Stamp, attempt: &Attempt, fields: &str, signature: &str) -> Option<Answer> {
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let joint = if attempt.path.contains('?') { '&' } else { '?' };
    let target = format!("{ROOT}{}{joint}{fields}&sig={signature}", attempt.path);
    let uri: Uri = target.parse().ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in [("host", "127.0.0.1:10002"), ("accept", "application/json;odata=nometadata")] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if attempt.method == "DELETE" {
        headers.insert("if-match", HeaderValue::from_static("*"));
    }
    let method = Method::from_bytes(attempt.method.as_bytes()).expect("a method");
    Some(stamp.send(method, uri, headers, attempt.body.as_bytes()))
}

/// A plain reading of the fields; it may miss a reason to refuse, but never invents one.
fn is_granted(attempt: &Attempt, token: &SasToken<'_>) -> bool {
    let field = |name: &str| token.field(name).unwrap_or_default();
    // Of create and write one is enough; an upsert needs both of its letters.
    let letters = |granted: &str| match attempt.letters {
        "" => false,
        "cw" => granted.contains(['c', 'w']),
        all => all.chars().all(|letter| granted.contains(letter)),
    };
    let expired = |text: &str| text.get(..4).is_some_and(|year| year < "2026");
    if expired(field("se")) || (!field("sip").is_empty() && !field("sip").contains('.')) {
        return false;
    }
    if field("spr") == "https" || field("spr") == "http" {
        return false;
    }
    if token.is_account() {
        return field("ss").contains('t')
            && attempt.resource_types.chars().any(|kind| field("srt").contains(kind))
            && letters(field("sp"));
    }
    let permissions = match field("si") {
        "" => field("sp"),
        // The fixture's only policy.
        "reader" => "r",
        _ => return false,
    };
    attempt.resource_types == "o" && field("tn").eq_ignore_ascii_case(TABLE) && letters(permissions)
}

fn check_keys(attempt: &Attempt, token: &SasToken<'_>, answer: &Answer) {
    if token.is_account() {
        return;
    }
    if let Some((partition_key, row_key)) = attempt.key {
        assert!(is_inside(token, partition_key, row_key), "{partition_key} {row_key} is outside");
    } else if attempt.resource_types == "o" {
        for entity in rows(&answer.text()) {
            if let (Some(partition_key), Some(row_key)) =
                (entity["PartitionKey"].as_str(), entity["RowKey"].as_str())
            {
                assert!(is_inside(token, partition_key, row_key), "{entity} is outside");
            }
        }
    }
}

fn is_inside(token: &SasToken<'_>, partition_key: &str, row_key: &str) -> bool {
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let key = (units(partition_key), units(row_key));
    let after_start = match (token.field("spk"), token.field("srk")) {
        (None, _) => true,
        (Some(partition_key), None) => key.0 >= units(partition_key),
        (Some(partition_key), Some(row_key)) => key >= (units(partition_key), units(row_key)),
    };
    let before_end = match (token.field("epk"), token.field("erk")) {
        (None, _) => true,
        (Some(partition_key), None) => key.0 <= units(partition_key),
        (Some(partition_key), Some(row_key)) => key <= (units(partition_key), units(row_key)),
    };
    after_start && before_end
}
