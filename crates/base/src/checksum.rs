//! The one checksum of the project: CRC-64/NVME, also the storage CRC64 of the protocol.

/// CRC-64/NVME of the concatenation of `parts`.
pub fn crc64(parts: &[&[u8]]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    for part in parts {
        digest.update(part);
    }
    digest.finalize()
}

/// The same over bytes that come in portions.
pub struct Crc64(crc_fast::Digest);

impl Default for Crc64 {
    fn default() -> Self {
        Crc64(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme))
    }
}

impl Crc64 {
    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    pub fn value(&self) -> u64 {
        self.0.finalize()
    }
}

/// The polynomial of CRC-64/NVME, its bits reflected.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;

/// Which bit of `bytes` was flipped, if that alone explains why they do not have `checksum`: bit `n % 8` of
/// byte `n / 8`.
pub fn flipped_bit(bytes: &[u8], checksum: u64) -> Option<usize> {
    flipped_bit_of(bytes.len(), crc64(&[bytes]) ^ checksum)
}

/// The same for bytes of which so many were hashed last, and whose checksum is `off_by` by exclusive or.
///
/// A checksum is linear: what it is off by depends on the flipped bits only, and differs for each single one.
/// Bytes that are wrong in any other way have the difference of one flipped bit by a chance of their bits in
/// 2^64.
pub fn flipped_bit_of(len: usize, off_by: u64) -> Option<usize> {
    let mut of_this_bit = POLYNOMIAL;
    for bit in (0..len * 8).rev() {
        if of_this_bit == off_by {
            return Some(bit);
        }
        let carry = if of_this_bit & 1 == 1 { POLYNOMIAL } else { 0 };
        of_this_bit = (of_this_bit >> 1) ^ carry;
    }
    None
}

/// The eight bytes, as a little-endian number, that behind `prefix` give this checksum: there is one for each
/// checksum. It is computed by running the CRC backwards over them.
pub fn crc64_suffix(prefix: &[u8], checksum: u64) -> u64 {
    // Both ends of the computation are inverted.
    let mut register = !checksum;
    for _ in 0..u64::BITS {
        // The polynomial's highest bit is set: the register's tells whether it was added.
        register = match register >> (u64::BITS - 1) {
            0 => register << 1,
            _ => ((register ^ POLYNOMIAL) << 1) | 1,
        };
    }
    register ^ !crc64(&[prefix])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_suffix_gives_each_checksum() {
        let mut state = 7;
        for length in 0..40 {
            let prefix: Vec<u8> = (0..length).map(|_| crate::random::splitmix64(&mut state) as u8).collect();
            for suffix in [0, 1, 1 << 63, u64::MAX, crate::random::splitmix64(&mut state)] {
                let checksum = crc64(&[&prefix, &suffix.to_le_bytes()]);
                assert_eq!(crc64_suffix(&prefix, checksum), suffix, "{prefix:?}");
                let found = crc64_suffix(&prefix, suffix);
                assert_eq!(crc64(&[&prefix, &found.to_le_bytes()]), suffix, "{prefix:?}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_found_and_nothing_else_is_taken_for_one() {
        let bytes: Vec<u8> = (0..5000u32).map(|at| (at * at / 7) as u8).collect();
        let checksum = crc64(&[&bytes]);
        assert_eq!(flipped_bit(&bytes, checksum), None);
        for bit in (0..bytes.len() * 8).step_by(997).chain([0, 7, 8, bytes.len() * 8 - 1]) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(flipped_bit(&flipped, checksum), Some(bit));
            flipped[(bit / 8 + 99) % bytes.len()] ^= 4;
            assert_eq!(flipped_bit(&flipped, checksum), None, "two bits");
        }
        assert_eq!(flipped_bit(&vec![0; bytes.len()], checksum), None);
        assert_eq!(flipped_bit(&[], 7), None);
    }

    #[test]
    fn check_value_of_the_catalogue() {
        // The catalogue of parametrised CRC algorithms gives this for "123456789".
        assert_eq!(super::crc64(&[b"12345", b"6789"]), 0xae8b_1486_0a79_9888);
    }
}
