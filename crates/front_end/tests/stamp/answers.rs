//! Tables of answers: what a service answers to a request. A row is a request and all that its answer must
//! have; a check sends the rows one after the other to one stamp, and reports every row that fails.
//!
//! ```text
//! Row::of("DELETE", "/tasks/messages/x?popreceipt=y").fails(404, "MessageNotFound")
//! Row::of("GET", "/?comp=list").auth(Auth::Account("q", "o", "l"))
//!     .fails(403, "AuthorizationResourceTypeMismatch")
//! Row::of("PUT", "/q?comp=acl").body("<x").fails(400, "InvalidXmlDocument").has("LineNumber", ANY)
//! ```

use super::{Answer, ROOT, Stamp};
use base::Clock;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use front_end::ConnectionInfo;
use front_end::auth::bearer::UnverifiedTokens;
use front_end::auth::shared_key::SignedService;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::header::{HeaderName, HeaderValue};
use std::sync::Arc;

/// Stands for any value, as long as there is one.
pub(crate) const ANY: &str = "*";

/// The service that a table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Blob,
    Queue,
    Table,
}

/// What a request shows.
#[derive(Clone, Debug)]
pub(crate) enum Auth {
    /// A signature with the account key.
    Key,
    /// Nothing.
    Nothing,
    /// This `Authorization` header, over TLS.
    Header(&'static str),
    /// A good bearer token, over TLS; the stamp must be one of [`open_with_tokens`].
    Bearer,
    /// An account signature: services, resource types, permissions.
    Account(&'static str, &'static str, &'static str),
    /// These parameters, such as a service signature made by the test.
    Query(String),
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    method: String,
    path: String,
    root: &'static str,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
    auth: Auth,
    status: u16,
    code: &'static str,
    elements: Vec<(&'static str, String)>,
    answer_headers: Vec<(&'static str, String)>,
    texts: Vec<String>,
}

impl Row {
    /// A request signed with the account key; `path` is below the account. Its answer is 200 unless the row
    /// says otherwise.
    pub(crate) fn of(method: &str, path: impl Into<String>) -> Row {
        Row {
            method: method.to_owned(),
            path: path.into(),
            root: ROOT,
            headers: Vec::new(),
            body: Vec::new(),
            auth: Auth::Key,
            status: 200,
            code: "",
            elements: Vec::new(),
            answer_headers: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// A header of the request. `x-ms-version` replaces the usual one.
    pub(crate) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Row {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    /// The request's body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Row {
        self.body = body.into();
        self
    }

    /// What the request shows instead of a signature with the account key.
    pub(crate) fn auth(mut self, auth: Auth) -> Row {
        self.auth = auth;
        self
    }

    /// Sends it to the account's secondary.
    pub(crate) fn at_secondary(mut self) -> Row {
        self.root = "/devstoreaccount1-secondary";
        self
    }

    /// The answer's status.
    pub(crate) fn gives(mut self, status: u16) -> Row {
        self.status = status;
        self
    }

    /// The answer is this error.
    pub(crate) fn fails(mut self, status: u16, code: &'static str) -> Row {
        (self.status, self.code) = (status, code);
        self
    }

    /// The answer's body has such an element; its text may be [`ANY`].
    pub(crate) fn has(mut self, element: &'static str, text: impl Into<String>) -> Row {
        self.elements.push((element, text.into()));
        self
    }

    /// The answer has such a header; its value may be [`ANY`], and an empty one stands for no header.
    pub(crate) fn has_header(mut self, name: &'static str, value: impl Into<String>) -> Row {
        self.answer_headers.push((name, value.into()));
        self
    }

    /// The answer's body has this text somewhere.
    pub(crate) fn says(mut self, text: impl Into<String>) -> Row {
        self.texts.push(text.into());
        self
    }

    /// The error names this header and its value.
    pub(crate) fn names_header(self, name: &'static str, value: impl Into<String>) -> Row {
        self.has("HeaderName", name).has("HeaderValue", value)
    }

    /// Sends the request.
    pub(crate) async fn send(&self, stamp: &Stamp, service: Service) -> Answer {
        let mut target = format!("{}{}", self.root, self.path);
        let parameters = match &self.auth {
            Auth::Account(services, types, permissions) => account_sas(stamp, services, types, permissions),
            Auth::Query(parameters) => parameters.clone(),
            _ => String::new(),
        };
        if !parameters.is_empty() {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(&parameters);
        }
        let length = self.body.len().to_string();
        let version = if service == Service::Table { "2019-02-02" } else { "2026-10-06" };
        let mut headers: Vec<(&str, &[u8])> =
            vec![("x-ms-version", version.as_bytes()), ("content-length", length.as_bytes())];
        headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_slice())));
        let signed = match service {
            Service::Table => SignedService::Table,
            Service::Blob | Service::Queue => SignedService::BlobOrQueue,
        };
        let mut map = stamp.headers_signed_over(signed, &self.method, &target, &headers);
        let authorization = match &self.auth {
            Auth::Key => None,
            Auth::Header(value) => Some((*value).to_owned()),
            Auth::Bearer => Some(format!("Bearer {}", token(stamp))),
            Auth::Nothing | Auth::Account(..) | Auth::Query(_) => Some(String::new()),
        };
        match authorization {
            None => {}
            Some(none) if none.is_empty() => drop(map.remove("authorization")),
            Some(value) => {
                let value = HeaderValue::from_str(&value).expect("a value");
                map.insert(HeaderName::from_static("authorization"), value);
            }
        }
        let mut request = Request::builder().method(self.method.as_str()).uri(&target);
        *request.headers_mut().expect("a target") = map;
        let request = request.body(Full::new(Bytes::from(self.body.clone()))).expect("a request");
        let encrypted = matches!(self.auth, Auth::Bearer | Auth::Header(_));
        let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted };
        let response = match service {
            Service::Blob => stamp.front_end.handle_blob(connection, request).await,
            Service::Queue => stamp.front_end.handle_queue(connection, request).await,
            Service::Table => stamp.front_end.handle_table(connection, request).await,
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// What the answer lacks of what it must have.
    fn missing(&self, answer: &Answer) -> Vec<String> {
        let header = |name: &str| {
            let value = answer.headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
            String::from_utf8_lossy(value).into_owned()
        };
        let mut missing = Vec::new();
        let (status, code) = (answer.status.as_u16(), header("x-ms-error-code"));
        if (status, code.as_str()) != (self.status, self.code) {
            missing.push(format!("is {status} {code}, not {} {}", self.status, self.code));
        }
        if self.method != "HEAD" && !answer.body.contains(self.code) {
            missing.push(format!("has a body without {}", self.code));
        }
        for (name, expected) in &self.elements {
            match element(&answer.body, name) {
                Some(found) if expected == ANY || found == expected => {}
                Some(found) => missing.push(format!("has {found:?} as {name}, not {expected:?}")),
                None => missing.push(format!("has no {name}")),
            }
        }
        for (name, expected) in &self.answer_headers {
            let found = header(name);
            if found != *expected && (expected != ANY || found.is_empty()) {
                missing.push(format!("has {found:?} as header {name}, not {expected:?}"));
            }
        }
        let texts = self.texts.iter().filter(|text| !answer.body.contains(text.as_str()));
        missing.extend(texts.map(|text| format!("does not say {text:?}")));
        missing
    }
}

/// What stands between the first tags of that name.
pub(crate) fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    if body.contains(&format!("<{name} />")) {
        return Some("");
    }
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

/// Sends the rows in their order; panics with all that fail.
pub(crate) async fn check(stamp: &Stamp, service: Service, rows: impl IntoIterator<Item = Row>) {
    let mut failures = Vec::new();
    let mut count = 0;
    for row in rows {
        count += 1;
        let answer = row.send(stamp, service).await;
        let missing = row.missing(&answer);
        if !missing.is_empty() {
            let (method, path, why) = (&row.method, &row.path, missing.join("; "));
            let (sent, got) = (String::from_utf8_lossy(&row.body), &answer.body);
            failures.push(format!("{count}. {method} {path} {sent}\n   {why}\n   {got}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count} rows fail:\n{}", failures.len(), failures.join("\n"));
}

/// A stamp that takes bearer tokens.
pub(crate) async fn open_with_tokens() -> Stamp {
    Stamp::with_settings(|settings| settings.bearer = Some(Arc::new(UnverifiedTokens))).await
}

/// An account signature as parameters.
pub(crate) fn account_sas(stamp: &Stamp, services: &str, types: &str, permissions: &str) -> String {
    let text =
        format!("devstoreaccount1\n{permissions}\n{services}\n{types}\n\n2027-01-01\n\n\n2019-02-02\n");
    let signature = stamp.sas_signature(&text);
    format!("sv=2019-02-02&ss={services}&srt={types}&sp={permissions}&se=2027-01-01&sig={signature}")
}

/// A token that is good at the stamp's time.
fn token(stamp: &Stamp) -> String {
    let now = stamp.clock.now().since_unix().as_secs();
    let claims = format!(
        r#"{{"iss":"https://sts.windows.net/t/","aud":"https://storage.azure.com","oid":"o","tid":"t","iat":{now},"nbf":{now},"exp":{}}}"#,
        now + 3600
    );
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.AAAA", encode(r#"{"alg":"RS256","typ":"JWT"}"#), encode(&claims))
}
