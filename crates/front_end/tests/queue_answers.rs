//! What the Queue service answers: requests, and the status, code, elements and headers that their answers
//! must have.

mod stamp;

use bytes::Bytes;
use front_end::auth::signature::SignSink;
use http_body_util::Full;
use hyper::Request;
use hyper::header::HeaderValue;
use stamp::Stamp;
use stamp::answers::{ANY, Auth, Row, Service, check, element, open_with_tokens};

const ID: &str = "00000000-0000-0000-0000-000000000000";
/// A receipt that no message has.
const RECEIPT: &str = "AAAAAAAAAAEAAAAAAAAAAg";
/// Method, path, resource type and permissions that an account signature needs, status and code.
type Operation<'a> = (&'a str, &'a str, &'static str, &'static str, (u16, &'static str));

const PROPERTIES: &str = "/?restype=service&comp=properties";

/// A token that no authority believes.
const BAD_TOKEN: &str = "Bearer eyJhbGciOiJub25lIn0.e30.AAAA";

async fn with_queue() -> Stamp {
    let stamp = open_with_tokens().await;
    check(&stamp, Service::Queue, [Row::of("PUT", "/tasks").gives(201)]).await;
    stamp
}

fn message(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

fn policies(inside: &str) -> String {
    format!("<SignedIdentifiers>{inside}</SignedIdentifiers>")
}

fn policy(id: &str, access: &str) -> String {
    format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{access}</AccessPolicy></SignedIdentifier>")
}

fn settings(inside: &str) -> String {
    format!("<StorageServiceProperties>{inside}</StorageServiceProperties>")
}

/// The refusal of a parameter.
fn refused(row: Row, code: &'static str, name: &'static str, value: &str) -> Row {
    row.fails(400, code).has("QueryParameterName", name).has("QueryParameterValue", value)
}

/// The refusal of a document at a place in it.
fn malformed(row: Row, line: u32, position: u32, reason: &str) -> Row {
    row.fails(400, "InvalidXmlDocument")
        .has("LineNumber", line.to_string())
        .has("LinePosition", position.to_string())
        .has("Reason", reason)
}

const SYNTAX: &str = "Error parsing Xml content";

/// A message that was got, and the receipt that it had before.
async fn got_again(stamp: &Stamp) -> (String, String, String) {
    Row::of("POST", "/tasks/messages").body(message("a")).send(stamp, Service::Queue).await.expect(201);
    let path = "/tasks/messages?visibilitytimeout=600";
    let got = Row::of("GET", path).send(stamp, Service::Queue).await.expect(200);
    let find = |name| element(&got.body, name).expect("an element").to_owned();
    let (id, stale) = (find("MessageId"), find("PopReceipt"));
    let path = format!("/tasks/messages/{id}?popreceipt={stale}&visibilitytimeout=600");
    let updated = Row::of("PUT", path).send(stamp, Service::Queue).await.expect(204);
    (id, stale, updated.header("x-ms-popreceipt").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages() {
    let stamp = with_queue().await;
    let (id, stale, last) = got_again(&stamp).await;
    let of = |method: &str, id: &str, parameters: &str| {
        Row::of(method, format!("/tasks/messages/{id}{parameters}"))
    };
    let missing = |method: &str, parameters: &str| {
        Row::of(method, format!("/missing/messages{parameters}")).fails(404, "QueueNotFound")
    };
    let put = |parameters: &str| Row::of("POST", format!("/tasks/messages{parameters}")).body(message("a"));
    let get = |parameters: &str| Row::of("GET", format!("/tasks/messages{parameters}"));
    let (invalid, range) = ("InvalidQueryParameterValue", "OutOfRangeQueryParameterValue");
    let rows = vec![
        // A receipt that is not the last one.
        of("DELETE", &id, &format!("?popreceipt={stale}")).fails(404, "MessageNotFound"),
        of("PUT", &id, &format!("?popreceipt={stale}&visibilitytimeout=1")).fails(404, "MessageNotFound"),
        of("DELETE", ID, &format!("?popreceipt={RECEIPT}")).fails(404, "MessageNotFound"),
        of("PUT", ID, &format!("?popreceipt={RECEIPT}&visibilitytimeout=1")).fails(404, "MessageNotFound"),
        of("DELETE", "x", &format!("?popreceipt={RECEIPT}")).fails(404, "MessageNotFound"),
        of("PUT", "x", &format!("?popreceipt={RECEIPT}")).fails(404, "MessageNotFound"),
        // Receipts that are none, whatever the message is.
        refused(of("DELETE", "x", "?popreceipt=none"), invalid, "popreceipt", "none")
            .has("Reason", "Invalid pop receipt format"),
        refused(of("PUT", "x", "?popreceipt=none"), invalid, "popreceipt", "none"),
        refused(of("DELETE", ID, "?popreceipt=none"), invalid, "popreceipt", "none"),
        refused(of("PUT", ID, "?popreceipt=none&visibilitytimeout=1"), invalid, "popreceipt", "none"),
        refused(of("DELETE", &id, "?popreceipt=invalid"), invalid, "popreceipt", "invalid")
            .has("Reason", "Invalid pop receipt format"),
        refused(of("PUT", &id, "?popreceipt=&visibilitytimeout=1"), invalid, "popreceipt", ""),
        of("DELETE", &id, "").fails(400, "MissingRequiredQueryParameter").has("QueryParameterName", "popreceipt"),
        of("PUT", &id, "?visibilitytimeout=1")
            .fails(400, "MissingRequiredQueryParameter")
            .has("QueryParameterName", "popreceipt"),
        // How long an updated message is invisible has to be said.
        refused(of("PUT", &id, &format!("?popreceipt={last}")), invalid, "visibilitytimeout", ""),
        refused(of("PUT", &id, &format!("?popreceipt={last}&visibilitytimeout=")), invalid, "visibilitytimeout", ""),
        refused(of("PUT", &id, &format!("?popreceipt={last}&visibilitytimeout=x")), invalid, "visibilitytimeout", "x"),
        refused(of("PUT", &id, &format!("?popreceipt={last}&visibilitytimeout=-1")), range, "visibilitytimeout", "-1")
            .has("MinimumAllowed", "0")
            .has("MaximumAllowed", "604800"),
        refused(
            of("PUT", &id, &format!("?popreceipt={last}&visibilitytimeout=604801")),
            range,
            "visibilitytimeout",
            "604801",
        ),
        malformed(of("PUT", &id, &format!("?popreceipt={last}&visibilitytimeout=1")).body("<x"), 1, 2, SYNTAX),
        // Nothing of it was done.
        of("DELETE", &id, &format!("?popreceipt={last}")).gives(204),
        of("DELETE", &id, &format!("?popreceipt={last}")).fails(404, "MessageNotFound"),
        // A queue that is not there, before anything about the message.
        missing("PUT", &format!("/{ID}?popreceipt={RECEIPT}&visibilitytimeout=1")).body(message("a")),
        missing("PUT", &format!("/{ID}?popreceipt={RECEIPT}")),
        missing("PUT", "/x?popreceipt=none"),
        missing("PUT", &format!("/{ID}?popreceipt={RECEIPT}&visibilitytimeout=1")).body("<x"),
        missing("DELETE", &format!("/{ID}?popreceipt={RECEIPT}")),
        missing("DELETE", "/x"),
        missing("DELETE", ""),
        missing("GET", ""),
        missing("GET", "?peekonly=true"),
        missing("POST", "").body(message("a")),
        Row::of("GET", "/a--b/messages").fails(400, "InvalidResourceName"),
        Row::of("PUT", format!("/a--b/messages/{ID}?popreceipt={RECEIPT}")).fails(400, "InvalidResourceName"),
        // Bounds of numbers.
        refused(get("?numofmessages=0"), range, "numofmessages", "0").has("MinimumAllowed", "1").has("MaximumAllowed", "32"),
        refused(get("?numofmessages=33"), range, "numofmessages", "33"),
        refused(get("?numofmessages=33&peekonly=true"), range, "numofmessages", "33"),
        refused(get("?numofmessages=x"), invalid, "numofmessages", "x"),
        refused(get("?visibilitytimeout=0"), range, "visibilitytimeout", "0").has("MinimumAllowed", "1"),
        refused(get("?visibilitytimeout=604801"), range, "visibilitytimeout", "604801"),
        refused(get("?peekonly=x"), invalid, "peekonly", "x"),
        refused(put("?visibilitytimeout=604801"), range, "visibilitytimeout", "604801"),
        refused(put("?messagettl=0"), invalid, "messagettl", "0"),
        refused(put("?messagettl=-2"), invalid, "messagettl", "-2"),
        refused(put("?visibilitytimeout=30&messagettl=30"), invalid, "visibilitytimeout", "30")
            .has("Reason", "messagettl must be greater than visibilitytimeout"),
        refused(put("?messagettl=-1").header("x-ms-version", "2016-05-31"), range, "messagettl", "-1")
            .has("MinimumAllowed", "1")
            .has("MaximumAllowed", "604800"),
        put("?messagettl=-1").gives(201).has("ExpirationTime", "Fri, 31 Dec 9999 23:59:59 GMT").has("PopReceipt", ANY),
        put("").header("x-ms-version", "2015-12-11").gives(201).has_header("content-type", ""),
        // Bodies.
        malformed(put("").body(""), 0, 0, SYNTAX),
        malformed(put("").body("x"), 1, 1, SYNTAX),
        malformed(put("").body("<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>\u{1}</MessageText></QueueMessage>"), 2, 28, SYNTAX),
        malformed(put("").body("<QueueMessage><MessageText>a</QueueMessage>"), 1, 31, SYNTAX),
        malformed(put("").body("<Other/>"), 1, 2, SYNTAX),
        malformed(put("").body("<QueueMessage/>"), 1, 16, SYNTAX),
        malformed(put("").body("<QueueMessage><MessageText>a<b/></MessageText></QueueMessage>"), 1, 30, SYNTAX),
        put("").body(message(&"a".repeat(64 * 1024 + 1))).fails(413, "RequestBodyTooLarge").has("MaxLimit", "65536"),
        put("").body("a".repeat(131_584)).fails(400, "InvalidXmlDocument"),
        put("").body("a".repeat(131_585)).fails(413, "RequestBodyTooLarge").has("MaxLimit", "131584"),
        of("PUT", &id, &format!("?popreceipt={last}&visibilitytimeout=1"))
            .body("a".repeat(131_585))
            .fails(413, "RequestBodyTooLarge")
            .has("MaxLimit", "131584"),
        put("").body(message(&"a".repeat(64 * 1024))).gives(201),
        put("").body(message("&#228;<![CDATA[<]]>")).gives(201),
    ];
    check(&stamp, Service::Queue, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_and_their_lists() {
    let stamp = with_queue().await;
    let invalid = "InvalidQueryParameterValue";
    let metadata = |row: Row, name, value: &[u8]| row.header(name, value);
    let set = || Row::of("PUT", "/tasks?comp=metadata");
    let rows = vec![
        Row::of("PUT", "/tasks").gives(204),
        Row::of("PUT", "/tasks").header("x-ms-meta-a", "1").fails(409, "QueueAlreadyExists"),
        Row::of("PUT", "/ab").fails(400, "OutOfRangeInput"),
        Row::of("PUT", format!("/{}", "a".repeat(64))).fails(400, "OutOfRangeInput"),
        Row::of("PUT", "/Tasks").fails(400, "InvalidResourceName"),
        Row::of("PUT", "/%7BqueueName%7D").fails(400, "InvalidResourceName"),
        Row::of("PUT", "/").fails(400, "InvalidResourceName"),
        Row::of("DELETE", "/missing").fails(404, "QueueNotFound"),
        Row::of("PATCH", "/tasks").fails(405, "UnsupportedHttpVerb"),
        Row::of("GET", "/tasks/other").fails(400, "InvalidUri"),
        refused(Row::of("PUT", "/tasks?comp=x"), invalid, "comp", "x"),
        // Another service's request.
        refused(Row::of("PUT", "/box?restype=container"), invalid, "restype", "container"),
        refused(Row::of("PUT", "/tasks?restype=container"), invalid, "restype", "container"),
        refused(Row::of("DELETE", "/tasks?restype=container"), invalid, "restype", "container"),
        refused(Row::of("GET", "/tasks?restype=container&comp=metadata"), invalid, "restype", "container"),
        Row::of("DELETE", "/box").fails(404, "QueueNotFound"),
        // Metadata.
        metadata(set(), "x-ms-meta-", b"x").fails(400, "EmptyMetadataKey"),
        metadata(set(), "x-ms-meta", b"x").gives(204),
        metadata(set(), "x-ms-meta-1", b"x").fails(400, "InvalidMetadata"),
        metadata(set(), "x-ms-meta-a-b", b"x").fails(400, "InvalidMetadata"),
        metadata(set(), "x-ms-meta-a", b"\xe4").fails(400, "InvalidMetadata"),
        metadata(Row::of("PUT", "/other"), "x-ms-meta-a", b"\xe4").fails(400, "InvalidMetadata"),
        metadata(set().auth(Auth::Account("q", "c", "w")), "x-ms-meta-a", "\u{e4}".as_bytes())
            .fails(400, "InvalidMetadata"),
        metadata(set(), "x-ms-meta-a", "x".repeat(9000).as_bytes()).fails(400, "MetadataTooLarge"),
        metadata(Row::of("PUT", "/missing?comp=metadata"), "x-ms-meta-a", b"1").fails(404, "QueueNotFound"),
        metadata(set(), "x-ms-meta-a", b"1").gives(204),
        Row::of("GET", "/tasks?comp=metadata")
            .has_header("x-ms-meta-a", "1")
            .has_header("x-ms-approximate-messages-count", "0"),
        Row::of("HEAD", "/missing?comp=metadata").fails(404, "QueueNotFound"),
        // Lists.
        refused(
            Row::of("GET", "/?comp=list&maxresults=0"),
            "OutOfRangeQueryParameterValue",
            "maxresults",
            "0",
        )
        .has("MinimumAllowed", "1"),
        refused(
            Row::of("GET", "/?comp=list&maxresults=-1"),
            "OutOfRangeQueryParameterValue",
            "maxresults",
            "-1",
        ),
        refused(Row::of("GET", "/?comp=list&maxresults=x"), invalid, "maxresults", "x"),
        refused(Row::of("GET", "/?comp=list&include=x"), invalid, "include", "x"),
        Row::of("GET", "/?comp=list&marker=x").fails(400, "InvalidMarker"),
        Row::of("GET", "/?comp=list&maxresults=2").has("MaxResults", "2"),
        Row::of("GET", "/?comp=list&maxresults=5001").has("MaxResults", "5000"),
        Row::of("GET", "/?comp=list&prefix=ta")
            .has("Prefix", "ta")
            .has("Name", "tasks")
            .has("NextMarker", ""),
        refused(Row::of("GET", "/?comp=x"), invalid, "comp", "x"),
        Row::of("GET", "/").fails(400, "InvalidUri"),
        Row::of("GET", "/?restype=service&comp=stats").fails(400, invalid),
        Row::of("GET", "/?restype=service&comp=stats").at_secondary().has("Status", "live"),
        Row::of("PUT", "/other").at_secondary().fails(403, "InsufficientAccountPermissions"),
    ];
    check(&stamp, Service::Queue, rows).await;
}

/// Signed by hand, as clients do: in UTF-8. The service reads each byte of a header as a character of
/// Latin-1, so it sees what was signed only if it was sent so, and then it takes no such metadata.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_beyond_ascii_that_is_signed() {
    let stamp = with_queue().await;
    for (sent, status, code) in [
        (&b"one"[..], 403, "AuthenticationFailed"),
        (b"\xe4", 400, "InvalidMetadata"),
        ("\u{e4}".as_bytes(), 403, "AuthenticationFailed"),
    ] {
        let date = stamp.date();
        let text = format!(
            "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-meta-a:\u{e4}\nx-ms-version:2026-10-06\n\
             /devstoreaccount1/devstoreaccount1/tasks\ncomp:metadata"
        );
        let signature = stamp.key.sign(|sink| sink.put(text.as_bytes()));
        let request = Request::builder()
            .method("PUT")
            .uri("/devstoreaccount1/tasks?comp=metadata")
            .header("host", "127.0.0.1:10001")
            .header("x-ms-date", date)
            .header("x-ms-version", "2026-10-06")
            .header("content-length", "0")
            .header("authorization", format!("SharedKey devstoreaccount1:{signature}"))
            .header("x-ms-meta-a", HeaderValue::from_bytes(sent).expect("a value"));
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        stamp.send_queue_request(request).await.expect_error(status, code);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_of_queues() {
    let stamp = with_queue().await;
    let set = |body: String| Row::of("PUT", "/tasks?comp=acl").body(body);
    let many = |count: usize| policies(&(0..count).map(|id| policy(&id.to_string(), "")).collect::<String>());
    let with = |access: &str| set(policies(&policy("a", access)));
    let rows = vec![
        set(many(5)).gives(204),
        malformed(set(many(6)), 0, 0, ANY),
        malformed(set(policies(&policy(&"a".repeat(65), ""))), 0, 0, ANY),
        set(policies(&policy(&"a".repeat(64), ""))).gives(204),
        malformed(set(policies(&policy("", ""))), 0, 0, ANY),
        malformed(set(policies(&policy("a", "").repeat(2))), 0, 0, ANY),
        // As recorded: not the value of a node.
        malformed(with("<Permission>rwdl</Permission>"), 0, 0, ANY),
        with("<Permission>raup</Permission>").gives(204),
        with("<Start>soon</Start>")
            .fails(400, "InvalidXmlNodeValue")
            .has("XmlNodeName", "Start")
            .has("XmlNodeValue", "soon"),
        malformed(set("<x".to_owned()), 1, 2, SYNTAX),
        malformed(set("<x/>".to_owned()), 1, 2, SYNTAX),
        malformed(set(policies("<SignedIdentifier/>")), 1, 21, SYNTAX),
        malformed(set(policies("<Other/>")), 1, 21, SYNTAX),
        set(String::new()).gives(204),
        Row::of("GET", "/tasks?comp=acl").says("<SignedIdentifiers />"),
        Row::of("GET", "/missing?comp=acl").fails(404, "QueueNotFound"),
        Row::of("PUT", "/missing?comp=acl").body(many(1)).fails(404, "QueueNotFound"),
        // A token may, whatever its version; a signature never.
        Row::of("GET", "/tasks?comp=acl").auth(Auth::Bearer),
        Row::of("GET", "/tasks?comp=acl")
            .auth(Auth::Account("q", "sco", "rwdlacup"))
            .fails(403, "AuthorizationFailure"),
    ];
    check(&stamp, Service::Queue, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_the_service() {
    let stamp = with_queue().await;
    let set = |inside: &str| Row::of("PUT", PROPERTIES).body(settings(inside));
    let retention =
        |days: &str| format!("<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>");
    let none = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
    let logging = |version: &str, rest: &str| {
        format!(
            "<Logging><Version>{version}</Version><Read>true</Read><Write>false</Write><Delete>true</Delete>{rest}</Logging>"
        )
    };
    let metrics = |version: &str, rest: &str| {
        format!("<HourMetrics><Version>{version}</Version><Enabled>true</Enabled>{rest}</HourMetrics>")
    };
    let apis = "<IncludeAPIs>true</IncludeAPIs>";
    let cors = |inside: &str| format!("<Cors><CorsRule>{inside}</CorsRule></Cors>");
    let rule = "<AllowedOrigins>http://a</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                <MaxAgeInSeconds>5</MaxAgeInSeconds>";
    let (exposed, allowed) = ("<ExposedHeaders>x</ExposedHeaders>", "<AllowedHeaders>y</AllowedHeaders>");
    let days = "Retention days must be greater than 0 and less than or equal to 365 days.";
    let bad = |inside: &str| {
        set(inside)
            .fails(400, "InvalidXmlDocument")
            .has("LineNumber", "1")
            .has("LinePosition", ANY)
            .has("Reason", ANY)
    };
    let rows = vec![
        set(&logging("1.0", none)).gives(202),
        set(&logging("2.0", &retention("365"))).gives(202),
        Row::of("GET", PROPERTIES).has("Version", "2.0").has("Days", "365"),
        bad(&logging("3.0", none)),
        bad(&logging("1.0", "")),
        bad("<Logging/>"),
        set(&metrics("1.0", &format!("{apis}{none}"))).gives(202),
        bad(&metrics("2.0", &format!("{apis}{none}"))),
        bad(&metrics("1.0", none)),
        bad(&metrics("1.0", &format!("{apis}{}", retention("0")))).has("Reason", days),
        bad(&metrics("1.0", &format!("{apis}{}", retention("366")))).has("Reason", days),
        bad(&metrics("1.0", &format!("{apis}{}", retention("x")))).has("Reason", days),
        malformed(
            set(&format!(
                "<MinuteMetrics><Version>1.0</Version><Enabled>True</Enabled>\
            <IncludeAPIs>True</IncludeAPIs>{}</MinuteMetrics>",
                retention("366")
            )),
            1,
            176,
            days,
        ),
        set(&metrics("1.0", &format!("<IncludeAPIs>x</IncludeAPIs>{none}")))
            .fails(400, "InvalidXmlNodeValue")
            .has("XmlNodeName", "IncludeAPIs")
            .has("XmlNodeValue", "x"),
        bad("<DefaultServiceVersion>2020-02-10</DefaultServiceVersion>"),
        bad("<Other/>"),
        bad("<Cors/><Cors/>"),
        Row::of("PUT", PROPERTIES).body("<x/>").fails(400, "InvalidXmlDocument").has("LinePosition", "2"),
        Row::of("PUT", PROPERTIES).fails(400, "InvalidXmlDocument").has("LineNumber", "0"),
        // Headers of a rule may be left out.
        set(&cors(&format!("{rule}{exposed}{allowed}"))).gives(202),
        set(&cors(&format!("{rule}{exposed}"))).gives(202),
        set(&cors(&format!("{rule}{allowed}"))).gives(202),
        set(&cors(rule)).gives(202),
        Row::of("GET", PROPERTIES).has("AllowedHeaders", "").has("ExposedHeaders", ""),
        bad(&cors("<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>")),
        bad(&cors("<AllowedOrigins>a</AllowedOrigins><MaxAgeInSeconds>5</MaxAgeInSeconds>")),
        bad(&cors("<AllowedOrigins>a</AllowedOrigins><AllowedMethods>GET</AllowedMethods>")),
        set(&cors(&rule.replace("GET", "FETCH"))).fails(400, "InvalidXmlNodeValue").has("Reason", ANY),
        set(&cors(&rule.replace("http://a", ""))).fails(400, "InvalidXmlNodeValue"),
        set(&cors(&rule.replace(">5<", ">-1<"))).fails(400, "InvalidXmlNodeValue").has("XmlNodeValue", "-1"),
        malformed(
            set(&format!("<Cors>{}</Cors>", format!("<CorsRule>{rule}</CorsRule>").repeat(6))),
            0,
            0,
            ANY,
        ),
        set("<Cors/>").gives(202),
        // Roots that are left out keep what they were.
        Row::of("GET", PROPERTIES).has("Days", "365").says("<Cors />"),
    ];
    check(&stamp, Service::Queue, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_and_tokens() {
    let stamp = with_queue().await;
    let (service, resource, permission) = (
        "AuthorizationServiceMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationPermissionMismatch",
    );
    let sas = |method: &str, path: &str, services, types, permissions| {
        Row::of(method, path).auth(Auth::Account(services, types, permissions))
    };
    let mut rows = Vec::new();
    // Each operation: the resource type and the permission that it needs, and what it answers with them.
    let id = format!("/tasks/messages/{ID}?popreceipt={RECEIPT}");
    let update = format!("{id}&visibilitytimeout=1");
    let operations: [Operation<'_>; 15] = [
        ("GET", PROPERTIES, "s", "r", (200, "")),
        ("PUT", PROPERTIES, "s", "w", (400, "InvalidXmlDocument")),
        ("GET", "/?comp=list", "s", "l", (200, "")),
        ("PUT", "/made", "c", "c", (201, "")),
        ("PUT", "/made", "c", "w", (204, "")),
        ("DELETE", "/made", "c", "d", (204, "")),
        ("GET", "/tasks?comp=metadata", "c", "r", (200, "")),
        ("PUT", "/tasks?comp=metadata", "c", "w", (204, "")),
        ("POST", "/tasks/messages", "o", "a", (400, "InvalidXmlDocument")),
        ("GET", "/tasks/messages", "o", "p", (200, "")),
        ("GET", "/tasks/messages?peekonly=true", "o", "r", (200, "")),
        ("DELETE", "/tasks/messages", "o", "d", (204, "")),
        ("DELETE", &id, "o", "p", (404, "MessageNotFound")),
        ("PUT", &update, "o", "u", (404, "MessageNotFound")),
        ("GET", "/tasks?comp=metadata", "sco", "rwdlacup", (200, "")),
    ];
    for (method, path, types, permissions, (status, code)) in operations {
        rows.push(sas(method, path, "q", types, permissions).fails(status, code));
        if types.len() > 1 {
            continue;
        }
        let others =
            ["co", "so", "sc"][["s", "c", "o"].iter().position(|kind| *kind == types).expect("a type")];
        rows.push(sas(method, path, "q", others, "rwdlacup").fails(403, resource));
        rows.push(sas(method, path, "bt", "sco", "rwdlacup").fails(403, service));
        rows.push(sas(method, path, "q", types, "i").fails(403, permission));
    }
    let signed = |permissions: &str| {
        let text = format!("{permissions}\n\n2027-01-01\n/queue/devstoreaccount1/tasks\n\n\n\n2019-02-02");
        Auth::Query(format!(
            "sv=2019-02-02&sp={permissions}&se=2027-01-01&sig={}",
            stamp.sas_signature(&text)
        ))
    };
    rows.extend([
        Row::of("GET", "/tasks?comp=metadata").auth(signed("r")),
        Row::of("GET", "/tasks?comp=metadata").auth(signed("a")).fails(403, permission),
        Row::of("PUT", "/tasks?comp=metadata").auth(signed("raup")).fails(403, "AuthorizationFailure"),
        Row::of("PUT", "/tasks").auth(signed("raup")).fails(403, "AuthorizationFailure"),
        Row::of("DELETE", "/tasks/messages").auth(signed("raup")).fails(403, "AuthorizationFailure"),
        Row::of("GET", "/?comp=list").auth(signed("raup")).fails(403, "AuthenticationFailed"),
        Row::of("GET", "/other/messages").auth(signed("raup")).fails(403, "AuthenticationFailed"),
        Row::of("GET", "/?comp=list").auth(Auth::Nothing).fails(401, "NoAuthenticationInformation"),
        Row::of("GET", "/?comp=list").auth(Auth::Header("Basic x")).fails(400, "InvalidAuthenticationInfo"),
        // Text that is no token, and one that is not good, which is answered by a challenge in versions that
        // know it.
        Row::of("GET", "/?comp=list").auth(Auth::Bearer),
        Row::of("GET", "/?comp=list")
            .auth(Auth::Header("Bearer YOU SHALL NOT PASS"))
            .header("x-ms-version", "2018-11-09")
            .fails(400, "InvalidAuthenticationInfo")
            .says("Authentication information is not given in the correct format."),
        Row::of("GET", "/?comp=list")
            .auth(Auth::Header("Bearer BLA"))
            .fails(400, "InvalidAuthenticationInfo")
            .has("AuthenticationErrorDetail", ANY),
        Row::of("GET", "/?comp=list")
            .auth(Auth::Header(BAD_TOKEN))
            .fails(401, "InvalidAuthenticationInfo")
            .has("AuthenticationErrorDetail", ANY)
            .has_header("www-authenticate", ANY),
        Row::of("GET", "/?comp=list")
            .auth(Auth::Header(BAD_TOKEN))
            .header("x-ms-version", "2018-11-09")
            .fails(403, "AuthenticationFailed"),
        // Policies by token.
        Row::of("GET", "/tasks?comp=acl").auth(Auth::Bearer).header("x-ms-version", "2025-07-05"),
        Row::of("GET", "/tasks?comp=acl")
            .auth(Auth::Bearer)
            .header("x-ms-version", "2025-07-04")
            .fails(404, "ResourceNotFound"),
        Row::of("PUT", "/tasks?comp=acl")
            .auth(Auth::Bearer)
            .header("x-ms-version", "2018-11-09")
            .fails(404, "ResourceNotFound"),
        // What helps to mend it.
        Row::of("GET", "/?comp=list")
            .auth(Auth::Header("SharedKey devstoreaccount1:AAAA"))
            .fails(403, "AuthenticationFailed")
            .says("The MAC signature found in the HTTP request 'AAAA' is not the same as any computed signature."),
        Row::of("GET", "/?comp=list")
            .header("x-ms-date", "Fri, 04 Oct 2019 18:02:12 GMT")
            .fails(403, "AuthenticationFailed")
            .has("AuthenticationErrorDetail", "Request date header too old: 'Fri, 04 Oct 2019 18:02:12 GMT'"),
        Row::of("GET", "/?comp=list")
            .header("x-ms-date", "yesterday")
            .fails(403, "AuthenticationFailed")
            .has("AuthenticationErrorDetail", "The Date header in the request is incorrect."),
    ]);
    check(&stamp, Service::Queue, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_and_timeouts() {
    let stamp = with_queue().await;
    let list = || Row::of("GET", "/?comp=list");
    let version = |version: &'static str| list().header("x-ms-version", version);
    let timeout = |text: &str| Row::of("GET", format!("/?comp=list&timeout={text}"));
    let mut rows = vec![
        version("2050-01-01").has_header("x-ms-version", "2050-01-01"),
        version("2024-02-29"),
        Row::of("POST", "/tasks/messages")
            .header("Content-MD5", "x")
            .body(message("a"))
            .fails(400, "InvalidMd5")
            .names_header("Content-MD5", "x"),
        Row::of("POST", "/tasks/messages")
            .header("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")
            .body(message("a"))
            .fails(400, "Md5Mismatch")
            .has("UserSpecifiedMd5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        Row::of("OPTIONS", "/tasks")
            .header("access-control-request-method", "GET")
            .fails(400, "InvalidHeaderValue")
            .names_header("origin", "")
            .says("A required CORS header is not present."),
        Row::of("OPTIONS", "/tasks")
            .header("origin", "http://a")
            .fails(400, "InvalidHeaderValue")
            .names_header("access-control-request-method", ""),
        Row::of("OPTIONS", "/tasks")
            .header("origin", "http://a")
            .header("access-control-request-method", "GET")
            .fails(403, "CorsPreflightFailure"),
        timeout("5"),
        timeout(""),
        timeout("99999999999999999999"),
        timeout("0").fails(500, "OperationTimedOut"),
        refused(timeout("-1"), "OutOfRangeQueryParameterValue", "timeout", "-1"),
        refused(timeout("x"), "InvalidQueryParameterValue", "timeout", "x"),
        refused(timeout("1.5"), "InvalidQueryParameterValue", "timeout", "1.5"),
    ];
    for bad in ["2050-99-99", "2025-02-29", "2026-00-10", "2026-06-31", "2008-01-01", "latest", ""] {
        rows.push(version(bad).fails(400, "InvalidHeaderValue").names_header("x-ms-version", bad));
    }
    check(&stamp, Service::Queue, rows).await;
}
