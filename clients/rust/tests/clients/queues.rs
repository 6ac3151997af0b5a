//! One walk through what the Queue service's client can ask, by signed address and by token.

use crate::server::{Server, Tokens, client_options, refusal};
use azure_core::http::Url;
use azure_core::time::{Duration, OffsetDateTime};
use azure_storage_queue::models::*;
use azure_storage_queue::{QueueClient, QueueClientOptions, QueueServiceClient, QueueServiceClientOptions};
use futures::TryStreamExt;
use std::collections::HashMap;
use std::sync::Arc;

fn service(url: Url, has_token: bool) -> QueueServiceClient {
    let options = QueueServiceClientOptions { client_options: client_options(), ..Default::default() };
    let credential = has_token.then(|| Arc::new(Tokens) as _);
    QueueServiceClient::new(url, credential, Some(options)).expect("a client")
}

async fn send(queue: &QueueClient, text: &str) -> azure_core::Result<SentMessage> {
    let message = QueueMessage { message_text: Some(text.to_owned()) };
    let sent = queue.send_message(message.try_into()?, None).await?.into_model()?;
    Ok(sent.items.expect("a message").remove(0))
}

async fn receive(queue: &QueueClient, visibility_timeout: i32) -> Vec<ReceivedMessage> {
    let options = QueueClientReceiveMessagesOptions {
        number_of_messages: Some(32),
        visibility_timeout: Some(visibility_timeout),
        ..Default::default()
    };
    let received = queue.receive_messages(Some(options)).await.expect("messages");
    received.into_model().expect("messages").items.unwrap_or_default()
}

async fn peek(queue: &QueueClient) -> Vec<String> {
    let options = QueueClientPeekMessagesOptions { number_of_messages: Some(32), ..Default::default() };
    let peeked = queue.peek_messages(Some(options)).await.expect("messages").into_model().expect("messages");
    peeked.items.unwrap_or_default().into_iter().filter_map(|message| message.message_text).collect()
}

async fn walk(service: &QueueServiceClient) {
    let queue = service.queue_client("tasks").expect("a client");
    assert!(!queue.exists().await.expect("an answer"));
    queue.create(None).await.expect("create");
    queue.create(None).await.expect("it is there as it would be made");
    assert!(queue.exists().await.expect("an answer"));

    let metadata = HashMap::from([("kind".to_owned(), "walk".to_owned())]);
    queue.set_metadata(&metadata, None).await.expect("metadata");
    let properties = queue.get_properties(None).await.expect("properties");
    assert_eq!(properties.metadata().expect("metadata"), metadata);

    for text in ["first <&> ä", "second", "third"] {
        let sent = send(&queue, text).await.expect("send");
        assert!(sent.message_id.is_some() && sent.pop_receipt.is_some() && sent.expiration_time.is_some());
    }
    assert_eq!(peek(&queue).await, ["first <&> ä", "second", "third"]);
    let got = receive(&queue, 30).await;
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|message| message.dequeue_count == Some(1)));
    assert!(receive(&queue, 30).await.is_empty(), "they are hidden");
    let named = |index: usize| {
        let message: &ReceivedMessage = &got[index];
        (message.message_id.clone().expect("an id"), message.pop_receipt.clone().expect("a receipt"))
    };
    let (id, receipt) = named(0);
    queue.delete_message(&id, &receipt, None).await.expect("delete");
    let late = queue.delete_message(&id, &receipt, None).await;
    assert_eq!(refusal(late), (404, "MessageNotFound".to_owned()));
    let (id, receipt) = named(1);
    let changed = QueueMessage { message_text: Some("changed".to_owned()) };
    let options = QueueClientUpdateMessageOptions {
        queue_message: Some(changed.try_into().expect("a message")),
        ..Default::default()
    };
    queue.update_message(&id, &receipt, 0, Some(options)).await.expect("update");
    assert_eq!(peek(&queue).await, ["changed"]);
    let stale = queue.update_message(&id, &receipt, 0, None).await;
    assert_eq!(refusal(stale), (404, "MessageNotFound".to_owned()));
    queue.clear(None).await.expect("clear");
    let properties = queue.get_properties(None).await.expect("properties");
    assert_eq!(properties.approximate_messages_count().expect("a count"), Some(0));

    for name in ["list-a", "list-b", "list-c"] {
        service.queue_client(name).expect("a client").create(None).await.expect("create");
    }
    let options = || QueueServiceClientListQueuesOptions {
        prefix: Some("list-".to_owned()),
        maxresults: Some(2),
        ..Default::default()
    };
    let queues: Vec<QueueItem> =
        service.list_queues(Some(options())).expect("a list").try_collect().await.expect("queues");
    let names: Vec<&str> = queues.iter().filter_map(|queue| queue.name.as_deref()).collect();
    assert_eq!(names, ["list-a", "list-b", "list-c"]);
    let pages = service.list_queues(Some(options())).expect("a list").into_pages();
    assert_eq!(pages.try_collect::<Vec<_>>().await.expect("pages").len(), 2);

    let rule = CorsRule {
        allowed_origins: Some("https://example.com".to_owned()),
        allowed_methods: Some("GET,POST".to_owned()),
        max_age_in_seconds: Some(3600),
        exposed_headers: Some("x-ms-meta-data".to_owned()),
        allowed_headers: Some("x-ms-meta-target".to_owned()),
    };
    let properties = QueueServiceProperties { cors: Some(vec![rule]), ..Default::default() };
    service.set_properties(properties.try_into().expect("settings"), None).await.expect("set");
    let properties = service.get_properties(None).await.expect("properties").into_model().expect("settings");
    assert_eq!(properties.cors.map(|rules| rules.len()), Some(1));

    queue.delete(None).await.expect("delete");
    assert_eq!(refusal(queue.get_properties(None).await), (404, "QueueNotFound".to_owned()));
    assert_eq!(refusal(send(&queue, "lost").await), (404, "QueueNotFound".to_owned()));
}

#[tokio::test]
async fn by_the_address_that_a_start_prints() {
    let server = Server::start(&[]);
    let service = service(server.signed_url("queue"), false);
    walk(&service).await;
    // Policies are never had by signature.
    let queue = service.queue_client("list-a").expect("a client");
    assert_eq!(refusal(queue.get_access_policy(None).await), (403, "AuthorizationFailure".to_owned()));
}

#[tokio::test]
async fn by_token() {
    let server = Server::start_with_tokens();
    let service = service(server.plain_url("queue"), true);
    walk(&service).await;
    let queue = service.queue_client("list-a").expect("a client");
    let policy = AccessPolicy {
        start: None,
        expiry: Some(OffsetDateTime::now_utc() + Duration::hours(1)),
        permission: Some("raup".to_owned()),
    };
    let policy = SignedIdentifier { id: Some("all".to_owned()), access_policy: Some(policy) };
    let policies = SignedIdentifiers { items: Some(vec![policy]) };
    queue.set_access_policy(policies.try_into().expect("policies"), None).await.expect("set");
    let policies = queue.get_access_policy(None).await.expect("policies").into_model().expect("policies");
    let ids: Vec<_> = policies.items.unwrap_or_default().into_iter().filter_map(|policy| policy.id).collect();
    assert_eq!(ids, ["all"]);
    let key_info = KeyInfo {
        start: Some(OffsetDateTime::now_utc()),
        expiry: Some(OffsetDateTime::now_utc() + Duration::hours(1)),
        ..Default::default()
    };
    let key = service.get_user_delegation_key(key_info.try_into().expect("a request"), None).await;
    assert!(key.expect("a key").into_model().expect("a key").value.is_some());
}

#[tokio::test]
async fn by_an_address_of_one_queue() {
    let server = Server::start(&[]);
    let service = service(server.signed_url("queue"), false);
    service.queue_client("tasks").expect("a client").create(None).await.expect("create");
    let options = QueueClientOptions { client_options: client_options(), ..Default::default() };
    let queue =
        QueueClient::new(server.made_url("queue/tasks", "ar"), None, Some(options)).expect("a client");
    send(&queue, "one").await.expect("send");
    assert_eq!(peek(&queue).await, ["one"]);
    let refused = queue.receive_messages(None).await;
    assert_eq!(refusal(refused), (403, "AuthorizationPermissionMismatch".to_owned()));
}
