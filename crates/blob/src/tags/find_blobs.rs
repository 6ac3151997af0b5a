//! Finding blobs by their tags, in one container or in all of an account.
//!
//! There is no index: blobs are walked over, container by container in the order of their names. What always
//! holds: one answer walks over a bounded number of rows, however many containers they lie in, and its
//! marker, `CONTAINER!PLACE`, says where the next one goes on.

use crate::blob_service::BlobService;
use crate::container::container_row::ContainerRow;
use crate::error::BlobError;
use crate::listing::{FoundBlob, WALKED_ROWS_MAX, find_in_container};
use crate::tags::tag_filter::TagFilter;

/// Rows that looking into a container counts as, besides those in it: an account may have any number of empty
/// ones.
const CONTAINER_ROWS: usize = 100;
/// Containers that are read at a time: not many more than one answer looks into.
const CONTAINERS_AT_ONCE_MAX: usize = WALKED_ROWS_MAX / CONTAINER_ROWS;

/// Where an answer ends that has not come to this place in a container; `""`: its beginning.
fn to_marker(container: &str, place: &str) -> String {
    format!("{container}!{place}")
}

/// The container and the place in it.
fn from_marker(marker: &str) -> Result<(&str, &str), BlobError> {
    marker.split_once('!').ok_or(BlobError::InvalidMarker)
}

impl BlobService {
    /// Blobs of one container, or of all, with such tags, and where the search goes on. It may end, with few
    /// blobs or none, because it walked over many rows.
    pub async fn find_by_tags(
        &self,
        account: &str,
        container: Option<&ContainerRow>,
        filter: &TagFilter,
        marker: Option<&str>,
        max: usize,
    ) -> Result<(Vec<FoundBlob>, Option<String>), BlobError> {
        self.find_by_tags_within(account, container, filter, marker, max, WALKED_ROWS_MAX).await
    }

    /// As [`Self::find_by_tags`], over about so many rows.
    async fn find_by_tags_within(
        &self,
        account: &str,
        container: Option<&ContainerRow>,
        filter: &TagFilter,
        marker: Option<&str>,
        max: usize,
        rows_max: usize,
    ) -> Result<(Vec<FoundBlob>, Option<String>), BlobError> {
        let marker = marker.filter(|marker| !marker.is_empty()).map(from_marker).transpose()?;
        let only = match (container, filter.container()) {
            (Some(container), _) => Some(container.clone()),
            (None, Some(name)) => match self.container(account, name).await {
                Ok(container) => Some(ContainerRow::clone(&container)),
                Err(
                    BlobError::ContainerNotFound | BlobError::NameLength | BlobError::InvalidResourceName,
                ) => return Ok((Vec::new(), None)),
                Err(error) => return Err(error),
            },
            (None, None) => None,
        };
        let mut from = marker.map(|(name, _)| name.to_owned());
        let (mut found, mut rows_left, mut is_first) = (Vec::new(), rows_max, true);
        loop {
            let (containers, next) = match &only {
                Some(only) => (vec![only.clone()], None),
                None => {
                    let (from, max) = (from.as_deref(), CONTAINERS_AT_ONCE_MAX);
                    self.list_containers_within(account, "", from, max, true, rows_max as u64).await?
                }
            };
            let led_over_deleted = containers.len() < CONTAINERS_AT_ONCE_MAX;
            for container in containers {
                let name = container.name.as_str();
                // The first one is looked into, or the search would not get on.
                if !std::mem::take(&mut is_first) && rows_left <= CONTAINER_ROWS {
                    return Ok((found, Some(to_marker(name, ""))));
                }
                rows_left = rows_left.saturating_sub(CONTAINER_ROWS).max(1);
                let place = marker.filter(|(of, _)| *of == name).map(|(_, place)| place);
                let left = max - found.len();
                let (more, next) = find_in_container(
                    &self.partitions,
                    account,
                    (name, container.id),
                    filter,
                    place,
                    left,
                    &mut rows_left,
                )
                .await?;
                found.extend(more);
                if let Some(next) = next {
                    return Ok((found, Some(to_marker(name, &next))));
                }
            }
            match next {
                // They took as many rows as one answer may.
                Some(next) if led_over_deleted => return Ok((found, Some(to_marker(&next, "")))),
                Some(next) => from = Some(next),
                None => return Ok((found, None)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::NewBlob;
    use crate::blob_service::VersionedAccounts;
    use crate::container::container_row::PublicAccess;
    use crate::name::Pairs;
    use crate::rows::record::BlobType;
    use bytes::Bytes;
    use partition::{
        Decision, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowChange, RowVersion, Rows,
    };
    use service::SERVICE_BLOB;
    use service::container::container_key;
    use sim::World;
    use std::sync::Arc;
    use stream::{StreamSettings, Streams};

    const ACCOUNT: &str = "acct";
    const BLOBS: usize = 3;

    async fn make_container(service: &BlobService, name: &str) {
        let made =
            service.create_container(ACCOUNT, name, Pairs::new(), PublicAccess::None, Default::default());
        made.await.unwrap();
    }

    /// A container with blobs, of which the last one has the tag.
    async fn fill(service: &BlobService, container: &str) {
        make_container(service, container).await;
        let row = service.container(ACCOUNT, container).await.unwrap();
        for number in 0..BLOBS {
            let at = service.blob(ACCOUNT, &row, &number.to_string()).unwrap();
            let mut upload = service.upload(&at, true, false);
            upload.write(Bytes::from_static(b"x")).await.unwrap();
            let tags = (number == BLOBS - 1).then(|| ("a".to_owned(), "1".to_owned()));
            let new = NewBlob { tags: tags.into_iter().collect(), ..NewBlob::default() };
            let uploaded = upload.finish().await.unwrap();
            service.put_blob(&at, BlobType::Block, uploaded, new, Default::default()).await.unwrap();
        }
    }

    /// Leaves rows of deleted containers behind.
    struct DeleteContainers(Vec<String>);

    impl Operation for DeleteContainers {
        type Reply = ();

        fn object_table(&self) -> ObjectTable {
            ObjectTable::Container
        }

        fn reads(&self) -> Vec<Read> {
            vec![Read::Point(container_key(ACCOUNT, SERVICE_BLOB, ""))]
        }

        fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
            let keys = self.0.iter().map(|name| container_key(ACCOUNT, SERVICE_BLOB, name));
            Decision { changes: keys.map(|key| RowChange::Delete { key }).collect(), reply: () }
        }
    }

    /// The containers with what was found, and how many answers that took.
    async fn search(service: &BlobService, text: &str, max: usize, rows_max: usize) -> (Vec<String>, usize) {
        let filter = TagFilter::parse(text, true).unwrap();
        let (mut all, mut answers, mut marker) = (Vec::new(), 0, None);
        loop {
            let page =
                service.find_by_tags_within(ACCOUNT, None, &filter, marker.as_deref(), max, rows_max).await;
            let (found, next) = page.unwrap();
            assert!(found.len() <= max);
            assert!(next.is_none() || next != marker, "it gets on");
            all.extend(found.into_iter().map(|blob| blob.container));
            answers += 1;
            marker = next;
            if marker.is_none() {
                return (all, answers);
            }
        }
    }

    /// Each container had a bound of its own: a search of an account with many of them never ended.
    #[test]
    fn one_answer_walks_over_so_many_rows_in_however_many_containers() {
        World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let partitions = Partitions::open(&env, streams, PartitionSettings::tiny()).await.unwrap();
            let partitions = Arc::new(partitions);
            let service =
                BlobService::new(partitions.clone(), env.clock.clone(), VersionedAccounts::default());
            let names: Vec<String> = (0..12).map(|number| format!("box{number:02}")).collect();
            for (number, name) in names.iter().enumerate() {
                match number % 2 {
                    0 => fill(&service, name).await,
                    _ => make_container(&service, name).await,
                }
            }
            let full: Vec<String> = names.iter().step_by(2).cloned().collect();
            let one = CONTAINER_ROWS;
            // The tag is that of one blob of three of every other container. The least bound lets one row be
            // walked over.
            for (text, max, rows_max, expected, answers) in [
                ("a='1'", 100, 1_000_000, &full[..], 1),
                ("a='1'", 100, 4 * one, &full[..], 4),
                ("a='1'", 100, 12 * one, &full[..], 2),
                ("a='1'", 100, one, &full[..], 24),
                ("a='1'", 100, 1, &full[..], 24),
                ("a='1'", 2, 1_000_000, &full[..], 3),
                ("a='2'", 100, 4 * one, &[], 4),
                ("@container='box04' and a='1'", 100, 1_000_000, &full[2..3], 1),
                ("@container='box04' and a='1'", 100, one, &full[2..3], 3),
                ("a='1' and @container='box05'", 100, one, &[], 1),
                ("a='1' and @container='nobody'", 100, one, &[], 1),
                ("a='1' and @container='No Name'", 100, one, &[], 1),
                ("a='1' and @container>='box08'", 100, 1_000_000, &full[4..], 1),
                ("@container='box04' and a='1' and @container='box06'", 100, 1_000_000, &[], 1),
            ] {
                let found = search(&service, text, max, rows_max).await;
                assert_eq!(found.0, expected, "{text}, {max} of {rows_max}");
                assert_eq!(found.1, answers, "answers: {text}, {max} of {rows_max}");
            }
            let filter = TagFilter::parse("a='1'", true).unwrap();
            let gone = service.find_by_tags(ACCOUNT, None, &filter, Some("box09a!00"), 100).await.unwrap();
            assert_eq!(gone.0.len(), 1, "from the next container on");
            let marker = service.find_by_tags(ACCOUNT, None, &filter, Some("box09"), 100).await;
            assert_eq!(marker, Err(BlobError::InvalidMarker));
            partitions.close().await;
        });
    }

    /// A search, and a list of containers, were led over all containers that were ever deleted: with very
    /// many of them they came too late for their client, each time from the same place.
    #[test]
    fn answers_end_among_very_many_deleted_containers_and_the_next_one_gets_on() {
        let done = World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let settings = PartitionSettings { compaction_count_min: 1000, ..PartitionSettings::tiny() };
            let partitions = Arc::new(Partitions::open(&env, streams, settings).await.unwrap());
            let service =
                BlobService::new(partitions.clone(), env.clock.clone(), VersionedAccounts::default());
            fill(&service, "before").await;
            fill(&service, "zbehind").await;
            let deleted = DeleteContainers((0..2000).map(|number| format!("m{number:04}")).collect());
            partitions.execute(deleted).await.unwrap();

            let (mut names, mut pages, mut marker) = (Vec::new(), 0, None);
            loop {
                let page =
                    service.list_containers_within(ACCOUNT, "", marker.as_deref(), 100, true, 800).await;
                let (rows, next) = page.unwrap();
                names.extend(rows.into_iter().map(|row| row.name));
                pages += 1;
                assert!(next.is_none() || next > marker, "it gets on");
                marker = next;
                if marker.is_none() {
                    break;
                }
            }
            assert_eq!((names, pages), (vec!["before".to_owned(), "zbehind".to_owned()], 3));
            let found = search(&service, "a='1'", 100, 800).await;
            assert_eq!(found, (vec!["before".to_owned(), "zbehind".to_owned()], 3));
            partitions.close().await;
        });
        assert!(done.is_some());
    }
}
