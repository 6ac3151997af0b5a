//! User delegation: signing keys for bearers of tokens, and the strings that such signatures sign.
//!
//! ```text
//! key     HMAC-SHA-256 under an account key of   "user delegation key", account, oid, tid, start, expiry,
//!         services, version, delegated tid; each with its length before it, times in whole seconds
//! signs   sp st se RESOURCE skoid sktid skt ske sks skv [saoid suoid scid] [skdutid sduoid] sip spr sv
//!         Blob: sr SNAPSHOT [ses] [HEADERS PARAMETERS] rscc rscd rsce rscl rsct        joined by newlines
//! ```
//!
//! A key is computed anew from what a signature says of it, so none is stored. What always holds: it dies
//! with the account key, and lives for [`DELEGATION_KEY_FOR_MAX`] at most.

use super::sas::{SasService, SasToken};
use super::signature::{SignSink, SigningKey};
use crate::request::query_string::QueryParameters;
use base::Ticks;
use hyper::header::HeaderMap;
use service::parse_date_time;
use std::time::Duration;

/// How long a key may live.
pub(crate) const DELEGATION_KEY_FOR_MAX: Duration = Duration::from_secs(7 * 86_400);

const AGENTS_SINCE: &str = "2020-02-10";
const DELEGATED_USER_SINCE: &str = "2025-07-05";
const BOUND_FIELDS_SINCE: &str = "2026-04-06";

/// What a key is for, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DelegationKey<'a> {
    /// The principal that requested it.
    pub(crate) oid: &'a str,
    /// In which tenant.
    pub(crate) tid: &'a str,
    /// From when on.
    pub(crate) start: Ticks,
    /// Until when.
    pub(crate) expiry: Ticks,
    /// Letters of services.
    pub(crate) services: &'a str,
    /// The version of the request for it.
    pub(crate) version: &'a str,
    /// The tenant of the only user that may use it.
    pub(crate) delegated_tid: &'a str,
}

impl<'a> DelegationKey<'a> {
    /// The key that a token says it was signed with; `None`: it is not said as it must be.
    pub(crate) fn of_token(token: &SasToken<'a>) -> Option<Self> {
        let field = |name| token.field(name).filter(|value| !value.is_empty());
        let time = |name| field(name).and_then(|text| parse_date_time(text).ok());
        Some(DelegationKey {
            oid: field("skoid")?,
            tid: field("sktid")?,
            start: time("skt").unwrap_or(Ticks(0)),
            expiry: time("ske")?,
            services: field("sks")?,
            version: field("skv")?,
            delegated_tid: field("skdutid").unwrap_or_default(),
        })
    }

    /// Its bytes, under one of the account's keys.
    pub(crate) fn derive(&self, account: &str, key: &SigningKey) -> [u8; 32] {
        let seconds = |at: Ticks| at.since_unix().as_secs().to_string();
        let fields = [
            "user delegation key",
            account,
            self.oid,
            self.tid,
            &seconds(self.start),
            &seconds(self.expiry),
            self.services,
            self.version,
            self.delegated_tid,
        ];
        key.digest(|sink| {
            for field in fields {
                sink.put(&(field.len() as u64).to_le_bytes());
                sink.put(field.as_bytes());
            }
        })
    }

    /// Whether it may sign now, and for the service with this letter.
    pub(crate) fn is_good(&self, service: SasService, now: Ticks) -> bool {
        let is_long = self.start.0 != 0 && self.start.plus(DELEGATION_KEY_FOR_MAX) < self.expiry;
        self.services.contains(service.letter()) && self.start <= now && now < self.expiry && !is_long
    }
}

/// What of a request a signature may bind.
#[derive(Clone, Copy)]
pub(crate) struct BoundRequest<'a> {
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Its parameters.
    pub(crate) query: &'a QueryParameters<'a>,
}

/// Writes the string that a signature with a delegation key signs.
pub(crate) fn write_delegation_string(
    token: &SasToken<'_>,
    (service, account, resource, snapshot): (SasService, &str, &str, &str),
    bound: BoundRequest<'_>,
    sink: &mut impl SignSink,
) {
    let version = token.version();
    let field = |name: &str| token.field(name).unwrap_or_default();
    let line = |sink: &mut dyn FnMut(&[u8]), name: &str| {
        sink(field(name).as_bytes());
        sink(b"\n");
    };
    let mut put = |bytes: &[u8]| sink.put(bytes);
    ["sp", "st", "se"].into_iter().for_each(|name| line(&mut put, name));
    for part in ["/", service.label(), "/", account, "/", resource, "\n"] {
        put(part.as_bytes());
    }
    for name in ["skoid", "sktid", "skt", "ske", "sks", "skv"] {
        line(&mut put, name);
    }
    if version >= AGENTS_SINCE && service == SasService::Blob {
        ["saoid", "suoid", "scid"].into_iter().for_each(|name| line(&mut put, name));
    }
    if version >= DELEGATED_USER_SINCE {
        ["skdutid", "sduoid"].into_iter().for_each(|name| line(&mut put, name));
    }
    ["sip", "spr"].into_iter().for_each(|name| line(&mut put, name));
    put(field("sv").as_bytes());
    if service != SasService::Blob {
        return;
    }
    put(b"\n");
    line(&mut put, "sr");
    put(snapshot.as_bytes());
    if version >= super::sas::ENCRYPTION_SCOPE_SINCE {
        put(b"\n");
        put(field("ses").as_bytes());
    }
    if version >= BOUND_FIELDS_SINCE {
        put(b"\n");
        for name in names(field("srh")) {
            let value = bound.headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
            for part in [name.as_bytes(), b":", value, b"\n"] {
                put(part);
            }
        }
        put(b"\n");
        for name in names(field("srq")) {
            let value = bound.query.find(name).unwrap_or_default();
            for part in ["\n", name, ":", value] {
                put(part.as_bytes());
            }
        }
    }
    for name in ["rscc", "rscd", "rsce", "rscl", "rsct"] {
        put(b"\n");
        put(field(name).as_bytes());
    }
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|name| !name.is_empty())
}
