//! One group of changes of entities, sent.
//!
//! What always holds: an error says whether other changes of its group were made.

use super::groups::{Change, Group};
use storage_client::{Error, GroupOperation, IfMatch, TableClient};

/// Why a group failed, and whether other changes of it were made.
pub(super) struct GroupError {
    pub(super) error: Error,
    pub(super) is_partly_done: bool,
}

impl From<Error> for GroupError {
    fn from(error: Error) -> Self {
        GroupError { error, is_partly_done: false }
    }
}

/// Makes the changes of a group: puts together, and deletes together if all are there.
pub(super) async fn submit(table: &TableClient, group: &Group) -> Result<(), GroupError> {
    let operation = |(row_key, change): &(String, Change)| match change {
        Change::Put(entity) => GroupOperation::InsertOrReplace(entity.clone()),
        Change::Delete => {
            let (partition_key, row_key) = (group.partition_key.clone(), row_key.clone());
            GroupOperation::Delete { partition_key, row_key, if_match: IfMatch::Any }
        }
    };
    match group.changes.as_slice() {
        [(_, Change::Put(entity))] => return Ok(table.insert_or_replace(entity).await.map(drop)?),
        [(row_key, Change::Delete)] => return Ok(delete(table, &group.partition_key, row_key).await?),
        _ => {}
    }
    let operations: Vec<GroupOperation> = group.changes.iter().map(operation).collect();
    match table.submit(&operations).await {
        Ok(_) => Ok(()),
        // An entity that is not there refuses the whole group.
        Err(error) if error.is_not_found() && error.code() != "TableNotFound" => {
            for (index, (row_key, _)) in group.changes.iter().enumerate() {
                let deleted = delete(table, &group.partition_key, row_key).await;
                deleted.map_err(|error| GroupError { error, is_partly_done: index > 0 })?;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

async fn delete(table: &TableClient, partition_key: &str, row_key: &str) -> Result<(), Error> {
    match table.delete_entity(partition_key, row_key, &IfMatch::Any).await {
        Err(error) if error.is_not_found() && error.code() != "TableNotFound" => Ok(()),
        done => done,
    }
}
