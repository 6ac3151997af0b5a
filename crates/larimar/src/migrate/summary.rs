//! What a migration has done, as text and as JSON.

use base::ByteSize;
use serde_json::json;
use stamp_streams::Migrated;
use std::time::Duration;

/// What was done, and how long it took.
pub(super) fn text(from: &str, to: &str, migrated: &Migrated, took: Duration) -> String {
    let Migrated { streams, extents, bytes, copied_bytes, verified_bytes } = *migrated;
    let size = ByteSize(bytes);
    let how = match verified_bytes {
        0 if bytes > 0 => "all of it was copied and verified before".to_owned(),
        _ if copied_bytes < bytes => {
            format!("{} were copied before, all is verified", ByteSize(bytes - copied_bytes))
        }
        _ => "all is verified".to_owned(),
    };
    let seconds = took.as_secs_f64();
    format!(
        "{from} is copied to {to}: {streams} streams, {extents} extents, {size} in {seconds:.1} s; {how}\n"
    )
}

/// The same for programs.
pub(super) fn json(migrated: &Migrated, took: Duration) -> String {
    let value = json!({
        "streams": migrated.streams,
        "extents": migrated.extents,
        "bytes": migrated.bytes,
        "copied_bytes": migrated.copied_bytes,
        "verified_bytes": migrated.verified_bytes,
        "verified": true,
        "seconds": took.as_secs_f64(),
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told() {
        let all = Migrated { streams: 2, extents: 3, bytes: 2048, copied_bytes: 2048, verified_bytes: 2048 };
        for (migrated, end) in [
            (all, "; all is verified\n"),
            (Migrated { copied_bytes: 1024, ..all }, "were copied before, all is verified\n"),
            (
                Migrated { copied_bytes: 0, verified_bytes: 0, ..all },
                "; all of it was copied and verified before\n",
            ),
        ] {
            let text = text("d", "stamp s", &migrated, Duration::from_millis(1250));
            assert!(text.starts_with("d is copied to stamp s: 2 streams, 3 extents, "), "{text}");
            assert!(text.contains(" in 1.2 s; ") && text.ends_with(end), "{text}");
        }
        assert!(json(&all, Duration::ZERO).contains("\"verified\": true"));
    }
}
