//! Tables, blobs and queues of any endpoint that speaks the Azure Storage protocol: the live service, its
//! emulators, Larimar.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use storage_client::{Entity, IfMatch, Query, StorageAccount, Value};
//!
//! let account = StorageAccount::from_connection_string("UseDevelopmentStorage=true")?;
//! let people = account.table("People");
//! people.create_if_absent().await?;
//! let etag = people.insert(&Entity::new("Europe", "ada").with("Born", 1815).with("Score", 2.5)).await?;
//! let older = Entity::new("Europe", "ada").with("Born", 1814);
//! people.merge(&older, &IfMatch::ETag(etag)).await?;
//!
//! let filter = format!("PartitionKey eq {}", Value::from("Europe").literal());
//! let mut entities = people.query(Query::matching(filter)).entities();
//! while let Some(entity) = entities.next().await? {
//!     println!("{} {:?}", entity.row_key, entity.value("Born"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Retries.** Each operation is retried as [`Settings::retry`] says (crate `retry`), with one
//! `x-ms-client-request-id` and a new date in each attempt. An operation is *repeatable* if doing it twice
//! changes nothing more than doing it once; all are, but putting a message, getting messages (each attempt
//! makes others invisible) and appending without a position. These three are sent again only if nothing of
//! them can have been done, or if the policy asks for it. Nothing was done if no connection was made or if
//! the answer is 429; `ServerBusy` leaves it open, because a service that does not know whether a change is
//! in its log answers so, too. Some repeatable operations answer a repetition with an error: an insert with
//! `EntityAlreadyExists`, a deletion with `ResourceNotFound`, a change of a version with an unmet condition.
//! Such an error is passed on, because only the caller can know whose entity it is; [`Error::may_be_done`]
//! then says that an attempt may have been this operation's own success.
//!
//! **Load.** [`TableClient::connection`] gives a table over one connection of the caller's own, which takes a
//! third of the processor time of the pool's; it sends the same requests, with the same retries.
//!
//! What always holds:
//!
//! * every operation ends: attempts, waits, time and sizes are bounded by named settings and constants;
//! * there are never more connections to an endpoint than [`Settings::connections_max`];
//! * certificates are always checked; neither a key nor a signature is printed or in an error;
//! * clock, chance, tasks and sockets are handed in ([`Surroundings`]).
//!
//! Absent: the layers of the server, of which this crate uses none but `base`; Entra ID; leases; copies.

mod account;
mod blob;
mod client;
mod course;
mod error;
mod list_page;
mod queue;
mod retry_observer;
mod service_error;
mod settings;
mod storage_account;
mod table;
mod wire;

pub use account::connection_string::{
    AccountAddress, ConnectionStringError, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME,
};
pub use account::credentials::{AccountKey, Credentials};
pub use account::endpoint::Service;
pub use account::table_sas::TableSas;
pub use blob::blob_client::{BlobBlock, BlobClient, BlockList};
pub use blob::container_client::{ContainerClient, ContainerProperties};
pub use blob::download::Download;
pub use blob::list::{BlobPage, BlobQuery, ContainerPage, ListedBlob};
pub use blob::properties::{BlobCondition, BlobProperties, BlobWrite};
pub use blob::upload::Upload;
pub use error::{Error, ErrorKind};
pub use http_client::{Proxies, Surroundings, Tls, TlsRoots};
pub use queue::list::QueuePage;
pub use queue::message::QueueMessage;
pub use queue::queue_client::{MessageLife, PutMessage, QueueClient, QueueProperties, UpdatedMessage};
pub use retry_observer::{RepeatedAttempt, RetryObserver};
pub use settings::{CONNECTIONS_MAX, Settings, UPLOAD_RATE_MIN_BYTES_PER_S};
pub use storage_account::StorageAccount;
pub use table::count::EntityCount;
pub use table::entity::{Entity, IfMatch, TextEntity, Value};
pub use table::group::{GROUP_OPERATIONS_MAX, GroupOperation};
pub use table::list::TablePage;
pub use table::query::{Continuation, EntityPage, Query, QueryEntities, QueryExtensions, QueryPages};
pub use table::raw::{ChangeKind, RawChange};
pub use table::snapshot_token::SnapshotToken;
pub use table::statistics::{MeasuredPage, QueryStatistics};
pub use table::table_client::TableClient;
pub use table::table_connection::{CountedPage, TableConnection};
