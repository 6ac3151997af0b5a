//! What operations run on, and why one was not done.
//!
//! What always holds: an error is one line that says what to do, as far as that is known.

use shard_map::{CatalogError, ChangeError, Epoch, KeyError, Name, State};
use shard_mover::MoveError;
use shard_store::{CatalogHome, HomeError, LocalStores, PublishError, RecoverError, StoreError};

/// What operations run on.
pub struct Run {
    /// The home.
    pub home: CatalogHome,
    /// The shards that can be reached.
    pub shards: LocalStores,
    /// Whether only to show what would be done.
    pub is_dry: bool,
}

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The home failed or refused.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The change can't be made.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A publish failed.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// No map comes out of the copies.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// A shard's copy can't be read, without which a map would be wrong.
    #[error("the copy of shard `{0}` can't be read: {1}; mend that, or leave the shard out with --believe")]
    Copy(Name, StoreError),
    /// The description is of another catalog.
    #[error("the home has catalog `{there}`, and the file describes `{described}`")]
    OtherCatalog {
        /// In the home.
        there: Name,
        /// In the file.
        described: Name,
    },
    /// A part of the description is there, and is another.
    #[error(
        "{0} is there already and is not as the file describes it; add leaves it as it is, so take it out of the file"
    )]
    Differs(String),
    /// There is no such map.
    #[error("catalog `{catalog}` has no map `{map}`; it has {known}")]
    NoMap {
        /// The catalog.
        catalog: Name,
        /// The map.
        map: Name,
        /// Its maps.
        known: String,
    },
    /// The texts are no key of the map.
    #[error("map `{0}`: {1}")]
    Key(Name, KeyError),
    /// A key would be routed to a shard where its rows are not.
    #[error(
        "map `{map}`: the key's rows are on `{shard}` ({mapping}), and this moves none; use `larimar shard plan \
         move --alone`, or give --no-data if there are no rows or they are where it goes"
    )]
    LeavesRows {
        /// The map.
        map: Name,
        /// The mapping that has the key.
        mapping: String,
        /// Its shard.
        shard: Name,
    },
    /// Keys of virtual shards would be routed to a range's shard.
    #[error(
        "map `{0}`: the range takes keys from virtual shards, whose rows it does not move; give --no-data if \
         there are none"
    )]
    LeavesRange(Name),
    /// A key would leave a mapping that may be under a move, or come to one.
    #[error(
        "map `{map}`: {mapping} is {state}, perhaps because a move has it (`larimar shard status`); keys come \
         and go only while it is online"
    )]
    NotOnline {
        /// The map.
        map: Name,
        /// The mapping.
        mapping: String,
        /// Its state.
        state: State,
    },
    /// A move, a plan or a check failed.
    #[error(transparent)]
    Move(Box<MoveError>),
    /// A key of no mapping.
    #[error("map `{0}`: {1}")]
    NoRoute(Name, String),
    /// There is no such move.
    #[error("there is no move {0}; `larimar shard status` lists all")]
    NoMove(String),
    /// The map was changed since the plan.
    #[error(
        "catalog `{catalog}` is at epoch {there}, and the plan is of epoch {planned} or another catalog; plan anew"
    )]
    OldPlan {
        /// The catalog.
        catalog: Name,
        /// The plan's epoch.
        planned: Epoch,
        /// The home's.
        there: Epoch,
    },
    /// The plan was made with another schema.
    #[error("the plan was made with another schema; give the same one, or plan anew")]
    OtherSchema,
    /// The catalog that comes out is not right.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<MoveError> for OperationError {
    fn from(error: MoveError) -> Self {
        OperationError::Move(Box::new(error))
    }
}
