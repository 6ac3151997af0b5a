//! What joins a process to a stamp, as typed.

use crate::arguments::byte_size::parse_byte_size;
use clap::Args;
use std::path::PathBuf;

/// A stamp, and where it is kept: of a process that joins it, and of commands that look at it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StampArguments {
    /// The stamp of this name, which several processes keep in an object store and etcd. The server joins it,
    /// and makes it if neither has it
    #[arg(long, value_name = "NAME")]
    pub(crate) stamp: Option<String>,

    /// Where a stamp's bytes are: s3://BUCKET[/PREFIX], or file:///DIR of a file system that all its
    /// processes share. Credentials come from AWS_ACCESS_KEY_ID and what else the AWS tools read
    #[arg(long, value_name = "URL", requires = "stamp")]
    pub(crate) store: Option<String>,

    /// Where the bucket is, as http://HOST[:PORT] or of https. Without it AWS_ENDPOINT_URL_S3, and then AWS
    #[arg(long, value_name = "URL", requires = "stamp")]
    pub(crate) store_endpoint: Option<String>,

    /// The bucket's region. Without it AWS_REGION, and then us-east-1
    #[arg(long, value_name = "REGION", requires = "stamp")]
    pub(crate) store_region: Option<String>,

    /// The bucket is in the path of addresses, and not in the host's name
    #[arg(long, requires = "stamp")]
    pub(crate) store_path_style: bool,

    /// Certificates that the object store is trusted by, in PEM form. Without it AWS_CA_BUNDLE, and then
    /// those of the system
    #[arg(long, value_name = "FILE", requires = "stamp")]
    pub(crate) store_ca_file: Option<String>,

    /// Where a stamp's leases and documents are: the members of etcd, http://HOST:2379 or of https. User,
    /// password and certificates come from ETCDCTL_USER, ETCDCTL_PASSWORD, ETCDCTL_CACERT, ETCDCTL_CERT and
    /// ETCDCTL_KEY
    #[arg(long, value_name = "URL[,URL]", requires = "stamp")]
    pub(crate) etcd: Option<String>,

    /// How long a process of a stamp is taken to live after it was heard of last: another serves then. A
    /// number of seconds
    #[arg(long, value_name = "SECONDS", default_value = "10s", value_parser = parse_seconds)]
    pub(crate) lease: u64,
}

/// What a server of a stamp keeps on a local disk.
#[derive(Clone, Debug, Args)]
pub(crate) struct StampCacheArguments {
    /// A folder of its own on a local disk for blocks that were read from the object store, so that they need
    /// not be fetched again. It is made if it does not exist, and may be lost
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    /// Bytes that this folder may have; the oldest go first, and a GiB of its disk stays free
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = parse_byte_size)]
    pub(crate) cache_size: u64,
}

/// The shortest and the longest lease, in seconds: a second less is what a process has of it.
const LEASE_SECONDS: std::ops::RangeInclusive<u64> = 3..=600;

/// A number of seconds, with or without an s behind it.
pub(crate) fn parse_seconds(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    number.filter(|seconds| LEASE_SECONDS.contains(seconds)).ok_or_else(|| {
        format!(
            "give a number of seconds from {} to {}, such as 10s",
            LEASE_SECONDS.start(),
            LEASE_SECONDS.end()
        )
    })
}
