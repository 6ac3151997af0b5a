//! Which writes pass a fence and its claims.

use crate::rows::same_rows;
use crate::stage::{Stage, key};
use shard_backend::{Backend, BackendError, FenceHold, Shardlet};
use shard_map::{Epoch, State};

/// In which way a write or claim ended.
fn shown(outcome: Result<(), BackendError>) -> String {
    match outcome {
        Ok(()) => "done".to_owned(),
        Err(BackendError::Fence { .. }) => "fence".to_owned(),
        Err(BackendError::TakesWrites { .. }) => "takes writes".to_owned(),
        Err(BackendError::Claimed { there, given, .. }) => format!("{given} after {there}"),
        Err(BackendError::Released { given, .. }) => format!("{given} released"),
        Err(other) => panic!("{other}"),
    }
}

/// A step of the test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Set(State),
    Claim(u64),
    Release(u64),
    /// A client's write by an epoch so far from the mapping's.
    Open(i64),
    Closed(u64),
}

pub(crate) async fn fence_and_claim_decide_which_writes_pass(stage: &mut Stage) {
    use State::{Offline, Online, ReadOnly};
    use Step::{Claim, Closed, Open, Release, Set};
    let pin = key("ab", &[0, 0]);
    let steps = [
        (Open(0), "done"),
        (Open(1), "fence"),
        (Open(-1), "fence"),
        (Closed(0), "takes writes"),
        (Claim(80), "done"),
        (Closed(80), "takes writes"),
        (Open(0), "done"),
        (Set(ReadOnly), "done"),
        (Open(0), "fence"),
        (Open(-1), "fence"),
        (Closed(80), "done"),
        (Closed(79), "79 after 80"),
        (Closed(81), "81 after 80"),
        (Set(Offline), "done"),
        (Closed(80), "done"),
        (Claim(79), "79 after 80"),
        (Claim(80), "done"),
        (Release(79), "done"),
        (Release(81), "done"),
        (Closed(80), "done"),
        (Release(80), "done"),
        (Closed(80), "80 released"),
        (Claim(80), "80 released"),
        (Release(80), "done"),
        (Claim(79), "79 after 80"),
        (Closed(79), "79 after 80"),
        (Claim(90), "done"),
        (Closed(80), "80 after 90"),
        (Release(80), "done"),
        (Closed(90), "done"),
        (Set(Online), "done"),
        (Closed(90), "takes writes"),
        (Open(0), "done"),
    ];
    for (at, (step, expected)) in steps.into_iter().enumerate() {
        let mapping = stage.map().route(&pin).expect("a route").mapping;
        let shardlet = stage.shardlet(&mapping);
        let since = stage.map().placement(&mapping).expect("a placement").since;
        let rows = [stage.row("ab", &[0, 0], at)];
        let table = stage.table("all_kinds").clone();
        let (backend, model) = (stage.backend.clone(), &stage.model);
        let found = match step {
            Set(state) => {
                stage.set(&pin, state).await;
                Ok(())
            }
            Claim(epoch) => {
                drop(model.claim(&shardlet, Epoch(epoch)).await);
                backend.claim(&shardlet, Epoch(epoch)).await
            }
            Release(epoch) => {
                drop(model.release(&shardlet, Epoch(epoch)).await);
                backend.release(&shardlet, Epoch(epoch)).await
            }
            Open(_) | Closed(_) => {
                let hold = match step {
                    Open(by) => FenceHold::Open(Epoch(since.0.checked_add_signed(by).expect("an epoch"))),
                    Closed(epoch) => FenceHold::Closed(Epoch(epoch)),
                    other => panic!("{other:?}"),
                };
                drop(model.write(&table, &shardlet, hold, &rows).await);
                backend.write(&table, &shardlet, hold, &rows).await
            }
        };
        assert_eq!(shown(found), expected, "step {at}: {step:?}");
        same_rows(stage, &shardlet).await;
    }
    // Claims of another mapping are its own.
    let other = stage.map().route(&key("b", &[0])).expect("a route").mapping;
    assert_eq!(stage.backend.claim(&stage.shardlet(&other), Epoch(1)).await, Ok(()));
    assert_eq!(stage.backend.claim(&Shardlet::all(), Epoch(1)).await, Ok(()));
}
