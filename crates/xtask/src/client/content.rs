//! Bytes of blobs that follow from a number: whoever knows it can tell whether what came back is right,
//! without keeping what was sent. What always holds: the same number gives the same bytes, and nothing
//! compresses them.

use base::random::splitmix64;

/// Fills a buffer with bytes that follow from the state, and moves it on. Nothing compresses them.
pub(crate) fn fill(state: &mut u64, out: &mut [u8]) {
    for part in out.chunks_mut(8) {
        part.copy_from_slice(&splitmix64(state).to_le_bytes()[..part.len()]);
    }
}

/// So many bytes of a blob.
pub(crate) fn content(seed: u64, size: usize) -> Vec<u8> {
    let (mut state, mut bytes) = (seed, vec![0; size]);
    fill(&mut state, &mut bytes);
    bytes
}
