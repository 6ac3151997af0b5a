//! Claims, the shard's copy, and signatures that have ended.

use crate::setup::{Setup, note, scan};
use shard_backend::{Backend, BackendError, FenceHold};
use shard_map::{Epoch, State};
use std::time::Duration;

fn closed(epoch: u64) -> FenceHold {
    FenceHold::Closed(Epoch(epoch))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_never_falls_and_copies_need_it() {
    let setup = Setup::serve().await;
    let (one, other) = (setup.backend(0), setup.backend(0));
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    let rows = [note("a", 1, "text")];
    let error = one.write(table, &shardlet, closed(5), &rows).await.expect_err("no claim");
    assert!(matches!(error, BackendError::Claimed { there: Epoch(0), given: Epoch(5), .. }), "{error}");
    one.claim(&shardlet, Epoch(5)).await.expect("claimed");
    one.claim(&shardlet, Epoch(5)).await.expect("claimed again");
    one.write(table, &shardlet, closed(5), &rows).await.expect("written");
    let error = other.write(table, &shardlet, closed(4), &rows).await.expect_err("a lower one");
    assert!(matches!(error, BackendError::Claimed { there: Epoch(5), given: Epoch(4), .. }), "{error}");
    let error = other.claim(&shardlet, Epoch(4)).await.expect_err("a lower one");
    assert!(matches!(error, BackendError::Claimed { there: Epoch(5), given: Epoch(4), .. }), "{error}");
    // Of many at once the highest stays.
    let claims = (6..14).map(|epoch| {
        let (backend, shardlet) = (setup.backend(0), shardlet.clone());
        tokio::spawn(async move { drop(backend.claim(&shardlet, Epoch(epoch)).await) })
    });
    for claim in claims.collect::<Vec<_>>() {
        claim.await.expect("no panic");
    }
    other.write(table, &shardlet, closed(13), &rows).await.expect("written");
    // A claim that was released is not taken up again.
    other.release(&shardlet, Epoch(12)).await.expect("without effect");
    other.write(table, &shardlet, closed(13), &rows).await.expect("written");
    other.release(&shardlet, Epoch(13)).await.expect("released");
    let error = other.write(table, &shardlet, closed(13), &rows).await.expect_err("released");
    assert!(matches!(error, BackendError::Released { .. }), "{error}");
    let error = one.claim(&shardlet, Epoch(13)).await.expect_err("released");
    assert!(matches!(error, BackendError::Released { .. }), "{error}");
    // Another mapping has a claim of its own.
    let error = other.write(table, &setup.shardlet("x"), closed(13), &[note("x", 1, "")]).await;
    assert!(matches!(error, Err(BackendError::Claimed { there: Epoch(0), .. })), "{error:?}");
}

/// A mover whose claim was taken passes until its signature's end, and not after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_mover_that_lost_its_claim_is_refused_after_t() {
    let setup = Setup::serve().await;
    let signed_for = Duration::from_secs(3);
    let (former, next) = (setup.backend(0).signed_for(signed_for), setup.backend(0));
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    former.claim(&shardlet, Epoch(5)).await.expect("claimed");
    former.write(table, &shardlet, closed(5), &[note("a", 1, "former")]).await.expect("written");
    next.claim(&shardlet, Epoch(6)).await.expect("claimed");
    tokio::time::sleep(signed_for).await;
    let error = former.write(table, &shardlet, closed(5), &[note("a", 1, "late")]).await;
    let error = error.expect_err("its claim was taken");
    assert!(matches!(error, BackendError::Claimed { there: Epoch(6), given: Epoch(5), .. }), "{error}");
    assert_eq!(scan(&next, (&setup.schema, "notes"), &shardlet, 9).await, [note("a", 1, "former")]);
}

/// For the service the signatures of a process whose clock is behind have ended when they come: as those of
/// one that was stopped before it sent.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_refuses_a_signature_that_ended() {
    let setup = Setup::serve().await;
    let (late, backend) = (setup.backend(-60), setup.backend(0));
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    backend.claim(&shardlet, Epoch(5)).await.expect("claimed");
    let key = shard_backend::RowKey { values: vec!["a".into(), 2.into()] };
    backend.write(table, &shardlet, closed(5), &[note("a", 2, "there")]).await.expect("written");
    for rows in [vec![note("a", 1, "late")], vec![note("a", 1, "late"), note("a", 3, "late")]] {
        let error = late.write(table, &shardlet, closed(5), &rows).await.expect_err("it ended 45 s ago");
        assert!(!error.may_be_done() && error.to_string().contains("AuthenticationFailed"), "{error}");
    }
    let error = late.delete(table, &shardlet, closed(5), &[key]).await.expect_err("it ended 45 s ago");
    assert!(!error.may_be_done(), "{error}");
    assert_eq!(scan(&backend, (&setup.schema, "notes"), &shardlet, 9).await, [note("a", 2, "there")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_needs_what_the_shard_s_copy_has() {
    let setup = Setup::serve().await;
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    setup.backend(0).claim(&shardlet, Epoch(5)).await.expect("claimed");
    let (map, mapping) = shardlet.mapping().expect("of a map");
    let since = map.placement(mapping).expect("it").since;
    // Each write is of a process that has read nothing yet.
    for (state, open, wrong, copy) in [
        (None, false, false, true),
        (Some(State::Online), true, false, false),
        (Some(State::ReadOnly), false, false, true),
    ] {
        if let Some(state) = state {
            setup.publish("a", state).await;
        }
        for (hold, expected) in
            [(FenceHold::Open(since), open), (FenceHold::Open(Epoch(999)), wrong), (closed(5), copy)]
        {
            let written = setup.backend(0).write(table, &shardlet, hold, &[note("a", 1, "")]).await;
            assert_eq!(written.is_ok(), expected, "{state:?} {hold:?}: {written:?}");
        }
    }
}
