//! The worked example of docs/sharding.md for work on two shards: a sum goes from one account to another by
//! an outbox. No transaction spans the shards; whatever stops on the way, no sum is lost and none is there
//! twice.
//!
//! ```text
//! shard of the payer     one transaction: balance - sum, a row in the outbox
//! shard of the payee     one transaction: a row in the inbox if it is not there, then balance + sum
//! shard of the payer     the outbox's row is deleted
//! ```
//!
//! Outbox and inbox are tables with the shard key of their accounts, so a move takes their rows along.

use crate::setup::place;
use crate::sqlite::Files;
use base::BoxFuture;
use rusqlite::{OptionalExtension, Transaction};
use shard_map::KeyValue;
use shard_router::{
    FanOutSettings, Router, RouterError, ShardPart, ShardQuery, SqliteConnection, SqliteConnector,
};

type Failed = RouterError<rusqlite::Error>;

const TABLES: &str = "
    CREATE TABLE accounts (account INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE outbox (account INTEGER NOT NULL, id INTEGER NOT NULL, payee INTEGER NOT NULL,
        sum INTEGER NOT NULL, PRIMARY KEY (account, id));
    CREATE TABLE inbox (account INTEGER NOT NULL, payer INTEGER NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (account, payer, id));";

/// A sum on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Payment {
    payer: i32,
    id: i64,
    payee: i32,
    sum: i64,
}

/// Takes the sum from the payer and puts it into the outbox: both or neither.
async fn pay(router: &Router<SqliteConnector>, payment: Payment) -> Result<(), Failed> {
    let Payment { payer, id, payee, sum } = payment;
    let work = move |transaction: &Transaction<'_>| {
        transaction.execute("UPDATE accounts SET balance = balance - ?2 WHERE account = ?1", (payer, sum))?;
        transaction.execute("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4)", (payer, id, payee, sum))?;
        Ok(())
    };
    router.write("m", &[KeyValue::from(payer)], work).await
}

/// Gives the sum to the payee, once: the inbox knows which were given.
async fn deliver(router: &Router<SqliteConnector>, payment: Payment) -> Result<(), Failed> {
    let Payment { payer, id, payee, sum } = payment;
    let work = move |transaction: &Transaction<'_>| {
        let put = "INSERT INTO inbox VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        if transaction.execute(put, (payee, payer, id))? == 1 {
            transaction
                .execute("UPDATE accounts SET balance = balance + ?2 WHERE account = ?1", (payee, sum))?;
        }
        Ok(())
    };
    router.write("m", &[KeyValue::from(payee)], work).await
}

/// The outbox's row goes once its sum is there. (The inbox's row may go when no relay can have the payment.)
async fn forget(router: &Router<SqliteConnector>, payment: Payment) -> Result<(), Failed> {
    let Payment { payer, id, .. } = payment;
    let work = move |transaction: &Transaction<'_>| {
        transaction.execute("DELETE FROM outbox WHERE account = ?1 AND id = ?2", (payer, id)).map(drop)
    };
    router.write("m", &[KeyValue::from(payer)], work).await
}

/// Rows of all outboxes, for a relay: each shard is asked, and rows that a move left behind are left out.
struct Outboxes;

impl ShardQuery<SqliteConnection> for Outboxes {
    type Output = Vec<Payment>;
    type Error = rusqlite::Error;

    fn query<'a>(
        &'a self,
        connection: &'a mut SqliteConnection,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<Vec<Payment>, rusqlite::Error>> {
        Box::pin(async move {
            let read = connection.read(|transaction| {
                let select = "SELECT account, id, payee, sum FROM outbox ORDER BY account, id LIMIT 1000";
                let mut select = transaction.prepare(select)?;
                let row = |row: &rusqlite::Row<'_>| {
                    Ok(Payment { payer: row.get(0)?, id: row.get(1)?, payee: row.get(2)?, sum: row.get(3)? })
                };
                select.query_map([], row)?.collect::<Result<Vec<_>, _>>()
            });
            let payments = read.await?;
            Ok(payments.into_iter().filter(|payment| part.holds(&[payment.payer.into()])).collect())
        })
    }
}

async fn outboxes(router: &Router<SqliteConnector>) -> Vec<Payment> {
    let found = router.fan_out("m", &Outboxes, &FanOutSettings::default()).await.expect("all answer");
    found.answers.into_iter().flat_map(|(_, payments)| payments).collect()
}

async fn balance(router: &Router<SqliteConnector>, account: i32) -> i64 {
    let work = move |transaction: &Transaction<'_>| {
        let select = "SELECT balance FROM accounts WHERE account = ?1";
        transaction.query_row(select, [account], |row| row.get(0)).optional()
    };
    let found = router.read("m", &[KeyValue::from(account)], work).await;
    found.expect("read").expect("the account is there")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sum_between_two_shards_is_neither_lost_nor_there_twice() {
    let mut files = Files::start().await;
    for shard in ["s0", "s1", "s2"] {
        files.run(shard, TABLES);
    }
    files.run("s0", "INSERT INTO accounts VALUES (1, 100)");
    files.run("s1", "INSERT INTO accounts VALUES (5, 0)");
    let router = files.router();
    let payment = |id| Payment { payer: 1, id, payee: 5, sum: 10 };
    pay(&router, payment(1)).await.expect("paid");
    // The same payment twice is refused as a whole: its id is in the outbox.
    assert!(pay(&router, payment(1)).await.is_err());
    assert_eq!((balance(&router, 1).await, balance(&router, 5).await), (90, 0));
    // A relay that stops before, between or after its steps leaves what the next one finishes.
    for steps in 0..=3 {
        for payment in outboxes(&router).await {
            if steps > 0 {
                deliver(&router, payment).await.expect("delivered");
            }
            if steps > 1 {
                deliver(&router, payment).await.expect("delivered again");
            }
            if steps > 2 {
                forget(&router, payment).await.expect("forgotten");
            }
        }
        let on_the_way: i64 = match steps {
            0 => outboxes(&router).await.iter().map(|payment| payment.sum).sum(),
            _ => 0,
        };
        assert_eq!(balance(&router, 1).await + balance(&router, 5).await + on_the_way, 100, "{steps}");
    }
    assert_eq!((balance(&router, 5).await, outboxes(&router).await), (10, Vec::new()));
    // The payee moves meanwhile, with its inbox: a relay that delivers again gives nothing twice.
    pay(&router, payment(2)).await.expect("paid");
    let sent = outboxes(&router).await;
    deliver(&router, sent[0]).await.expect("delivered");
    files.run("s2", "INSERT INTO accounts VALUES (5, 20); INSERT INTO inbox VALUES (5, 1, 1), (5, 1, 2)");
    files.run("s1", "DELETE FROM accounts; DELETE FROM inbox");
    files.change(vec![place(Some(crate::setup::SECOND), "s2")]).await;
    deliver(&router, sent[0]).await.expect("delivered again");
    forget(&router, sent[0]).await.expect("forgotten");
    assert_eq!((balance(&router, 1).await, balance(&router, 5).await), (80, 20));
}
