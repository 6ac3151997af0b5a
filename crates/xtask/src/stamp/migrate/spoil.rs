//! Changes of what was migrated, which the comparison must find. What always holds: each changes one thing
//! that is compared.

use super::clients::client;
use super::served::Served;
use super::{files, messages, rows};
use crate::Outcome;
use crate::stamp::arguments::BreakKind;
use crate::stamp::router::{Request, Service};
use std::sync::atomic::AtomicBool;

/// Spoils something.
pub(super) fn spoil(server: &Served, kind: BreakKind) -> Outcome<()> {
    let any: &[(&str, &str)] = &[("If-Match", "*")];
    let (verb, path, headers) = match kind {
        BreakKind::Row => ("DELETE", rows::FIRST.to_owned(), any),
        // The same row without its properties.
        BreakKind::OldValue | BreakKind::NewValue => ("PUT", rows::FIRST.to_owned(), any),
        BreakKind::Blob => ("PUT", files::path(0), &[("x-ms-blob-type", "BlockBlob")][..]),
        BreakKind::Message => ("DELETE", format!("{}/messages", messages::WAITING), &[][..]),
    };
    let (service, body): (_, &[u8]) = match kind {
        BreakKind::Row => (Service::Table, b""),
        BreakKind::OldValue | BreakKind::NewValue => (Service::Table, b"{}"),
        BreakKind::Blob => (Service::Blob, b"other"),
        BreakKind::Message => (Service::Queue, b""),
    };
    println!("on purpose: {verb} {path}");
    let request = Request { verb, path: &path, parameters: &[], headers, body };
    let answer = client(service, server).ask(request, &AtomicBool::new(false))?;
    match answer.status {
        200..300 => Ok(()),
        status => Err(format!("{verb} {path}: {status} {}", answer.text()).into()),
    }
}
