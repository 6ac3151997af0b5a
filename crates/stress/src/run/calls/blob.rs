//! Operations on the blobs of one container.

use super::filler::Filler;
use crate::measure::recorder::{Failure, Outcome, Recorder};
use crate::workload::chance::Chance;
use crate::workload::key_space::{Distribution, KeySpace};
use crate::workload::keys::{FIRST_ROW, Key};
use crate::workload::mix::Sizes;
use crate::workload::operation::OperationKind;
use std::ops::Range;
use std::sync::Arc;
use storage_client::{BlobWrite, ContainerClient, Error};

/// A client of a container.
pub(crate) struct BlobCaller {
    pub(crate) container: ContainerClient,
    pub(crate) keys: Arc<KeySpace>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) sizes: Sizes,
    pub(crate) filler: Filler,
    pub(crate) chance: Chance,
}

/// The size of the blob of a key, whoever put it last.
pub(crate) fn blob_size(key: &Key, sizes: &Sizes) -> u64 {
    sizes.of_item(key.row.abs_diff(FIRST_ROW))
}

/// Its name.
pub(crate) fn blob_name(key: &Key) -> String {
    let mut name = String::new();
    key.write_row(&mut name);
    name
}

impl BlobCaller {
    pub(crate) async fn call(&mut self, kind: OperationKind) -> Outcome {
        let is_ordered =
            matches!(self.keys.plan().distribution, Distribution::Append | Distribution::Prepend);
        let (place, key) = if kind == OperationKind::Put && is_ordered {
            (None, self.new_key())
        } else {
            let number = self.keys.draw(&mut self.chance);
            (Some(number as usize), Some(self.keys.loaded(number)))
        };
        let Some(key) = key else { unreachable!("each new row has a key") };
        let size = blob_size(&key, &self.sizes);
        let result = match kind {
            OperationKind::Put => self.put(&key, size).await.map_err(Failure::from),
            OperationKind::Range => {
                let range = self.range(size);
                self.read(&key, Some(range)).await
            }
            _ => self.read(&key, None).await,
        };
        let bytes = *result.as_ref().unwrap_or(&0);
        Outcome { kind, items: 1, bytes, place, failure: result.err() }
    }

    fn new_key(&mut self) -> Option<Key> {
        let key = self.keys.new_rows(1, &mut self.chance).next();
        if let Some(key) = &key {
            self.recorder.inserts("", &blob_name(key), 1);
        }
        key
    }

    async fn put(&self, key: &Key, size: u64) -> Result<u64, Error> {
        let blob = self.container.blob(blob_name(key));
        blob.put(self.filler.bytes(size), &BlobWrite::default()).await.map(|_| size)
    }

    /// A range of the blob, of the size that is wanted or, if the blob is smaller, all of it.
    fn range(&mut self, size: u64) -> Range<u64> {
        let length = self.sizes.range_size_bytes.min(size);
        let start = self.chance.below(size - length + 1);
        start..start + length
    }

    /// Its bytes, none of which is kept.
    async fn read(&self, key: &Key, range: Option<Range<u64>>) -> Result<u64, Failure> {
        let wanted = range.as_ref().map_or(blob_size(key, &self.sizes), |range| range.end - range.start);
        let mut download = self.container.blob(blob_name(key)).download(range).await?;
        let mut bytes = 0;
        while let Some(part) = download.part().await? {
            bytes += part.len() as u64;
        }
        if bytes == wanted { Ok(bytes) } else { Err(Failure::Wrong("a blob has another size than was put")) }
    }
}
