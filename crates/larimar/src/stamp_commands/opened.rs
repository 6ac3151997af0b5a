//! A stamp whose stores are open.

use crate::Failure;
use crate::arguments::stamp_arguments::StampArguments;
use crate::configuration::stamp::StampConfiguration;
use crate::stamp::stores::Stores;
use base::Environment;
use base::memory_disk::MemoryDisk;
use stamp_streams::{StampError, StampSnapshot, Surroundings, is_founded};
use std::sync::Arc;

/// A stamp whose stores are open.
pub(super) struct OpenedStamp {
    pub(super) name: String,
    pub(super) stores: Stores,
    pub(super) env: Environment,
}

impl OpenedStamp {
    /// That of the arguments; neither store is reached for yet.
    pub(super) async fn of(arguments: &StampArguments) -> Result<Self, Failure> {
        let configuration =
            StampConfiguration::of(arguments).map_err(|error| Failure::of_settings(&error))?;
        let missing =
            || Failure::of_words("--stamp NAME is needed, with --store URL and --etcd URL".to_owned());
        let configuration = configuration.ok_or_else(missing)?;
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let stores = Stores::open(&configuration, &env).await;
        let stores = stores.map_err(|error| Failure::of_settings(&error))?;
        Ok(OpenedStamp { name: configuration.name, stores, env })
    }

    pub(super) fn surroundings(&self) -> &Surroundings {
        &self.stores.surroundings
    }

    /// The stamp as it is now.
    pub(super) async fn snapshot(&self) -> Result<StampSnapshot, Failure> {
        match StampSnapshot::read(self.surroundings()).await {
            Ok(Some(snapshot)) => Ok(snapshot),
            Ok(None) if !self.is_founded().await? => {
                let name = &self.name;
                Err(Failure::of_words(format!("there is no stamp {name}: larimar stamp init makes it")))
            }
            Ok(None) => Err(Failure::of_work(&Changing)),
            Err(error) => Err(Failure::of_work(&error)),
        }
    }

    /// Whether etcd has the stamp. That the object store has one and etcd has not is a failure.
    pub(super) async fn is_founded(&self) -> Result<bool, Failure> {
        is_founded(self.surroundings()).await.map_err(|error| match error {
            StampError::Setup(why) => {
                Failure::of_work(&Lost(format!("{why}; larimar stamp restore-metadata rebuilds it")))
            }
            error => Failure::of_work(&error),
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the stamp is just being made or restored: try again")]
struct Changing;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Lost(String);

/// What could not be done, in words.
pub(crate) fn failed(line: String) -> Failure {
    Failure::of_work(&Lost(line))
}
