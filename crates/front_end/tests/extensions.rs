//! What requests to the Table service can have beyond the protocol, and that others have none of it.

mod stamp;

use stamp::{Answer, Stamp};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prefix_of_a_key_is_a_range_on_request() {
    let stamp = Stamp::open().await;
    stamp.create_table("People").await;
    for partition in ["a", "ab", "b"] {
        for row in 0..6 {
            let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}x","Name":"n{row}"}}"#);
            stamp.insert("People", &body).await.expect(204);
        }
    }
    let ask = [("x-larimar-query-statistics", "true"), ("x-larimar-extensions", "startswith")];
    for (filter, expected) in [
        ("startswith(PartitionKey,'a')", ("partition-range", "12", "12")),
        ("startswith(PartitionKey,'c')", ("partition-range", "0", "0")),
        ("PartitionKey%20eq%20'b'%20and%20startswith(RowKey,'3')", ("row-range", "1", "1")),
        ("startswith(Name,'n3')", ("table-scan", "18", "3")),
    ] {
        let path = format!("/People()?$filter={filter}");
        let answer = stamp.send("GET", &path, &ask, "").await.expect(200);
        let found = ["x-larimar-query-class", "x-larimar-rows-read", "x-larimar-rows-returned"]
            .map(|name| answer.header(name));
        assert_eq!((found[0], found[1], found[2]), expected, "{filter}");
        // As Azure answers.
        let strict = stamp.send("GET", &path, &[], "").await.expect(400);
        assert_eq!(strict.json()["odata.error"]["code"], "InvalidInput", "{filter}");
    }
    let tables =
        stamp.send("GET", "/Tables()?$filter=startswith(TableName,'pe')", &ask, "").await.expect(200);
    assert_eq!(tables.json()["value"][0]["TableName"], "People");
    stamp.send("GET", "/Tables()?$filter=startswith(TableName,'pe')", &[], "").await.expect(400);
    let ask = [("x-larimar-extensions", "startswith, magic")];
    let refused = stamp.send("GET", "/People()", &ask, "").await.expect(400);
    assert_eq!(refused.json()["odata.error"]["code"], "InvalidHeaderValue");
    // A call that is none names what it takes.
    let ask = [("x-larimar-extensions", "startswith")];
    let refused = stamp.send("GET", "/People()?$filter=startswith(RowKey)", &ask, "").await.expect(400);
    let message = refused.json()["odata.error"]["message"]["value"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("startswith(RowKey,'a')"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entities_are_counted_on_request() {
    let stamp = Stamp::open().await;
    stamp.create_table("People").await;
    for partition in ["a", "b"] {
        for row in 0..6 {
            let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}","Number":{row}}}"#);
            stamp.insert("People", &body).await.expect(204);
        }
    }
    let ask = [("x-larimar-extensions", "count, startswith"), ("x-larimar-query-statistics", "true")];
    // For the entity, each unit of its keys, the property, each unit of its name, and its value.
    let size = 4 + 2 * 2 + 8 + 2 * "Number".len() + 4;
    for (query, rows, rows_read) in [
        ("", 12, "12"),
        ("?$top=1", 12, "12"),
        ("?$filter=PartitionKey%20eq%20'a'", 6, "6"),
        ("?$filter=Number%20lt%202", 4, "12"),
        ("?$filter=startswith(PartitionKey,'b')%20and%20Number%20eq%202", 1, "6"),
    ] {
        let answer = stamp.send("GET", &format!("/People(){query}"), &ask, "").await.expect(200);
        assert_eq!(answer.header("x-larimar-rows-counted"), rows.to_string(), "{query}");
        assert_eq!(answer.header("x-larimar-bytes-counted"), (rows * size).to_string(), "{query}");
        assert_eq!(answer.header("x-larimar-rows-read"), rows_read, "{query}");
        assert_eq!(answer.header("x-larimar-rows-returned"), "0", "{query}");
        assert_eq!(answer.header("x-ms-continuation-nextpartitionkey"), "", "{query}");
        assert_eq!(answer.json()["value"].as_array().map(Vec::len), Some(0), "{query}");
    }
    stamp.send("GET", "/Missing()", &ask, "").await.expect(404);
    stamp.send("GET", "/Tables", &ask, "").await.expect(400);
    // A get has no use for it.
    let get = stamp.send("GET", "/People(PartitionKey='a',RowKey='1')", &ask, "").await.expect(200);
    assert_eq!(get.json()["Number"], 1);
    for answer in [
        stamp.send("GET", "/People()", &[], "").await.expect(200),
        stamp.send("GET", "/People()", &[("x-larimar-extensions", "")], "").await.expect(200),
    ] {
        assert_eq!(answer.json()["value"].as_array().map(Vec::len), Some(12));
        let strange = answer.headers.keys().find(|name| name.as_str().starts_with("x-larimar"));
        assert_eq!(strange, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_of_a_pinned_snapshot_on_request() {
    let stamp = Stamp::open().await;
    stamp.create_table("People").await;
    let insert = |row: u32| format!(r#"{{"PartitionKey":"p","RowKey":"{row:02}","Number":{row}}}"#);
    for row in 0..6 {
        stamp.insert("People", &insert(row)).await.expect(204);
    }
    let rows = |answer: &Answer| answer.json()["value"].as_array().map_or(0, Vec::len);
    let ask = [("x-larimar-extensions", "snapshot")];
    let first = stamp.send("GET", "/People()?$top=2", &ask, "").await.expect(200);
    let token = first.header("x-larimar-snapshot").to_owned();
    let next = format!(
        "/People()?NextPartitionKey={}&NextRowKey={}",
        first.header("x-ms-continuation-nextpartitionkey"),
        first.header("x-ms-continuation-nextrowkey")
    );
    for row in 6..9 {
        stamp.insert("People", &insert(row)).await.expect(204);
    }
    let any = [("if-match", "*")];
    stamp.send("DELETE", "/People(PartitionKey='p',RowKey='03')", &any, "").await.expect(204);

    let read = [("x-larimar-snapshot", token.as_str())];
    let rest = stamp.send("GET", &next, &read, "").await.expect(200);
    assert_eq!((rows(&first), rows(&rest), rest.header("x-larimar-snapshot")), (2, 4, token.as_str()));
    let count = [("x-larimar-snapshot", token.as_str()), ("x-larimar-extensions", "count")];
    let counted = stamp.send("GET", "/People()", &count, "").await.expect(200);
    assert_eq!(counted.header("x-larimar-rows-counted"), "6");
    let now = stamp.send("GET", "/People()", &[], "").await.expect(200);
    assert_eq!((rows(&now), now.header("x-larimar-snapshot")), (8, ""));

    // Where it can't be read it is refused, and of another table it is not there.
    stamp.send("GET", "/People(PartitionKey='p',RowKey='01')", &read, "").await.expect(400);
    stamp.send("GET", "/Tables", &read, "").await.expect(400);
    stamp.create_table("Others").await;
    let other = stamp.send("GET", "/Others()", &read, "").await.expect(410);
    assert_eq!(other.json()["odata.error"]["code"], "SnapshotExpired");
    // Nor is it where no rows are asked for: it can't be probed, and not be ended.
    let nothing = "/Others()?$filter=PartitionKey%20eq%20'a'%20and%20PartitionKey%20eq%20'b'";
    let end = [("x-larimar-snapshot", token.as_str()), ("x-larimar-extensions", "snapshot-end")];
    stamp.send("GET", nothing, &[], "").await.expect(200);
    for (path, headers) in [(nothing, &read[..]), (nothing, &end[..]), ("/Others()", &end[..])] {
        let other = stamp.send("GET", path, headers, "").await.expect(410);
        assert_eq!(other.json()["odata.error"]["code"], "SnapshotExpired");
    }

    let end = [("x-larimar-snapshot", token.as_str()), ("x-larimar-extensions", "snapshot-end")];
    let last = stamp.send("GET", "/People()", &end, "").await.expect(200);
    assert_eq!((rows(&last), last.header("x-larimar-snapshot")), (6, ""));
    let gone = stamp.send("GET", "/People()", &read, "").await.expect(410);
    assert_eq!(gone.json()["odata.error"]["code"], "SnapshotExpired");
    let many = async || stamp.send("GET", "/People()", &ask, "").await;
    for _ in 0..4 {
        many().await.expect(200);
    }
    let busy = many().await.expect(503);
    let message = busy.json()["odata.error"]["message"]["value"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("snapshot-end"), "{message}");
    // What fails keeps none.
    stamp.send("GET", "/Missing()", &ask, "").await.expect(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_in_reverse_on_request() {
    let stamp = Stamp::open().await;
    stamp.create_table("People").await;
    for partition in ["a", "b"] {
        for row in 0..300 {
            let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:03}","Number":{row}}}"#);
            stamp.insert("People", &body).await.expect(204);
        }
    }
    let keys = |answer: &Answer| {
        let json = answer.json();
        let entities = json["value"].as_array().cloned().unwrap_or_default();
        let text =
            |entity: &serde_json::Value, name: &str| entity[name].as_str().unwrap_or_default().to_owned();
        entities
            .iter()
            .map(|entity| text(entity, "PartitionKey") + &text(entity, "RowKey"))
            .collect::<Vec<_>>()
    };
    let ask = [("x-larimar-extensions", "reverse"), ("x-larimar-query-statistics", "true")];
    // Ten pages, and a filter.
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/People()?$top=20&$filter=Number%20ge%20200{token}");
        let answer = stamp.send("GET", &path, &ask, "").await.expect(200);
        found.extend(keys(&answer));
        let next = answer.header("x-ms-continuation-nextpartitionkey");
        if next.is_empty() {
            break;
        }
        token =
            format!("&NextPartitionKey={next}&NextRowKey={}", answer.header("x-ms-continuation-nextrowkey"));
    }
    let expected: Vec<String> = ["b", "a"]
        .iter()
        .flat_map(|partition| (200..300).rev().map(move |row| format!("{partition}{row}")))
        .collect();
    assert_eq!(found, expected);
    // The last row of a partition, without a look at the others.
    let last =
        stamp.send("GET", "/People()?$top=1&$filter=PartitionKey%20eq%20'a'", &ask, "").await.expect(200);
    assert_eq!(keys(&last), ["a299"]);
    assert_eq!(last.header("x-larimar-rows-read"), "2");
    // Tokens are of one direction.
    let token = |answer: &Answer| {
        let next = answer.header("x-ms-continuation-nextpartitionkey");
        format!(
            "/People()?NextPartitionKey={next}&NextRowKey={}",
            answer.header("x-ms-continuation-nextrowkey")
        )
    };
    stamp.send("GET", &token(&last), &[], "").await.expect(400);
    let forward = stamp.send("GET", "/People()?$top=1", &[], "").await.expect(200);
    stamp.send("GET", &token(&forward), &ask, "").await.expect(400);
    assert_eq!(keys(&stamp.send("GET", &token(&last), &ask, "").await.expect(200)).len(), 299);
}
