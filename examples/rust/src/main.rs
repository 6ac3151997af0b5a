//! A table from Rust: insert, conditional update, query.

use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::operations::InsertEntityResponse;
use azure_storage::{CloudLocation, ConnectionString, StorageCredentials};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

const DEVELOPMENT_ACCOUNT: &str = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;\
AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;\
TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Person {
    #[serde(rename = "PartitionKey")]
    city: String,
    #[serde(rename = "RowKey")]
    surname: String,
    age: i32,
}

fn person(surname: &str, age: i32) -> Person {
    Person { city: "milan".to_owned(), surname: surname.to_owned(), age }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::var("AZURE_STORAGE_CONNECTION_STRING");
    let given = given.unwrap_or_else(|_| DEVELOPMENT_ACCOUNT.to_owned());
    let parsed = ConnectionString::new(&given)?;
    let (Some(account), Some(key), Some(endpoint)) =
        (parsed.account_name, parsed.account_key, parsed.table_endpoint)
    else {
        return Err("the connection string needs AccountName, AccountKey and TableEndpoint".into());
    };
    let credentials = StorageCredentials::access_key(account.to_owned(), key.to_owned());
    let location = CloudLocation::Custom { account: account.to_owned(), uri: endpoint.to_owned() };
    let service = TableServiceClientBuilder::with_location(location, credentials).build();
    let unique = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let table = service.table_client(format!("people{unique}"));
    table.create().await?;
    let outcome = use_table(&table).await;
    table.delete().await?;
    println!("{} people in Milan are 40 or older", outcome?);
    Ok(())
}

async fn use_table(table: &azure_data_tables::prelude::TableClient) -> Result<usize, Box<dyn Error>> {
    for (surname, age) in [("rossi", 41), ("bianchi", 39), ("verdi", 60)] {
        let _: InsertEntityResponse<Person> = table.insert(&person(surname, age))?.await?;
    }
    // The ETag of a read lets one update through, not two.
    let rossi = table.partition_key_client("milan").entity_client("rossi");
    let etag = rossi.get::<Person>().await?.etag;
    rossi.update(&person("rossi", 42), etag.clone().into())?.await?;
    if rossi.update(&person("rossi", 43), etag.into())?.await.is_ok() {
        return Err("an update with an old ETag went through".into());
    }
    let query = table.query().filter(azure_data_tables::prelude::Filter::new("age ge 40"));
    let mut pages = query.into_stream::<Person>();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        found.extend(page?.entities);
    }
    assert_eq!(found, [person("rossi", 42), person("verdi", 60)]);
    Ok(found.len())
}
