//! Reads tell a lease by the time by which changes decide it: that of its range, which stays ahead of a wall
//! clock that was set back.

use base::Clock;
use base::clock::TICKS_PER_SECOND;
use blob::{
    BlobAt, BlobError, BlobService, BlobType, Conditions, LeaseAction, LeaseError, LeaseState, ListEntry,
    ListQuery, NewBlob, PublicAccess, Revision,
};
use bytes::Bytes;
use partition::{PartitionSettings, Partitions};
use sim::{SimClock, World};
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

const ACCOUNT: &str = "acct";
const CONTAINER: &str = "box";
const LEASE_ID: &str = "00000000-0000-0000-0000-000000000001";
const LEASE_SECONDS: u32 = 15;
const HOUR: i64 = 3600 * TICKS_PER_SECOND as i64;

struct Stage {
    service: BlobService,
    clock: Arc<SimClock>,
}

impl Stage {
    async fn blob(&self) -> BlobAt {
        let container = self.service.container(ACCOUNT, CONTAINER).await.unwrap();
        self.service.blob(ACCOUNT, &container, "leased").unwrap()
    }

    /// What each way of reading tells: of the blob, in the list of blobs, of the container.
    async fn states(&self) -> [LeaseState; 3] {
        let at = self.blob().await;
        let found = self.service.find(&at, Revision::Current, &Conditions::default()).await.unwrap();
        let container = self.service.container(ACCOUNT, CONTAINER).await.unwrap();
        let query = ListQuery { max: 5, ..ListQuery::default() };
        let page = self.service.list_blobs(ACCOUNT, &container, query).await.unwrap();
        let [ListEntry::Blob { lease, now, .. }] = &page.entries[..] else { panic!("{page:?}") };
        let container_now = self.service.container_now(ACCOUNT, CONTAINER).unwrap();
        [found.lease.state(found.now), lease.state(*now), container.lease.state(container_now)]
    }

    /// What becomes of reads under the lease: of the blob, its bytes, its blocks.
    async fn reads_under_lease(&self) -> [Result<(), BlobError>; 3] {
        let at = self.blob().await;
        let conditions = Conditions { lease_id: Some(LEASE_ID.to_owned()), ..Conditions::default() };
        let found = self.service.find(&at, Revision::Current, &conditions).await.map(drop);
        let read = self.service.read(&at, Revision::Current, &conditions, None).await.map(drop);
        let blocks = self.service.block_lists(&at, Revision::Current, &conditions).await.map(drop);
        [found, read, blocks]
    }
}

#[test]
fn a_lease_ends_for_reads_when_it_ends_for_changes_though_the_clock_was_set_back() {
    let finished = World::new(1).run(|env, clock| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let partitions = Arc::new(Partitions::open(&env, streams, PartitionSettings::tiny()).await.unwrap());
        let service = BlobService::new(partitions, env.clock.clone(), Default::default());
        let access = PublicAccess::None;
        service.create_container(ACCOUNT, CONTAINER, Vec::new(), access, Default::default()).await.unwrap();
        let stage = Stage { service, clock };
        let at = stage.blob().await;
        let mut upload = stage.service.upload(&at, true, false);
        upload.write(Bytes::from_static(b"content")).await.unwrap();
        let uploaded = upload.finish().await.unwrap();
        stage
            .service
            .put_blob(&at, BlobType::Block, uploaded, NewBlob::default(), Default::default())
            .await
            .unwrap();
        let acquire = || LeaseAction::Acquire { seconds: Some(LEASE_SECONDS), id: LEASE_ID.to_owned() };
        let any = Conditions::default();
        stage.service.lease(&at, acquire(), any.clone()).await.unwrap();
        stage.service.lease_container(ACCOUNT, CONTAINER, acquire(), any).await.unwrap();

        stage.clock.move_wall(-HOUR);
        assert_eq!(stage.states().await, [LeaseState::Leased; 3], "nothing ends before its time");
        assert_eq!(stage.reads_under_lease().await, [Ok(()), Ok(()), Ok(())]);
        // Time goes on a little slower while the clock is behind.
        stage.clock.sleep(Duration::from_secs(u64::from(LEASE_SECONDS) + 3)).await;
        assert_eq!(stage.states().await, [LeaseState::Expired; 3]);
        let lost = || Err(BlobError::Lease(LeaseError::Lost));
        assert_eq!(stage.reads_under_lease().await, [lost(), lost(), lost()]);
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}
