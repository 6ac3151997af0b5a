//! The settings of a stamp of several processes.

use crate::arguments::stamp_arguments::{LEASE_SECONDS, REPLAY_SIZE_BYTES_MIN, TIMEOUT_SECONDS};
use crate::settings::kind::Kind;
use crate::settings::setting::{PLAIN, Setting};

/// What those of this file have in common.
const OF_STAMP: Setting = Setting { group: "Stamp", ..PLAIN };

/// What the times of requests have in common.
const TIMEOUT: Setting = Setting {
    operand: "SECONDS",
    kind: Kind::Seconds { least: *TIMEOUT_SECONDS.start(), most: *TIMEOUT_SECONDS.end() },
    unit: "seconds",
    unset: "5s, or the lease if that is shorter",
    example: "10s",
    ..OF_STAMP
};

pub(super) const STAMP: Setting = Setting {
    key: "stamp",
    flag: "--stamp",
    operand: "NAME",
    unset: "the data is in the folder, or in memory",
    example: "prod",
    meaning: "join the stamp of this name, which several processes keep; it is made if store and etcd hold none. \
              Not together with data or in_memory",
    ..OF_STAMP
};

pub(super) const STORE: Setting = Setting {
    key: "store",
    flag: "--store",
    operand: "URL",
    unset: "there is none",
    example: "s3://bucket/prefix",
    meaning: "where a stamp's bytes are: a bucket, or `file:///DIR` of a file system that all its processes share",
    ..OF_STAMP
};

pub(super) const STORE_ENDPOINT: Setting = Setting {
    key: "store_endpoint",
    flag: "--store-endpoint",
    operand: "URL",
    unset: "`AWS_ENDPOINT_URL_S3`, and then AWS itself",
    example: "http://127.0.0.1:7480",
    meaning: "where the bucket is",
    ..OF_STAMP
};

pub(super) const STORE_REGION: Setting = Setting {
    key: "store_region",
    flag: "--store-region",
    operand: "REGION",
    unset: "`AWS_REGION`, and then us-east-1",
    example: "us-east-1",
    meaning: "the bucket's region",
    ..OF_STAMP
};

pub(super) const STORE_PATH_STYLE: Setting = Setting {
    key: "store_path_style",
    flag: "--store-path-style",
    kind: Kind::Switch,
    default: "false",
    meaning: "the bucket is in the path of addresses, and not in the host's name; so it is anyway with an endpoint",
    ..OF_STAMP
};

pub(super) const STORE_CA_FILE: Setting = Setting {
    key: "store_ca_file",
    flag: "--store-ca-file",
    operand: "FILE",
    unset: "`AWS_CA_BUNDLE`, and then the system's",
    example: "store-ca.pem",
    meaning: "certificates that the object store is trusted by, in PEM form",
    ..OF_STAMP
};

pub(super) const ETCD: Setting = Setting {
    key: "etcd",
    flag: "--etcd",
    operand: "URL[,URL]",
    unset: "there is none",
    example: "http://127.0.0.1:2379",
    meaning: "where a stamp's leases and documents are: the members of etcd. User, password and certificates come \
              from `ETCDCTL_USER`, `ETCDCTL_PASSWORD`, `ETCDCTL_CACERT`, `ETCDCTL_CERT` and `ETCDCTL_KEY`",
    ..OF_STAMP
};

pub(super) const LEASE: Setting = Setting {
    key: "lease",
    flag: "--lease",
    operand: "SECONDS",
    kind: Kind::Seconds { least: *LEASE_SECONDS.start(), most: *LEASE_SECONDS.end() },
    unit: "seconds",
    default: "10s",
    meaning: "how long a process of a stamp is taken to live after it was heard of last: another serves then. The \
              same for all of its processes",
    ..OF_STAMP
};

pub(super) const STORE_TIMEOUT: Setting = Setting {
    key: "store_timeout",
    flag: "--store-timeout",
    meaning: "how long one request to the object store may take, with what it sends, before it is sent again; at \
              most the lease. A log has up to 64 MiB under way at once, which take 5.4 s on a line of 100 Mbit/s",
    ..TIMEOUT
};

pub(super) const ETCD_TIMEOUT: Setting = Setting {
    key: "etcd_timeout",
    flag: "--etcd-timeout",
    meaning: "how long one request to etcd may take, another member included; at most the lease. What tells that \
              a process lives has a sixth of the lease, whatever this is",
    ..TIMEOUT
};

pub(super) const STAMP_REPLAY_MAX: Setting = Setting {
    key: "stamp_replay_max",
    flag: "--stamp-replay-max",
    operand: "SIZE",
    kind: Kind::Size { least: REPLAY_SIZE_BYTES_MIN },
    unit: "bytes",
    default: "512MiB",
    meaning: "of a stamp: bytes of changes that may be in its logs and in no checkpoint, all ranges together, which \
              whoever takes the stamp reads. Checkpoints are begun at half of it, or at a group of writes for \
              each 64 KiB of that half, writers wait at the whole; what it \
              leaves of the memory budget's part for them is the cache's",
    ..OF_STAMP
};

pub(super) const CACHE: Setting = Setting {
    key: "cache",
    flag: "--cache",
    operand: "DIR",
    kind: Kind::Path,
    unset: "nothing is kept on a local disk",
    example: "/var/cache/larimar",
    meaning: "folder of its own for blocks that were read from the object store; made if missing, may be lost",
    ..OF_STAMP
};

pub(super) const CACHE_SIZE: Setting = Setting {
    key: "cache_size",
    flag: "--cache-size",
    operand: "SIZE",
    kind: Kind::Size { least: 0 },
    unit: "bytes",
    default: "16GiB",
    meaning: "bytes that the cache's folder may have, at least 512 MiB; a GiB of its disk stays free",
    ..OF_STAMP
};
