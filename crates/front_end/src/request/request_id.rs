//! Ids of requests and of reply boundaries, as GUID text.

use base::Random;
use hyper::header::HeaderValue;
use service::guid::{GUID_LEN, guid_letters};

/// A random GUID in text.
#[derive(Clone, Debug)]
pub(crate) struct RequestId([u8; GUID_LEN]);

impl RequestId {
    /// A new id.
    pub(crate) fn new(random: &dyn Random) -> Self {
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&random.next_u64().to_be_bytes());
        guid[8..].copy_from_slice(&random.next_u64().to_be_bytes());
        // Version 4, variant 1 (RFC 9562).
        guid[6] = guid[6] & 0x0f | 0x40;
        guid[8] = guid[8] & 0x3f | 0x80;
        RequestId(guid_letters(&guid))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The text as a header's value.
    pub(crate) fn header_value(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ones;

    impl Random for Ones {
        fn next_u64(&self) -> u64 {
            u64::MAX
        }
    }

    #[test]
    fn a_random_guid() {
        assert_eq!(RequestId::new(&Ones).as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
