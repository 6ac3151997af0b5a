//! Rounds of the sweep in virtual time, with small scans.

use super::*;
use crate::queue_service::QueueService;
use partition::{PartitionSettings, Partitions};
use sim::World;
use stream::{StreamSettings, Streams};

const ACCOUNT: &str = "acct";
const COLLECTED_MAX: usize = 64;

async fn open(env: &base::Environment) -> QueueService {
    let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
    let partitions = Arc::new(Partitions::open(env, streams, PartitionSettings::tiny()).await.unwrap());
    QueueService::new(partitions, env.clock.clone(), env.random.clone())
}

async fn put(service: &QueueService, queue: &str, count: usize, lives_for: Option<Duration>) {
    for index in 0..count {
        let invisible_for = Duration::from_secs(index as u64 % 3);
        service.put_message(ACCOUNT, queue, "a".into(), invisible_for, lives_for).await.unwrap();
    }
}

async fn message_count(service: &QueueService, queue: &str) -> u64 {
    service.queue_properties(ACCOUNT, queue).await.unwrap().message_count
}

async fn is_due(service: &QueueService, queue: &str, clock: &dyn Clock) -> bool {
    let row = service.partitions.get(ObjectTable::Message, &store(service, queue).await.head_key()).await;
    HeadRow::open(row.unwrap().as_ref()).unwrap().first_expiry() <= clock.now()
}

async fn store(service: &QueueService, queue: &str) -> MessageStore {
    let key = service::container::container_key(ACCOUNT, SERVICE_QUEUE, queue);
    let row = service.partitions.get(ObjectTable::Container, &key).await.unwrap().unwrap();
    MessageStore { account: ACCOUNT.to_owned(), messages_id: messages_id_of(&row.value).unwrap() }
}

/// A round once removed a bounded number of a queue's messages and left the rest to the next one, ten seconds
/// later at the earliest: messages that expired faster than that piled up without bound.
#[test]
fn a_round_continues_until_no_expired_message_is_left() {
    let finished = World::new(1).run(|env, clock| async move {
        let service = open(&env).await;
        let lives_for = Some(Duration::from_secs(60));
        for (queue, count) in [("first", 5 * COLLECTED_MAX + 7), ("second", 2 * COLLECTED_MAX)] {
            service.create_queue(ACCOUNT, queue, vec![]).await.unwrap();
            put(&service, queue, count, lives_for).await;
            put(&service, queue, 3, None).await;
        }
        let mut start = Bytes::new();
        assert_eq!(run_round(&service.partitions, &*clock, &mut start, COLLECTED_MAX).await, SWEEP_EVERY);
        assert_eq!(message_count(&service, "second").await, 2 * COLLECTED_MAX as u64 + 3, "none has expired");
        clock.sleep(Duration::from_secs(70)).await;
        let rest_for = run_round(&service.partitions, &*clock, &mut start, COLLECTED_MAX).await;
        for queue in ["first", "second"] {
            assert_eq!(message_count(&service, queue).await, 3, "{queue}");
            assert!(!is_due(&service, queue, &*clock).await, "{queue}: the last scan has read all messages");
        }
        assert!(rest_for >= SWEEP_EVERY, "{rest_for:?}");
    });
    assert!(finished.is_some(), "the disk crashed without a planned crash");
}

/// Messages that can't be removed must not keep a sweep scanning for ever.
#[test]
fn a_round_ends_at_a_queue_where_nothing_can_be_removed() {
    let finished = World::new(2).run(|env, _| async move {
        let service = open(&env).await;
        service.create_queue(ACCOUNT, "first", vec![]).await.unwrap();
        put(&service, "first", 3, None).await;
        let store = store(&service, "first").await;
        let from = Some(store.messages_between(Ticks(0), Ticks(1)).start);
        let mut unfinished = VecDeque::from([UnfinishedQueue { store, from, removed: 0 }]);
        let mut passed_over = PassedOver::default();
        assert_eq!(catch_up(&service.partitions, &mut unfinished, COLLECTED_MAX, &mut passed_over).await, 0);
        assert!(unfinished.is_empty());
    });
    assert!(finished.is_some(), "the disk crashed without a planned crash");
}
