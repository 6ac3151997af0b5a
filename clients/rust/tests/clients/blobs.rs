//! One walk through what the Blob service's client can ask, by signed address and by token.

use crate::server::{Server, Tokens, client_options, refusal};
use azure_core::http::{RequestContent, Url};
use azure_core::time::{Duration, OffsetDateTime};
use azure_storage_blob::models::*;
use azure_storage_blob::{
    BlobClient, BlobClientOptions, BlobContainerClient, BlobServiceClient, BlobServiceClientOptions,
};
use futures::TryStreamExt;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

fn service(url: Url, has_token: bool) -> BlobServiceClient {
    let options = BlobServiceClientOptions { client_options: client_options(), ..Default::default() };
    let credential = has_token.then(|| Arc::new(Tokens) as _);
    BlobServiceClient::new(url, credential, Some(options)).expect("a client")
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

async fn upload(blob: &BlobClient, content: &[u8]) {
    blob.upload(RequestContent::from(content.to_vec()), None).await.expect("upload");
}

async fn content(blob: &BlobClient) -> Vec<u8> {
    blob.download(None).await.expect("download").body.collect().await.expect("bytes").to_vec()
}

fn pairs(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Upload, download, ranges, properties, metadata, tags, tier, snapshots.
async fn block_blobs(container: &BlobContainerClient) {
    let blob = container.blob_client("dir/a b ä.txt");
    assert!(!blob.exists().await.expect("an answer"));
    let options = BlockBlobClientUploadOptions {
        blob_content_type: Some("text/plain".to_owned()),
        metadata: Some(pairs(&[("one", "1")])),
        ..Default::default()
    };
    let options = options.if_not_exists().with_tags(pairs(&[("kind", "walk")]));
    let small = RequestContent::from(b"hello".to_vec());
    blob.upload(small, Some(options)).await.expect("upload");
    assert!(blob.exists().await.expect("an answer"));
    let again = BlockBlobClientUploadOptions::default().if_not_exists();
    let again = blob.upload(RequestContent::from(b"again".to_vec()), Some(again)).await;
    assert_eq!(refusal(again), (409, "BlobAlreadyExists".to_owned()));
    assert_eq!(content(&blob).await, b"hello");
    let properties = blob.get_properties(None).await.expect("properties");
    assert_eq!(properties.content_length().expect("a length"), Some(5));
    assert_eq!(properties.content_type().expect("a type").as_deref(), Some("text/plain"));
    assert_eq!(properties.blob_type().expect("a type"), Some(BlobType::BlockBlob));
    assert_eq!(properties.metadata().expect("metadata"), pairs(&[("one", "1")]));
    blob.set_metadata(&pairs(&[("two", "2")]), None).await.expect("metadata");
    let options =
        BlobClientSetPropertiesOptions { blob_content_language: Some("en".to_owned()), ..Default::default() };
    blob.set_properties(Some(options)).await.expect("properties");
    let properties = blob.get_properties(None).await.expect("properties");
    assert_eq!(properties.metadata().expect("metadata"), pairs(&[("two", "2")]));
    assert_eq!(properties.content_language().expect("a language").as_deref(), Some("en"));

    let tags: HashMap<String, String> =
        blob.get_tags(None).await.expect("tags").into_model().expect("tags").into();
    assert_eq!(tags, pairs(&[("kind", "walk")]));
    let tags: BlobTags = pairs(&[("kind", "changed"), ("n", "1")]).into();
    blob.set_tags(tags.try_into().expect("tags"), None).await.expect("set");
    let found: Vec<FilterBlobItem> = container
        .find_blobs_by_tags("kind='changed'", None)
        .expect("a search")
        .try_collect()
        .await
        .expect("blobs");
    assert_eq!(found.iter().filter_map(|blob| blob.name.as_deref()).collect::<Vec<_>>(), ["dir/a b ä.txt"]);
    blob.set_tier(AccessTier::Cool, None).await.expect("a tier");
    let properties = blob.get_properties(None).await.expect("properties");
    assert_eq!(properties.access_tier().expect("a tier"), Some(AccessTier::Cool.to_string()));

    let snapshot = blob.create_snapshot(None).await.expect("a snapshot").snapshot().expect("a header");
    upload(&blob, b"changed").await;
    let former = blob.with_snapshot(&snapshot.expect("a time")).expect("a client");
    assert_eq!(content(&former).await, b"hello");
    let refused = blob.delete(None).await;
    assert_eq!(refusal(refused), (409, "SnapshotsPresent".to_owned()));
    let options = BlobClientDeleteOptions {
        delete_snapshots: Some(DeleteSnapshotsOptionType::Include),
        ..Default::default()
    };
    blob.delete(Some(options)).await.expect("delete");
    assert_eq!(refusal(blob.get_properties(None).await), (404, "BlobNotFound".to_owned()));

    // In many blocks, and read in many ranges at once.
    let large = bytes(10 << 20);
    let options = BlockBlobClientUploadOptions {
        partition_size: NonZero::new(1 << 20),
        parallel: NonZero::new(4),
        ..Default::default()
    };
    blob.upload(RequestContent::from(large.clone()), Some(options)).await.expect("upload");
    let options = BlobClientDownloadOptions { partition_size: NonZero::new(3 << 20), ..Default::default() };
    let downloaded = blob.download(Some(options)).await.expect("download").body.collect().await;
    assert!(downloaded.expect("bytes") == large);
    let mut buffer = vec![0; 1000];
    let range = Some((1_000_000..1_001_000u64).into());
    let options = BlobClientDownloadOptions { range, ..Default::default() };
    assert_eq!(blob.download_into(&mut buffer, Some(options)).await.expect("download").len, 1000);
    assert!(buffer[..] == large[1_000_000..1_001_000]);
}

async fn staged_blocks(container: &BlobContainerClient) {
    let blob = container.blob_client("staged");
    let blocks = blob.block_blob_client();
    for (id, text) in [(b"1", "Hello, "), (b"2", "block "), (b"3", "blobs!")] {
        let body = RequestContent::from(text.as_bytes().to_vec());
        blocks.stage_block(id, text.len() as u64, body, None).await.expect("a block");
    }
    let list = BlockLookupList {
        latest: Some([b"1", b"2", b"3"].map(|id| id.to_vec()).to_vec()),
        ..Default::default()
    };
    blocks.commit_block_list(list.try_into().expect("a list"), None).await.expect("commit");
    assert_eq!(content(&blob).await, b"Hello, block blobs!");
    let list = blocks.get_block_list(BlockListType::All, None).await.expect("blocks").into_model();
    assert_eq!(list.expect("a list").committed_blocks.map(|blocks| blocks.len()), Some(3));
}

async fn append_blobs(container: &BlobContainerClient) {
    let blob = container.blob_client("log");
    let log = blob.append_blob_client();
    log.create(None).await.expect("create");
    for line in ["first\n", "second\n"] {
        let body = RequestContent::from(line.as_bytes().to_vec());
        log.append_block(body, line.len() as u64, None).await.expect("append");
    }
    assert_eq!(content(&blob).await, b"first\nsecond\n");
    log.seal(None).await.expect("seal");
    let refused = log.append_block(RequestContent::from(b"late".to_vec()), 4, None).await;
    assert_eq!(refusal(refused), (409, "BlobIsSealed".to_owned()));
}

async fn page_blobs(container: &BlobContainerClient) {
    let blob = container.blob_client("disk");
    let disk = blob.page_blob_client();
    disk.create(4096, None).await.expect("create");
    let page = bytes(1024);
    disk.upload_pages(RequestContent::from(page.clone()), 1024, HttpRange::new(1024, 1024), None)
        .await
        .expect("pages");
    disk.clear_pages(HttpRange::new(1024, 512), None).await.expect("clear");
    let mut pages = disk.list_page_ranges(None).expect("a list");
    let list = pages.try_next().await.expect("a page").expect("a page").into_model().expect("a list");
    let ranges: Vec<_> = list.page_ranges.iter().map(|range| (range.start, range.end)).collect();
    assert_eq!(ranges, [(Some(1536), Some(2047))]);
    disk.resize(8192, None).await.expect("resize");
    let stored = content(&blob).await;
    assert!(stored.len() == 8192 && stored[1536..2048] == page[512..]);
}

/// The address of a blob is that of its client: signed, or plain for the bearer of a token, as whom it is read.
async fn copies(container: &BlobContainerClient) {
    let source = container.blob_client("source");
    let bytes = bytes(4096);
    upload(&source, &bytes).await;
    let url = || source.url().to_string();

    let copy = container.blob_client("copy");
    copy.block_blob_client().upload_blob_from_url(url(), None).await.expect("a copy");
    assert!(content(&copy).await == bytes);
    let guarded = BlockBlobClientUploadBlobFromUrlOptions::default().if_not_exists();
    let refused = copy.block_blob_client().upload_blob_from_url(url(), Some(guarded)).await;
    assert_eq!(refusal(refused), (409, "BlobAlreadyExists".to_owned()));

    let staged = container.blob_client("staged-copy");
    let blocks = staged.block_blob_client();
    let source_range = Some((1024..2048u64).into());
    let options = BlockBlobClientStageBlockFromUrlOptions { source_range, ..Default::default() };
    blocks.stage_block_from_url(b"1", 0, url(), Some(options)).await.expect("a block");
    let list = BlockLookupList { latest: Some(vec![b"1".to_vec()]), ..Default::default() };
    blocks.commit_block_list(list.try_into().expect("a list"), None).await.expect("commit");
    assert!(content(&staged).await == bytes[1024..2048]);

    let appended = container.blob_client("appended-copy");
    let log = appended.append_blob_client();
    log.create(None).await.expect("create");
    log.append_block_from_url(url(), 0, None).await.expect("append");
    assert!(content(&appended).await == bytes);

    let pages = container.blob_client("pages-copy");
    let disk = pages.page_blob_client();
    disk.create(4096, None).await.expect("create");
    let range = || HttpRange::new(0, 4096);
    disk.upload_pages_from_url(url(), range(), 0, range(), None).await.expect("pages");
    assert!(content(&pages).await == bytes);

    let missing = container.blob_client("missing").url().to_string();
    let (status, _) = refusal(copy.block_blob_client().upload_blob_from_url(missing, None).await);
    assert_eq!(status, 404);
    let started = container.blob_client("started");
    let answer = started.start_copy_from_url(url(), None).await.expect("a copy");
    assert_eq!(answer.copy_status().expect("a status"), Some(CopyStatus::Success));
    assert!(content(&started).await == bytes);
}

async fn leases(container: &BlobContainerClient) {
    let blob = container.blob_client("leased");
    upload(&blob, b"mine").await;
    let lease = blob.acquire_lease(15, None).await.expect("a lease").lease_id().expect("a header");
    let lease = lease.expect("an id");
    let refused = blob.delete(None).await;
    assert_eq!(refusal(refused), (412, "LeaseIdMissing".to_owned()));
    blob.renew_lease(lease.clone(), None).await.expect("renew");
    let other = "5b4a0d2e-43d3-4b0c-9d10-0a4b1e5f0c01".to_owned();
    blob.change_lease(lease, other.clone(), None).await.expect("change");
    blob.release_lease(other, None).await.expect("release");
    blob.acquire_lease(-1, None).await.expect("a lease");
    blob.break_lease(None).await.expect("break");
    blob.delete(None).await.expect("delete");
}

async fn lists(service: &BlobServiceClient) {
    let container = service.blob_container_client("listed");
    container.create(None).await.expect("create");
    let names = ["a/1", "a/2", "a/3", "b"];
    for name in names {
        upload(&container.blob_client(name), name.as_bytes()).await;
    }
    let options = |prefix: Option<&str>| BlobContainerClientListBlobsOptions {
        maxresults: Some(2),
        prefix: prefix.map(str::to_owned),
        include: Some(vec![ListBlobsIncludeItem::Metadata]),
        ..Default::default()
    };
    let listed = |prefix| container.list_blobs(Some(options(prefix))).expect("a list");
    let all: Vec<BlobItem> = listed(None).try_collect().await.expect("blobs");
    assert_eq!(all.iter().filter_map(|blob| blob.name.as_deref()).collect::<Vec<_>>(), names);
    assert_eq!(listed(Some("a/")).try_collect::<Vec<_>>().await.expect("blobs").len(), 3);
    assert_eq!(listed(None).into_pages().try_collect::<Vec<_>>().await.expect("pages").len(), 2);
    let containers: Vec<ContainerItem> =
        service.list_containers(None).expect("a list").try_collect().await.expect("containers");
    assert!(containers.iter().any(|container| container.name.as_deref() == Some("listed")));
    container.delete(None).await.expect("delete");
    assert!(!container.exists().await.expect("an answer"));
    let properties = service.get_properties(None).await.expect("properties").into_model();
    assert!(properties.expect("settings").default_service_version.is_none_or(|version| !version.is_empty()));
}

async fn walk(service: &BlobServiceClient) {
    let container = service.blob_container_client("box");
    assert!(!container.exists().await.expect("an answer"));
    container.create(None).await.expect("create");
    assert_eq!(refusal(container.create(None).await), (409, "ContainerAlreadyExists".to_owned()));
    container.set_metadata(&pairs(&[("kind", "walk")]), None).await.expect("metadata");
    let properties = container.get_properties(None).await.expect("properties");
    assert_eq!(properties.metadata().expect("metadata"), pairs(&[("kind", "walk")]));
    block_blobs(&container).await;
    staged_blocks(&container).await;
    append_blobs(&container).await;
    page_blobs(&container).await;
    copies(&container).await;
    leases(&container).await;
    lists(service).await;
}

#[tokio::test]
async fn by_the_address_that_a_start_prints() {
    let server = Server::start(&[]);
    walk(&service(server.signed_url("blob"), false)).await;
}

#[tokio::test]
async fn by_token() {
    let server = Server::start_with_tokens();
    let service = service(server.plain_url("blob"), true);
    walk(&service).await;
    let container = service.blob_container_client("box");
    let policy = AccessPolicy {
        start: None,
        expiry: Some(OffsetDateTime::now_utc() + Duration::hours(1)),
        permission: Some("rl".to_owned()),
    };
    let policies: SignedIdentifiers = HashMap::from([("read-list".to_owned(), policy)]).into();
    container.set_access_policy(policies.try_into().expect("policies"), None).await.expect("set");
    let policies = container.get_access_policy(None).await.expect("policies").into_model().expect("policies");
    let ids: Vec<_> = policies.items.unwrap_or_default().into_iter().filter_map(|policy| policy.id).collect();
    assert_eq!(ids, ["read-list"]);
    let key_info = KeyInfo {
        start: Some(OffsetDateTime::now_utc()),
        expiry: Some(OffsetDateTime::now_utc() + Duration::hours(1)),
        ..Default::default()
    };
    let key = service.get_user_delegation_key(key_info.try_into().expect("a request"), None).await;
    assert!(key.expect("a key").into_model().expect("a key").value.is_some());
}

#[tokio::test]
async fn by_an_address_of_one_blob() {
    let server = Server::start(&[]);
    let container = service(server.signed_url("blob"), false).blob_container_client("box");
    container.create(None).await.expect("create");
    upload(&container.blob_client("a b"), b"bytes").await;
    let url = server.made_url("blob/box/a b", "r");
    let options = BlobClientOptions { client_options: client_options(), ..Default::default() };
    let blob = BlobClient::new(url, None, Some(options)).expect("a client");
    assert_eq!(content(&blob).await, b"bytes");
    assert_eq!(refusal(blob.delete(None).await), (403, "AuthorizationPermissionMismatch".to_owned()));
}
