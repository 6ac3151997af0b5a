//! The trace that a request is a part of: the header `traceparent` of W3C Trace Context
//! (<https://www.w3.org/TR/trace-context/>).
//!
//! What always holds: a header that is not whole and right is as if it were not there, as the document asks.

/// The caller's place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; not zero.
    pub trace_id: [u8; 16],
    /// The caller's span; not zero.
    pub parent_id: [u8; 8],
    /// Whether the caller may have recorded it.
    pub is_sampled: bool,
}

/// Bytes of a header of version 00: four numbers in lower-case hexadecimal with hyphens between.
const SIZE_BYTES: usize = 55;
/// A version that is never used.
const INVALID_VERSION: u8 = 0xff;
const SAMPLED: u8 = 1;

/// What a header says.
pub(crate) fn parse_trace_context(header: &[u8]) -> Option<TraceContext> {
    let ([version], rest) = (hexadecimal::<1>(header.get(..2)?)?, header.get(2..)?);
    // A later version may have more behind what this one has.
    let is_whole = match version {
        INVALID_VERSION => false,
        0 => header.len() == SIZE_BYTES,
        _ => header.len() == SIZE_BYTES || header.get(SIZE_BYTES) == Some(&b'-'),
    };
    if !is_whole || [0, 33, 50].iter().any(|at| rest.get(*at) != Some(&b'-')) {
        return None;
    }
    let trace_id = hexadecimal::<16>(rest.get(1..33)?)?;
    let parent_id = hexadecimal::<8>(rest.get(34..50)?)?;
    let [flags] = hexadecimal::<1>(rest.get(51..53)?)?;
    let is_known = trace_id != [0; 16] && parent_id != [0; 8];
    is_known.then_some(TraceContext { trace_id, parent_id, is_sampled: flags & SAMPLED != 0 })
}

/// Lower-case hexadecimal digits of so many bytes.
fn hexadecimal<const COUNT: usize>(digits: &[u8]) -> Option<[u8; COUNT]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; COUNT];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_names_trace_span_and_flag() {
        let context = parse_trace_context(WHOLE.as_bytes()).expect("a context");
        assert_eq!(context.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(
            (context.trace_id[15], context.parent_id),
            (0x36, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 2, 0xb7])
        );
        assert!(context.is_sampled);
        let unsampled = WHOLE.replace("-01", "-00");
        assert!(!parse_trace_context(unsampled.as_bytes()).expect("a context").is_sampled);
        // Flags that this version does not know are left alone.
        assert!(parse_trace_context(WHOLE.replace("-01", "-ff").as_bytes()).expect("a context").is_sampled);
        let later = format!("cc{}-what-is-to-come", &WHOLE[2..]);
        assert_eq!(parse_trace_context(later.as_bytes()), Some(context));
    }

    #[test]
    fn what_is_not_whole_and_right_is_not_there() {
        for wrong in [
            String::new(),
            "00".to_owned(),
            WHOLE[..54].to_owned(),
            format!("{WHOLE}-more"),
            format!("ff{}", &WHOLE[2..]),
            format!("cc{}.more", &WHOLE[2..]),
            WHOLE.to_uppercase(),
            WHOLE.replace('-', "_"),
            WHOLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            WHOLE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            WHOLE.replace("4bf9", "4bg9"),
        ] {
            assert_eq!(parse_trace_context(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
