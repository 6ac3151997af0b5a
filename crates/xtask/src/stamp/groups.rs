//! Group transactions of a writer: a hundred rows at once, inserted at the start, and changed before a fault
//! so that much of the log is not yet checkpointed.
//!
//! What always holds: each change of a group names the ETag that it is made upon, as a single one does; a
//! group is done as a whole or not at all.

use super::ledger::{Next, Problem};
use super::router::{Request, Router, Sent};
use super::tables::{PARTITION_ROWS, Shared, TABLE, Writer};
use crate::Outcome;
use crate::client::http_client::Answer;
use std::sync::atomic::{AtomicBool, Ordering};

/// The content type of a group.
pub(super) const BATCH: &str = "multipart/mixed; boundary=batch_b";

/// A change of a group: row, value, and the ETag that it is made upon; without one it is an insert.
type Change = (usize, u32, Option<Box<str>>);

impl Writer {
    /// Inserts so many rows in groups of a hundred, which nothing disturbs.
    pub(super) fn load(&mut self, rows: usize, batches: &mut Router) -> Outcome<()> {
        let never = AtomicBool::new(false);
        for first in (0..rows.min(self.entries.len())).step_by(PARTITION_ROWS) {
            let last = (first + PARTITION_ROWS).min(rows);
            let changes: Vec<Change> = (first..last).map(|index| (index, 1, None)).collect();
            let etags = match send(batches, &self.group(&changes), changes.len(), &never) {
                GroupSent::Done(etags) => etags,
                GroupSent::Refused(_, why) | GroupSent::NotDone(why) | GroupSent::Unknown(why) => {
                    return Err(why.into());
                }
            };
            for (index, etag) in (first..last).zip(etags) {
                self.keys.sent[index].store(1, Ordering::SeqCst);
                self.keys.floors[index].store(1, Ordering::SeqCst);
                self.entries[index].acknowledge(1, etag.as_deref());
            }
        }
        Ok(())
    }

    /// Changes the rows of the next partition, those whose ETags are known.
    pub(super) fn change_group(&mut self, shared: &Shared<'_>) {
        let first = self.next_group * PARTITION_ROWS;
        let last = (first + PARTITION_ROWS).min(self.entries.len());
        self.next_group = if last == self.entries.len() { 0 } else { self.next_group + 1 };
        let mut changes: Vec<Change> = Vec::new();
        let mut unread = None;
        for index in first..last {
            match self.entries[index].next() {
                Next::Update(etag) => {
                    let value = self.keys.sent[index].load(Ordering::SeqCst) + 1;
                    changes.push((index, value, Some(etag)));
                }
                Next::Read => unread = Some(index),
                Next::Insert => {}
            }
        }
        if let Some(index) = unread {
            self.read(index, shared);
        }
        if changes.is_empty() {
            return;
        }
        let body = self.group(&changes);
        for (index, value, _) in &changes {
            self.keys.sent[*index].store(*value, Ordering::SeqCst);
            self.entries[*index].send(*value);
        }
        let sent = send(&mut self.batches, &body, changes.len(), shared.stop);
        self.settle_group(&changes, sent, shared);
    }

    fn settle_group(&mut self, changes: &[Change], sent: GroupSent, shared: &Shared<'_>) {
        match sent {
            GroupSent::Done(etags) => {
                for ((index, value, _), etag) in changes.iter().zip(etags) {
                    self.entries[*index].acknowledge(*value, etag.as_deref());
                    self.keys.floors[*index].fetch_max(*value, Ordering::SeqCst);
                }
                self.acknowledged += changes.len() as u64;
                self.timeline.acknowledge();
            }
            GroupSent::Refused(status, _) if [404, 409, 412].contains(&status) => {
                changes.iter().for_each(|(index, value, _)| self.entries[*index].conflict(*value));
            }
            GroupSent::Refused(_, why) => {
                changes.iter().for_each(|(index, ..)| self.entries[*index].forget_outcome());
                shared.findings.add(Problem::Wrong, || format!("a group of {}: {why}", changes.len()));
            }
            GroupSent::NotDone(_) => {
                changes.iter().for_each(|(index, value, _)| self.entries[*index].refuse(*value));
            }
            GroupSent::Unknown(_) => {
                changes.iter().for_each(|(index, ..)| self.entries[*index].forget_outcome());
                self.unknown += changes.len() as u64;
            }
        }
    }

    fn group(&self, changes: &[Change]) -> Vec<u8> {
        let base_url = &self.base_url;
        let mut body =
            String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
        for (index, value, etag) in changes {
            let entity = self.keys.entity(*index, *value);
            let (line, header) = match etag {
                None => (format!("POST {base_url}/{TABLE}"), "Prefer: return-no-content".to_owned()),
                Some(etag) => {
                    (format!("PUT {base_url}/{}", self.keys.target(*index)), format!("If-Match: {etag}"))
                }
            };
            body.push_str(&change_of_group(&line, &header, &entity));
        }
        body.push_str(END_OF_GROUP);
        body.into_bytes()
    }
}

/// What follows the last change of a group.
pub(super) const END_OF_GROUP: &str = "--changeset_c--\r\n--batch_b--\r\n";

/// One change of a group: verb and URL, one header, and its entity.
pub(super) fn change_of_group(line: &str, header: &str, entity: &str) -> String {
    format!(
        "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         {line} HTTP/1.1\r\nContent-Type: application/json\r\n\
         Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0;\r\n{header}\r\n\r\n{entity}\r\n"
    )
}

/// What became of a group.
pub(super) enum GroupSent {
    /// With the ETags of all its changes.
    Done(Vec<Option<String>>),
    /// A change of it was refused, so that none was made.
    Refused(u16, String),
    NotDone(String),
    Unknown(String),
}

/// Sends a group of so many changes.
pub(super) fn send(router: &mut Router, body: &[u8], count: usize, stop: &AtomicBool) -> GroupSent {
    let request = Request { verb: "POST", path: "$batch", parameters: &[], headers: &[], body };
    match router.send(request, stop) {
        Sent::Answer(answer) => judge(&answer, count),
        Sent::NotDone(why) => GroupSent::NotDone(why),
        Sent::Unknown(why) => GroupSent::Unknown(why),
    }
}

fn judge(answer: &Answer, count: usize) -> GroupSent {
    let parts = parts(&answer.text());
    let why = || format!("{} {}", answer.status, answer.text());
    match parts.iter().find(|(status, _)| *status >= 300) {
        Some((503, _)) if answer.text().contains("ServerBusy") => GroupSent::NotDone(why()),
        Some((500.., _)) => GroupSent::Unknown(why()),
        Some((status, _)) => GroupSent::Refused(*status, why()),
        None if answer.status == 202 && parts.len() == count => {
            GroupSent::Done(parts.into_iter().map(|(_, etag)| etag).collect())
        }
        None => GroupSent::Refused(answer.status, why()),
    }
}

/// Status and ETag of each change, in their order.
fn parts(text: &str) -> Vec<(u16, Option<String>)> {
    let of_part = |part: &str| {
        let status = part.get(..3).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let mut headers = part.lines().filter_map(|line| line.split_once(':'));
        let etag = headers.find(|(name, _)| name.eq_ignore_ascii_case("etag"));
        (status, etag.map(|(_, value)| value.trim().to_owned()))
    };
    text.split("HTTP/1.1 ").skip(1).map(of_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_done_only_as_a_whole() {
        let done = "--c\r\n\r\nHTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\n\r\n\
                    --c\r\n\r\nHTTP/1.1 204 No Content\r\netag: W/\"2\"\r\n\r\n";
        let conflict = "--c\r\n\r\nHTTP/1.1 412 Precondition Failed\r\n\r\n{}";
        let busy = "--c\r\n\r\nHTTP/1.1 503 Service Unavailable\r\n\r\nServerBusy";
        let unknown = "--c\r\n\r\nHTTP/1.1 500 Internal Server Error\r\n\r\nOperationTimedOut";
        let cases =
            [(done, "done"), (conflict, "412"), (busy, "not done"), (unknown, "unknown"), ("", "202")];
        for (text, wanted) in cases {
            let answer = Answer { status: 202, headers: Vec::new(), body: text.into() };
            let found = match judge(&answer, 2) {
                GroupSent::Done(etags) => {
                    assert_eq!(etags, [Some("W/\"1\"".to_owned()), Some("W/\"2\"".to_owned())]);
                    "done".to_owned()
                }
                GroupSent::Refused(status, _) => status.to_string(),
                GroupSent::NotDone(_) => "not done".to_owned(),
                GroupSent::Unknown(_) => "unknown".to_owned(),
            };
            assert_eq!(found, wanted, "{text}");
        }
        let answer = Answer { status: 202, headers: Vec::new(), body: done.into() };
        assert!(matches!(judge(&answer, 3), GroupSent::Refused(..)), "a change without its answer");
    }
}
