//! Every second of many blobs of 1 KiB is deleted: whether their space comes back.

use super::calls::call_all;
use super::{Stage, Verdict};
use crate::Outcome;
use crate::bench::blobs::{BLOCK_BLOB, CONTENT_TYPE};
use crate::client::service_client::ServiceClient;
use std::time::Duration;

const CONTAINER: &str = "churn";
const SIZE: usize = 1024;

/// Bytes that no two blobs share and that don't compress.
fn content(blob: u64) -> Vec<u8> {
    let mut state = blob;
    let words = (0..SIZE / 8).flat_map(|_| base::random::splitmix64(&mut state).to_le_bytes());
    words.collect()
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let blobs = stage.arguments.blobs;
    let path = |blob: u64| format!("{CONTAINER}/{blob:08}");
    let address = stage.server.blob_address.ok_or("the server has no Blob service")?;
    ServiceClient::connect(address, CONTENT_TYPE)?.expect(
        "PUT",
        CONTAINER,
        &[("restype", "container")],
        &[],
        b"",
        &[201],
    )?;
    let empty_mib = stage.empty_mib()?;
    let put_rate = call_all((address, CONTENT_TYPE), blobs, |client, blob| {
        client.expect("PUT", &path(blob), &[], &[BLOCK_BLOB], &content(blob), &[201]).map(drop)
    })?;
    std::thread::sleep(Duration::from_secs(stage.arguments.waits.quiet_seconds));
    let full_mib = stage.stored_mib()? - empty_mib;
    let delete_rate = call_all((address, CONTENT_TYPE), blobs / 2, |client, pair| {
        client.expect("DELETE", &path(2 * pair), &[], &[], b"", &[202]).map(drop)
    })?;
    std::thread::sleep(Duration::from_secs(stage.arguments.waits.space_seconds));
    let left_mib = stage.stored_mib()? - empty_mib;
    println!(
        "  {blobs} blobs put, {put_rate:.0}/s: {full_mib:.0} MiB; every second deleted, {delete_rate:.0}/s: {left_mib:.0} MiB"
    );
    let answer = ServiceClient::connect(address, CONTENT_TYPE)?.send("GET", &path(1), &[], &[], b"")?;
    if answer.body != content(1) {
        return Err("a blob beside deleted ones is not what was put".into());
    }
    // A quarter of the deleted half may stay.
    Ok(vec![Verdict::at_most("space of half of the blobs", left_mib, full_mib * 5.0 / 8.0, "MiB")])
}
