//! The body of a seal: where the extent's parts are, so that a replay needs no listing and no walk.
//!
//! ```text
//! varint  count of parts
//! varint  length of each part's body, in order of their offsets
//! ```
//!
//! An extent of more than [`LISTED_PARTS_MAX`] parts has a seal with an empty body. What always holds: the
//! same parts give the same bytes.

use crate::error::StoredError;
use base::codec::{DecodeError, Decoder, Encode};

/// Parts that a seal lists.
pub const LISTED_PARTS_MAX: usize = 1 << 16;

/// The body of the seal of an extent whose parts have these lengths.
pub fn seal_body(part_lengths: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    if part_lengths.len() <= LISTED_PARTS_MAX {
        out.put_varint(part_lengths.len() as u64);
        for length in part_lengths {
            out.put_varint(*length);
        }
    }
    out
}

/// Reads what [`seal_body`] wrote for `what`; none if the parts are not listed.
pub fn parse_seal_body(body: &[u8], what: &str) -> Result<Option<Vec<u64>>, StoredError> {
    if body.is_empty() {
        return Ok(None);
    }
    decode(body).map(Some).map_err(|error| StoredError::malformed(&what, &error))
}

fn decode(body: &[u8]) -> Result<Vec<u64>, DecodeError> {
    let mut decoder = Decoder::new(body);
    let count = decoder.varint("count of parts")?;
    if count > LISTED_PARTS_MAX as u64 {
        return Err(DecodeError("count of parts"));
    }
    let lengths = (0..count).map(|_| decoder.varint("length of a part")).collect::<Result<_, _>>()?;
    decoder.finish("end of the seal")?;
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back() {
        for lengths in [vec![], vec![1], vec![4096, 1, u64::MAX]] {
            assert_eq!(parse_seal_body(&seal_body(&lengths), "it"), Ok(Some(lengths)));
        }
        let many = vec![1; LISTED_PARTS_MAX + 1];
        assert_eq!(parse_seal_body(&seal_body(&many), "it"), Ok(None));
    }

    #[test]
    fn bytes_that_are_no_list_are_an_error_that_names_the_seal() {
        for body in [&[1][..], &[1, 5, 5], &[0xff; 12], &[0x81, 0x80, 0x08]] {
            let error = parse_seal_body(body, "the seal of it").unwrap_err();
            assert!(error.to_string().starts_with("the seal of it is damaged"), "{error}");
        }
    }
}
