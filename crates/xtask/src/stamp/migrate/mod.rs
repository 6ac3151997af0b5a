//! A data folder that becomes a stamp, and the stamp a folder again: `larimar migrate` is killed twice on
//! each way, and what is served afterwards is compared with what was served before.
//!
//! | file | content |
//! |---|---|
//! | `killed.rs` | a migration that is killed, and run again until it is done |
//! | `served.rs` | one server of a folder or of a stamp |
//! | `spoil.rs` | what the comparison must find |
//! | `clients.rs` | its clients, side by side |
//! | `rows.rs`, `files.rs`, `messages.rs` | what is filled and compared of each service |
//!
//! What always holds: a migration that ends before it could be killed so often has shown nothing, and is an
//! error; every row, blob, block list, message and receipt is compared, none is sampled.

mod clients;
mod files;
mod killed;
mod messages;
mod rows;
mod served;
mod spoil;

use super::arguments::{BreakKind, Plan, StoreKind};
use super::ceph::{self, Ceph};
use super::cluster::{StoreFlags, stamp_flags};
use super::etcd::{self, Etcd};
use super::proxy::Proxy;
use crate::Outcome;
use files::Files;
use killed::Migration;
use messages::Messages;
use rows::Rows;
use served::Served;
use std::path::Path;
use std::time::Instant;

/// Differences of a service that are printed.
const SHOWN_MAX: usize = 4;
/// Characters of one.
const SHOWN_LEN_MAX: usize = 300;

/// What is known of all three services.
struct Contents {
    rows: Rows,
    files: Files,
    messages: Messages,
}

pub(super) fn run(
    plan: &Plan,
    breaks: Option<BreakKind>,
    seed: u64,
    binary: &Path,
    folder: &Path,
) -> Outcome<()> {
    let started_at = Instant::now();
    etcd::set_up()?;
    let metadata = Etcd::start(plan.etcd_members, folder)?;
    let mut gateway = None;
    let store = match plan.store {
        StoreKind::File => {
            let objects = folder.join("store");
            std::fs::create_dir_all(&objects)?;
            StoreFlags::Folder(objects)
        }
        StoreKind::Ceph => {
            ceph::set_up()?;
            let ceph = Ceph::start(folder)?;
            let way = Proxy::start(ceph.address)?;
            let address = way.address;
            gateway = Some((ceph, way));
            StoreFlags::Gateway(address)
        }
    };
    let stamp = stamp_flags(&metadata.addresses(), &store, plan.lease);
    println!("up in {:.1?}", started_at.elapsed());
    let (source, target) = (folder.join("data"), folder.join("data-again"));
    let of_folder = |data: &Path| {
        let data = ["--data".to_owned(), data.display().to_string()];
        [data.as_slice(), &plan.server_arguments].concat()
    };
    let of_stamp = [stamp.as_slice(), &plan.server_arguments].concat();

    let server = Served::start("folder", binary, folder, of_folder(&source))?;
    let mut contents = fill(plan, &server)?;
    server.stop()?;

    let migration = |name, words: [&str; 2]| {
        let way = gateway.as_ref().map(|(_, way)| way);
        Migration { name, words: words.map(str::to_owned), stamp: &stamp, way }
    };
    let source_text = source.display().to_string();
    let size_bytes = killed::folder_bytes(&source.join("extents"))?;
    let into_stamp = migration("into-stamp", ["--from", &source_text]);
    let copied_bytes = into_stamp.run(binary, folder, size_bytes, seed)?;
    let server = Served::start("stamp", binary, folder, of_stamp)?;
    if let Some(kind) = breaks {
        spoil::spoil(&server, kind)?;
    }
    let mut differences = compare("the stamp", &server, &mut contents, false)?;
    server.stop()?;

    let target_text = target.display().to_string();
    let into_folder = migration("into-folder", ["--to", &target_text]);
    into_folder.run(binary, folder, copied_bytes, seed.rotate_left(32))?;
    let server = Served::start("folder-again", binary, folder, of_folder(&target))?;
    differences += compare("the folder", &server, &mut contents, true)?;
    server.stop()?;
    drop(gateway);
    println!(
        "migrated there and back: {differences} differences, in {:.1?}; seed {seed}",
        started_at.elapsed()
    );
    match differences {
        0 => Ok(()),
        count => Err(format!("{count} differences after a migration").into()),
    }
}

fn fill(plan: &Plan, server: &Served) -> Outcome<Contents> {
    let started_at = Instant::now();
    let rows = Rows::fill(server, (plan.entities, plan.row_size))?;
    let files = Files::fill(server, plan.blobs)?;
    let messages = Messages::fill(server, plan.messages)?;
    println!(
        "filled in {:.1?}: {} rows, {} blobs ({} with committed blocks, {} with uncommitted ones), {} messages, \
         half of them taken",
        started_at.elapsed(),
        rows.count(),
        files.count(),
        files.with_committed_blocks(),
        files.with_uncommitted_blocks(),
        messages.count(),
    );
    Ok(Contents { rows, files, messages })
}

/// Compares all, and answers how many differ; at the end uncommitted blocks are committed, too, and read.
fn compare(what: &str, server: &Served, contents: &mut Contents, is_last: bool) -> Outcome<usize> {
    let started_at = Instant::now();
    let mut differences = contents.rows.compare(server)?;
    let rows_took = started_at.elapsed();
    differences.extend(contents.files.compare(server, is_last)?);
    let files_took = started_at.elapsed() - rows_took;
    differences.extend(contents.messages.compare(server)?);
    println!(
        "compared {what}: {} rows with ETags in {rows_took:.1?}, {} blobs with block lists in {files_took:.1?}, {} \
         messages with receipts in {:.1?}: {} differences",
        contents.rows.count(),
        contents.files.count(),
        contents.messages.count(),
        started_at.elapsed() - rows_took - files_took,
        differences.len(),
    );
    for difference in differences.iter().take(SHOWN_MAX) {
        println!("      {}", difference.chars().take(SHOWN_LEN_MAX).collect::<String>());
    }
    Ok(differences.len())
}
