//! A bucket: signed requests, one try each.
//!
//! What always holds: a request is signed with credentials that have not ended, at the instant it is sent;
//! over TLS its body is not hashed, because the connection guards it and parts have a checksum of their
//! own.

use crate::credentials::held::CredentialSource;
use crate::error::OpenError;
use crate::exchange::{Answer, Lost, OpenAnswer, Outgoing, Service, hidden};
use crate::objects::settings::ObjectStoreSettings;
use crate::s3::address::{BucketAddress, bucket_address};
use crate::s3::answers::{has_wrong_keys, is_expired};
use crate::s3::signature::{
    Signer, UNSIGNED_PAYLOAD, Unsigned, amz_date, authorization, encode_path, encode_query, hash_text,
};
use crate::surroundings::{StoreSurroundings, proxies};
use base::Clock;
use bytes::Bytes;
use http_client::{Dialer, TlsRoots};
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::sync::Arc;

/// A bucket that is reached over the network.
pub(crate) struct Bucket {
    pub(crate) name: String,
    region: String,
    base: String,
    service: Service,
    credentials: Arc<CredentialSource>,
    clock: Arc<dyn Clock>,
}

/// A request to a bucket.
pub(crate) struct BucketRequest<'a> {
    pub(crate) method: Method,
    /// The whole name of an object; empty for the bucket itself.
    pub(crate) key: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Names in small letters.
    pub(crate) headers: &'a [(&'static str, &'a str)],
    pub(crate) body: Bytes,
}

impl Bucket {
    /// No connection yet, and no credentials.
    pub(crate) async fn open(
        name: &str,
        settings: &ObjectStoreSettings,
        surroundings: &StoreSurroundings,
    ) -> Result<Self, OpenError> {
        let BucketAddress { endpoint, base, region } = bucket_address(name, settings, surroundings)?;
        let ca_file = settings.ca_file.as_deref().or_else(|| surroundings.variable("AWS_CA_BUNDLE"));
        let roots = match ca_file {
            None => TlsRoots::System,
            Some(path) => {
                let read = surroundings.read_file(path).await;
                let pem = read.map_err(|error| {
                    OpenError::setting(format!("the file of certificates {path}"), error.to_string())
                })?;
                TlsRoots::Pem(pem.to_vec())
            }
        };
        let http = &surroundings.http;
        let dialer = Arc::new(Dialer::new(http.connector.clone(), proxies(surroundings), roots));
        let service =
            Service::new(endpoint, dialer.clone(), http, settings.connections(), settings.answer_for);
        let credentials = CredentialSource::new(surroundings, &region, dialer);
        let (name, clock) = (name.to_owned(), http.clock.clone());
        Ok(Bucket { name, region, base, service, credentials, clock })
    }

    /// For errors: which bucket, and where.
    pub(crate) fn shown(&self) -> String {
        format!("the bucket {} at {}", self.name, self.service.endpoint().url())
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn open_answer(&self, request: BucketRequest<'_>) -> Result<OpenAnswer, Lost> {
        let outgoing = self.sign(request).await.map_err(Lost::Unsent)?;
        self.service.open(outgoing).await
    }

    /// Sends a request, and reads its answer whole, at most `size_max` bytes.
    pub(crate) async fn send(&self, request: BucketRequest<'_>, size_max: usize) -> Result<Answer, Lost> {
        let outgoing = self.sign(request).await.map_err(Lost::Unsent)?;
        self.service.send(outgoing, size_max).await
    }

    /// Whether there are credentials; an error says why not, without any secret.
    pub(crate) async fn check_credentials(&self) -> Result<(), String> {
        self.credentials.get().await.map(drop)
    }

    /// An answer had this error code: credentials that have ended are not used again.
    pub(crate) fn note(&self, code: &str) {
        if has_wrong_keys(code) {
            self.credentials.doubt();
        }
        if is_expired(code) {
            self.credentials.forget();
        }
    }

    async fn sign(&self, request: BucketRequest<'_>) -> Result<Outgoing, String> {
        let credentials = self.credentials.get().await?;
        let endpoint = self.service.endpoint();
        let slash = if request.key.is_empty() && !self.base.is_empty() { "" } else { "/" };
        let path = format!("{}{slash}{}", encode_path(&self.base), encode_path(request.key));
        let query = encode_query(request.query);
        let payload_hash = if endpoint.origin.is_tls && !request.body.is_empty() {
            UNSIGNED_PAYLOAD.to_owned()
        } else {
            hash_text(&request.body)
        };
        let date = amz_date(self.clock.now());
        let mut headers: Vec<(&str, &str)> = request.headers.to_vec();
        headers.push(("host", &endpoint.authority));
        headers.push(("x-amz-content-sha256", &payload_hash));
        headers.push(("x-amz-date", &date));
        if let Some(token) = &credentials.session_token {
            headers.push(("x-amz-security-token", token.reveal()));
        }
        headers.sort_unstable();
        let method = request.method.as_str();
        let unsigned =
            Unsigned { method, path: &path, query: &query, headers: &headers, payload_hash: &payload_hash };
        let (key_id, secret) = (credentials.key_id.reveal(), credentials.secret.reveal());
        let signer = Signer { key_id, secret, region: &self.region, date: &date };
        let authorization = authorization(&unsigned, &signer);
        let mut sent: Vec<(HeaderName, HeaderValue)> = Vec::with_capacity(headers.len());
        let unusable = "a credential or a name can't be in a header";
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            let name = HeaderName::try_from(*name).map_err(|_| unusable)?;
            sent.push((name, hidden(value).ok_or(unusable)?));
        }
        sent.push((AUTHORIZATION, hidden(&authorization).ok_or(unusable)?));
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        Ok(Outgoing { method: request.method, target, headers: sent, body: request.body })
    }
}
