//! An object store from its URL.

use crate::error::OpenError;
use crate::objects::folder::FolderObjects;
use crate::objects::memory::MemoryObjects;
use crate::objects::settings::ObjectStoreSettings;
use crate::objects::url::{ObjectStoreUrl, parse_url};
use crate::requests::counted_objects::CountedObjects;
use crate::requests::counts::RequestCounts;
use crate::s3::bucket::Bucket;
use crate::s3::first_start::check_bucket;
use crate::s3::objects::BucketObjects;
use crate::surroundings::StoreSurroundings;
use stamp_streams::ObjectStore;
use std::sync::Arc;

/// An object store, and what is counted of it.
pub struct OpenedObjectStore {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// What was sent to it.
    pub counts: Arc<RequestCounts>,
    bucket: Option<Arc<Bucket>>,
}

impl OpenedObjectStore {
    fn new(store: impl ObjectStore, surroundings: &StoreSurroundings, bucket: Option<Arc<Bucket>>) -> Self {
        let counts = Arc::new(RequestCounts::default());
        let clock = surroundings.http.clock.clone();
        let store = Arc::new(CountedObjects { store, counts: counts.clone(), clock });
        OpenedObjectStore { store, counts, bucket }
    }

    /// Looks, at the first start of a stamp, whether the bucket is set to keep or remove objects by itself.
    /// Gives warnings, a line each, about what can't be known. [`stamp_streams::probe`] says whether the
    /// store refuses a second creation.
    ///
    /// # Errors
    ///
    /// If the bucket has versions or life-cycle rules, is not there, or can't be reached.
    pub async fn check_first_start(&self) -> Result<Vec<String>, OpenError> {
        match &self.bucket {
            Some(bucket) => check_bucket(bucket).await,
            None => Ok(Vec::new()),
        }
    }
}

/// Opens the object store of a URL: `s3://BUCKET[/PREFIX]`, `file:///PATH` or `memory:`. A bucket is not
/// reached for yet; its credentials are read at the first request.
///
/// # Errors
///
/// If the URL or a setting makes no sense, a file of certificates can't be read, or a folder is not there.
pub async fn open_object_store(
    url: &str,
    settings: &ObjectStoreSettings,
    surroundings: &StoreSurroundings,
) -> Result<OpenedObjectStore, OpenError> {
    let parsed = parse_url(url).map_err(|why| OpenError::setting("the URL of the object store", why))?;
    match parsed {
        ObjectStoreUrl::Memory => Ok(OpenedObjectStore::new(MemoryObjects::default(), surroundings, None)),
        ObjectStoreUrl::Folder { path } => {
            let http = &surroundings.http;
            let store = FolderObjects::open(&path, http.spawner.clone(), http.random.clone()).await?;
            Ok(OpenedObjectStore::new(store, surroundings, None))
        }
        ObjectStoreUrl::S3 { bucket, prefix } => {
            let bucket = Arc::new(Bucket::open(&bucket, settings, surroundings).await?);
            let store = BucketObjects::new(bucket.clone(), &prefix);
            Ok(OpenedObjectStore::new(store, surroundings, Some(bucket)))
        }
    }
}
