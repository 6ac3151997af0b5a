//! What the Table service answers: requests, and the status, code, elements and headers that their answers
//! must have.

mod stamp;

use stamp::Stamp;
use stamp::answers::{ANY, Auth, Row, Service, check, open_with_tokens};

/// Method, path, resource type and permissions that an account signature needs, status and code.
type Operation<'a> = (&'a str, &'a str, &'static str, &'static str, (u16, &'static str));

const PROPERTIES: &str = "/?restype=service&comp=properties";
const ENTITY: &str = "/People(PartitionKey='p',RowKey='r')";

async fn with_table() -> Stamp {
    let stamp = open_with_tokens().await;
    stamp.create_table("People").await;
    stamp.insert("People", r#"{"PartitionKey":"p","RowKey":"r","Name":"a"}"#).await.expect(204);
    stamp
}

fn insert(body: &str) -> Row {
    Row::of("POST", "/People").header("content-type", "application/json").body(body)
}

/// A batch of a change set of these operations.
fn change_set(operations: &[&str]) -> Row {
    let parts: String = operations
        .iter()
        .map(|operation| format!("--c\r\nContent-Type: application/http\r\n\r\n{operation}\r\n"))
        .collect();
    batch(&format!("Content-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--"))
}

/// A batch of one request.
fn lone(operation: &str) -> Row {
    batch(&format!("Content-Type: application/http\r\n\r\n{operation}"))
}

fn batch(part: &str) -> Row {
    Row::of("POST", "/$batch")
        .header("content-type", "multipart/mixed; boundary=b")
        .body(format!("--b\r\n{part}\r\n--b--\r\n"))
        .gives(202)
}

/// The answer to a batch has one part, which is this error of the operation at `index`.
fn fails_at(row: Row, index: usize, status: &str, code: &str) -> Row {
    row.says(format!("HTTP/1.1 {status}\r\n"))
        .says(format!("\"code\":\"{code}\""))
        .says(format!("\"value\":\"{index}:"))
}

fn post(entity: &str) -> String {
    format!("POST /devstoreaccount1/People HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{entity}")
}

/// A token that no authority believes.
const BAD_TOKEN: &str = "Bearer eyJhbGciOiJub25lIn0.e30.AAAA";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables() {
    let stamp = with_table().await;
    let create =
        |body: &str| Row::of("POST", "/Tables").header("content-type", "application/json").body(body);
    let rows = vec![
        create(r#"{"TableName":"People"}"#).fails(409, "TableAlreadyExists"),
        create(r#"{"TableName":"people"}"#).fails(409, "TableAlreadyExists"),
        create(r#"{"TableName":"Other"}"#).gives(201),
        create(r#"{"TableName":"a"}"#).fails(400, "OutOfRangeInput"),
        create(&format!(r#"{{"TableName":"{}"}}"#, "a".repeat(64))).fails(400, "OutOfRangeInput"),
        create(r#"{"TableName":"a-b"}"#).fails(400, "InvalidResourceName"),
        create(r#"{"TableName":"1ab"}"#).fails(400, "InvalidResourceName"),
        create(r#"{"TableName":"tables"}"#).fails(400, "InvalidInput"),
        create(r#"{"TableName""#).fails(400, "InvalidInput"),
        create("").fails(400, "InvalidInput"),
        Row::of("DELETE", "/Tables('Other')").gives(204),
        Row::of("DELETE", "/Tables('Other')").fails(404, "ResourceNotFound"),
        Row::of("GET", "/Tables('Other')").fails(404, "ResourceNotFound"),
        Row::of("PUT", "/Tables").fails(405, "MethodNotAllowed"),
        Row::of("GET", "/Tables?$top=1001").fails(400, "InvalidInput"),
        Row::of("GET", "/Tables?$top=x").fails(400, "InvalidInput"),
        Row::of("GET", "/Tables?$filter=TableName%20eq%20").fails(400, "InvalidInput"),
        Row::of("GET", "/Tables?$orderby=x").fails(501, "NotImplemented"),
        Row::of("GET", "/Tables?$top=1").says("People"),
        Row::of("GET", "/Tables")
            .header("accept", "application/atom+xml")
            .fails(415, "AtomFormatNotSupported"),
        Row::of("GET", "/Tables").header("accept", "text/plain").fails(415, "MediaTypeNotSupported"),
        Row::of("PUT", "/box?restype=container").fails(405, "UnsupportedHttpVerb"),
        Row::of("POST", "/Tables").at_secondary().body("{}").fails(403, "InsufficientAccountPermissions"),
    ];
    check(&stamp, Service::Table, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entities() {
    let stamp = with_table().await;
    let put = |body: &str| Row::of("PUT", ENTITY).body(body);
    let rows = vec![
        insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).fails(409, "EntityAlreadyExists"),
        insert(r#"{"PartitionKey":"p"}"#).fails(400, "PropertiesNeedValue"),
        insert(r#"{"PartitionKey":"p","RowKey":1}"#).fails(400, "PrimaryKeyPropertyIsInvalidType"),
        insert(r#"{"PartitionKey":"p","RowKey":"a/b"}"#).fails(400, "OutOfRangeInput"),
        insert(r#"{"PartitionKey":"p","RowKey":"2","a-b":1}"#).fails(400, "PropertyNameInvalid"),
        insert(r#"{"PartitionKey":"p","RowKey":"2","a":1,"a":2}"#).fails(400, "DuplicatePropertiesSpecified"),
        insert(&format!(r#"{{"PartitionKey":"p","RowKey":"2","a":"{}"}}"#, "x".repeat(32769)))
            .fails(400, "PropertyValueTooLarge"),
        insert("{").fails(400, "InvalidInput"),
        Row::of("POST", "/Missing").body(r#"{"PartitionKey":"p","RowKey":"r"}"#).fails(404, "TableNotFound"),
        Row::of("GET", "/Missing()").fails(404, "TableNotFound"),
        Row::of("GET", "/People(PartitionKey='p',RowKey='x')").fails(404, "ResourceNotFound"),
        Row::of("GET", "/People(PartitionKey='a/b',RowKey='x')").fails(400, "InvalidInput"),
        put("{}")
            .header("if-match", "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"")
            .fails(412, "UpdateConditionNotSatisfied"),
        put("{}").header("if-match", "x y").fails(400, "InvalidInput"),
        put("").fails(400, "InvalidInput"),
        Row::of("DELETE", ENTITY).fails(400, "InvalidInput"),
        Row::of("DELETE", "/People(PartitionKey='p',RowKey='x')")
            .header("if-match", "*")
            .fails(404, "ResourceNotFound"),
        Row::of("GET", "/People()?$filter=a%20zz%201").fails(400, "InvalidInput"),
        Row::of("GET", "/People()?$top=1001").fails(400, "InvalidInput"),
        Row::of("GET", "/People?comp=x").fails(400, "InvalidQueryParameterValue"),
        Row::of("POST", ENTITY).fails(405, "MethodNotAllowed"),
        Row::of("X", ENTITY).fails(405, "UnsupportedHttpVerb"),
        Row::of("PUT", ENTITY).header("x-http-method", "MERGE").fails(400, "XMethodNotUsingPost"),
        Row::of("POST", ENTITY).header("x-http-method", "GET").fails(400, "XMethodIncorrectValue"),
        Row::of("GET", "/").fails(400, "InvalidUri"),
        Row::of("GET", ENTITY).has_header("etag", ANY).has_header("cache-control", "no-cache"),
    ];
    check(&stamp, Service::Table, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches() {
    let stamp = with_table().await;
    let get = |path: &str| format!("GET /devstoreaccount1{path} HTTP/1.1\r\n\r\n");
    let delete = |path: &str| format!("DELETE /devstoreaccount1{path} HTTP/1.1\r\nIf-Match: *\r\n\r\n");
    let there = post(r#"{"PartitionKey":"p","RowKey":"r"}"#);
    let (one, two) =
        (post(r#"{"PartitionKey":"p","RowKey":"1"}"#), post(r#"{"PartitionKey":"p","RowKey":"2"}"#));
    let rows = vec![
        // A change set of one operation returns its index as well.
        fails_at(change_set(&[&there]), 0, "409 Conflict", "EntityAlreadyExists"),
        fails_at(
            change_set(&[&delete("/People(PartitionKey='p',RowKey='x')")]),
            0,
            "404 Not Found",
            "ResourceNotFound",
        ),
        fails_at(change_set(&[&one.replace("People", "Missing")]), 0, "404 Not Found", "TableNotFound"),
        fails_at(change_set(&[&post("{")]), 0, "400 Bad Request", "InvalidInput"),
        fails_at(change_set(&[&one, &there]), 1, "409 Conflict", "EntityAlreadyExists"),
        fails_at(change_set(&[&one, &one]), 1, "400 Bad Request", "InvalidDuplicateRow"),
        fails_at(
            change_set(&[&one, &post(r#"{"PartitionKey":"q","RowKey":"1"}"#)]),
            1,
            "400 Bad Request",
            "CommandsInBatchActOnDifferentPartitions",
        ),
        fails_at(change_set(&[&one, &get(ENTITY)]), 1, "400 Bad Request", "InvalidInput"),
        // A lone get.
        lone(&get(ENTITY)).says("HTTP/1.1 200 OK\r\n").says("\"Name\":\"a\""),
        fails_at(lone(&get("/People(PartitionKey='p',RowKey='x')")), 0, "404 Not Found", "ResourceNotFound"),
        fails_at(lone(&get("/Missing(PartitionKey='p',RowKey='x')")), 0, "404 Not Found", "TableNotFound"),
        fails_at(lone(&get("/People(PartitionKey='a/b',RowKey='x')")), 0, "400 Bad Request", "InvalidInput"),
        fails_at(lone(&get("/People(PartitionKey='p')")), 0, "400 Bad Request", "InvalidInput"),
        fails_at(lone(&get("/People(PartitionKey='p',RowKey=1)")), 0, "400 Bad Request", "InvalidInput"),
        lone(&one).fails(400, "InvalidInput"),
        lone(&get("/People()")).fails(400, "InvalidInput"),
        // `timeout` inside.
        fails_at(
            change_set(&[&one, &two.replace("/People ", "/People?timeout=x ")]),
            1,
            "400 Bad Request",
            "InvalidQueryParameterValue",
        ),
        fails_at(
            change_set(&[&one, &two.replace("/People ", "/People?timeout=-1 ")]),
            1,
            "400 Bad Request",
            "OutOfRangeQueryParameterValue",
        ),
        fails_at(
            change_set(&[&one, &two.replace("/People ", "/People?timeout=0 ")]),
            1,
            "500 Internal Server Error",
            "OperationTimedOut",
        ),
        fails_at(
            lone(&get(&format!("{ENTITY}?timeout=x"))),
            0,
            "400 Bad Request",
            "InvalidQueryParameterValue",
        ),
        fails_at(
            lone(&get(&format!("{ENTITY}?timeout=0"))),
            0,
            "500 Internal Server Error",
            "OperationTimedOut",
        ),
        lone(&get(&format!("{ENTITY}?timeout=5"))).says("HTTP/1.1 200 OK\r\n"),
        // Nothing of all these was done.
        Row::of("GET", "/People(PartitionKey='p',RowKey='1')").fails(404, "ResourceNotFound"),
        change_set(&[&one, &two.replace("/People ", "/People?timeout=5 ")]).says("HTTP/1.1 201 Created\r\n"),
        Row::of("GET", "/People(PartitionKey='p',RowKey='2')"),
        // No batch.
        batch("").fails(400, "InvalidInput"),
        Row::of("POST", "/$batch")
            .header("content-type", "application/json")
            .body("{}")
            .fails(400, "InvalidInput"),
        Row::of("GET", "/$batch").fails(405, "MethodNotAllowed"),
    ];
    check(&stamp, Service::Table, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_and_settings() {
    let stamp = with_table().await;
    let set = |body: &str| Row::of("PUT", "/People?comp=acl").body(body);
    let policy = |id: &str, access: &str| {
        format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{access}</AccessPolicy></SignedIdentifier>")
    };
    let policies = |inside: String| format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
    let many = |count: usize| policies((0..count).map(|id| policy(&id.to_string(), "")).collect());
    let put = |inside: &str| {
        Row::of("PUT", PROPERTIES)
            .body(format!("<StorageServiceProperties>{inside}</StorageServiceProperties>"))
    };
    let logging = |version: &str| {
        format!(
            "<Logging><Version>{version}</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>\
             <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
        )
    };
    let metrics = |version: &str, days: u32| {
        format!(
            "<HourMetrics><Version>{version}</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>\
             <RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy></HourMetrics>"
        )
    };
    let rule = "<CorsRule><AllowedOrigins>http://a</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>";
    let code = |row: Row, code: &'static str| row.fails(400, code).has("m:code", code);
    let rows = vec![
        set(&many(5)).gives(204),
        code(set(&many(6)), "InvalidXmlDocument"),
        code(set(&policies(policy(&"a".repeat(65), ""))), "InvalidXmlDocument"),
        code(set(&policies(policy("a", "").repeat(2))), "InvalidXmlDocument"),
        code(set(&policies(policy("a", "<Permission>x</Permission>"))), "InvalidXmlDocument"),
        code(set(&policies(policy("a", "<Start>x</Start>"))), "InvalidXmlNodeValue"),
        code(set("<x"), "InvalidXmlDocument"),
        Row::of("GET", "/People?comp=acl").says("<Id>4</Id>"),
        Row::of("GET", "/Missing?comp=acl").fails(404, "TableNotFound"),
        Row::of("PUT", "/Missing?comp=acl").body(many(1)).fails(404, "TableNotFound"),
        // Logs of version 2.0 exist for blobs and queues only.
        put(&logging("1.0")).gives(202),
        code(put(&logging("2.0")), "InvalidXmlDocument"),
        code(put(&logging("3.0")), "InvalidXmlDocument"),
        put(&metrics("1.0", 365)).gives(202),
        code(put(&metrics("2.0", 365)), "InvalidXmlDocument"),
        code(put(&metrics("1.0", 366)), "InvalidXmlDocument"),
        code(put("<Logging/>"), "InvalidXmlDocument"),
        code(put("<DefaultServiceVersion>2020-02-10</DefaultServiceVersion>"), "InvalidXmlDocument"),
        put(&format!("<Cors>{rule}</Cors>")).gives(202),
        code(put(&format!("<Cors>{}</Cors>", rule.repeat(6))), "InvalidXmlDocument"),
        code(put(&format!("<Cors>{}</Cors>", rule.replace("GET", "x"))), "InvalidXmlNodeValue"),
        Row::of("GET", PROPERTIES).has("Version", "1.0").has("AllowedHeaders", ""),
        Row::of("DELETE", PROPERTIES).fails(405, "UnsupportedHttpVerb"),
        Row::of("GET", "/?restype=service&comp=x").fails(400, "InvalidQueryParameterValue"),
        Row::of("GET", "/?restype=service&comp=stats").fails(400, "InvalidQueryParameterValue"),
        Row::of("GET", "/?restype=service&comp=stats").at_secondary().has("Status", "live"),
    ];
    check(&stamp, Service::Table, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_and_tokens() {
    let stamp = with_table().await;
    let (service, resource, permission) = (
        "AuthorizationServiceMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationPermissionMismatch",
    );
    let acl = "/People?comp=acl";
    let sas = |method: &str, path: &str, services, types, permissions| {
        Row::of(method, path).body("{}").auth(Auth::Account(services, types, permissions))
    };
    // Each operation: the resource type and the permissions that it needs, and what it answers with them.
    let entity = "/People(PartitionKey='p',RowKey='x')";
    let operations: [Operation<'_>; 13] = [
        ("GET", PROPERTIES, "s", "r", (200, "")),
        ("PUT", PROPERTIES, "s", "w", (400, "InvalidXmlDocument")),
        ("GET", "/Tables", "c", "l", (200, "")),
        ("GET", "/Tables('People')", "c", "l", (200, "")),
        ("POST", "/Tables", "c", "c", (400, "InvalidInput")),
        ("POST", "/Tables", "c", "w", (400, "InvalidInput")),
        ("DELETE", "/Tables('Missing')", "c", "d", (404, "ResourceNotFound")),
        ("GET", "/People()", "o", "r", (200, "")),
        ("GET", entity, "o", "r", (404, "ResourceNotFound")),
        ("POST", "/People", "o", "a", (400, "PropertiesNeedValue")),
        ("PUT", entity, "o", "au", (204, "")),
        ("MERGE", entity, "o", "au", (204, "")),
        ("DELETE", entity, "o", "d", (400, "InvalidInput")),
    ];
    let mut rows = Vec::new();
    for (method, path, types, permissions, (status, code)) in operations {
        rows.push(sas(method, path, "t", types, permissions).fails(status, code));
        let others =
            ["co", "so", "sc"][["s", "c", "o"].iter().position(|kind| *kind == types).expect("a type")];
        rows.push(sas(method, path, "t", others, "rwdlacup").fails(403, resource));
        rows.push(sas(method, path, "bq", "sco", "rwdlacup").fails(403, service));
        rows.push(sas(method, path, "t", types, "i").fails(403, permission));
    }
    let text = "raud\n\n2027-01-01\n/table/devstoreaccount1/people\n\n\n\n2019-02-02\n\n\n\n";
    let signature = stamp.sas_signature(text);
    let signed = || Auth::Query(format!("sv=2019-02-02&tn=People&sp=raud&se=2027-01-01&sig={signature}"));
    let by_token = |method: &str, version: &'static str| {
        Row::of(method, acl).auth(Auth::Bearer).header("x-ms-version", version)
    };
    rows.extend([
        Row::of("GET", "/Tables").auth(Auth::Account("t", "s", "rwdlacup")).fails(403, resource),
        Row::of("GET", acl).auth(Auth::Account("t", "sco", "rwdlacup")).fails(403, "AuthorizationFailure"),
        Row::of("GET", "/People()").auth(signed()),
        Row::of("GET", "/Tables").auth(signed()).fails(403, "AuthorizationFailure"),
        Row::of("GET", acl).auth(signed()).fails(403, "AuthorizationFailure"),
        Row::of("DELETE", "/Tables('People')").auth(signed()).fails(403, "AuthorizationFailure"),
        // Policies by token, from the version on that allows it.
        by_token("GET", "2025-07-05"),
        by_token("PUT", "2025-07-05").gives(204),
        by_token("GET", "2026-10-06"),
        by_token("PUT", "2025-07-04").fails(403, "AuthorizationFailure"),
        by_token("GET", "2019-02-02").fails(403, "AuthorizationFailure"),
        Row::of("GET", "/Tables").auth(Auth::Bearer),
        Row::of("GET", "/Tables").auth(Auth::Header("Bearer BLA")).fails(400, "InvalidAuthenticationInfo"),
        Row::of("GET", "/Tables").auth(Auth::Header(BAD_TOKEN)).fails(403, "AuthenticationFailed"),
        Row::of("GET", "/Tables")
            .auth(Auth::Header(BAD_TOKEN))
            .header("x-ms-version", "2019-12-12")
            .fails(401, "InvalidAuthenticationInfo")
            .has_header("www-authenticate", ANY),
        Row::of("GET", "/?restype=service&comp=stats")
            .auth(Auth::Nothing)
            .header("x-ms-version", "2020-12-06")
            .fails(401, "InvalidAuthenticationInfo")
            .has_header("www-authenticate", ANY),
        Row::of("GET", "/Tables").auth(Auth::Header("x")).fails(400, "InvalidAuthenticationInfo"),
        Row::of("GET", "/Tables").auth(Auth::Nothing).fails(401, "NoAuthenticationInformation"),
    ]);
    check(&stamp, Service::Table, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_and_timeouts() {
    let stamp = with_table().await;
    let list = || Row::of("GET", "/Tables");
    let xml = |version: &'static str| list().header("x-ms-version", version);
    let timeout = |text: &str| Row::of("GET", format!("/Tables?timeout={text}"));
    let mut rows = vec![
        xml("2050-01-01").has_header("x-ms-version", "2050-01-01"),
        xml("2024-02-29"),
        insert("{}").header("content-md5", "x").fails(400, "InvalidMd5"),
        timeout("5"),
        timeout("0").fails(500, "OperationTimedOut"),
        timeout("-1").fails(400, "OutOfRangeQueryParameterValue"),
        timeout("x").fails(400, "InvalidQueryParameterValue"),
    ];
    for bad in ["2050-99-99", "2025-02-29", "2008-01-01", "latest"] {
        rows.push(xml(bad).fails(400, "InvalidHeaderValue"));
    }
    check(&stamp, Service::Table, rows).await;
}
