//! Which requests become spans: what the caller decided holds; of others a share.
//!
//! What always holds: a pure function of the caller's context and of random bits. (OpenTelemetry calls this a
//! parent-based sampler of a ratio of trace ids.)

use front_end::TraceContext;

/// The place of a request in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampled {
    /// The caller's trace, or a new one.
    pub(crate) trace_id: [u8; 16],
    /// The caller's span; `None`: the request begins its trace.
    pub(crate) parent_id: Option<[u8; 8]>,
}

/// A share as a bound that random 64-bit numbers are below as often.
pub(crate) fn threshold(share: f64) -> u64 {
    // From 1 on the conversion gives the greatest number, which all but one of 2^64 are below.
    (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64
}

/// Whether a request becomes a span, and in which trace.
pub(crate) fn sample(
    context: Option<TraceContext>,
    threshold: u64,
    mut draw: impl FnMut() -> u64,
) -> Option<Sampled> {
    if let Some(context) = context {
        let TraceContext { trace_id, parent_id, is_sampled } = context;
        return is_sampled.then_some(Sampled { trace_id, parent_id: Some(parent_id) });
    }
    let low = draw();
    if low >= threshold {
        return None;
    }
    let (high, low) = (draw().to_be_bytes(), low.max(1).to_be_bytes());
    let mut trace_id = [0; 16];
    trace_id[..8].copy_from_slice(&high);
    trace_id[8..].copy_from_slice(&low);
    Some(Sampled { trace_id, parent_id: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::splitmix64;

    #[test]
    fn what_the_caller_decided_holds() {
        let context = |is_sampled| TraceContext { trace_id: [3; 16], parent_id: [4; 8], is_sampled };
        let never = || unreachable!("nothing is drawn");
        let expected = Sampled { trace_id: [3; 16], parent_id: Some([4; 8]) };
        assert_eq!(sample(Some(context(true)), 0, never), Some(expected));
        assert_eq!(sample(Some(context(false)), u64::MAX, never), None);
    }

    #[test]
    fn of_others_a_share_begins_traces_of_their_own() {
        for (share, least, most) in
            [(0.0, 0, 0), (0.01, 850, 1150), (0.5, 49_000, 51_000), (1.0, 100_000, 100_000)]
        {
            let mut state = 7;
            let traces: Vec<Sampled> = (0..100_000)
                .filter_map(|_| sample(None, threshold(share), || splitmix64(&mut state)))
                .collect();
            assert!((least..=most).contains(&traces.len()), "{share}: {}", traces.len());
            assert!(traces.iter().all(|sampled| sampled.parent_id.is_none() && sampled.trace_id != [0; 16]));
        }
        assert_eq!((threshold(-1.0), threshold(f64::NAN)), (0, 0));
    }
}
