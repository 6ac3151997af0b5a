//! Which entities a scan asks for: pure.
//!
//! What always holds: each filter is one stretch of keys, which a service reads without looking at others;
//! those of a scan are in the order of keys, and together from its start to its end.

use super::entity::{EntityError, EntityKey, partition_of};
use crate::backend::shardlet::Shardlet;
use crate::schema::table::TableSchema;
use crate::value::row::RowKey;
use storage_client::Value;

/// The filters of the rows of a shardlet after a key, or from the first one on; an empty text: all.
pub(super) fn filters(
    table: &TableSchema,
    shardlet: &Shardlet,
    after: Option<&RowKey>,
) -> Result<Vec<String>, EntityError> {
    let literal = |text: &str| Value::from(text).literal();
    let low = partition_of(table, shardlet.low());
    let before_high =
        shardlet.high().map(|high| format!("PartitionKey lt {}", literal(&partition_of(table, high))));
    let and_before_high = |from: Option<String>| {
        let both: Vec<String> = from.into_iter().chain(before_high.clone()).collect();
        both.join(" and ")
    };
    let after = after.map(|key| EntityKey::of(table, key)).transpose()?;
    match after.filter(|after| after.partition_key >= low) {
        Some(EntityKey { partition_key, row_key }) => {
            let partition = literal(&partition_key);
            let behind = format!("PartitionKey eq {partition} and RowKey gt {}", literal(&row_key));
            // A partition of one row has nothing behind it; the only one of a reference table is the last.
            let has_more_rows = table.row_key().len() > table.shard_key().len();
            let others = and_before_high(Some(format!("PartitionKey gt {partition}")));
            let others = Some(others).filter(|_| table.is_sharded());
            Ok(Some(behind).filter(|_| has_more_rows).into_iter().chain(others).collect())
        }
        None if !table.is_sharded() => Ok(vec![format!("PartitionKey eq {}", literal(&low))]),
        None => {
            let from = (!low.is_empty()).then(|| format!("PartitionKey ge {}", literal(&low)));
            Ok(vec![and_before_high(from)])
        }
    }
}
