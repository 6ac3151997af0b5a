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

#[cfg(test)]
mod tests {
    #[test]
    fn check_value_of_the_catalogue() {
        // The catalogue of parametrised CRC algorithms gives this for "123456789".
        assert_eq!(super::crc64(&[b"12345", b"6789"]), 0xae8b_1486_0a79_9888);
    }
}
