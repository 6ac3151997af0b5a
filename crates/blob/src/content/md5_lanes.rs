//! MD5 of several messages at once (RFC 1321): each step of the algorithm waits for the one before it, so one
//! message leaves most of a processor idle, and the lanes of its vectors.
//!
//! Where one message is all there is, or it comes in portions, the library hashes it. The code is compiled
//! for each kind of vectors; which one a processor has is found out when it runs. What always holds: the
//! digests are the library's.

#[cfg(not(target_arch = "x86_64"))]
use fearless_simd::dispatch;
use fearless_simd::{Level, Simd, SimdBase, SimdInt, u32x4, u32x8, u32x16};
use md5::{Digest, Md5};
use std::array::from_fn;

/// An MD5.
pub(crate) type Md5Digest = [u8; 16];

/// Messages that are hashed together where vectors have room for eight or more. If these are two, the
/// processor takes them in turns, as each step waits for the one before it.
const LANES: usize = 16;
/// If they are no more, or vectors are smaller: with more of these the state no longer fits the registers.
const FEW_LANES: usize = 8;
/// Words of a block.
const WORD_COUNT: usize = 16;
/// Bytes that the algorithm takes at once.
const BLOCK_SIZE_BYTES: usize = 64;
/// The last blocks of a message have its length in bits, in so many bytes, behind a byte that ends it.
const LENGTH_SIZE_BYTES: usize = 8;

/// What the algorithm starts with.
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// Bits that the steps of each round rotate by, in turns.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
/// In each round, which word of the block a step takes: step times the first of these, plus the second.
const WORDS: [[usize; 2]; 4] = [[1, 0], [5, 1], [3, 5], [7, 0]];
/// `floor(2^32 * abs(sin(step + 1)))`.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

type Block<'a> = &'a [u8; BLOCK_SIZE_BYTES];

/// The MD5 of each message.
pub(crate) fn md5_of_each<T: AsRef<[u8]>>(messages: &[T]) -> Vec<Md5Digest> {
    md5_at(Level::new(), messages)
}

/// With the vectors of `level`.
///
/// Each kind of vectors costs compile time, so there is code for three: SSE4.2 gains nothing over SSE2 here.
fn md5_at<T: AsRef<[u8]>>(level: Level, messages: &[T]) -> Vec<Md5Digest> {
    let mut digests = vec![Md5Digest::default(); messages.len()];
    // Of similar length together: lanes whose message has ended go on for nothing.
    let mut by_size: Vec<(usize, &[u8])> = messages.iter().map(AsRef::as_ref).enumerate().collect();
    by_size.sort_unstable_by_key(|(_, message)| message.len());
    #[cfg(target_arch = "x86_64")]
    match (level.as_avx512(), level.as_avx2(), level.as_sse2()) {
        (Some(avx512), _, _) => hash_sorted(avx512, &by_size, &mut digests),
        (_, Some(avx2), _) => hash_sorted(avx2, &by_size, &mut digests),
        (_, _, Some(sse2)) => hash_sorted(sse2, &by_size, &mut digests),
        (None, None, None) => hash_singly(&by_size, &mut digests),
    }
    #[cfg(not(target_arch = "x86_64"))]
    dispatch!(level, simd => hash_sorted(simd, &by_size, &mut digests));
    digests
}

/// Hashes messages one after the other.
#[cfg(target_arch = "x86_64")]
fn hash_singly(messages: &[(usize, &[u8])], digests: &mut [Md5Digest]) {
    for (at, message) in messages {
        digests[*at] = Md5::digest(message).into();
    }
}

/// Hashes messages that are sorted by length in groups of neighbours.
fn hash_sorted<S: Simd>(simd: S, by_size: &[(usize, &[u8])], digests: &mut [Md5Digest]) {
    let has_many_lanes = S::u32s::LEN > FEW_LANES / 2;
    for group in by_size.chunks(if has_many_lanes { LANES } else { FEW_LANES }) {
        match group {
            [(at, one)] => digests[*at] = Md5::digest(one).into(),
            _ if has_many_lanes && group.len() > FEW_LANES => {
                simd.vectorize(
                    #[inline(always)]
                    || hash_group::<S, u32x16<S>, LANES>(simd, group, digests),
                );
            }
            _ => simd.vectorize(
                #[inline(always)]
                || hash_group::<S, u32x8<S>, FEW_LANES>(simd, group, digests),
            ),
        }
    }
}

/// Hashes the messages of `group`, which has room in a vector; their digests go to the places that they tell.
#[inline(always)]
fn hash_group<S, V, const LANES: usize>(simd: S, group: &[(usize, &[u8])], digests: &mut [Md5Digest])
where
    S: Simd,
    V: SimdInt<S, Element = u32>,
{
    // Lanes without a message of their own repeat the last one.
    let in_lane = |lane: usize| group[lane.min(group.len() - 1)];
    let lanes: [Padded<'_>; LANES] = from_fn(|lane| Padded::new(in_lane(lane).1));
    let whole_count = lanes.iter().map(|message| message.whole.len()).min().unwrap_or(0);
    let block_count = lanes.iter().map(Padded::block_count).max().unwrap_or(0);
    let mut state = START.map(|word| V::splat(simd, word));
    for at in 0..block_count {
        // The rounds are written out, so they stand here once for blocks of both kinds.
        let blocks = match at < whole_count {
            true => from_fn(|lane| &lanes[lane].whole[at]),
            false => from_fn(|lane| lanes[lane].block(at)),
        };
        take_blocks::<S, V, LANES>(simd, &mut state, blocks);
        if at < whole_count {
            continue;
        }
        for (lane, message) in lanes.iter().enumerate() {
            if message.block_count() == at + 1 {
                digests[in_lane(lane).0] = digest_of(&state.map(|word| word.as_slice()[lane]));
            }
        }
    }
}

/// A message with what the algorithm adds to it.
struct Padded<'a> {
    /// The blocks that it fills.
    whole: &'a [[u8; BLOCK_SIZE_BYTES]],
    /// The rest, the byte behind it, zeros and the length; one block or two.
    tail: [[u8; BLOCK_SIZE_BYTES]; 2],
    tail_count: usize,
}

impl<'a> Padded<'a> {
    fn new(message: &'a [u8]) -> Self {
        let (whole, rest) = message.as_chunks();
        let tail_count = (rest.len() + 1 + LENGTH_SIZE_BYTES).div_ceil(BLOCK_SIZE_BYTES);
        let mut tail = [[0; BLOCK_SIZE_BYTES]; 2];
        let bytes = tail.as_flattened_mut();
        bytes[..rest.len()].copy_from_slice(rest);
        bytes[rest.len()] = 0x80;
        let bits = (message.len() as u64).wrapping_mul(8).to_le_bytes();
        bytes[tail_count * BLOCK_SIZE_BYTES - LENGTH_SIZE_BYTES..][..LENGTH_SIZE_BYTES]
            .copy_from_slice(&bits);
        Padded { whole, tail, tail_count }
    }

    fn block_count(&self) -> usize {
        self.whole.len() + self.tail_count
    }

    /// The block numbered `at`; any, behind the last.
    fn block(&self, at: usize) -> Block<'_> {
        self.whole.get(at).unwrap_or_else(|| &self.tail[(at - self.whole.len()).min(1)])
    }
}

fn digest_of(words: &[u32; 4]) -> Md5Digest {
    from_fn(|at| words[at / 4].to_le_bytes()[at % 4])
}

/// The words of each lane's block: of each word those of all lanes, side by side.
#[inline(always)]
fn words_of<S: Simd, const LANES: usize>(simd: S, blocks: [Block<'_>; LANES]) -> [[u32; LANES]; WORD_COUNT] {
    const SQUARE: usize = 4;
    let mut words = [[0; LANES]; WORD_COUNT];
    for lane in (0..LANES).step_by(SQUARE) {
        for word in (0..WORD_COUNT).step_by(SQUARE) {
            let row = |row: usize| {
                let numbers = &blocks[lane + row].as_chunks().0[word..][..SQUARE];
                u32x4::from_fn(simd, |at| u32::from_le_bytes(numbers[at]))
            };
            let ((a, b), (c, d)) = (row(0).interleave(row(2)), row(1).interleave(row(3)));
            let ((a, b), (c, d)) = (a.interleave(c), b.interleave(d));
            for (at, column) in [a, b, c, d].into_iter().enumerate() {
                words[word + at][lane..lane + SQUARE].copy_from_slice(column.as_slice());
            }
        }
    }
    words
}

/// Takes a block of each lane into its state.
#[inline(always)]
fn take_blocks<S, V, const LANES: usize>(simd: S, state: &mut [V; 4], blocks: [Block<'_>; LANES])
where
    S: Simd,
    V: SimdInt<S, Element = u32>,
{
    let words = words_of(simd, blocks);
    let mut next = *state;
    // Written out by the macros: which words and rotations a step takes has to be known when it is compiled.
    macro_rules! step {
        ($round:literal, $mix:expr, $step:literal) => {{
            const WORD: usize = (WORDS[$round][0] * $step + WORDS[$round][1]) % 16;
            const ROTATION: u32 = ROTATIONS[$round][$step % 4];
            let [a, b, c, d] = next;
            let word = V::from_slice(simd, &words[WORD]) + SINES[$round * 16 + $step];
            let sum = a + word + $mix(b, c, d);
            next = [d, b + ((sum << ROTATION) | (sum >> (32 - ROTATION))), b, c];
        }};
    }
    macro_rules! round {
        ($round:literal, $mix:expr) => {
            round!($round, $mix, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
        };
        ($round:literal, $mix:expr, $($step:literal)*) => {
            $(step!($round, $mix, $step);)*
        };
    }
    round!(0, |b: V, c: V, d: V| d ^ (b & (c ^ d)));
    round!(1, |b: V, c: V, d: V| c ^ (d & (b ^ c)));
    round!(2, |b: V, c: V, d: V| b ^ c ^ d);
    round!(3, |b: V, c: V, d: V| c ^ (b | !d));
    *state = from_fn(|word| state[word] + next[word]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Those that this processor has.
    fn levels() -> Vec<Level> {
        let mut levels = vec![Level::new(), Level::baseline()];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(Level::new().as_avx2().map(|avx2| avx2.level()));
            levels.extend(Level::new().as_sse4_2().map(|sse4_2| sse4_2.level()));
        }
        levels
    }

    fn check(messages: &[Vec<u8>]) {
        let expected: Vec<Md5Digest> = messages.iter().map(|message| Md5::digest(message).into()).collect();
        for level in levels() {
            assert_eq!(md5_at(level, messages), expected, "{level:?}");
        }
    }

    /// Each length around the ends of blocks, alone in its lane and beside others.
    #[test]
    fn digests_are_the_librarys_at_each_length() {
        let message = |len: usize| -> Vec<u8> { (0..len).map(|at| (at * 31 + len) as u8).collect() };
        for count in 0..=17 {
            for len in 0..=130 {
                check(&vec![message(len); count]);
            }
        }
        check(&(0..=300).map(message).collect::<Vec<_>>());
        check(&[8192, 0, 4096, 8191, 55, 56, 63, 64, 119, 120].map(message));
    }

    /// The test suite of RFC 1321, in one go.
    #[test]
    fn digests_are_those_of_the_standard() {
        let digits = "1234567890".repeat(8);
        let letters: String = ('A'..='Z').chain('a'..='z').chain('0'..='9').collect();
        let suite = [
            ("", 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e_u128),
            ("a", 0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661),
            ("abc", 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72),
            ("message digest", 0xf96b_697d_7cb7_938d_525a_2f31_aaf1_61d0),
            ("abcdefghijklmnopqrstuvwxyz", 0xc3fc_d3d7_6192_e400_7dfb_496c_ca67_e13b),
            (&letters, 0xd174_ab98_d277_d9f5_a561_1c2c_9f41_9d9f),
            (&digits, 0x57ed_f4a2_2be3_c955_ac49_da2e_2107_b67a),
        ];
        let digests = md5_of_each(&suite.map(|(message, _)| message));
        assert_eq!(digests, suite.map(|(_, digest)| digest.to_be_bytes()));
    }

    proptest! {
        #[test]
        fn digests_are_the_librarys(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..24),
        ) {
            check(&messages);
        }
    }
}
