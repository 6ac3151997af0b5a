//! Rows of a table, of several types, some of them written twice. What always holds: a row is compared with
//! its ETag, its time stamp and all its properties.

use super::clients::{CLIENT_COUNT, batches, client, digest, side_by_side};
use super::served::Served;
use crate::Outcome;
use crate::client::content::content;
use crate::client::shared_key::ACCOUNT;
use crate::stamp::groups::{self, GroupSent};
use crate::stamp::router::{Request, Service};
use crate::stamp::tables::{PARTITION_ROWS, TABLE, scan};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::atomic::AtomicBool;

/// Where the first row is.
pub(super) const FIRST: &str = "trial(PartitionKey='m00-000000',RowKey='00')";
/// One partition of so many is written twice.
const TWICE_ONE_IN: usize = 10;

pub(super) struct Rows {
    /// Of each client's rows, in the order of their keys.
    digests: Vec<Vec<u64>>,
}

impl Rows {
    /// Writes them, and reads them once.
    pub(super) fn fill(server: &Served, (count, size_bytes): (usize, usize)) -> Outcome<Self> {
        let body = format!("{{\"TableName\":\"{TABLE}\"}}");
        let request =
            Request { verb: "POST", path: "Tables", parameters: &[], headers: &[], body: body.as_bytes() };
        let answer = client(Service::Table, server).ask(request, &AtomicBool::new(false))?;
        if answer.status >= 300 {
            return Err(format!("POST Tables: {} {}", answer.status, answer.text()).into());
        }
        side_by_side(|number| {
            let share = count / CLIENT_COUNT + usize::from(number < count % CLIENT_COUNT);
            let mut router = batches(server);
            let base_url = format!("http://{}/{ACCOUNT}/{TABLE}", server.tables);
            for first in (0..share).step_by(PARTITION_ROWS) {
                let rows = PARTITION_ROWS.min(share - first);
                let partition = format!("{}-{:06}", name(number), first / PARTITION_ROWS);
                write(&mut router, &base_url, &partition, (rows, size_bytes), 1)?;
                if (first / PARTITION_ROWS).is_multiple_of(TWICE_ONE_IN) {
                    write(&mut router, &base_url, &partition, (rows, size_bytes), 2)?;
                }
            }
            Ok(())
        })?;
        let digests = side_by_side(|number| {
            let mut digests = Vec::new();
            scan(&mut client(Service::Table, server), &name(number), |row| {
                digests.push(digest(&row.to_string()))
            })?;
            Ok(digests)
        })?;
        let rows = Rows { digests };
        match rows.count() == count {
            true => Ok(rows),
            false => Err(format!("{} of {count} rows are read back", rows.count()).into()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.digests.iter().map(Vec::len).sum()
    }

    /// Reads all of them, and answers what differs.
    pub(super) fn compare(&self, server: &Served) -> Outcome<Vec<String>> {
        let differences = side_by_side(|number| {
            let (wanted, mut index, mut differences) = (&self.digests[number], 0, Vec::new());
            scan(&mut client(Service::Table, server), &name(number), |row| {
                let found = digest(&row.to_string());
                if wanted.get(index) != Some(&found) && wanted.get(index + 1) == Some(&found) {
                    differences.push(format!("row {index} of {} is gone", name(number)));
                    index += 1;
                }
                if wanted.get(index) != Some(&found) {
                    differences.push(format!("row {index} of {} is {row}", name(number)));
                }
                index += 1;
            })?;
            if index < wanted.len() {
                differences.push(format!("{index} of {} rows of {}", wanted.len(), name(number)));
            }
            Ok(differences)
        })?;
        Ok(differences.concat())
    }
}

fn name(number: usize) -> String {
    format!("m{number:02}")
}

/// Writes the rows of a partition; the second time over those of the first.
fn write(
    router: &mut crate::stamp::router::Router,
    base_url: &str,
    partition: &str,
    (rows, size_bytes): (usize, usize),
    time: u32,
) -> Outcome<()> {
    let mut body = String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
    for row in 0..rows {
        let key = format!("PartitionKey='{partition}',RowKey='{row:02}'");
        let (line, header) = match time {
            1 => (format!("POST {base_url}"), "Prefer: return-no-content"),
            _ => (format!("PUT {base_url}({key})"), "If-Match: *"),
        };
        let seed = digest(&format!("{partition}/{row}/{time}"));
        body.push_str(&groups::change_of_group(&line, header, &entity(partition, row, seed, size_bytes)));
    }
    body.push_str(groups::END_OF_GROUP);
    match groups::send(router, body.as_bytes(), rows, &AtomicBool::new(false)) {
        GroupSent::Done(_) => Ok(()),
        GroupSent::Refused(_, why) | GroupSent::NotDone(why) | GroupSent::Unknown(why) => Err(why.into()),
    }
}

fn entity(partition: &str, row: usize, seed: u64, size_bytes: usize) -> String {
    let text = STANDARD.encode(content(seed, size_bytes * 3 / 4));
    let (low, is_odd, fraction) = (seed % 100_000, seed & 1 == 1, (seed % 1000) as f64 + 0.5);
    format!(
        "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row:02}\",\"N\":{low},\"B\":{is_odd},\"F\":{fraction},\
         \"L@odata.type\":\"Edm.Int64\",\"L\":\"{seed_text}\",\"G@odata.type\":\"Edm.Guid\",\
         \"G\":\"{seed:08x}-0000-4000-8000-{low:012}\",\"D@odata.type\":\"Edm.Binary\",\"D\":\"{bytes}\",\"T\":\"{text}\"}}",
        seed_text = seed >> 1,
        seed = seed as u32,
        bytes = STANDARD.encode(seed.to_le_bytes()),
    )
}
