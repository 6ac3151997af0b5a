//! What requests may hold in memory: parts of the memory budget, so that a process with a small one stays
//! small whatever clients do. The layers below choose their parts themselves.
//!
//! What always holds: one of the largest bodies and answers has room in the share of one account.

use front_end::Limits;

/// Larger bodies that are being read or worked on, as a part of the budget.
const BODIES_OF_MEMORY: u64 = 8;
const BODIES_SIZE_BYTES_MIN: u64 = 16 << 20;
/// Larger answers that clients are taking, as a part of the budget.
const ANSWERS_OF_MEMORY: u64 = 4;
const ANSWERS_SIZE_BYTES_MIN: u64 = 32 << 20;

/// The limits of a process with such a budget: no more than `limits` are.
pub(crate) fn limits_for(limits: Limits, budget_bytes: u64) -> Limits {
    let part = |divisor: u64, least: u64, most: usize| {
        let part = (budget_bytes / divisor).max(least);
        usize::try_from(part).unwrap_or(usize::MAX).min(most)
    };
    Limits {
        bodies_size_bytes_max: part(BODIES_OF_MEMORY, BODIES_SIZE_BYTES_MIN, limits.bodies_size_bytes_max),
        answers_size_bytes_max: part(
            ANSWERS_OF_MEMORY,
            ANSWERS_SIZE_BYTES_MIN,
            limits.answers_size_bytes_max,
        ),
        ..limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_part_of_a_small_budget_and_their_limits_with_a_large_one() {
        for (budget_mib, bodies_mib, answers_mib) in [
            (64, 16, 32),
            (128, 16, 32),
            (256, 32, 64),
            (1024, 128, 256),
            (4096, 256, 512),
            (u64::MAX >> 20, 256, 512),
        ] {
            let limits = limits_for(Limits::default(), budget_mib << 20);
            let in_mib = (limits.bodies_size_bytes_max >> 20, limits.answers_size_bytes_max >> 20);
            assert_eq!(in_mib, (bodies_mib, answers_mib), "{budget_mib} MiB");
        }
    }
}
