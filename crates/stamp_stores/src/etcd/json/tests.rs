//! Tables of requests and answers.

use super::*;
use stamp_streams::StoreLease;

fn value(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn a_transaction_is_sent_as_etcd_wants_it() {
    let transaction = KeyTransaction {
        compares: vec![
            KeyCompare::Is("a".to_owned(), Bytes::from_static(b"1")),
            KeyCompare::ChangedAt("b".to_owned(), Revision(0)),
            KeyCompare::Exists("c".to_owned()),
        ],
        puts: vec![
            ("d".to_owned(), Bytes::from_static(b"2"), Some(StoreLease(7))),
            ("e".to_owned(), Bytes::new(), None),
        ],
        deletes: vec!["f".to_owned()],
    };
    let key = |name: &str| encode(format!("p/{name}"));
    let expected = json!({
        "compare": [
            { "target": "VALUE", "result": "EQUAL", "key": key("a"), "value": "MQ==" },
            { "target": "MOD", "result": "EQUAL", "key": key("b"), "mod_revision": "0" },
            { "target": "VERSION", "result": "GREATER", "key": key("c"), "version": "0" },
        ],
        "success": [
            { "request_put": { "key": key("d"), "value": "Mg==", "lease": "7" } },
            { "request_put": { "key": key("e"), "value": "" } },
            { "request_delete_range": { "key": key("f") } },
        ],
        "failure": [],
    });
    assert_eq!(value(&commit_request(&transaction, "p/")), expected);
}

/// etcd answers a transaction without any operation from what one member knows, which may be old.
#[test]
fn a_transaction_that_changes_nothing_reads_something() {
    let compares = vec![KeyCompare::Exists("c".to_owned())];
    let transaction = KeyTransaction { compares, ..KeyTransaction::default() };
    let sent = value(&commit_request(&transaction, ""));
    for branch in ["success", "failure"] {
        assert!(sent[branch][0]["request_range"]["key"].is_string(), "{branch}");
    }
}

#[test]
fn pieces_and_their_ends() {
    let of = |selection: Selection, base: &str| {
        let piece = Piece::of(&selection, base);
        (piece.from, piece.end)
    };
    let prefix = |text: &str| Selection::Prefix(text.to_owned());
    assert_eq!(of(Selection::Key("k".to_owned()), "p/"), (b"p/k".to_vec(), None));
    assert_eq!(of(prefix("k/"), "p/"), (b"p/k/".to_vec(), Some(b"p/k0".to_vec())));
    assert_eq!(of(prefix(""), ""), (vec![0], Some(vec![0])));
    assert_eq!(prefix_end("\u{7ff}"), [0xdf, 0xc0]);
    let page = Piece::of(&Selection::Behind { prefix: "k".to_owned(), after: "k1".to_owned() }, "");
    assert_eq!((page.from, page.end), (b"k1\0".to_vec(), Some(b"l".to_vec())));
    let sent = value(&read_request(&[Piece { from: vec![0], end: None }], Some(Revision(5))));
    assert_eq!(sent["success"][0]["request_range"]["revision"], "5");
}

#[test]
fn answers_of_both_spellings_are_read() {
    let plain = r#"{"header":{"cluster_id":"14841639068965178418","member_id":"1","revision":"9","raft_term":"2"},"succeeded":true,
        "responses":[{"response_range":{"header":{"revision":"9"},"kvs":[{"key":"cC9r","create_revision":"3","mod_revision":"4","version":"1","value":"MQ=="},
        {"key":"cC9s","mod_revision":"5"}],"more":true,"count":"3"}},{"response_range":{}}]}"#;
    let camel = plain.replace("cluster_id", "clusterId").replace("mod_revision", "modRevision");
    let camel = camel.replace("response_range", "responseRange");
    let entry = |key: &str, text: &'static str, at| KeyEntry {
        key: key.to_owned(),
        value: Bytes::from_static(text.as_bytes()),
        changed_at: Revision(at),
    };
    for text in [plain, &camel] {
        let (state, pages) = read_answer(text.as_bytes(), 2, "p/").expect("an answer");
        assert_eq!(state, StoreState { cluster: 14_841_639_068_965_178_418, revision: Revision(9) });
        assert_eq!(pages[0].entries, [entry("k", "1", 4), entry("l", "", 5)]);
        assert_eq!(pages[0].more_behind.as_deref(), Some(b"p/l".as_slice()));
        assert_eq!(pages[1], Page { entries: Vec::new(), more_behind: None });
        assert_eq!(commit_answer(text.as_bytes()), Ok((true, state)));
    }
    let failed = r#"{"header":{"cluster_id":"1","revision":"9"}}"#;
    let state = StoreState { cluster: 1, revision: Revision(9) };
    assert_eq!(commit_answer(failed.as_bytes()), Ok((false, state)));
}

#[test]
fn what_is_no_answer_is_refused_without_being_shown() {
    for text in ["", "{}", "hunter2", r#"{"header":{}}"#, r#"{"header":{"cluster_id":"x","revision":"1"}}"#] {
        let error = commit_answer(text.as_bytes()).expect_err(text);
        assert!(!error.contains("hunter2"), "{error}");
    }
    let short = r#"{"header":{"cluster_id":"1","revision":"9"},"succeeded":true}"#;
    assert!(read_answer(short.as_bytes(), 1, "").is_err());
    let other = r#"{"header":{"cluster_id":"1","revision":"9"},"succeeded":true,"responses":[{"response_range":{"kvs":[{"key":"cC9r"}]}}]}"#;
    assert!(read_answer(other.as_bytes(), 1, "q/").is_err());
}

#[test]
fn leases_and_tokens() {
    assert_eq!(grant_answer(br#"{"header":{},"ID":"7587","TTL":"10"}"#), Ok(7587));
    assert!(grant_answer(br#"{"header":{}}"#).is_err());
    assert_eq!(keep_alive_answer(br#"{"result":{"header":{},"ID":"7","TTL":"10"}}"#), Ok(true));
    assert_eq!(keep_alive_answer(br#"{"result":{"header":{},"ID":"7"}}"#), Ok(false));
    assert!(keep_alive_answer(br#"{"error":{"message":"x"}}"#).is_err());
    assert_eq!(login_answer(br#"{"header":{},"token":"t.1"}"#), Ok("t.1".to_owned()));
}

#[test]
fn lines_of_a_watch() {
    for (line, expected) in [
        (r#"{"result":{"header":{"revision":"9"},"created":true}}"#, WatchLine::Alive),
        (
            r#"{"result":{"header":{"revision":"12"},"events":[{"kv":{"key":"YQ==","mod_revision":"10"}},{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"11"}}]}}"#,
            WatchLine::Changed(Revision(11)),
        ),
        (
            r#"{"result":{"header":{},"canceled":true,"compact_revision":"5"}}"#,
            WatchLine::Compacted(Revision(5)),
        ),
        (r#"{"result":{"canceled":true,"cancel_reason":"why"}}"#, WatchLine::Ended("why".to_owned())),
        (r#"{"error":{"grpc_code":14,"message":"gone"}}"#, WatchLine::Ended("gone".to_owned())),
    ] {
        assert_eq!(watch_line(line.as_bytes()), Ok(expected), "{line}");
    }
    assert!(watch_line(b"{").is_err());
}
