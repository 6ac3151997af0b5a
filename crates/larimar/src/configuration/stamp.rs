//! What joins a process to a stamp, checked. Nothing is reached for here.

use crate::arguments::stamp_arguments::{StampArguments, StampServerArguments};
use stamp_stores::{KeyValueSettings, ObjectStoreSettings};
use stamp_streams::TRY_FOR;
use std::path::PathBuf;
use std::time::Duration;

/// Characters of a stamp's name, at most.
const NAME_LENGTH_MAX: usize = 63;

/// A stamp of several processes, and where it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StampConfiguration {
    /// Its name, which its place in both stores is made from.
    pub(crate) name: String,
    /// The URL of the object store.
    pub(crate) store: String,
    pub(crate) store_settings: ObjectStoreSettings,
    /// The URLs of etcd's members.
    pub(crate) etcd: Vec<String>,
    pub(crate) etcd_settings: KeyValueSettings,
    /// How long a process is taken to live after it was heard of last.
    pub(crate) lease: Duration,
    /// How long one request to the object store may take, and one to etcd: neither more than the lease.
    pub(crate) store_timeout: Duration,
    pub(crate) etcd_timeout: Duration,
    /// What is kept on a local disk, if anything is: of a server.
    pub(crate) cache: Option<CacheConfiguration>,
}

/// Blocks on a local disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheConfiguration {
    pub(crate) folder: PathBuf,
    pub(crate) size_bytes_max: u64,
}

/// The smallest cache: it goes in parts, of which some must be there.
const CACHE_SIZE_BYTES_MIN: u64 = 512 << 20;

/// Why a process can't join a stamp like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StampMistake {
    #[error("--stamp {0}: give 1 to {NAME_LENGTH_MAX} lower-case letters, digits and hyphens")]
    Name(String),
    #[error("--stamp needs {0}, too: {1}")]
    Missing(&'static str, &'static str),
    #[error(
        "{flag} {given}s is longer than --lease {lease}s: a process that can't reach the store would keep the stamp \
         from the others for longer than its lease; give a longer lease, or a shorter time"
    )]
    Timeout { flag: &'static str, given: u64, lease: u64 },
    #[error("--cache-size {0}: give at least {CACHE_SIZE_BYTES_MIN}, which is 512 MiB")]
    CacheSize(u64),
    #[error("--cache is for a server of a stamp: give --stamp, --store and --etcd, too, or leave it out")]
    CacheAlone,
}

/// How long one request may take, if a process has this lease: pure.
fn timeout(flag: &'static str, given: Option<u64>, lease: u64) -> Result<Duration, StampMistake> {
    match given {
        Some(given) if given > lease => Err(StampMistake::Timeout { flag, given, lease }),
        Some(given) => Ok(Duration::from_secs(given)),
        None => Ok(TRY_FOR.min(Duration::from_secs(lease))),
    }
}

impl StampConfiguration {
    /// None: the data is in a folder, or in memory.
    pub(crate) fn of(arguments: &StampArguments) -> Result<Option<Self>, StampMistake> {
        let Some(name) = arguments.stamp.clone() else { return Ok(None) };
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.bytes().all(is_good) {
            return Err(StampMistake::Name(name));
        }
        // A file of settings may have one without the other.
        let store = arguments.store.clone().ok_or(StampMistake::Missing("--store", "where its bytes are"))?;
        let etcd = arguments.etcd.clone();
        let etcd = etcd.ok_or(StampMistake::Missing("--etcd", "where its leases and documents are"))?;
        let store_timeout = timeout("--store-timeout", arguments.store_timeout, arguments.lease)?;
        let etcd_timeout = timeout("--etcd-timeout", arguments.etcd_timeout, arguments.lease)?;
        let etcd_settings = KeyValueSettings { prefix: "larimar/".to_owned(), ..KeyValueSettings::default() };
        Ok(Some(StampConfiguration {
            name,
            store,
            store_settings: ObjectStoreSettings {
                endpoint: arguments.store_endpoint.clone(),
                region: arguments.store_region.clone(),
                path_style: arguments.store_path_style.then_some(true),
                ca_file: arguments.store_ca_file.clone(),
                ..ObjectStoreSettings::default().with_try_for(store_timeout)
            },
            etcd: etcd.split(',').map(|url| url.trim().to_owned()).collect(),
            etcd_settings: etcd_settings.with_try_for(etcd_timeout),
            lease: Duration::from_secs(arguments.lease),
            store_timeout,
            etcd_timeout,
            cache: None,
        }))
    }

    /// The same with a cache, if one is wanted.
    pub(crate) fn with_cache(self, arguments: &StampServerArguments) -> Result<Self, StampMistake> {
        let Some(folder) = arguments.cache.clone() else { return Ok(self) };
        let size_bytes_max = arguments.cache_size;
        match size_bytes_max >= CACHE_SIZE_BYTES_MIN {
            true => {
                Ok(StampConfiguration { cache: Some(CacheConfiguration { folder, size_bytes_max }), ..self })
            }
            false => Err(StampMistake::CacheSize(size_bytes_max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(name: &str) -> StampArguments {
        StampArguments {
            stamp: Some(name.to_owned()),
            store: Some("s3://bucket".to_owned()),
            store_endpoint: None,
            store_region: None,
            store_path_style: false,
            store_ca_file: None,
            etcd: Some("http://a:2379, http://b:2379".to_owned()),
            lease: 10,
            store_timeout: None,
            etcd_timeout: None,
        }
    }

    /// A request that outlasts the lease would keep a stamp at a process that can't reach its store.
    #[test]
    fn times_of_requests_are_at_most_the_lease() {
        let refused = |given, lease| Err(StampMistake::Timeout { flag: "--store-timeout", given, lease });
        for (given, lease, found) in [
            (None, 10, Ok(5)),
            (None, 5, Ok(5)),
            (None, 3, Ok(3)),
            (Some(1), 10, Ok(1)),
            (Some(10), 10, Ok(10)),
            (Some(11), 10, refused(11, 10)),
            (Some(20), 30, Ok(20)),
        ] {
            let expected = found.map(Duration::from_secs);
            assert_eq!(timeout("--store-timeout", given, lease), expected, "{given:?} {lease}");
        }
        let slow = StampArguments { store_timeout: Some(8), etcd_timeout: Some(6), ..arguments("prod") };
        let stamp = StampConfiguration::of(&slow).unwrap().unwrap();
        assert_eq!([stamp.store_timeout, stamp.etcd_timeout], [8, 6].map(Duration::from_secs));
        assert_eq!(stamp.store_settings.answer_for, Duration::from_secs(16));
        assert_eq!(stamp.etcd_settings.commit_for, Duration::from_millis(4800));
    }

    #[test]
    fn names_and_places_are_checked() {
        let stamp = StampConfiguration::of(&arguments("prod-1")).unwrap().unwrap();
        assert_eq!(stamp.etcd, ["http://a:2379", "http://b:2379"]);
        for name in ["", "Prod", "a/b", "ä", &"a".repeat(64)] {
            assert_eq!(StampConfiguration::of(&arguments(name)), Err(StampMistake::Name(name.to_owned())));
        }
        let without = StampArguments { store: None, ..arguments("prod") };
        assert!(matches!(StampConfiguration::of(&without), Err(StampMistake::Missing("--store", _))));
        let without = StampArguments { etcd: None, ..arguments("prod") };
        assert!(matches!(StampConfiguration::of(&without), Err(StampMistake::Missing("--etcd", _))));
        let cache = StampServerArguments {
            cache: Some("near".into()),
            cache_size: 512 << 20,
            stamp_replay_max: 512 << 20,
        };
        let with = stamp.clone().with_cache(&cache).unwrap();
        assert_eq!(with.cache.unwrap().folder, PathBuf::from("near"));
        let small = StampServerArguments { cache_size: 1, ..cache };
        assert_eq!(stamp.with_cache(&small), Err(StampMistake::CacheSize(1)));
        let none = StampArguments { stamp: None, ..arguments("prod") };
        assert_eq!(StampConfiguration::of(&none), Ok(None));
    }
}
