//! What came of a command, for people and as JSON.

use serde_json::{Value, json};
use table_tools::{Difference, Differences, Schema};

/// `1 entity`, `2 entities`.
pub(super) fn counted(count: u64) -> String {
    if count == 1 { "1 entity".to_owned() } else { format!("{count} entities") }
}

/// Differences, all counted, the first ones named.
pub(super) fn diff_json(found: &Differences) -> Value {
    let one = |one: &Difference| json!({ "PartitionKey": one.partition_key, "RowKey": one.row_key, "difference": one.what });
    json!({
        "same": found.same, "differing": found.differing, "only_first": found.only_left,
        "only_second": found.only_right, "first": found.first.iter().map(one).collect::<Vec<_>>(),
    })
}

/// What is in a table.
pub(super) fn schema_json(schema: &Schema) -> Value {
    let properties = schema.properties.iter().map(|(name, property)| {
        let (types, bytes, max) = (&property.types, property.size_bytes, property.size_bytes_max);
        json!({ "name": name, "types": types, "bytes": bytes, "bytes_max": max })
    });
    let entities = schema.largest_entities.iter().map(|(bytes, partition_key, row_key)| {
        json!({ "bytes": bytes, "PartitionKey": partition_key, "RowKey": row_key })
    });
    let partitions = schema.largest_partitions.iter().map(|(bytes, entities, partition_key)| {
        json!({ "bytes": bytes, "entities": entities, "PartitionKey": partition_key })
    });
    let beyond = &schema.beyond;
    json!({
        "entities": schema.entities, "bytes": schema.size_bytes, "partitions": schema.partitions,
        "properties_min": schema.property_count.map(|(least, _)| least),
        "properties_max": schema.property_count.map(|(_, most)| most),
        "properties": properties.collect::<Vec<_>>(), "further_properties": schema.further_properties,
        "largest_entities": entities.collect::<Vec<_>>(),
        "largest_partitions": partitions.collect::<Vec<_>>(),
        "beyond": {
            "keys": beyond.keys, "entities": beyond.entities, "values": beyond.values,
            "property_counts": beyond.property_counts,
        },
    })
}
