//! etcd over TLS, with a certificate of the client.

use crate::etcd_server::{EtcdOptions, EtcdServer};
use crate::key_rules::{commit, put, read};
use crate::surroundings;
use crate::tls_files::TlsFiles;
use stamp_stores::{KeyValueSettings, open_key_values};
use stamp_streams::Selection;

#[tokio::test(flavor = "multi_thread")]
async fn etcd_over_tls_with_a_certificate_of_the_client() {
    let Some(files) = TlsFiles::make() else { return };
    let tls: Vec<String> = [
        ("--cert-file", files.text("server.pem")),
        ("--key-file", files.text("server.key")),
        ("--trusted-ca-file", files.text("ca.pem")),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .chain(["--client-cert-auth".to_owned()])
    .collect();
    let server = EtcdServer::start_with(1, &EtcdOptions { tls: Some(&tls) });
    let urls = [format!("https://127.0.0.1:{}", server.ports()[0])];
    let with_ca = KeyValueSettings { ca_file: Some(files.text("ca.pem")), ..KeyValueSettings::default() };
    let whole = KeyValueSettings {
        certificate_file: Some(files.text("client.pem")),
        key_file: Some(files.text("client.key")),
        ..with_ca.clone()
    };
    let store = open_key_values(&urls, &whole, &surroundings(&[])).await.expect("a store").store;
    let key = Selection::Key("k".to_owned());
    let mut tries = 0;
    while store.read(std::slice::from_ref(&key)).await.is_err() {
        tries += 1;
        assert!(tries < 100, "etcd does not answer");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    commit(&*store, &put("k", "1")).await;
    assert_eq!(read(&*store, std::slice::from_ref(&key)).await.entries.len(), 1);
    // Without its certificate, and with the roots of the system, there is no answer.
    for settings in [with_ca, KeyValueSettings { ca_file: Some(files.text("client.pem")), ..whole.clone() }] {
        let store = open_key_values(&urls, &settings, &surroundings(&[])).await.expect("a store").store;
        assert!(store.read(std::slice::from_ref(&key)).await.is_err());
    }
    let half = KeyValueSettings { key_file: None, ..whole.clone() };
    assert!(open_key_values(&urls, &half, &surroundings(&[])).await.is_err());
    let by_variables = surroundings(&[
        ("ETCDCTL_CACERT", &files.text("ca.pem")),
        ("ETCDCTL_CERT", &files.text("client.pem")),
        ("ETCDCTL_KEY", &files.text("client.key")),
    ]);
    let opened = open_key_values(&urls, &KeyValueSettings::default(), &by_variables).await.expect("a store");
    assert_eq!(read(&*opened.store, &[key]).await.entries.len(), 1);
}
