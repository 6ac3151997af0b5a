//! The stores for real: one set of rules for each of the two traits, over every implementation and over the
//! models of `stamp_streams`; and what each implementation has of its own.
//!
//! etcd is Debian's package `etcd-server`, started by the tests. S3 is a small server in this process; with
//! `LARIMAR_TEST_S3_ENDPOINT`, `LARIMAR_TEST_S3_BUCKET` and credentials in the usual variables the same rules
//! run over a real one (`real_s3.rs`).
#![allow(clippy::disallowed_methods)] // Servers of the tests have clocks, tasks and sockets of their own.

mod credentials;
mod etcd;
mod etcd_server;
mod etcd_tls;
mod folder;
mod key_rules;
mod object_rules;
mod real_s3;
mod s3;
mod s3_server;
mod tls_files;

// The models, so that they are held to the same rules.
#[allow(dead_code)]
#[path = "../../../stamp_streams/tests/cluster/keys.rs"]
mod keys;
#[allow(dead_code)]
#[path = "../../../stamp_streams/tests/cluster/network.rs"]
mod network;
#[allow(dead_code)]
#[path = "../../../stamp_streams/tests/cluster/objects.rs"]
mod objects;

use base::system::SystemDisk;
use http_client::Surroundings;
use parking_lot::Mutex;
use stamp_stores::StoreSurroundings;
use std::path::Path;
use std::sync::Arc;

/// Real surroundings with these variables and no others.
fn surroundings(variables: &[(&str, &str)]) -> StoreSurroundings {
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    StoreSurroundings {
        http: Surroundings::system(),
        disk: Arc::new(SystemDisk::new(Path::new("/"))),
        variables: Arc::new(owned.collect()),
    }
}

/// The model of a link in fine weather.
fn calm_link() -> Arc<network::Link> {
    let weather = Arc::new(Mutex::new(network::Weather::CALM));
    Arc::new(network::Link::new(&sim::SimRandom::new(7), &weather))
}

/// The models of both stores keep the rules that the real ones do.
#[tokio::test(flavor = "multi_thread")]
async fn the_models_keep_the_rules() {
    let store = Arc::new(objects::SimObjects::new(std::time::Duration::ZERO));
    let model = Arc::new(objects::HostObjects { store, link: calm_link() });
    object_rules::hold(model, "model").await;
    let store = Arc::new(keys::SimKeys::new(stamp::StampId(1), false));
    let model = Arc::new(keys::HostKeys { store, link: calm_link() });
    key_rules::hold(model, "model/").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_rules() {
    let settings = stamp_stores::ObjectStoreSettings::default();
    let opened = stamp_stores::open_object_store("memory:", &settings, &surroundings(&[])).await;
    let opened = opened.expect("a store");
    object_rules::hold(opened.store.clone(), "memory").await;
    assert_eq!(opened.check_first_start().await, Ok(Vec::new()));
}
