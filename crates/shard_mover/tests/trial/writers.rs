//! Writers that go on through a move.

use crate::client::{Changed, Client};
use crate::model::{Key, Model};
use crate::settings::{
    OTHER_TENANTS, REST_MAX, ROWS_OF_TENANT, Settings, TENANTS_OF_RANGE, WRITERS, WRITTEN_NUMBERS,
};
use base::{Clock, Random};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a writer waits that was refused.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(crate) struct Counts {
    is_stopped: AtomicBool,
    pub(crate) done: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) unknown: AtomicU64,
}

impl Counts {
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// What a writer needs.
#[derive(Clone)]
pub(crate) struct Writing {
    pub(crate) client: Client,
    pub(crate) model: Arc<Model>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) settings: Settings,
}

/// Changes rows that no other writer does, until it is stopped.
pub(crate) async fn writer(of: Writing, number: u64) {
    let below = |bound: u64| of.random.next_u64() % bound.max(1);
    let mut write = 0_u64;
    while !of.counts.is_stopped.load(Ordering::Relaxed) {
        of.clock.sleep(Duration::from_micros(below(REST_MAX.as_micros() as u64))).await;
        write += 1;
        let tenant = match below(5) {
            0 => TENANTS_OF_RANGE * (1 + below(2) as i64) + below(OTHER_TENANTS as u64) as i64,
            _ => below(of.settings.tenants() as u64) as i64,
        };
        let key = (tenant, (below(WRITTEN_NUMBERS / WRITERS) * WRITERS + number) as i32);
        let label = format!("writer {number} write {write}");
        let label = (below(8) > 0).then_some(label.as_str());
        let count = change(&of, key, label).await;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// One change; which counter counts it.
async fn change<'a>(of: &'a Writing, key: Key, label: Option<&str>) -> &'a AtomicU64 {
    debug_assert!(key.1 < ROWS_OF_TENANT);
    match of.client.change(key, label).await {
        Changed::Done => {
            of.model.done(key, label);
            &of.counts.done
        }
        Changed::Unknown(_) => {
            of.model.unknown(key, label);
            &of.counts.unknown
        }
        Changed::Refused(_) => {
            of.clock.sleep(AFTER_REFUSAL).await;
            &of.counts.refused
        }
    }
}
