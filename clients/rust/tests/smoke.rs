//! One walk through what the client can ask: tables, entities, conditions, queries in pages, transactions.

use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::operations::{InsertEntityResponse, QueryEntityBuilder};
use azure_data_tables::prelude::*;
use azure_storage::{CloudLocation, prelude::StorageCredentials};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Person {
    #[serde(rename = "PartitionKey")]
    city: String,
    #[serde(rename = "RowKey")]
    surname: String,
    name: String,
    age: i32,
}

fn person(surname: &str, age: i32) -> Person {
    Person { city: "Milan".into(), surname: surname.into(), name: format!("it's {surname}"), age }
}

/// A server on a free port that forgets everything at the end.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start() -> Server {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let binary = std::env::var_os("LARIMAR_BIN").map(PathBuf::from);
        let binary = binary.unwrap_or_else(|| root.join("target/release/larimar"));
        let ready_file = std::env::temp_dir().join(format!("larimar-rust-{}.json", std::process::id()));
        let _ = std::fs::remove_file(&ready_file);
        let mut command = Command::new(&binary);
        command.args(["--in-memory", "--table-port", "0", "--blob-port", "0", "--queue-port", "0"]);
        command.arg("--ready-file").arg(&ready_file);
        command.env_remove("LARIMAR_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
        let process = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let mut server = Server { process, port: 0 };
        let started_at = Instant::now();
        while server.port == 0 {
            assert!(started_at.elapsed() < START_TIMEOUT, "the server was not ready in time");
            std::thread::sleep(Duration::from_millis(5));
            let ready = std::fs::read(&ready_file).unwrap_or_default();
            let ready: serde_json::Value = serde_json::from_slice(&ready).unwrap_or_default();
            let port = ready["table"].as_str().and_then(|address| address.rsplit(':').next());
            server.port = port.and_then(|port| port.parse().ok()).unwrap_or_default();
        }
        std::fs::remove_file(&ready_file).expect("the ready file");
        server
    }

    fn client(&self) -> TableServiceClient {
        let location = CloudLocation::Emulator { address: "127.0.0.1".into(), port: self.port };
        TableServiceClientBuilder::with_location(location, StorageCredentials::emulator()).build()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn surnames(query: QueryEntityBuilder) -> (Vec<String>, usize) {
    let (mut found, mut pages) = (Vec::new(), 0);
    let mut stream = query.into_stream::<Person>();
    while let Some(page) = stream.next().await {
        found.extend(page.expect("a page").entities.into_iter().map(|person| person.surname));
        pages += 1;
    }
    (found, pages)
}

#[tokio::test]
async fn tables_entities_queries_and_transactions() {
    let server = Server::start();
    let service = server.client();
    let table = service.table_client("People");
    table.create().await.expect("create");
    assert!(table.create().await.is_err(), "it is there already");

    let mut names = Vec::new();
    let mut stream = service.list().into_stream();
    while let Some(page) = stream.next().await {
        names.extend(page.expect("a page").tables.into_iter().map(|table| table.name));
    }
    assert_eq!(names, ["People"]);

    let anna = person("Anna", 30);
    let inserted: InsertEntityResponse<Person> =
        table.insert(&anna).expect("an entity").return_entity(true).await.expect("insert");
    assert_eq!(inserted.entity_with_metadata.expect("the entity").entity, anna);
    let milan = table.partition_key_client("Milan");
    let client = milan.entity_client("Anna");
    let got = client.get::<Person>().await.expect("get");
    assert_eq!(got.entity, anna);

    // The ETag of the get lets one update through, not two.
    let older = Person { age: 31, ..anna };
    let etag = got.etag.clone();
    client.update(&older, etag.clone().into()).expect("an entity").await.expect("update");
    let late = client.update(&older, etag.into()).expect("an entity").await.expect_err("the ETag is old");
    assert!(format!("{late:?}").contains("UpdateConditionNotSatisfied"), "{late:?}");

    let mut transaction = milan.transaction();
    for surname in ["Bruno", "Carla", "Dario", "Elena"] {
        transaction = transaction.insert(person(surname, 40)).expect("an entity");
    }
    let answers = transaction.await.expect("a transaction").operation_responses;
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|answer| answer.etag.is_some()), "{answers:?}");

    // One of them is there already: none is done.
    let half = milan.transaction().insert(person("Fabio", 50)).expect("an entity");
    let half = half.insert(person("Bruno", 50)).expect("an entity").await.expect("an answer");
    let statuses: Vec<u16> = half.operation_responses.iter().map(|answer| answer.status_code as u16).collect();
    assert_eq!(statuses, [409]);
    assert!(milan.entity_client("Fabio").get::<Person>().await.is_err());

    let filter = "PartitionKey eq 'Milan' and age ge 40 and name ne 'it''s Dario'";
    let (found, pages) = surnames(table.query().filter(filter).top(2)).await;
    assert_eq!(found, ["Bruno", "Carla", "Elena"]);
    assert_eq!(pages, 2);

    client.delete().await.expect("delete");
    assert!(client.get::<Person>().await.is_err());
    table.delete().await.expect("delete");
    assert!(table.delete().await.is_err(), "it is gone");
}
