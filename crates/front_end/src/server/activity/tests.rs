//! Silence and standstill of connections and requests, in virtual time.

use super::*;
use futures_util::FutureExt;
use futures_util::future::pending;
use tokio::sync::mpsc;

const HTTP1: Patience = Patience {
    silence_max: Duration::from_secs(120),
    unmoved_for_max: Duration::from_secs(600),
    requests_together: true,
};
const HTTP2: Patience = Patience { requests_together: false, ..HTTP1 };

/// What is done before each look, and the minute of the look that ends it.
fn ended(
    patience: &Patience,
    mut before_look: impl FnMut(u64, &mut Observation),
) -> Option<(u64, EndReason)> {
    assert_eq!(patience.look_every(), Duration::from_secs(60));
    let mut seen = Observation::default();
    let mut watch = Watch::new(seen, Duration::ZERO);
    (1..=60).find_map(|minute| {
        before_look(minute, &mut seen);
        watch.look(seen, Duration::from_secs(60 * minute), patience).map(|ended| (minute, ended))
    })
}

#[test]
fn a_connection_without_requests_is_silent() {
    for patience in [HTTP1, HTTP2] {
        assert_eq!(ended(&patience, |_, _| {}), Some((2, EndReason::Silent)));
        let asks_for_five_minutes = |minute, seen: &mut Observation| {
            if minute <= 5 {
                seen.started += 1;
                seen.finished += 1;
            }
        };
        assert_eq!(ended(&patience, asks_for_five_minutes), Some((7, EndReason::Silent)));
        // Half a request, byte by byte.
        assert_eq!(ended(&patience, |_, seen| seen.read_bytes += 1), Some((2, EndReason::Silent)));
    }
}

/// An answer that is whole in memory counted as sent once it was made: a client that took it slowly was cut
/// off as silent.
#[test]
fn a_client_that_reads_slowly_is_neither_silent_nor_stalled() {
    for patience in [HTTP1, HTTP2] {
        let takes = |minute, seen: &mut Observation| {
            (seen.started, seen.finished, seen.is_blocked) = (1, 1, minute < 50);
            // The kernel takes more now and then, in the end for the rest.
            seen.written_bytes += u64::from(minute < 50 && minute % 9 == 0 || minute == 50);
        };
        assert_eq!(ended(&patience, takes), Some((52, EndReason::Silent)), "and silent once it has all");
    }
}

#[test]
fn a_client_that_reads_nothing_has_stalled() {
    for patience in [HTTP1, HTTP2] {
        // It goes on asking, which is no reason to keep what it does not take.
        let takes_nothing = |minute, seen: &mut Observation| {
            (seen.written_bytes, seen.is_blocked) = (3, true);
            (seen.started, seen.finished, seen.read_bytes) = (minute, minute, minute);
        };
        assert_eq!(ended(&patience, takes_nothing), Some((11, EndReason::Stalled)));
    }
}

#[test]
fn a_request_that_stands_still_has_stalled() {
    let stands_still = |_, seen: &mut Observation| seen.started = 1;
    assert_eq!(ended(&HTTP1, stands_still), Some((11, EndReason::Stalled)));
    assert_eq!(ended(&HTTP2, stands_still), None, "there each request is looked at on its own");
    let sends = |minute, seen: &mut Observation| {
        seen.started = 1;
        seen.read_bytes += u64::from(minute % 9 == 0);
    };
    assert_eq!(ended(&HTTP1, sends), None);
}

/// A stalled answer ended its whole connection of HTTP/2, with all other requests on it.
#[test]
fn a_request_of_http2_is_given_up_when_nothing_wakes_it() {
    let activity = Arc::new(Activity::default());
    let run = |request: base::BoxFuture<'static, ()>| {
        Box::pin(Activity::run_request(UnderWay::start(activity.clone()), request, HTTP2.unmoved_for_max))
    };
    let (parts, mut taken) = mpsc::channel::<()>(1);
    let mut stalled = run(Box::pin(pending()));
    let mut moving = run(Box::pin(async move { while taken.recv().await.is_some() {} }));
    // As a runtime does: a task is polled when it was woken.
    let mut stalled_at = None;
    for minute in 0..40 {
        if minute % 9 == 0 {
            parts.try_send(()).expect("room");
        }
        assert!((&mut moving).now_or_never().is_none(), "minute {minute}");
        if stalled_at.is_none() && minute == 0 {
            assert!((&mut stalled).now_or_never().is_none());
        }
        activity.tell_look(Duration::from_secs(60 * minute));
        assert!((&mut moving).now_or_never().is_none(), "minute {minute}");
        if stalled_at.is_none() && (&mut stalled).now_or_never().is_some() {
            stalled_at = Some(minute);
        }
    }
    assert_eq!(stalled_at, Some(10));
    assert_eq!(activity.seen(), Observation { started: 2, finished: 1, ..Observation::default() });
    drop(parts);
    assert!((&mut moving).now_or_never().is_some());
    drop((stalled, moving));
    assert_eq!(activity.seen(), Observation { started: 2, finished: 2, ..Observation::default() });
}
