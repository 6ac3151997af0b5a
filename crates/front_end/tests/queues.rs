//! The Queue service on the wire: exact bodies, headers and errors.

mod stamp;

use base::{Clock, Ticks};
use bytes::Bytes;
use front_end::auth::shared_key::SignedService;
use front_end::auth::signature::SignSink;
use http_body_util::Full;
use hyper::Request;
use stamp::{Answer, Stamp};

const MESSAGES: &str = "/tasks/messages";

async fn with_queue() -> Stamp {
    let stamp = Stamp::open().await;
    stamp.send_queue("PUT", "/tasks", &[], "").await.expect(201);
    stamp
}

fn message(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

async fn put(stamp: &Stamp, text: &str) -> Answer {
    stamp.send_queue("POST", MESSAGES, &[], &message(text)).await.expect(201)
}

/// What stands between the first tags of that name.
fn element<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let (_, rest) = answer.body.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{}", answer.body));
    rest.split_once(&format!("</{name}>")).expect("an end").0
}

fn pass(stamp: &Stamp, seconds: u64) {
    stamp.clock.set(Ticks(stamp.clock.now().0 + seconds * 10_000_000));
}

fn message_path(answer: &Answer) -> String {
    format!("{MESSAGES}/{}?popreceipt={}", element(answer, "MessageId"), element(answer, "PopReceipt"))
}

#[tokio::test]
async fn a_message_is_the_one_that_was_announced() {
    let stamp = with_queue().await;
    let md5 = [("content-md5", "tGpgtT+cpXjZGjd+SPtjpg==")];
    stamp.send_queue("POST", MESSAGES, &md5, &message("b")).await.expect_error(400, "Md5Mismatch");
    stamp
        .send_queue("POST", MESSAGES, &[("content-md5", "x")], &message("a"))
        .await
        .expect_error(400, "InvalidMd5");
    stamp.send_queue("POST", MESSAGES, &md5, &message("a")).await.expect(201);
    let answer = stamp.send_queue("GET", "/tasks/messages?numofmessages=32", &[], "").await.expect(200);
    assert_eq!(answer.body.matches("<MessageText>").count(), 1, "{}", answer.body);
}

#[tokio::test]
async fn bodies_of_messages_are_exact() {
    let stamp = with_queue().await;
    let put = put(&stamp, "a &amp; &lt;b&gt; ").await;
    let (id, receipt) = (element(&put, "MessageId"), element(&put, "PopReceipt"));
    assert_eq!(
        put.body,
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>{id}</MessageId>\
             <InsertionTime>Sat, 21 Nov 2026 09:00:00 GMT</InsertionTime>\
             <ExpirationTime>Sat, 28 Nov 2026 09:00:00 GMT</ExpirationTime><PopReceipt>{receipt}</PopReceipt>\
             <TimeNextVisible>Sat, 21 Nov 2026 09:00:00 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>"
        )
    );
    assert_eq!(put.header("content-type"), "application/xml");
    assert_eq!(put.header("cache-control"), "no-cache");
    assert!(put.header("server").starts_with("Larimar-Queue/"));

    let peeked = stamp.send_queue("GET", "/tasks/messages?peekonly=true", &[], "").await.expect(200);
    assert_eq!(
        peeked.body,
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>{id}</MessageId>\
             <InsertionTime>Sat, 21 Nov 2026 09:00:00 GMT</InsertionTime>\
             <ExpirationTime>Sat, 28 Nov 2026 09:00:00 GMT</ExpirationTime><DequeueCount>0</DequeueCount>\
             <MessageText>a &amp; &lt;b&gt; </MessageText></QueueMessage></QueueMessagesList>"
        )
    );

    let got = stamp.send_queue("GET", "/tasks/messages?visibilitytimeout=60", &[], "").await.expect(200);
    let new_receipt = element(&got, "PopReceipt");
    assert_ne!(new_receipt, receipt);
    assert_eq!(
        got.body,
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>{id}</MessageId>\
             <InsertionTime>Sat, 21 Nov 2026 09:00:00 GMT</InsertionTime>\
             <ExpirationTime>Sat, 28 Nov 2026 09:00:00 GMT</ExpirationTime><PopReceipt>{new_receipt}</PopReceipt>\
             <TimeNextVisible>Sat, 21 Nov 2026 09:01:00 GMT</TimeNextVisible><DequeueCount>1</DequeueCount>\
             <MessageText>a &amp; &lt;b&gt; </MessageText></QueueMessage></QueueMessagesList>"
        )
    );
    let empty = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    assert_eq!(empty.body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList />");
}

#[tokio::test]
async fn a_message_is_updated_and_deleted_by_its_last_receipt_only() {
    let stamp = with_queue().await;
    put(&stamp, "one").await;
    let got = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    let path = message_path(&got);
    let update = format!("{path}&visibilitytimeout=0");
    let updated = stamp.send_queue("PUT", &update, &[], &message("two")).await.expect(204);
    assert_eq!(updated.header("x-ms-time-next-visible"), "Sat, 21 Nov 2026 09:00:00 GMT");
    assert!(!updated.header("x-ms-popreceipt").is_empty() && updated.body.is_empty());

    stamp.send_queue("DELETE", &path, &[], "").await.expect_error(404, "MessageNotFound");
    stamp.send_queue("PUT", &update, &[], "").await.expect_error(404, "MessageNotFound");
    let again = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    assert_eq!((element(&again, "MessageText"), element(&again, "DequeueCount")), ("two", "2"));
    let path = message_path(&again);
    // Without a body the text stays.
    stamp.send_queue("PUT", &format!("{path}&visibilitytimeout=1"), &[], "").await.expect(204);
    pass(&stamp, 2);
    let last = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    assert_eq!(element(&last, "MessageText"), "two");
    let path = message_path(&last);
    stamp.send_queue("DELETE", &path, &[], "").await.expect(204);
    stamp.send_queue("DELETE", &path, &[], "").await.expect_error(404, "MessageNotFound");
    stamp
        .send_queue("PUT", &format!("{path}&visibilitytimeout=1"), &[], "")
        .await
        .expect_error(404, "MessageNotFound");
}

#[tokio::test]
async fn times_decide_what_is_got() {
    let stamp = with_queue().await;
    let late = format!("{MESSAGES}?visibilitytimeout=10&messagettl=20");
    stamp.send_queue("POST", &late, &[], &message("late")).await.expect(201);
    let never = format!("{MESSAGES}?messagettl=-1");
    let put = stamp.send_queue("POST", &never, &[], &message("never")).await.expect(201);
    assert_eq!(element(&put, "ExpirationTime"), "Fri, 31 Dec 9999 23:59:59 GMT");
    let get = format!("{MESSAGES}?numofmessages=32&visibilitytimeout=5");
    let got = stamp.send_queue("GET", &get, &[], "").await.expect(200);
    assert!(got.body.contains("never") && !got.body.contains("late"), "{}", got.body);
    pass(&stamp, 11);
    let got = stamp.send_queue("GET", &get, &[], "").await.expect(200);
    assert!(got.body.contains("never") && got.body.contains("late"), "{}", got.body);
    pass(&stamp, 10);
    let got = stamp.send_queue("GET", &get, &[], "").await.expect(200);
    assert!(got.body.contains("never") && !got.body.contains("late"), "{}", got.body);
    assert_eq!(element(&got, "DequeueCount"), "3");
}

#[tokio::test]
async fn errors_are_xml_with_facts() {
    let stamp = with_queue().await;
    let answer = stamp.send_queue("GET", "/tasks/messages?numofmessages=33", &[], "").await;
    let answer = answer.expect_error(400, "OutOfRangeQueryParameterValue");
    assert_eq!(answer.header("content-type"), "application/xml");
    let start = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>OutOfRangeQueryParameterValue</Code>\
                 <Message>One of the query parameters specified in the request URI is outside the permissible range.\n\
                 RequestId:";
    assert!(answer.body.starts_with(start), "{}", answer.body);
    let end = "</Message><QueryParameterName>numofmessages</QueryParameterName>\
               <QueryParameterValue>33</QueryParameterValue><MinimumAllowed>1</MinimumAllowed>\
               <MaximumAllowed>32</MaximumAllowed></Error>";
    assert!(answer.body.ends_with(end), "{}", answer.body);

    let small = message("a");
    let large = message(&"a".repeat(64 * 1024 + 1));
    let bodies: [(&str, &str, &str, u16, &str); 16] = [
        ("GET", "/missing/messages", "", 404, "QueueNotFound"),
        (
            "POST",
            "/missing/messages",
            "<QueueMessage><MessageText>a</MessageText></QueueMessage>",
            404,
            "QueueNotFound",
        ),
        ("POST", MESSAGES, &large, 413, "RequestBodyTooLarge"),
        ("POST", MESSAGES, "", 400, "InvalidXmlDocument"),
        ("POST", MESSAGES, "<QueueMessage/>", 400, "InvalidXmlDocument"),
        (
            "POST",
            MESSAGES,
            "<QueueMessage><MessageText>a<b/></MessageText></QueueMessage>",
            400,
            "InvalidXmlDocument",
        ),
        (
            "POST",
            "/tasks/messages?visibilitytimeout=30&messagettl=30",
            &small,
            400,
            "InvalidQueryParameterValue",
        ),
        ("POST", "/tasks/messages?visibilitytimeout=604801", &small, 400, "OutOfRangeQueryParameterValue"),
        ("GET", "/tasks/messages?visibilitytimeout=0", "", 400, "OutOfRangeQueryParameterValue"),
        (
            "DELETE",
            "/tasks/messages/00000000-0000-0000-0000-000000000000",
            "",
            400,
            "MissingRequiredQueryParameter",
        ),
        (
            "DELETE",
            "/tasks/messages/00000000-0000-0000-0000-000000000000?popreceipt=x",
            "",
            400,
            "InvalidQueryParameterValue",
        ),
        ("DELETE", "/tasks/messages/x?popreceipt=AAAAAAAAAAEAAAAAAAAAAg", "", 404, "MessageNotFound"),
        ("DELETE", "/tasks/messages/x?popreceipt=none", "", 400, "InvalidQueryParameterValue"),
        (
            "PUT",
            "/tasks/messages/x?popreceipt=none&visibilitytimeout=0",
            "",
            400,
            "InvalidQueryParameterValue",
        ),
        ("PATCH", "/tasks", "", 405, "UnsupportedHttpVerb"),
        ("GET", "/tasks/other", "", 400, "InvalidUri"),
    ];
    for (method, path, body, status, code) in bodies {
        stamp.send_queue(method, path, &[], body).await.expect_error(status, code);
    }
    let count = stamp.send_queue("GET", "/tasks?comp=metadata", &[], "").await.expect(200);
    assert_eq!(count.header("x-ms-approximate-messages-count"), "0", "a refusal changes nothing");
}

/// The value was left out of the refusal.
#[tokio::test]
async fn a_message_is_not_hidden_beyond_its_end() {
    let stamp = with_queue().await;
    stamp.send_queue("POST", &format!("{MESSAGES}?messagettl=60"), &[], &message("short")).await.expect(201);
    let got = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    let late = format!("{}&visibilitytimeout=61", message_path(&got));
    let answer =
        stamp.send_queue("PUT", &late, &[], "").await.expect_error(400, "InvalidQueryParameterValue");
    let end = "</Message><QueryParameterName>visibilitytimeout</QueryParameterName>\
               <QueryParameterValue>61</QueryParameterValue>\
               <Reason>The message would be visible only after it expires.</Reason></Error>";
    assert!(answer.body.ends_with(end), "{}", answer.body);
    stamp.send_queue("PUT", &late.replace("=61", "=59"), &[], "").await.expect(204);
}

#[tokio::test]
async fn queues_are_created_listed_and_deleted() {
    let stamp = Stamp::open().await;
    let metadata = [("x-ms-meta-kind", "test & more"), ("x-ms-meta", "{'k': 'v'}")];
    stamp.send_queue("PUT", "/aaa", &metadata, "").await.expect(201);
    stamp.send_queue("PUT", "/aaa", &metadata, "").await.expect(204);
    stamp.send_queue("PUT", "/aaa", &[], "").await.expect_error(409, "QueueAlreadyExists");
    stamp.send_queue("PUT", "/aab", &[], "").await.expect(201);
    stamp.send_queue("PUT", "/abc", &[], "").await.expect(201);

    let list = "/?comp=list&prefix=aa&maxresults=1&include=metadata";
    let first = stamp.send_queue("GET", list, &[], "").await.expect(200);
    let marker = element(&first, "NextMarker");
    assert_eq!(
        first.body,
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
             ServiceEndpoint=\"http://127.0.0.1:10002/devstoreaccount1/\"><Prefix>aa</Prefix>\
             <MaxResults>1</MaxResults><Queues><Queue><Name>aaa</Name><Metadata><kind>test &amp; more</kind></Metadata>\
             </Queue></Queues><NextMarker>{marker}</NextMarker></EnumerationResults>"
        )
    );
    let second = stamp.send_queue("GET", &format!("{list}&marker={marker}"), &[], "").await.expect(200);
    assert!(second.body.contains("<Name>aab</Name><Metadata />"), "{}", second.body);
    // Some clients take an empty text for a marker that starts over.
    assert!(second.body.contains("<NextMarker />"), "{}", second.body);
    let all = stamp.send_queue("GET", "/?comp=list", &[], "").await.expect(200);
    assert_eq!(all.body.matches("<Name>").count(), 3);
    assert!(!all.body.contains("Metadata"));
    stamp
        .send_queue("GET", "/?comp=list&maxresults=0", &[], "")
        .await
        .expect_error(400, "OutOfRangeQueryParameterValue");
    stamp.send_queue("GET", "/?comp=list&marker=x", &[], "").await.expect_error(400, "InvalidMarker");

    stamp.send_queue("DELETE", "/aaa", &[], "").await.expect(204);
    stamp.send_queue("DELETE", "/aaa", &[], "").await.expect_error(404, "QueueNotFound");
    for (name, code) in
        [("ab", "OutOfRangeInput"), ("Abc", "InvalidResourceName"), ("a--b", "InvalidResourceName")]
    {
        stamp.send_queue("PUT", &format!("/{name}"), &[], "").await.expect_error(400, code);
    }
    stamp.send_queue("PUT", "/", &[], "").await.expect_error(400, "InvalidResourceName");
}

#[tokio::test]
async fn metadata_and_policies_are_replaced_whole() {
    let stamp = with_queue().await;
    stamp
        .send_queue("PUT", "/tasks?comp=metadata", &[("x-ms-meta-A", "1"), ("x-ms-meta-b", "2")], "")
        .await
        .expect(204);
    let read = stamp.send_queue("HEAD", "/tasks?comp=metadata", &[], "").await.expect(200);
    assert_eq!((read.header("x-ms-meta-a"), read.header("x-ms-meta-b")), ("1", "2"));
    stamp
        .send_queue("PUT", "/tasks?comp=metadata", &[("x-ms-meta-1", "1")], "")
        .await
        .expect_error(400, "InvalidMetadata");
    stamp.send_queue("PUT", "/tasks?comp=metadata", &[("x-ms-meta-c", "3")], "").await.expect(204);
    let read = stamp.send_queue("GET", "/tasks?comp=metadata", &[], "").await.expect(200);
    assert_eq!((read.header("x-ms-meta-a"), read.header("x-ms-meta-c")), ("", "3"));

    let policy = |permission: &str| {
        format!(
            "<SignedIdentifiers><SignedIdentifier><Id>pol</Id><AccessPolicy><Start>2026-01-01T00:00:00.0000000Z</Start>\
             <Expiry>2027-01-01T00:00:00.0000000Z</Expiry><Permission>{permission}</Permission></AccessPolicy>\
             </SignedIdentifier></SignedIdentifiers>"
        )
    };
    stamp.send_queue("PUT", "/tasks?comp=acl", &[], &policy("raup")).await.expect(204);
    stamp
        .send_queue("PUT", "/tasks?comp=acl", &[], &policy("raud"))
        .await
        .expect_error(400, "InvalidXmlDocument");
    let read = stamp.send_queue("GET", "/tasks?comp=acl", &[], "").await.expect(200);
    assert!(read.body.ends_with(&policy("raup")), "{}", read.body);
    stamp.send_queue("GET", "/missing?comp=acl", &[], "").await.expect_error(404, "QueueNotFound");
}

#[tokio::test]
async fn clearing_leaves_nothing() {
    let stamp = with_queue().await;
    for _ in 0..3 {
        put(&stamp, "a").await;
    }
    let got = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    stamp.send_queue("DELETE", MESSAGES, &[], "").await.expect(204);
    let count = stamp.send_queue("GET", "/tasks?comp=metadata", &[], "").await.expect(200);
    assert_eq!(count.header("x-ms-approximate-messages-count"), "0");
    stamp.send_queue("DELETE", &message_path(&got), &[], "").await.expect_error(404, "MessageNotFound");
    pass(&stamp, 60);
    let empty = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
    assert!(empty.body.ends_with("<QueueMessagesList />"));
}

#[tokio::test]
async fn messages_of_64_kib_are_kept_whatever_is_in_them() {
    let stamp = with_queue().await;
    // The body of escapes is bounded, too.
    for text in ["a".repeat(64 * 1024), "&amp;".repeat(26_000)] {
        put(&stamp, &text).await;
        let got = stamp.send_queue("GET", MESSAGES, &[], "").await.expect(200);
        assert_eq!(element(&got, "MessageText"), text);
    }
}

#[tokio::test]
async fn settings_and_statistics() {
    let stamp = Stamp::open().await;
    let cors = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a</AllowedOrigins>\
                <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders>\
                <AllowedHeaders>*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";
    let properties = "/?restype=service&comp=properties";
    stamp.send_queue("PUT", properties, &[], cors).await.expect(202);
    let read = stamp.send_queue("GET", properties, &[("origin", "http://a")], "").await.expect(200);
    assert!(read.body.contains("<AllowedOrigins>http://a</AllowedOrigins>"), "{}", read.body);
    assert_eq!(read.header("access-control-allow-origin"), "http://a");
    // The Table service has settings of its own.
    let table = stamp.send("GET", "/?restype=service&comp=properties", &[], "").await.expect(200);
    assert!(!table.body.contains("CorsRule"), "{}", table.body);
    let headers = [("origin", "http://a"), ("access-control-request-method", "GET")];
    stamp.send_queue("OPTIONS", "/tasks", &headers, "").await.expect(200);
    stamp
        .send_queue("GET", "/?restype=service&comp=stats", &[], "")
        .await
        .expect_error(400, "InvalidQueryParameterValue");
    let secondary = "/devstoreaccount1-secondary/?restype=service&comp=stats";
    let headers = stamp.headers_signed_for(SignedService::BlobOrQueue, "GET", secondary, &[]);
    let mut request = Request::builder().uri(secondary);
    for (name, value) in &headers {
        request = request.header(name, value);
    }
    let stats = stamp.send_queue_request(request.body(Full::new(Bytes::new())).expect("a request")).await;
    assert_eq!(element(&stats.expect(200), "Status"), "live");
}

#[tokio::test]
async fn signatures_grant_what_their_letters_say() {
    let stamp = with_queue().await;
    put(&stamp, "a").await;
    let sas = |permissions: &str| {
        let text =
            format!("{permissions}\n\n2026-12-01T00:00:00Z\n/queue/devstoreaccount1/tasks\n\n\n\n2020-02-10");
        let signature = stamp.key.sign(|sink| sink.put(text.as_bytes())).replace('+', "%2B");
        format!("sp={permissions}&se=2026-12-01T00%3A00%3A00Z&sv=2020-02-10&sig={signature}")
    };
    let ask = async |method: &str, path: &str, permissions: &str| {
        let joint = if path.contains('?') { '&' } else { '?' };
        let target = format!("{}{path}{joint}{}", stamp::ROOT, sas(permissions));
        let request = hyper::Request::builder().method(method).uri(target).header("host", "127.0.0.1:10001");
        let body = if method == "POST" { message("b") } else { String::new() };
        let request = request.header("content-length", body.len());
        let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).expect("a request");
        stamp.send_queue_request(request).await
    };
    ask("GET", "/tasks/messages?peekonly=true", "r").await.expect(200);
    ask("GET", "/tasks?comp=metadata", "r").await.expect(200);
    ask("POST", MESSAGES, "a").await.expect(201);
    let got = ask("GET", MESSAGES, "p").await.expect(200);
    ask("PUT", &format!("{}&visibilitytimeout=0", message_path(&got)), "u").await.expect(204);
    for (method, path, permissions) in
        [("GET", MESSAGES, "r"), ("GET", "/tasks/messages?peekonly=true", "p"), ("POST", MESSAGES, "rup")]
    {
        ask(method, path, permissions).await.expect_error(403, "AuthorizationPermissionMismatch");
    }
    for (method, path) in
        [("DELETE", MESSAGES), ("DELETE", "/tasks"), ("GET", "/tasks?comp=acl"), ("PUT", "/tasks")]
    {
        ask(method, path, "raup").await.expect_error(403, "AuthorizationFailure");
    }
    // What is signed is the queue in the path.
    ask("GET", "/other/messages", "p").await.expect_error(403, "AuthenticationFailed");
}

/// What a list of queues can't include was left out without a word.
#[tokio::test]
async fn lists_include_what_they_know() {
    let stamp = with_queue().await;
    for include in ["metadata", "Metadata", "", "metadata,"] {
        stamp.send_queue("GET", &format!("/?comp=list&include={include}"), &[], "").await.expect(200);
    }
    for include in ["foo", "metadata,foo"] {
        let refused = stamp.send_queue("GET", &format!("/?comp=list&include={include}"), &[], "").await;
        let refused = refused.expect_error(400, "InvalidQueryParameterValue");
        assert_eq!(element(&refused, "QueryParameterName"), "include");
        assert_eq!(element(&refused, "QueryParameterValue"), "foo");
        assert_eq!(element(&refused, "Reason"), "Invalid query parameter value.");
    }
}
