//! The layers, opened over a folder that stays as it is, and the names of the containers in it.
//!
//! What always holds: what opening the layers writes goes to a disk in memory over the folder.

use crate::places::ContainerNames;
use base::Environment;
use base::overlay_disk::OverlayDisk;
use partition::{
    ObjectTable, PartitionError, PartitionSettings, Partitions, RowRef, Scan, Visit, scan_stamp_streams,
};
use std::sync::Arc;
use stream::{StreamSettings, Streams};

/// The layers over a folder.
pub(crate) struct Opened {
    streams: Arc<Streams>,
    pub(crate) partitions: Partitions,
}

impl Opened {
    /// Opens them.
    pub(crate) async fn over(env: &Environment) -> Result<Self, PartitionError> {
        let env = &Environment { disk: Arc::new(OverlayDisk::new(env.disk.clone())), ..env.clone() };
        let settings =
            StreamSettings { scrub_bytes_per_second: 0, reserve_size_bytes: 0, ..StreamSettings::default() };
        let streams = Streams::open(env, settings).await?;
        match Partitions::open(env, streams.clone(), PartitionSettings::default()).await {
            Ok(partitions) => Ok(Opened { streams, partitions }),
            Err(error) => {
                streams.close().await;
                Err(error)
            }
        }
    }

    /// Closes them.
    pub(crate) async fn close(self) {
        self.partitions.close().await;
        self.streams.close().await;
    }
}

/// Names of the containers in the folder of `env`, as far as they can be read.
pub(crate) async fn container_names(env: &Environment) -> ContainerNames {
    let mut names = ContainerNames::default();
    let Ok(opened) = Opened::over(env).await else { return names };
    for range in opened.partitions.ranges(ObjectTable::Container) {
        // Where they can't be read, ids have to do.
        if let Ok((found, _)) =
            opened.partitions.scan(ObjectTable::Container, range, Find(names.clone())).await
        {
            names = found.0;
        }
    }
    opened.close().await;
    names
}

/// The same of the streams of a stamp, which are only read.
pub(crate) async fn container_names_of_stamp(
    env: &Environment,
    streams: &Arc<Streams>,
    names: ContainerNames,
) -> ContainerNames {
    scan_stamp_streams(env, streams, ObjectTable::Container, Find(names)).await.0
}

struct Find(ContainerNames);

impl Scan for Find {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.0.note(row.key, row.value);
        Visit::Continue
    }
}
