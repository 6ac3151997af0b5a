//! What must be true at the end: each acknowledged write is on the shard that the map names and on no other,
//! and a certificate is that of the rows.

use crate::model::{Key, Model, read_row};
use crate::places::{ShardPlace, TABLE};
use crate::trial::DIGEST_KEY;
use shard_backend::{BatchBounds, DigestKey, Row, RowHasher, Schema, Shardlet, TableDigest};
use shard_map::{Catalog, MappingId, Name};
use shard_mover::Certificate;
use std::collections::BTreeMap;

/// Wrong rows that are named; more are only counted.
const NAMED_MAX: usize = 5;

/// All rows of all shards, as they are.
pub(crate) struct Found {
    by_shard: BTreeMap<Name, Vec<Row>>,
}

/// What is wrong with them.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    pub(crate) lost: usize,
    pub(crate) twice: usize,
    pub(crate) named: Vec<String>,
}

impl Found {
    pub(crate) async fn read(schema: &Schema, shards: &BTreeMap<Name, ShardPlace>) -> Result<Self, String> {
        let table = schema.table(TABLE).ok_or("there is no table")?;
        let mut by_shard = BTreeMap::new();
        for (name, place) in shards {
            let (mut rows, mut after) = (Vec::new(), None);
            loop {
                let (all, bounds) = (Shardlet::all(), BatchBounds::default());
                let batch = place.backend.scan(table, &all, after.as_ref(), bounds).await;
                let batch = batch.map_err(|error| error.to_string())?;
                rows.extend(batch.rows);
                match batch.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            by_shard.insert(name.clone(), rows);
        }
        Ok(Found { by_shard })
    }

    /// Whether each row is where the map routes it, and nowhere else.
    pub(crate) fn check(&self, catalog: &Catalog, model: &Model) -> Wrong {
        let mut wrong = Wrong::default();
        let mut seen: BTreeMap<Key, Vec<(&Name, &str)>> = BTreeMap::new();
        for (shard, rows) in &self.by_shard {
            for row in rows {
                match read_row(row) {
                    Some((key, label)) => seen.entry(key).or_default().push((shard, label)),
                    None => wrong.named.push(format!("{shard}: {row:?} is no row")),
                }
            }
        }
        let model = model.all();
        let shard_of = |key: &Key| {
            let route = catalog.map("m")?.route(&[key.0.into()]).ok()?;
            Some(route.placement.shard.clone())
        };
        let keys = seen.keys().filter(|key| !model.contains_key(*key)).chain(model.keys());
        for key in keys {
            let there = seen.get(key).map(Vec::as_slice).unwrap_or_default();
            let named = shard_of(key);
            let here: Vec<&str> = there
                .iter()
                .filter(|(shard, _)| Some(*shard) == named.as_ref())
                .map(|(_, label)| *label)
                .collect();
            let label = here.first().copied();
            let is_allowed = match model.get(key) {
                Some(allowed) => allowed.iter().any(|allowed| allowed.as_deref() == label),
                None => false,
            };
            let is_twice = there.len() > 1 || (here.is_empty() && !there.is_empty());
            wrong.lost += usize::from(!is_allowed);
            wrong.twice += usize::from(is_twice);
            if (!is_allowed || is_twice) && wrong.named.len() < NAMED_MAX {
                let allowed = model.get(key);
                wrong.named.push(format!(
                    "row {key:?} is {there:?}, the map says {named:?}, and may be {allowed:?}"
                ));
            }
        }
        wrong
    }

    /// Whether a certificate is that of the rows that a side of the move has of a mapping.
    pub(crate) fn check_certificate(
        &self,
        (schema, catalog): (&Schema, &Catalog),
        mapping: &MappingId,
        certificate: &Certificate,
        shard: &str,
    ) -> Result<(), String> {
        let table = schema.table(TABLE).ok_or("there is no table")?;
        let map = catalog.map("m").ok_or("there is no map")?;
        let mut hasher = RowHasher::new(&DigestKey::new(DIGEST_KEY), table);
        let mut digest = TableDigest::default();
        for row in self.by_shard.get(shard).into_iter().flatten() {
            let is_of_it = read_row(row).is_some_and(|((tenant, _), _)| {
                map.route(&[tenant.into()]).is_ok_and(|route| route.mapping == *mapping)
            });
            if is_of_it {
                digest.add(hasher.hash(row));
            }
        }
        let found = (digest.rows, format!("{:032x}", digest.sum));
        match certificate.tables.as_slice() {
            [table] if (table.rows, table.digest.clone()) == found => Ok(()),
            tables => Err(format!("{shard}: the certificate has {tables:?}, and the rows are {found:?}")),
        }
    }
}
