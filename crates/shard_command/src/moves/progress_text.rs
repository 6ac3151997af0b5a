//! Progress as one line, with rate and rest.

use shard_mover::{Phase, Progress};

/// The line.
pub fn progress_text(of: &Progress) -> String {
    let phase = match of.phase {
        Phase::Clearing => "clearing",
        Phase::Copying => "copying",
        Phase::Verifying => "comparing",
        Phase::Deleting => "deleting",
        Phase::Waiting => "waiting until former signatures end",
    };
    let id = &of.id.as_str()[24..];
    let mut text = format!("move …{id}: {phase}");
    if of.phase != Phase::Waiting {
        text += &format!(" {} of about {} rows", of.rows, of.of.max(of.rows));
    }
    if of.rows_per_second > 0.0 {
        text += &format!(", {:.0} rows/s", of.rows_per_second);
    }
    if let Some(rest) = of.rest {
        text += &format!(", {} s left", rest.as_secs_f64().ceil());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_mover::MoveId;
    use std::time::Duration;

    #[test]
    fn a_line_has_what_is_known() {
        let id = MoveId::parse(&"0123456789abcdef".repeat(2)).expect("an id");
        let copying =
            Progress { id, phase: Phase::Copying, rows: 5, of: 20, rows_per_second: 2.5, rest: None };
        let short = "move …89abcdef:";
        assert_eq!(progress_text(&copying), format!("{short} copying 5 of about 20 rows, 2 rows/s"));
        let rest = Some(Duration::from_millis(5500));
        let waiting =
            Progress { phase: Phase::Waiting, rows: 0, of: 0, rows_per_second: 0.0, rest, ..copying };
        assert_eq!(progress_text(&waiting), format!("{short} waiting until former signatures end, 6 s left"));
    }
}
