//! Batches as official clients write them, in liberal forms, malformed, cut off, and of any bytes.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

const CLIENT_REQUESTS: &str = include_str!("../../../tests/vectors/client-requests.json");

fn change_set<'a>(body: &'a str, boundary: &str) -> Vec<BatchPart<'a>> {
    match read_batch(body.as_bytes(), boundary) {
        Ok(BatchRequest::ChangeSet(parts)) => parts,
        other => panic!("a change set, not {other:?}"),
    }
}

#[test]
fn batches_of_official_clients() {
    let vectors: Value = serde_json::from_str(CLIENT_REQUESTS).expect("JSON");
    let mut read = 0;
    for request in vectors["requests"].as_array().expect("requests") {
        if !request["target"].as_str().is_some_and(|target| target.ends_with("/$batch")) {
            continue;
        }
        let content_type = request["headers"]
            .as_array()
            .expect("headers")
            .iter()
            .find(|pair| pair[0].as_str().is_some_and(|name| name.eq_ignore_ascii_case("content-type")))
            .and_then(|pair| pair[1].as_str())
            .expect("content type");
        let boundary = boundary_of(content_type).expect("boundary");
        let parts = change_set(request["body"].as_str().expect("body"), boundary);
        let is_python = request["client"] == "py-table";
        assert!(parts.len() >= 3);
        for (index, part) in parts.iter().enumerate() {
            let id = index.to_string();
            assert_eq!(part.content_id, is_python.then_some(id.as_str()));
            assert!(part.target.starts_with("http://127.0.0.1:21002/devstoreaccount1/People"));
            if part.method == "DELETE" {
                assert_eq!(part.header("if-match"), Some("*"));
                assert!(part.body.is_empty());
            } else {
                assert!(part.body.starts_with(b"{") && part.body.ends_with(b"}"));
            }
        }
        read += 1;
    }
    assert_eq!(read, 2);
}

const OPERATION: &str = "Content-Type: application/http\n\nPUT /acct/T(PartitionKey='a b',RowKey='1') HTTP/1.1\nAccept: application/json\n\n{}\n";

#[test]
fn liberal_forms() {
    // Bare line feeds, no last boundary of the batch, a quoted boundary, blanks after the boundary.
    let body = format!("--b\nContent-Type: multipart/mixed; boundary=\"c\"\n\n\n--c \n{OPERATION}--c--");
    let parts = change_set(&body, "b");
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].target, "/acct/T(PartitionKey='a b',RowKey='1')");
    assert_eq!(parts[0].body, b"{}");
    // A boundary that starts like another.
    let body = format!(
        "--b\nContent-Type: multipart/mixed; boundary=b1\n\n--b1\n{OPERATION}--b1\n{OPERATION}--b1--\n--b--"
    );
    assert_eq!(change_set(&body, "b").len(), 2);
}

#[test]
fn a_lone_request() {
    let body = "--b\r\nContent-Type: application/http\r\n\r\nGET /acct/T(PartitionKey='a',RowKey='1') HTTP/1.1\r\n\r\n--b--\r\n";
    match read_batch(body.as_bytes(), "b") {
        Ok(BatchRequest::Direct(part)) => assert_eq!((part.method, part.body), ("GET", &b""[..])),
        other => panic!("{other:?}"),
    }
}

#[test]
fn malformed_batches() {
    let two = format!(
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n{OPERATION}--c--\n--b\nContent-Type: multipart/mixed; boundary=d\n\n--d\n{OPERATION}--d--\n--b--"
    );
    for body in [
        "",
        "--b--",
        "--b\n\n--b--",
        "--x\n",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n\n--b--",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--d\nContent-Type: application/http\n\nx\n--c--\n--b--",
        "--b\nContent-Type: text/plain\n\nx\n--b--",
        "--b\nContent-Type: application/http\n\nGET\n--b--",
        "--b\nno colon\n\n--b--",
        &two,
    ] {
        let error = read_batch(body.as_bytes(), "b").expect_err(body);
        assert_eq!(error.code, ErrorCode::InvalidInput);
    }
}

/// Recorded of the service: a program that had nothing to change gets that error, if its change set is whole.
#[test]
fn a_change_set_may_be_empty() {
    let body = "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n--b--";
    let batch = read_batch(body.as_bytes(), "b").expect("a change set");
    assert!(matches!(batch, BatchRequest::ChangeSet(operations) if operations.is_empty()));
}

/// A body that ended early between two operations was taken for a shorter change set, and applied.
#[test]
fn a_change_set_that_was_cut_off_is_refused() {
    let whole = format!(
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n{OPERATION}--c\n{OPERATION}--c--\n--b--\n"
    );
    let end = whole.find("\n--c--").expect("an end") + "\n--c--".len();
    for cut in 0..whole.len() {
        let read = read_batch(&whole.as_bytes()[..cut], "b");
        assert_eq!(read.is_ok(), cut >= end, "{}", &whole[..cut]);
    }
}

#[test]
fn operations_are_bounded() {
    let many = format!("--c\n{OPERATION}").repeat(500);
    let body = format!("--b\nContent-Type: multipart/mixed; boundary=c\n\n{many}");
    assert_eq!(change_set(&body, "b").len(), OPERATIONS_READ_MAX);
}

#[test]
fn boundaries() {
    assert_eq!(boundary_of("multipart/mixed; boundary=batch_1"), Some("batch_1"));
    assert_eq!(boundary_of("Multipart/Mixed;charset=utf-8;Boundary=\"a b\""), Some("a b"));
    assert_eq!(boundary_of("multipart/mixed"), None);
    assert_eq!(boundary_of("multipart/mixed; boundary="), None);
    assert_eq!(boundary_of("application/json; boundary=x"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_a_batch_or_refused(body in any::<Vec<u8>>()) {
        let _ = read_batch(&body, "b");
    }

    #[test]
    fn fragments_of_batches_too(pieces in prop::collection::vec(prop::sample::select(vec![
        "--b", "--c", "--", "\r\n", "\n", "Content-Type: ", "multipart/mixed; boundary=c", "application/http",
        "GET / HTTP/1.1", "POST", " ", ":", "{}", "\u{0}", "é",
    ]), 0..40)) {
        let _ = read_batch(pieces.concat().as_bytes(), "b");
    }
}
