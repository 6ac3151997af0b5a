//! Plain writes, and the same behind the fence, by one writer and by many.

use crate::databases::{Databases, SHARDS, TABLE};
use crate::{Outcome, median};
use shard_map::KeyValue;
use shard_router::{Keys, PostgresConnector, PostgresError, Router, RouterError};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What one writer's fenced write may take longer: the one or the other.
const LONGER_PERCENT_MAX: f64 = 25.0;
const LONGER_MS_MAX: f64 = 0.1;
const WRITERS: usize = 16;
/// What so many writers may write less.
const LESS_PERCENT_MAX: f64 = 15.0;
/// Before each measurement, so that connections are open and statements prepared.
const WARM_UP_FOR: Duration = Duration::from_millis(300);
const INSERT: &str = "INSERT INTO notes (tenant, number, text) VALUES ($1, $2, $3)";

/// What a number of writers did in a while.
struct Written {
    per_second: f64,
    /// Of one write.
    median_ms: f64,
}

/// How rows are written.
#[derive(Clone)]
enum Way {
    /// A statement that commits by itself: one round trip.
    Plain(Arc<Vec<tokio_postgres::Client>>),
    /// `BEGIN`, the statement, `COMMIT`: as the fenced one, without the fence.
    Transaction(Arc<Vec<tokio_postgres::Client>>),
    /// A statement by the router: one round trip.
    Fenced(Router<PostgresConnector>),
    /// A transaction of one statement by the router.
    FencedTransaction(Router<PostgresConnector>),
}

struct Writer {
    way: Way,
    index: usize,
    text: Arc<str>,
    /// The next row of a writer.
    numbers: Arc<AtomicI32>,
}

impl Writer {
    async fn run(self, until: Instant, measured_from: Instant) -> Outcome<Vec<f64>> {
        let tenant = self.index as i64;
        let prepared = match &self.way {
            Way::Plain(clients) | Way::Transaction(clients) => {
                Some(clients[self.index].prepare(INSERT).await?)
            }
            Way::Fenced(_) | Way::FencedTransaction(_) => None,
        };
        let mut took_ms = Vec::new();
        while Instant::now() < until {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let began_at = Instant::now();
            match (&self.way, &prepared) {
                (Way::Plain(clients), Some(insert)) => {
                    clients[self.index].execute(insert, &[&tenant, &number, &&*self.text]).await?;
                }
                (Way::Transaction(clients), Some(insert)) => {
                    let client = &clients[self.index];
                    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                        [&tenant, &number, &&*self.text];
                    let statement = client.execute(insert, &parameters);
                    let (begun, done) = tokio::join!(client.batch_execute("BEGIN"), statement);
                    begun?;
                    done?;
                    client.batch_execute("COMMIT").await?;
                }
                (Way::Fenced(router), _) => {
                    let (key, keys) = ([KeyValue::from(tenant)], [tenant]);
                    let written = router
                        .execute(Keys::new("m", &[&key]), INSERT, &[&keys[0], &number, &&*self.text])
                        .await;
                    check_written(written)?;
                }
                (Way::FencedTransaction(router), _) => {
                    self.write_transaction(router, tenant, number).await?;
                }
                (Way::Plain(_) | Way::Transaction(_), None) => return Err("no statement".into()),
            }
            if began_at >= measured_from {
                took_ms.push(began_at.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(took_ms)
    }

    async fn write_transaction(
        &self,
        router: &Router<PostgresConnector>,
        tenant: i64,
        number: i32,
    ) -> Outcome<()> {
        let key = [KeyValue::from(tenant)];
        let text = &self.text;
        let written: Result<u64, RouterError<PostgresError>> = router
            .write(Keys::new("m", &[&key]), |transaction| {
                let text = text.clone();
                Box::pin(async move { transaction.execute(INSERT, &[&tenant, &number, &&*text]).await })
            })
            .await;
        check_written(written)
    }
}

fn check_written(written: Result<u64, RouterError<PostgresError>>) -> Outcome<()> {
    match written.map_err(|error| error.to_string())? {
        1 => Ok(()),
        other => Err(format!("{other} rows were written, not one").into()),
    }
}

async fn write(way: &Way, writers: usize, numbers: &Arc<AtomicI32>, write_for: Duration) -> Outcome<Written> {
    let measured_from = Instant::now() + WARM_UP_FOR;
    let until = measured_from + write_for;
    let mut running = JoinSet::new();
    for index in 0..writers {
        let (way, text, numbers) = (way.clone(), Arc::from("x".repeat(180)), numbers.clone());
        running.spawn(Writer { way, index, text, numbers }.run(until, measured_from));
    }
    let mut all = Vec::new();
    while let Some(took) = running.join_next().await {
        all.extend(took??);
    }
    Ok(Written { per_second: all.len() as f64 / write_for.as_secs_f64(), median_ms: median(all) })
}

/// Each way that is plain, and the same with a fence.
const PAIRS: [(usize, usize); 2] = [(0, 1), (2, 3)];
const NAMES: [&str; 4] = ["statement", "fenced statement", "transaction", "fenced transaction"];

/// Pairs of rounds by one writer and by many; whether all are within their targets.
pub(crate) async fn run(databases: &Databases, rounds: usize, seconds: u64) -> Outcome<bool> {
    let mut clients = Vec::new();
    for _ in 0..WRITERS {
        clients.push(databases.plain(SHARDS[0]).await?);
    }
    let (clients, router) = (Arc::new(clients), databases.router());
    let ways = [
        Way::Plain(clients.clone()),
        Way::Fenced(router.clone()),
        Way::Transaction(clients),
        Way::FencedTransaction(router),
    ];
    let (numbers, write_for) = (Arc::new(AtomicI32::new(0)), Duration::from_secs(seconds));
    let mut is_fine = true;
    for writers in [1, WRITERS] {
        let mut rounds_of: [Vec<Written>; 4] = Default::default();
        for _ in 0..rounds {
            for (way, done) in ways.iter().zip(&mut rounds_of) {
                done.push(write(way, writers, &numbers, write_for).await?);
            }
        }
        println!("{writers} writers, {rounds} rounds of {seconds} s each way:");
        for (name, done) in NAMES.iter().zip(&rounds_of) {
            let rate = median(done.iter().map(|written| written.per_second).collect());
            let took_ms = median(done.iter().map(|written| written.median_ms).collect());
            println!("  {name:<18} {rate:>8.0} writes/s, p50 {took_ms:.3} ms");
        }
        for (plain, fenced) in PAIRS {
            is_fine &= compare(NAMES[fenced], &rounds_of[plain], &rounds_of[fenced], writers == 1);
        }
    }
    databases.run(SHARDS[0], &format!("TRUNCATE {TABLE}"));
    Ok(is_fine)
}

/// Prints how the fenced way compares, round by round; whether it is within its target.
fn compare(name: &str, plain: &[Written], fenced: &[Written], is_alone: bool) -> bool {
    let paired = |value: fn(&Written, &Written) -> f64| {
        median(plain.iter().zip(fenced).map(|(plain, fenced)| value(plain, fenced)).collect())
    };
    let (what, holds) = if is_alone {
        let longer_percent = 100.0 * (paired(|plain, fenced| fenced.median_ms / plain.median_ms) - 1.0);
        let longer_ms = paired(|plain, fenced| fenced.median_ms - plain.median_ms);
        (
            format!(
                "takes {longer_percent:+.1} % and {longer_ms:+.3} ms ({LONGER_PERCENT_MAX:.0} % or {LONGER_MS_MAX} ms at most)"
            ),
            longer_percent <= LONGER_PERCENT_MAX || longer_ms <= LONGER_MS_MAX,
        )
    } else {
        let less_percent = 100.0 * (1.0 - paired(|plain, fenced| fenced.per_second / plain.per_second));
        (
            format!("writes {less_percent:.1} % less ({LESS_PERCENT_MAX:.0} % at most)"),
            less_percent <= LESS_PERCENT_MAX,
        )
    };
    println!("  {name} {what}{}", if holds { "" } else { ": TOO MUCH" });
    holds
}
