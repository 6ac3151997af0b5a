//! One walk through what the Table service's client can ask: tables, entities, conditions, queries in pages, transactions.

use crate::server::Server;
use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::operations::{InsertEntityResponse, QueryEntityBuilder};
use azure_data_tables::prelude::*;
use azure_storage::{CloudLocation, prelude::StorageCredentials};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

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

fn service_of(server: &Server) -> TableServiceClient {
    let location = CloudLocation::Emulator { address: "127.0.0.1".into(), port: server.port("table") };
    TableServiceClientBuilder::with_location(location, StorageCredentials::emulator()).build()
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
    let server = Server::start(&[]);
    let service = service_of(&server);
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
    let statuses: Vec<u16> =
        half.operation_responses.iter().map(|answer| answer.status_code as u16).collect();
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
