//! Chance, handed in.

/// A source of random bits: for ids, jitter, sampling, and numbers that nobody may guess who has seen others.
/// Not for keys.
pub trait Random: Send + Sync + 'static {
    /// 64 random bits.
    fn next_u64(&self) -> u64;
}

/// What [`splitmix64`] adds to its state at each draw.
pub const SPLITMIX64_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64: a small generator with a 64-bit state, enough for ids and jitter.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(SPLITMIX64_STEP);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
