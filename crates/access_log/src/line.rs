//! A line of the access log: one object of JSON without blanks, in the order of `docs/operate.md`.
//!
//! What always holds: what is not known is left out; texts are escaped, so a line is a line.

use base::date_time::DateTimeText;
use front_end::Access;
use std::io::Write;
use std::time::Duration;

/// Appends the object of a request.
pub(crate) fn put(out: &mut Vec<u8>, access: &Access<'_>) {
    let Access { at, request, target, outcome, phases } = access;
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(DateTimeText::new(*at).as_bytes());
    out.push(b'"');
    put_text(out, "id", Some(request.id));
    put_text(out, "client_id", request.client_id);
    if let Some(trace) = request.trace {
        put_name(out, "trace_id");
        // Memory takes everything.
        let _ = write!(out, "\"{:032x}\"", u128::from_be_bytes(trace.trace_id));
    }
    put_text(out, "account", target.account);
    put_text(out, "service", Some(target.service));
    put_text(out, "operation", Some(target.operation));
    put_text(out, "container", target.container);
    put_text(out, "class", Some(target.key_class));
    if let Some(rows) = outcome.rows {
        put_number(out, "rows_read", rows.read);
        put_number(out, "rows_returned", rows.returned);
    }
    put_number(out, "request_bytes", outcome.request_bytes);
    put_number(out, "response_bytes", outcome.response_bytes);
    put_number(out, "status", u64::from(outcome.status));
    put_text(out, "code", outcome.error_code);
    put_time(out, "total_us", phases.total);
    put_time(out, "authentication_us", phases.authentication);
    put_time(out, "turn_us", phases.turn);
    put_time(out, "body_us", phases.body);
    put_time(out, "work_us", phases.work);
    put_text(out, "agent", request.agent);
    out.push(b'}');
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn put_number(out: &mut Vec<u8>, name: &str, number: u64) {
    put_name(out, name);
    // Memory takes everything.
    let _ = write!(out, "{number}");
}

fn put_time(out: &mut Vec<u8>, name: &str, time: Duration) {
    put_number(out, name, time.as_micros() as u64);
}

fn put_text(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    put_name(out, name);
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 | 0x7f => {
                let _ = write!(out, "\\u{byte:04x}");
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
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
