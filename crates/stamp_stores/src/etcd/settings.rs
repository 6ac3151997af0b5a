//! What can be set of etcd, each with its default.

use crate::secret::Secret;
use http_client::ConnectionSettings;
use std::time::Duration;

/// Connections to one member, at most.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection is kept without a request.
const IDLE_FOR: Duration = Duration::from_secs(60);
/// The longest wait for a connection: the next member is tried then, and all that within one try of
/// `stamp_streams`.
const CONNECT_FOR: Duration = Duration::from_secs(1);
/// The longest wait for the answer to a read, before the next member is tried.
const READ_FOR: Duration = Duration::from_secs(2);
/// The longest wait for the answer to a transaction: a change of the leader takes less than 2 s. It is not
/// sent again here.
const COMMIT_FOR: Duration = Duration::from_secs(4);
/// The longest wait for a change; shorter than [`stamp_streams::TRY_FOR`].
const WAIT_FOR: Duration = Duration::from_secs(4);

/// Settings of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValueSettings {
    /// What all keys begin with, so that several stamps share an etcd; may be empty.
    pub prefix: String,
    /// A file of certificates in PEM form that members are trusted by, and no others. Without it
    /// `ETCDCTL_CACERT`, and then those of the system.
    pub ca_file: Option<String>,
    /// The client's certificate in PEM form. Without it `ETCDCTL_CERT`.
    pub certificate_file: Option<String>,
    /// Its key. Without it `ETCDCTL_KEY`.
    pub key_file: Option<String>,
    /// A user of etcd. Without it `ETCDCTL_USER`.
    pub user: Option<String>,
    /// The user's password. Without it `ETCDCTL_PASSWORD`.
    pub password: Option<Secret>,
    /// Connections to one member, at most.
    pub connections_max: usize,
    /// How long a connection is kept without a request.
    pub idle_for: Duration,
    /// The longest wait for a connection.
    pub connect_for: Duration,
    /// The longest wait for the answer to a read, before the next member is tried.
    pub read_for: Duration,
    /// The longest wait for the answer to a transaction.
    pub commit_for: Duration,
    /// The longest wait for a change.
    pub wait_for: Duration,
}

impl Default for KeyValueSettings {
    fn default() -> Self {
        KeyValueSettings {
            prefix: String::new(),
            ca_file: None,
            certificate_file: None,
            key_file: None,
            user: None,
            password: None,
            connections_max: CONNECTIONS_MAX,
            idle_for: IDLE_FOR,
            connect_for: CONNECT_FOR,
            read_for: READ_FOR,
            commit_for: COMMIT_FOR,
            wait_for: WAIT_FOR,
        }
    }
}

impl KeyValueSettings {
    /// Bounds of connections whose answers come in parts within `part_for`.
    pub(crate) fn connections(&self, part_for: Duration) -> ConnectionSettings {
        ConnectionSettings {
            connections_max: self.connections_max,
            idle_for: self.idle_for,
            connect_for: self.connect_for,
            permit_for: self.read_for,
            part_for,
        }
    }
}
