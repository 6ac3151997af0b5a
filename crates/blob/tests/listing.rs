//! Listings in pages of any size say what one page says. On the simulated disk, in virtual time.

use base::Environment;
use blob::{
    BlobAt, BlobService, BlobType, Conditions, DeleteSnapshots, ListEntry, ListQuery, NewBlob, PublicAccess,
    Revision, VersionedAccounts,
};
use bytes::Bytes;
use partition::{PartitionSettings, Partitions};
use sim::World;
use std::sync::Arc;
use stream::{StreamSettings, Streams};

const ACCOUNT: &str = "acct";
/// More than a listing walks over before it jumps; from 10, so that ids have one length.
const MANY_BLOCKS: u32 = 50;

struct Stage {
    streams: Arc<Streams>,
    partitions: Arc<Partitions>,
    service: BlobService,
}

impl Stage {
    async fn open(env: &Environment) -> Stage {
        let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
        let partitions = Partitions::open(env, streams.clone(), PartitionSettings::tiny()).await.unwrap();
        let partitions = Arc::new(partitions);
        let versioned = VersionedAccounts([ACCOUNT.to_owned()].into());
        let service = BlobService::new(partitions.clone(), env.clock.clone(), versioned);
        let made = service
            .create_container(ACCOUNT, "box", Vec::new(), PublicAccess::None, Default::default())
            .await;
        made.unwrap();
        Stage { streams, partitions, service }
    }

    async fn at(&self, name: &str) -> BlobAt {
        let container = self.service.container(ACCOUNT, "box").await.unwrap();
        self.service.blob(ACCOUNT, &container, name).unwrap()
    }

    async fn upload(&self, at: &BlobAt, may_be_inline: bool) -> blob::Uploaded {
        let mut upload = self.service.upload(at, may_be_inline, false);
        upload.write(Bytes::from_static(b"x")).await.unwrap();
        upload.finish().await.unwrap()
    }

    /// Makes a blob as the letters say, in order: `p`ut, `s`napshot, `d`elete with the snapshots, stage a
    /// `b`lock, stage `m`any.
    async fn make(&self, name: &str, steps: &str) {
        let at = self.at(name).await;
        for step in steps.chars() {
            match step {
                'p' => {
                    let uploaded = self.upload(&at, true).await;
                    let put = self.service.put_blob(
                        &at,
                        BlobType::Block,
                        uploaded,
                        NewBlob::default(),
                        Default::default(),
                    );
                    drop(put.await.unwrap());
                }
                's' => drop(self.service.snapshot(&at, None, Conditions::default()).await.unwrap()),
                'd' => {
                    let (revision, snapshots) = (Revision::Current, DeleteSnapshots::Include);
                    let delete = self.service.delete(
                        &at,
                        revision,
                        snapshots,
                        Default::default(),
                        Conditions::default(),
                    );
                    delete.await.unwrap();
                }
                'b' => {
                    let uploaded = self.upload(&at, false).await;
                    let id = Bytes::from_static(b"1");
                    self.service.put_block(&at, id, uploaded, None, Default::default(), false).await.unwrap();
                }
                'm' => {
                    for number in 10..MANY_BLOCKS {
                        let uploaded = self.upload(&at, false).await;
                        let id = Bytes::from(number.to_string());
                        let put = self.service.put_block(&at, id, uploaded, None, Default::default(), false);
                        put.await.unwrap();
                    }
                }
                _ => unreachable!("a step that nobody knows"),
            }
        }
    }

    /// All entries, from pages of so many.
    async fn list(&self, query: &ListQuery, max: usize) -> Vec<ListEntry> {
        let container = self.service.container(ACCOUNT, "box").await.unwrap();
        let mut query = ListQuery { max, ..query.clone() };
        let mut entries = Vec::new();
        loop {
            let page = self.service.list_blobs(ACCOUNT, &container, query.clone()).await.unwrap();
            assert!(page.entries.len() <= max);
            entries.extend(page.entries);
            query.marker = page.marker;
            if query.marker.is_none() {
                return entries;
            }
        }
    }

    async fn close(self) {
        self.partitions.close().await;
        self.streams.close().await;
    }
}

/// Of blobs of which only versions were left, every other one was in no page if a page ended before it: the
/// page behind it began behind its versions.
#[test]
fn pages_of_any_size_say_what_one_page_says() {
    World::new(1).run(|env, _| async move {
        let stage = Stage::open(&env).await;
        let blobs = [
            ("a", "pd"),
            ("b", "ppd"),
            ("c", "pd"),
            ("d", "p"),
            ("e", "psd"),
            ("f/1", "pd"),
            ("f/2", "pppd"),
            ("g", "b"),
            ("h", "pdb"),
            ("i", "psps"),
            ("j", "pd"),
        ];
        for (name, steps) in blobs {
            stage.make(name, steps).await;
        }
        for flags in 0..32_u32 {
            let has = |bit: u32| flags & (1 << bit) != 0;
            let query = ListQuery {
                delimiter: has(4).then(|| "/".to_owned()),
                snapshots: has(0),
                uncommitted: has(1),
                versions: has(2),
                deleted_with_versions: has(3),
                ..ListQuery::default()
            };
            let whole = stage.list(&query, 100).await;
            assert!(!has(3) || whole.len() > 7, "{whole:?}");
            for max in 1..=whole.len() {
                assert_eq!(stage.list(&query, max).await, whole, "pages of {max}: {query:?}");
            }
        }
        stage.close().await;
    });
}

/// What a page by delimiter tells of these names, which are in order.
fn grouped(names: &[String], prefix: &str, delimiter: &str) -> Vec<String> {
    let shown = names.iter().filter_map(|name| {
        let rest = name.strip_prefix(prefix)?;
        let group = rest.find(delimiter).map(|at| prefix.len() + at + delimiter.len());
        Some(name[..group.unwrap_or(name.len())].to_owned())
    });
    let mut shown: Vec<String> = shown.collect();
    shown.dedup();
    shown
}

/// Jumps over groups and over the blocks of a blob: nothing beside them is left out. All names of up to three
/// letters.
#[test]
fn only_what_is_meant_is_jumped_over() {
    World::new(2).run(|env, _| async move {
        let stage = Stage::open(&env).await;
        let mut names = vec![String::new()];
        for _ in 0..3 {
            let longer =
                names.iter().flat_map(|name| ["/", "a", "b"].map(|letter| format!("{name}{letter}")));
            let longer: Vec<String> = longer.collect();
            names.extend(longer);
            names.sort();
            names.dedup();
        }
        names.retain(|name| !name.is_empty());
        for name in &names {
            stage.make(name, if name.starts_with('a') { "pm" } else { "p" }).await;
        }
        for prefix in ["", "a", "/", "ab", "b/", "c"] {
            for delimiter in ["/", "a", "b/", "//"] {
                let query = ListQuery {
                    prefix: prefix.to_owned(),
                    delimiter: Some(delimiter.to_owned()),
                    ..ListQuery::default()
                };
                let expected = grouped(&names, prefix, delimiter);
                for max in [1, 3, 100] {
                    let entries = stage.list(&query, max).await.into_iter().map(|entry| match entry {
                        ListEntry::Prefix(name) | ListEntry::Blob { name, .. } => name,
                    });
                    let shown: Vec<String> = entries.collect();
                    assert_eq!(shown, expected, "by {delimiter:?} behind {prefix:?}, pages of {max}");
                }
            }
        }
        stage.close().await;
    });
}
