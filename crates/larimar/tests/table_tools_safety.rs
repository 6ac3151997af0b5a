//! `larimar table`, `queue` and `blob` where two of them meet, an answer is lost, or one thing is in the way:
//! nothing of what others have written is spoilt, and what can be done is done.
#![allow(clippy::disallowed_methods)] // The program is run as its user runs it.

mod running;

use base::FileLock;
use base::file_lock::SystemFileLock;
use running::tables::run;
use running::{Server, program};
use storage_client::{
    AccountAddress, BlobWrite, Entity, PutMessage, Settings, StorageAccount, Surroundings, Value,
};

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
        let server = Server::start(
            folder.path(),
            &[&arguments[..], &["--simulate", RULES]].concat(),
            &[("LARIMAR_LOG", "info")],
        );
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

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).expect("a file");
    }

    fn set_rules(&self, rules: &str) {
        self.write(RULES, rules);
        self.server.hang_up();
        self.server.logs("the rules were read again");
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        run(self.folder.path(), &self.connection, arguments)
    }

    /// Runs it to a good end; what it prints.
    fn fine(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}: {out}");
        out
    }

    /// Runs it to a bad end: one line.
    fn refused(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!((code, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        errors.trim_start_matches("larimar: ").trim_end().to_owned()
    }
}

const FEW: &str =
    "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"A\":2}\n";

/// Two runs wrote over each other's lines, and both ended well.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_written_by_one_process_at_a_time() {
    let world = World::new("");
    let queue = world.account().queue("work");
    queue.create_if_absent().await.expect("made");
    queue.put("a", PutMessage::default()).await.expect("put");
    world.write("in.jsonl", FEW);
    world.fine(&["table", "import", "Tab", "in.jsonl", "--create"]);
    assert!(!world.path("in.jsonl.state.lock").exists(), "what is done leaves no lock");
    let state = ["--on-conflict", "replace", "--state", "copy.state"];
    let copy = [&["table", "copy", "Tab", "Uab", "--create"], &state[..]].concat();
    for (lock, what, arguments) in [
        ("out.jsonl", "out.jsonl", &["queue", "drain", "work", "out.jsonl"][..]),
        ("x.csv.state.lock", "x.csv", &["table", "export", "Tab", "x.csv"]),
        ("in.jsonl.state.lock", "in.jsonl.state", &["table", "import", "Vab", "in.jsonl", "--create"]),
        ("copy.state.lock", "copy.state", &copy),
    ] {
        // That of a process which was killed is there and held by nobody.
        world.write(lock, "");
        let held = SystemFileLock::new(&world.path(lock)).try_lock().expect("a lock");
        assert!(held.is_some());
        assert_eq!(world.refused(arguments), format!("{what} is being written by another process"));
        drop(held);
        world.fine(arguments);
        assert!(lock == "out.jsonl" || !world.path(lock).exists(), "{lock}");
    }
    let drained = std::fs::read_to_string(world.path("out.jsonl")).expect("a file");
    assert_eq!(drained.lines().count(), 1);
}

/// Under another spelling a copy read what it wrote, or put everything twice.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_copied_onto_itself_however_it_is_spelt() {
    let world = World::new("");
    world.write("in.jsonl", FEW);
    world.fine(&["table", "import", "Tab", "in.jsonl", "--create"]);
    let queue = world.account().queue("work");
    queue.create_if_absent().await.expect("made");
    queue.put("a", PutMessage::default()).await.expect("put");
    world.account().container("from").create_if_absent().await.expect("made");
    assert!(world.connection.contains("127.0.0.1"), "{}", world.connection);
    let same = world.connection.replace("127.0.0.1", "LocalHost");
    let table = "a table is not copied onto itself";
    for (arguments, expected) in [
        (&["table", "copy", "Tab", "TAB", "--set", "RowKey=RowKey + 'x'"][..], table),
        (&["table", "copy", "Tab", "tab", "--to", &same, "--set", "RowKey=RowKey + 'x'"], table),
        (&["queue", "copy", "work", "work", "--to", &same], "a queue is not copied onto itself"),
        (&["blob", "copy", "from", "from", "--to", &same], "a container is not copied onto itself"),
    ] {
        let refused = world.refused(arguments);
        assert!(refused.starts_with(expected), "{arguments:?}: {refused}");
    }
    assert_eq!(world.fine(&["table", "count", "Tab"]), "2 entities\n");
    assert_eq!(queue.properties().await.expect("properties").message_count, 1);
}

/// A deletion that was done and whose answer was lost ended a drain and a requeuing.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_of_a_deletion_is_its_success() {
    let world = World::new("[[fault]]\noperation = \"DeleteMessage\"\nevery = 2\nreset = \"after\"\n");
    let account = world.account();
    let (work, poison) = (account.queue("work"), account.queue("work-poison"));
    work.create_if_absent().await.expect("made");
    poison.create_if_absent().await.expect("made");
    for number in 0..4 {
        poison.put(&number.to_string(), PutMessage::default()).await.expect("put");
    }
    assert_eq!(world.fine(&["queue", "requeue", "work"]), "requeued: 4 messages\n");
    let held = work.get(1, std::time::Duration::from_secs(300)).await.expect("a message");
    assert_eq!(held.len(), 1);
    let drained = world.fine(&["queue", "drain", "work", "out.jsonl"]);
    assert_eq!(drained, "drained: 3 messages; 1 is invisible yet\n");
}

/// One archived blob, or one that was deleted meanwhile, kept all others from being copied.
#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_fails_does_not_keep_others() {
    let fault = |blob: &str, status: u16, code: &str| {
        format!(
            "[[fault]]\noperation = \"GetBlob\"\nkey_prefix = \"from/{blob}\"\nstatus = {status}\n\
             code = \"{code}\"\n"
        )
    };
    let lost = "[[fault]]\noperation = \"SetBlobProperties\"\ntimes = 1\nreset = \"after\"\n";
    let rules = [&fault("archived", 409, "BlobArchived"), &fault("gone", 404, "BlobNotFound"), lost];
    let world = World::new(&rules.map(String::from).concat());
    let from = world.account().container("from");
    from.create_if_absent().await.expect("made");
    for name in ["archived", "gone", "small"] {
        from.blob(name).put("text", &BlobWrite::default()).await.expect("put");
    }
    // So large that it is committed from blocks, and gets its MD5 by a request of its own.
    from.blob("big").put(vec![7; 9 << 20], &BlobWrite::default()).await.expect("put");
    let copy = ["blob", "copy", "from", "other", "--create"];
    let refused = world.refused(&copy);
    assert!(refused.starts_with("1 blobs can't be copied: "), "{refused}");
    assert!(refused.contains("BlobArchived"), "{refused}");
    assert!(refused.ends_with("; 2 blobs were copied until then; the same command goes on"), "{refused}");
    world.set_rules(&fault("gone", 404, "BlobNotFound"));
    let expected = "copied: 1 blobs of 4 bytes; there already: 2; deleted since they were listed: 1\n";
    assert_eq!(world.fine(&copy), expected);
}

/// Whatever stood at FILE was taken for the export, or was replaced.
#[test]
fn an_export_takes_only_its_own_file_for_finished() {
    let world = World::new("");
    world.write("in.jsonl", FEW);
    world.fine(&["table", "import", "Tab", "in.jsonl", "--create"]);
    for (name, made) in [("a.jsonl", "a.jsonl.partial"), ("b.csv", "b.csv.partial.csv")] {
        let export = ["table", "export", "Tab", name];
        // It can't get its name, just before the end.
        std::fs::create_dir_all(world.path(name).join("in-the-way")).expect("a folder");
        let refused = world.refused(&[&export[..], &["--overwrite"]].concat());
        assert!(refused.contains("all 2 entities; the same command goes on"), "{refused}");
        std::fs::remove_dir_all(world.path(name)).expect("removed");
        let state = std::fs::read_to_string(world.path(&format!("{name}.state"))).expect("a state");
        let there = format!("{name} is there already; give --overwrite, or another name");
        world.write(name, "of someone else");
        let refused = world.refused(&export);
        assert!(refused.starts_with(&there), "{refused}");
        std::fs::remove_file(world.path(name)).expect("removed");
        // As after a kill behind the rename.
        std::fs::rename(world.path(made), world.path(name)).expect("renamed");
        let out = world.fine(&export);
        assert!(out.ends_with("; it was finished by an earlier run\n"), "{out}");
        assert!(!world.path(&format!("{name}.partial")).exists());
        // The same state with a file of someone else.
        world.write(name, "of someone else");
        world.write(&format!("{name}.state"), &state);
        assert_eq!(world.refused(&export), there);
        std::fs::remove_file(world.path(name)).expect("removed");
        let out = world.fine(&export);
        assert!(out.starts_with(&format!("{name} has 2 entities, ")) && !out.contains("earlier"), "{out}");
    }
}

/// An entity was deleted though it did not match the filter any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_since_it_matched_is_left() {
    let world = World::new("[[fault]]\noperation = \"EntityGroupTransaction\"\ntimes = 2\nstatus = 500\n");
    let table = world.account().table("Tab");
    table.create_if_absent().await.expect("made");
    for row in ["1", "2"] {
        table.insert(&Entity::new("p", row).with("A", 1)).await.expect("inserted");
    }
    let arguments = ["table", "delete", "Tab", "--filter", "A eq 1"];
    let mut command = program(world.folder.path(), &arguments);
    command.env("AZURE_STORAGE_CONNECTION_STRING", &world.connection);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("the program");
    world.server.logs("simulated: fault");
    table.insert_or_replace(&Entity::new("p", "2").with("A", 2)).await.expect("replaced");
    let output = child.wait_with_output().expect("an end");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    assert_eq!(text(output.stderr), "");
    assert_eq!(text(output.stdout), "deleted: 1 entity; changed meanwhile, and left: 1\n");
    let left = table.get("p", "2").await.expect("an entity");
    assert_eq!(left.value("A"), Some(&Value::Int32(2)));
    assert_eq!(world.fine(&["table", "count", "Tab"]), "1 entity\n");
}
