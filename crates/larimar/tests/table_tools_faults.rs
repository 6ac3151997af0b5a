//! `larimar table`, `queue` and `blob` where something is not as it should be: slow, in another order,
//! changed, stopped at a bad moment.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use running::Server;
use running::tables::run;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use storage_client::{AccountAddress, BlobWrite, PutMessage, Settings, StorageAccount, Surroundings};

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const RULES: &str = "rules.toml";

/// A folder, and a server that meets its rules.
struct World {
    folder: tempfile::TempDir,
    server: Server,
    connection: String,
}

impl World {
    fn new(rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(RULES), rules).expect("a file");
        let arguments =
            ["--in-memory", "--table-port=0", "--queue-port=0", "--blob-port=0", "--admin-port=none"];
        let server = Server::start(folder.path(), &[&arguments[..], &["--simulate", RULES]].concat(), &[]);
        let url = |name: &str| server.ready(name).trim_end_matches('/').to_owned() + "/devstoreaccount1";
        let (tables, queues, blobs) = (url("table"), url("queue"), url("blob"));
        let connection = format!(
            "AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={tables};QueueEndpoint={queues};\
             BlobEndpoint={blobs}"
        );
        World { folder, server, connection }
    }

    fn account(&self) -> StorageAccount {
        let address = AccountAddress::parse(&self.connection).expect("a connection string");
        StorageAccount::new(address, Settings::default(), Surroundings::system())
    }

    fn set_rules(&self, rules: &str) {
        std::fs::write(self.folder.path().join(RULES), rules).expect("a file");
        self.server.hang_up();
        self.server.logs("the rules were read again");
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        run(self.folder.path(), &self.connection, arguments)
    }
}

/// Messages were put twice: those at the queue's head came again while others were put.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_outlasts_its_receipts_puts_nothing_twice() {
    let world = World::new("[[fault]]\noperation = \"PutMessage\"\nkey_prefix = \"other\"\ndelay_ms = 60\n");
    let account = world.account();
    let (from, to) = (account.queue("from"), account.queue("other"));
    from.create_if_absent().await.expect("made");
    to.create_if_absent().await.expect("made");
    for number in 0..50 {
        from.put(&number.to_string(), PutMessage::default()).await.expect("put");
    }
    let (code, out, errors) =
        world.run(&["queue", "copy", "from", "other", "--invisible", "1", "--count", "80"]);
    assert_eq!((code, out.as_str(), errors.as_str()), (0, "copied: 50 messages\n", ""));
    let mut texts = Vec::new();
    loop {
        let messages = to.get(32, std::time::Duration::from_secs(300)).await.expect("messages");
        if messages.is_empty() {
            break;
        }
        texts.extend(messages.into_iter().map(|message| message.text));
    }
    texts.sort_by_key(|text| (text.len(), text.clone()));
    assert_eq!(texts, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(from.peek(32).await.expect("messages").len(), 32, "they are visible again");
}

/// Properties but the content type were lost, and a blob that a killed run had not verified was taken for a
/// copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_blob_has_all_properties_and_is_verified() {
    // The second look at it fails, which is that for its bytes: as after a kill once it is committed.
    let rule = "operation = \"GetBlob\"\nkey_prefix = \"other/\"\nevery = 2\nstatus = 403\n";
    let world = World::new(&format!("[[fault]]\n{rule}code = \"AuthorizationFailure\"\n"));
    let account = world.account();
    let (from, to) = (account.container("from"), account.container("other"));
    from.create_if_absent().await.expect("made");
    let some = |text: &str| Some(text.to_owned());
    let write = BlobWrite {
        content_type: some("text/x"),
        content_encoding: some("gzip"),
        content_language: some("de"),
        content_disposition: some("attachment"),
        cache_control: some("max-age=60"),
        metadata: [("one".to_owned(), "1".to_owned())].into(),
        ..BlobWrite::default()
    };
    // So large that it is committed from blocks, of which a service computes no MD5.
    let blob = from.blob("big");
    blob.put(vec![7; 9 << 20], &write).await.expect("put");
    from.blob("small").put("text", &BlobWrite::default()).await.expect("put");
    let copy = ["blob", "copy", "from", "other", "--create", "--prefix", "big"];
    let (code, _, errors) = world.run(&copy);
    assert_eq!(code, 2, "{errors}");
    assert_eq!(to.blob("big").properties().await.expect("a blob").size_bytes, 9 << 20, "it was committed");
    world.set_rules("");
    let (code, out, errors) = world.run(&copy);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(out, "copied: 1 blobs of 9437184 bytes; there already: 0\n");
    let properties = to.blob("big").properties().await.expect("properties");
    assert_eq!(BlobWrite::like(&properties), write);
    assert_eq!(properties.content_md5, blob.properties().await.expect("properties").content_md5);
    let again = |expected: &str| {
        let (code, out, errors) = world.run(&["blob", "copy", "from", "other"]);
        assert_eq!((code, out.as_str(), errors.as_str()), (0, expected, ""));
    };
    again("copied: 1 blobs of 4 bytes; there already: 1\n");
    again("copied: 0 blobs of 0 bytes; there already: 2\n");
    let content_md5 = Some(properties.content_md5);
    let other = BlobWrite { cache_control: some("no-cache"), content_md5, ..write };
    blob.set_properties(&other).await.expect("set");
    again("copied: 1 blobs of 9437184 bytes; there already: 1\n");
    again("copied: 0 blobs of 0 bytes; there already: 2\n");
}

/// A file that was changed in what was done already was gone on with, if its first 64 KiB were the same.
#[test]
fn an_import_goes_on_with_the_same_file_only() {
    let world = World::new("");
    let line = |number: usize, text: &str| {
        format!("{{\"PartitionKey\":\"p{}\",\"RowKey\":\"{number}\",\"T\":\"{text}\"}}\n", number / 100)
    };
    let text = "x".repeat(200);
    let mut lines: Vec<String> = (0..2000).map(|number| line(number, &text)).collect();
    // The same key once more: what is before it is done before.
    lines.push(line(0, "again"));
    lines.push(line(3000, &"too long".repeat(5000)));
    let write = |lines: &[String]| {
        std::fs::write(world.folder.path().join("in.jsonl"), lines.concat()).expect("a file");
    };
    write(&lines);
    let import = ["table", "import", "Tab", "in.jsonl", "--create", "--on-conflict", "replace"];
    let (code, _, errors) = world.run(&import);
    assert!(code == 2 && errors.contains("in.jsonl: line 2002: "), "{errors}");
    lines[2001] = line(3000, "short");
    let (good, changed) = (lines.clone(), line(1000, &"y".repeat(200)));
    lines[1000] = changed;
    write(&lines);
    let (code, _, errors) = world.run(&import);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("in.jsonl is not the file that in.jsonl.state is about"), "{errors}");
    write(&good);
    let (code, out, errors) = world.run(&import);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(out, "written: 2002 entities; left out, because they were there: 0\n");
}

/// Answers queries of a connection with two pages, of which the second begins before the first one ends.
fn answer_out_of_order(connection: TcpStream) {
    let mut reader = BufReader::new(connection.try_clone().expect("a connection"));
    let mut writer = connection;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let row =
            |partition: &str, row: &str| format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}");
        let (rows, more) = match head.contains("NextPartitionKey") {
            false => ([row("a", "1"), row("b", "1")], "x-ms-continuation-NextPartitionKey: 1\r\n"),
            true => ([row("B", "2"), row("c", "1")], ""),
        };
        let body = format!("{{\"value\":[{}]}}", rows.join(","));
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A service that has another order was believed by all commands but `diff`.
#[test]
fn rows_out_of_order_end_every_scan() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // It ends with the process.
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || answer_out_of_order(connection));
        }
    });
    let connection = format!("AccountName=a;AccountKey={KEY};TableEndpoint=http://{address}/a");
    for arguments in [
        &["count", "Tab"][..],
        &["schema", "Tab"],
        &["export", "Tab", "x.jsonl"],
        &["copy", "Tab", "Uab", "--create", "--dry-run"],
        &["delete", "Tab", "--all", "--dry-run"],
    ] {
        let arguments = [&["table"], arguments, &["--connections", "1"]].concat();
        let (code, out, errors) = run(folder.path(), &connection, &arguments);
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        let expected =
            format!("http://{address}/a/Tab: \"B\" \"2\" comes behind \"b\" \"1\", out of the order of keys");
        assert!(errors.contains(&expected), "{arguments:?}: {errors}");
    }
    assert!(!folder.path().join("x.jsonl").exists());
}
