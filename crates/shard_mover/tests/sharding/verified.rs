//! The records of moves, as movers reach them: when a move is put as verified, what it says is compared with
//! what is there.

use crate::gate::GatedRecords;
use crate::setting::{Setting, TABLES, digest_key, read_row};
use base::BoxFuture;
use shard_backend::{RowHasher, Shardlet, TableDigest};
use shard_map::{MappingId, State};
use shard_mover::{MoveState, StateRecord, TableReport};
use shard_store::{Put, Record, Records, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct WatchedRecords {
    pub(crate) records: GatedRecords,
    pub(crate) setting: Arc<Setting>,
}

impl Records for WatchedRecords {
    fn place(&self) -> &str {
        self.records.place()
    }
    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            let put = self.records.put(key, value).await?;
            if put == Put::Done
                && let Ok(StateRecord { state: MoveState::Verified { tables, .. }, .. }) =
                    serde_json::from_str(value)
            {
                self.setting.found(check(&self.setting, key, &tables).await);
            }
            Ok(put)
        })
    }
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.records.get(key)
    }
    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.records.list(from, to, count_max)
    }
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.records.remove(key)
    }
}

/// Whether both sides have what a move certifies, unless the map was changed under it meanwhile.
async fn check(setting: &Setting, key: &str, tables: &[TableReport]) -> Result<(), String> {
    let (id, _) = key.rsplit_once('-').expect("the key of a state");
    let contents = setting.records.contents();
    let records = contents.iter().filter(|(there, _)| there.starts_with(&format!("{id}-")));
    let states: Vec<MoveState> = records
        .map(|(_, value)| serde_json::from_str::<StateRecord>(value).expect("a state").state)
        .collect();
    let (mut order, mut mark) = (None, None);
    for state in states {
        match state {
            MoveState::Planned { order: planned } => order = Some(planned),
            MoveState::Marked { epoch } => mark = Some(epoch),
            _ => {}
        }
    }
    let (order, mark) = (order.expect("planned"), mark.expect("marked"));
    let catalog = setting.true_catalog().await;
    let map = Setting::map(&catalog);
    let mapping = MappingId::parse(&order.mapping, map.key_type()).expect("a mapping");
    let is_as_marked = map.placement(&mapping).is_some_and(|there| {
        there.since == mark && there.state == State::ReadOnly && there.shard == order.from
    });
    if !is_as_marked {
        return Ok(());
    }
    setting.counts.certified.fetch_add(1, Ordering::Relaxed);
    let shardlet = Shardlet::new(map.clone(), mapping).expect("it");
    for side in [&order.from, &order.to] {
        let mut found = BTreeMap::new();
        for (number, table) in TABLES.iter().enumerate() {
            let mut hasher = RowHasher::new(&digest_key(), setting.schema.table(table).expect("it"));
            let mut digest = TableDigest::default();
            for row in setting.shards[side].rows.contents(table) {
                let (id, text) = read_row(number, &row);
                if shardlet.holds(&[id.1.into()]) {
                    digest.add(hasher.hash(&row));
                    found.insert(id, text);
                }
            }
            let certified = tables.iter().find(|report| report.table == *table);
            if let Some(report) = certified
                && (digest.rows, format!("{:032x}", digest.sum)) != (report.rows, report.digest.clone())
            {
                return Err(format!("{key}: `{side}` has {digest} of {table}, and certified is {report:?}"));
            }
        }
        let ledger = setting.ledger.lock();
        let is_of_it = |row: &crate::ledger::RowId| shardlet.holds(&[row.1.into()]);
        let since = ledger.since(is_of_it);
        ledger
            .check(is_of_it, &since, &found)
            .map_err(|why| format!("{key}: certified on `{side}`: {why}"))?;
    }
    Ok(())
}
