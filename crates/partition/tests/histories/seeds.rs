//! Which seeds a seeded test runs.
//!
//! What always holds: `LARIMAR_SIM_SEED` runs that one alone; `LARIMAR_SIM_SEEDS` sets how many, for all
//! tests alike.

/// The seeds to run: `count` of them if the environment sets nothing. A seed whose life is looked at `uses`
/// times counts for as many.
pub(crate) fn chosen_seeds(count: u64, uses: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(count).div_ceil(uses)).collect(),
    }
}
