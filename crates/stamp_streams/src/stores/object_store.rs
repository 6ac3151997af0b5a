//! An object store as a stamp needs it: create if absent, read a piece, list, delete.
//!
//! What always holds for an implementation: an object is never overwritten; [`PutAnswer::Created`] is
//! answered only by the request that made the object; a read that begins after an object was created finds
//! it, until it is deleted. It does not retry or follow redirects by itself. A listing may lack what is new.

use crate::stores::store_error::StoreError;
use async_trait::async_trait;
use bytes::Bytes;
use stamp::PutAnswer;

/// Names that one page of a listing has at most.
pub const LIST_PAGE_NAMES_MAX: usize = 1000;

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Names in ascending order.
    pub names: Vec<String>,
    /// Whether names may follow behind the last one.
    pub has_more: bool,
}

/// Objects by name.
#[async_trait]
pub trait ObjectStore: Send + Sync + 'static {
    /// Creates an object, unless one of this name is there. The answer is that of `stamp::put_answer`.
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer;

    /// Reads up to `length` bytes from `offset` on; fewer if the object ends before.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotThere`] if there is no such object; never of unknown outcome.
    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError>;

    /// Lists names that begin with `prefix`, behind `after`, at most [`LIST_PAGE_NAMES_MAX`]. A hint: what
    /// was created just now may be missing, what was deleted just now may be there.
    ///
    /// # Errors
    ///
    /// Never of unknown outcome.
    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError>;

    /// Deletes an object. No error if it was not there.
    ///
    /// # Errors
    ///
    /// [`StoreError::UnknownOutcome`] if it may be deleted yet.
    async fn delete(&self, name: &str) -> Result<(), StoreError>;
}
