//! Entity group transactions through the whole stack, without sockets.

mod stamp;

use stamp::{Answer, Stamp};

const CONTENT_TYPE: (&str, &str) = ("content-type", "multipart/mixed; boundary=batch_b");

fn batch(operations: &[String]) -> String {
    let mut body = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n".to_owned();
    for (index, operation) in operations.iter().enumerate() {
        body.push_str(&format!(
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {index}\r\n\r\n{operation}\r\n"
        ));
    }
    body + "--changeset_c--\r\n--batch_b--\r\n"
}

fn insert(partition: &str, row: &str, more: &str) -> String {
    format!(
        "POST http://127.0.0.1:10002/devstoreaccount1/People HTTP/1.1\r\nContent-Type: application/json\r\n{more}\r\n{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}"
    )
}

async fn send(stamp: &Stamp, operations: &[String]) -> Answer {
    stamp.send("POST", "/$batch", &[CONTENT_TYPE], &batch(operations)).await.expect(202)
}

async fn stamp_with_table() -> Stamp {
    let stamp = Stamp::open().await;
    stamp.create_table("People").await;
    stamp
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_operations_are_applied_and_answered_in_order() {
    let stamp = stamp_with_table().await;
    stamp.insert("People", r#"{"PartitionKey":"p","RowKey":"old"}"#).await.expect(204);
    let operations = [
        insert("p", "1", "Prefer: return-no-content\r\n"),
        insert("p", "2", ""),
        "PUT /devstoreaccount1/People(PartitionKey='p',RowKey='3') HTTP/1.1\r\n\r\n{\"A\":1}".to_owned(),
        "MERGE /devstoreaccount1/People(PartitionKey='p',RowKey='4') HTTP/1.1\r\nAccept: application/json\r\n\r\n{}".to_owned(),
        "DELETE /devstoreaccount1/People(PartitionKey='p',RowKey='old') HTTP/1.1\r\nIf-Match: *\r\n\r\n".to_owned(),
    ];
    let answer = send(&stamp, &operations).await;
    assert!(answer.header("content-type").starts_with("multipart/mixed; boundary=batchresponse_"));
    let parts: Vec<&str> = answer.body.split("HTTP/1.1 ").skip(1).collect();
    assert_eq!(parts.len(), 5, "{}", answer.body);
    assert!(parts[0].starts_with("204 No Content\r\nContent-ID: 0\r\n"), "{}", parts[0]);
    for part in [
        "Preference-Applied: return-no-content\r\n",
        "DataServiceVersion: 3.0;\r\n",
        "DataServiceId: http://127.0.0.1:10002/devstoreaccount1/People(PartitionKey='p',RowKey='1')\r\n",
        "Location: ",
        "ETag: W/",
    ] {
        assert!(parts[0].contains(part), "{part} in {}", parts[0]);
    }
    assert!(parts[1].starts_with("201 Created") && parts[1].contains("\"RowKey\":\"2\""), "{}", parts[1]);
    assert!(parts[2].contains("DataServiceVersion: 1.0;\r\n") && parts[2].contains("ETag: "));
    assert!(!parts[4].contains("ETag"), "{}", parts[4]);
    let answer = stamp.send("GET", "/People()", &[], "").await.expect(200);
    assert_eq!(answer.json()["value"].as_array().map(Vec::len), Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_operation_undoes_all_and_is_the_only_part() {
    let stamp = stamp_with_table().await;
    stamp.insert("People", r#"{"PartitionKey":"p","RowKey":"2"}"#).await.expect(204);
    let answer =
        send(&stamp, &[insert("p", "1", ""), insert("p", "2", "Prefer: return-no-content\r\n")]).await;
    assert_eq!(answer.body.matches("HTTP/1.1 ").count(), 1);
    for part in [
        "HTTP/1.1 409 Conflict\r\nContent-ID: 1\r\n",
        "Preference-Applied: return-no-content\r\n",
        "{\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":\"1:The specified entity already exists.\\nRequestId:",
    ] {
        assert!(answer.body.contains(part), "{part} in {}", answer.body);
    }
    stamp.send("GET", "/People(PartitionKey='p',RowKey='1')", &[], "").await.expect(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_keys_and_names_have_the_codes_of_single_requests() {
    let stamp = stamp_with_table().await;
    let long = "k".repeat(1025);
    let named = insert("p", "2", "").replace("\"RowKey\"", "\"a@b\":1,\"RowKey\"");
    for (second, code) in [
        (insert("p", &long, ""), "PropertyValueTooLarge"),
        (insert("p", "a/b", ""), "OutOfRangeInput"),
        (named, "PropertyNameInvalid"),
    ] {
        let answer = send(&stamp, &[insert("p", "1", ""), second]).await;
        assert!(answer.body.contains("HTTP/1.1 400 Bad Request"), "{}", answer.body);
        assert!(answer.body.contains(&format!("\"code\":\"{code}\"")), "{code} in {}", answer.body);
        assert!(answer.body.contains("\"value\":\"1:"), "{}", answer.body);
    }
    let answer = stamp.send("GET", "/People()", &[], "").await.expect(200);
    assert_eq!(answer.json()["value"].as_array().map(Vec::len), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cause_has_its_code_and_index() {
    let stamp = stamp_with_table().await;
    let fails = async |operations: &[String], status: &str, code: &str, index: usize| {
        let answer = send(&stamp, operations).await;
        assert!(answer.body.contains(&format!("HTTP/1.1 {status}")), "{}", answer.body);
        assert!(answer.body.contains(&format!("\"code\":\"{code}\"")), "{}", answer.body);
        assert!(answer.body.contains(&format!("\"value\":\"{index}:")), "{}", answer.body);
    };
    let many: Vec<String> = (0..101).map(|row| insert("p", &row.to_string(), "")).collect();
    fails(&many, "400", "InvalidInput", 99).await;
    fails(&[insert("p", "1", ""), insert("q", "2", "")], "400", "CommandsInBatchActOnDifferentPartitions", 1)
        .await;
    fails(&[insert("p", "1", ""), insert("p", "1", "")], "400", "InvalidDuplicateRow", 1).await;
    let keyless = "POST /devstoreaccount1/People HTTP/1.1\r\n\r\n{\"RowKey\":\"1\"}".to_owned();
    fails(&[insert("p", "1", ""), keyless], "400", "PropertiesNeedValue", 1).await;
    let absent = "PUT /devstoreaccount1/Nobody(PartitionKey='p',RowKey='1') HTTP/1.1\r\n\r\n{}".to_owned();
    fails(std::slice::from_ref(&absent), "404", "TableNotFound", 0).await;
    fails(&[insert("p", "1", ""), absent], "400", "CommandsInBatchActOnDifferentPartitions", 1).await;
    let foreign = "PUT /otheraccount/People(PartitionKey='p',RowKey='1') HTTP/1.1\r\n\r\n{}".to_owned();
    fails(&[foreign], "400", "InvalidInput", 0).await;
    let list = "GET /devstoreaccount1/People() HTTP/1.1\r\n\r\n".to_owned();
    fails(&[list], "400", "InvalidInput", 0).await;
    let answer = stamp.send("GET", "/People()", &[], "").await.expect(200);
    assert_eq!(answer.json()["value"].as_array().map(Vec::len), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_operations_fit() {
    let stamp = stamp_with_table().await;
    let hundred: Vec<String> =
        (0..100).map(|row| insert("p", &row.to_string(), "Prefer: return-no-content\r\n")).collect();
    let answer = send(&stamp, &hundred).await;
    assert_eq!(answer.body.matches("HTTP/1.1 204 No Content").count(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_get_is_a_batch() {
    let stamp = stamp_with_table().await;
    stamp.insert("People", r#"{"PartitionKey":"p","RowKey":"1"}"#).await.expect(204);
    let get = |row: &str| {
        format!(
            "--batch_b\r\nContent-Type: application/http\r\n\r\nGET /devstoreaccount1/People(PartitionKey='p',RowKey='{row}') HTTP/1.1\r\n\r\n--batch_b--\r\n"
        )
    };
    let answer = stamp.send("POST", "/$batch", &[CONTENT_TYPE], &get("1")).await.expect(202);
    assert!(
        answer.body.contains("HTTP/1.1 200 OK") && answer.body.contains("\"RowKey\":\"1\""),
        "{}",
        answer.body
    );
    let answer = stamp.send("POST", "/$batch", &[CONTENT_TYPE], &get("2")).await.expect(202);
    assert!(answer.body.contains("HTTP/1.1 404 Not Found"), "{}", answer.body);
    assert!(answer.body.contains("\"value\":\"0:The specified resource"), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_batch_is_refused_outside() {
    let stamp = stamp_with_table().await;
    stamp.send("POST", "/$batch", &[CONTENT_TYPE], "nonsense").await.expect_error(400, "InvalidInput");
    stamp
        .send("POST", "/$batch", &[], &batch(&[insert("p", "1", "")]))
        .await
        .expect_error(400, "InvalidInput");
    // The mistake of a client whose account address names a table.
    stamp
        .send("POST", "/People/$batch", &[CONTENT_TYPE], &batch(&[insert("p", "1", "")]))
        .await
        .expect_error(415, "MediaTypeNotSupported");
    let large = "x".repeat((4 << 20) + 1);
    stamp.send("POST", "/$batch", &[CONTENT_TYPE], &large).await.expect_error(413, "RequestBodyTooLarge");
}

/// One client leaves the account out of the addresses of operations, also where it is a part of the path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_may_be_addressed_below_the_account() {
    let stamp = stamp_with_table().await;
    let put = |target: &str| format!("PUT {target} HTTP/1.1\r\n\r\n{{}}");
    let keys = "(PartitionKey='p',RowKey='1')";
    let answer = send(&stamp, &[put(&format!("/People{keys}"))]).await;
    assert!(answer.body.contains("HTTP/1.1 204"), "{}", answer.body);
    stamp.send("GET", &format!("/People{keys}"), &[], "").await.expect(200);
    let answer = send(&stamp, &[put(&format!("http://DevStoreAccount1.Table.LocalHost/People{keys}"))]).await;
    assert!(answer.body.contains("HTTP/1.1 204"), "{}", answer.body);
    // What names an account names that of the batch.
    for other in [format!("/other/People{keys}"), format!("http://127.0.0.1:10002/other/People{keys}")] {
        let answer = send(&stamp, &[put(&other)]).await;
        assert!(answer.body.contains("HTTP/1.1 400"), "{other}: {}", answer.body);
    }
}

/// One client names the verb of a merge twice, and an empty change set comes from programs that had nothing
/// to change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verb_may_be_named_twice_and_nothing_be_changed() {
    let stamp = stamp_with_table().await;
    let merge = |more: &str| {
        format!(
            "MERGE /devstoreaccount1/People(PartitionKey='p',RowKey='1') HTTP/1.1\r\n{more}\r\n{{\"A\":1}}"
        )
    };
    let answer = send(&stamp, &[merge("X-HTTP-Method: MERGE\r\n")]).await;
    assert!(answer.body.contains("HTTP/1.1 204"), "{}", answer.body);
    let answer = send(&stamp, &[merge("X-HTTP-Method: DELETE\r\n")]).await;
    assert!(answer.body.contains("XMethodNotUsingPost"), "{}", answer.body);
    let answer = send(&stamp, &[]).await;
    assert!(
        answer.body.contains("changesetresponse_") && !answer.body.contains("HTTP/1.1 "),
        "{}",
        answer.body
    );
    let unclosed = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n--batch_b--\r\n";
    stamp.send("POST", "/$batch", &[CONTENT_TYPE], unclosed).await.expect(400);
}
