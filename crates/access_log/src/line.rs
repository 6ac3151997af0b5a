//! A line of the access log: one object of JSON without blanks, in the order of `docs/operate.md`.
//!
//! What always holds: what is not known is left out; texts are escaped, so a line is a line.

use base::date_time::DateTimeText;
use front_end::Access;
use std::time::Duration;

/// Appends the object of a request.
pub(crate) fn put(out: &mut Vec<u8>, access: &Access<'_>) {
    let Access { at, request, target, outcome, phases } = access;
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(DateTimeText::new(*at).as_bytes());
    out.push(b'"');
    put_text(out, b",\"id\":\"", Some(request.id));
    put_text(out, b",\"client_id\":\"", request.client_id);
    if let Some(trace) = request.trace {
        put_hex(out, b",\"trace_id\":\"", trace.trace_id);
    }
    put_text(out, b",\"account\":\"", target.account);
    put_text(out, b",\"service\":\"", Some(target.service));
    put_text(out, b",\"operation\":\"", Some(target.operation));
    put_text(out, b",\"container\":\"", target.container);
    put_text(out, b",\"class\":\"", Some(target.key_class));
    if let Some(rows) = outcome.rows {
        put_number(out, b",\"rows_read\":", rows.read);
        put_number(out, b",\"rows_returned\":", rows.returned);
    }
    put_number(out, b",\"request_bytes\":", outcome.request_bytes);
    put_number(out, b",\"response_bytes\":", outcome.response_bytes);
    put_number(out, b",\"status\":", u64::from(outcome.status));
    put_text(out, b",\"code\":\"", outcome.error_code);
    put_time(out, b",\"total_us\":", phases.total);
    put_time(out, b",\"authentication_us\":", phases.authentication);
    put_time(out, b",\"turn_us\":", phases.turn);
    put_time(out, b",\"body_us\":", phases.body);
    put_time(out, b",\"work_us\":", phases.work);
    put_text(out, b",\"agent\":\"", request.agent);
    out.push(b'}');
}

fn put_number(out: &mut Vec<u8>, head: &[u8], number: u64) {
    out.extend_from_slice(head);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn put_time(out: &mut Vec<u8>, head: &[u8], time: Duration) {
    put_number(out, head, time.as_micros() as u64);
}

fn put_hex(out: &mut Vec<u8>, head: &[u8], bytes: [u8; 16]) {
    out.extend_from_slice(head);
    for byte in bytes {
        out.extend_from_slice(&hex_of(byte));
    }
    out.push(b'"');
}

/// `head` ends with the opening quote.
fn put_text(out: &mut Vec<u8>, head: &[u8], text: Option<&str>) {
    let Some(text) = text else { return };
    out.extend_from_slice(head);
    let mut rest = text.as_bytes();
    // Nearly all texts are copied whole.
    while let Some(place) = rest.iter().position(|&byte| is_escaped(byte)) {
        out.extend_from_slice(&rest[..place]);
        match rest[place] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&hex_of(byte));
            }
        }
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f)
}

fn hex_of(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use front_end::{AccessOutcome, AccessTarget, AccessedRequest, AccessedRows, Phases, TraceContext};

    /// A request that took so long.
    fn request(total: Duration, agent: Option<&'static str>) -> Access<'static> {
        Access {
            at: Ticks(0),
            request: AccessedRequest {
                id: "i",
                client_id: None,
                agent,
                trace: Some(TraceContext { trace_id: [0xab; 16], parent_id: [1; 8], is_sampled: true }),
            },
            target: AccessTarget {
                account: Some("a"),
                service: "table",
                operation: "GetEntity",
                container: Some("T"),
                key_class: "point",
            },
            outcome: AccessOutcome {
                status: 404,
                error_code: Some("ResourceNotFound"),
                request_bytes: 1,
                response_bytes: 2,
                rows: Some(AccessedRows { read: 3, returned: 4 }),
            },
            phases: Phases { total, ..Phases::default() },
        }
    }

    #[test]
    fn lines_are_json_whatever_clients_send() {
        let mut line = Vec::new();
        put(&mut line, &request(Duration::from_micros(7), Some("a\"b\\c\nd\u{7f}\u{e4}")));
        let parsed: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(parsed["agent"], "a\"b\\c\nd\u{7f}\u{e4}");
        assert_eq!((&parsed["total_us"], &parsed["rows_returned"]), (&7.into(), &4.into()));
        assert_eq!((&parsed["status"], &parsed["code"]), (&404.into(), &"ResourceNotFound".into()));
        assert_eq!(parsed["trace_id"], "ab".repeat(16));
        assert!(parsed.get("client_id").is_none() && !line.contains(&b'\n'));
    }
}
