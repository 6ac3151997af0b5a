//! What joins a process to a stamp, as typed.

use crate::arguments::byte_size::parse_byte_size;
use clap::Args;
use std::ops::RangeInclusive;
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

    /// How long one request to the object store may take, with what it sends, before it is sent again: more
    /// for a slow line, at most the lease. Without it 5s, or the lease if that is shorter
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout, requires = "stamp")]
    pub(crate) store_timeout: Option<u64>,

    /// How long one request to etcd may take, at most the lease; what tells that a process lives has a sixth
    /// of the lease. Without it 5s, or the lease if that is shorter
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout, requires = "stamp")]
    pub(crate) etcd_timeout: Option<u64>,
}

/// What a server of a stamp is set to beside what commands take.
#[derive(Clone, Debug, Args)]
pub(crate) struct StampServerArguments {
    /// Bytes of changes that may be in a stamp's logs and in no checkpoint, all ranges together: whoever
    /// takes the stamp reads them. Checkpoints are begun at half of it, writers wait at the whole
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_replay_max)]
    pub(crate) stamp_replay_max: u64,

    /// A folder of its own on a local disk for blocks that were read from the object store, so that they need
    /// not be fetched again. It is made if it does not exist, and may be lost
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    /// Bytes that this folder may have; the oldest go first, and a GiB of its disk stays free
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = parse_byte_size)]
    pub(crate) cache_size: u64,
}

/// The least of `--stamp-replay-max`: memory tables of a quarter of it are worth a checkpoint.
pub(crate) const REPLAY_SIZE_BYTES_MIN: u64 = 32 << 20;

fn parse_replay_max(text: &str) -> Result<u64, String> {
    let size = parse_byte_size(text)?;
    match size >= REPLAY_SIZE_BYTES_MIN {
        true => Ok(size),
        false => Err(format!("give at least {} MiB", REPLAY_SIZE_BYTES_MIN >> 20)),
    }
}

/// The shortest and the longest lease, in seconds: a second less is what a process has of it.
pub(crate) const LEASE_SECONDS: RangeInclusive<u64> = 3..=600;
/// The shortest and the longest time of a request to a store, in seconds.
pub(crate) const TIMEOUT_SECONDS: RangeInclusive<u64> = 1..=600;

/// A lease time: a number of seconds, with or without an s behind it.
pub(crate) fn parse_seconds(text: &str) -> Result<u64, String> {
    parse_seconds_in(text, &LEASE_SECONDS)
}

/// The time of a request, in the same form.
pub(crate) fn parse_timeout(text: &str) -> Result<u64, String> {
    parse_seconds_in(text, &TIMEOUT_SECONDS)
}

/// A number of seconds in these bounds, with or without an s behind it.
pub(crate) fn parse_seconds_in(text: &str, bounds: &RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let (least, most) = (bounds.start(), bounds.end());
    number
        .filter(|seconds| bounds.contains(seconds))
        .ok_or_else(|| format!("give a number of seconds from {least} to {most}, such as 10s"))
}
