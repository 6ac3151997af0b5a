//! What a sweep could not read or remove and went past, logged once for each round: what is damaged is logged
//! at every round again, and must neither fill the log nor keep what is behind it. What only could not be
//! read or removed at that time is no damage, and is logged apart.

use partition::PartitionError;
use std::fmt::Display;

/// What one round went past.
#[derive(Debug, Default)]
pub struct PassedOver {
    count: u64,
    first: Option<String>,
    put_off_count: u64,
    first_put_off: Option<String>,
}

impl PassedOver {
    /// One more, for this reason.
    pub fn note(&mut self, error: &dyn Display) {
        self.count += 1;
        self.first.get_or_insert_with(|| error.to_string());
    }

    /// One more that could not be read or removed for now: a later round will.
    pub fn put_off(&mut self, error: &dyn Display) {
        self.put_off_count += 1;
        self.first_put_off.get_or_insert_with(|| error.to_string());
    }

    /// One more, for now or for good, as the layer below says; `None`: it was not that layer's error.
    pub fn note_failure(&mut self, below: Option<&PartitionError>, error: &dyn Display) {
        match below {
            Some(below) if below.is_transient() => self.put_off(error),
            _ => self.note(error),
        }
    }

    /// Those that another part of the round went past.
    pub fn add(&mut self, other: PassedOver) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
        self.put_off_count += other.put_off_count;
        self.first_put_off = self.first_put_off.take().or(other.first_put_off);
    }

    /// How many there were that stay as they are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Tells of them, if there were any.
    pub fn log(&self, sweep: &'static str) {
        if let Some(first) = &self.first {
            tracing::error!(
                sweep,
                count = self.count,
                first,
                "stored rows could not be read or removed: they stay"
            );
        }
        if let Some(first) = &self.first_put_off {
            tracing::warn!(
                sweep,
                count = self.put_off_count,
                first,
                "stored rows could not be looked at or removed now: a later round does it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_is_kept() {
        let mut passed_over = PassedOver::default();
        assert_eq!(passed_over.count(), 0);
        passed_over.note(&"one");
        passed_over.note(&"two");
        let mut all = PassedOver::default();
        all.add(passed_over);
        let mut another = PassedOver::default();
        another.note(&"three");
        all.add(another);
        assert_eq!((all.count(), all.first.as_deref()), (3, Some("one")));
    }

    #[test]
    fn what_passes_is_told_apart_from_damage() {
        let cases = [
            (Some(PartitionError::Busy), (0, 1)),
            (Some(PartitionError::DiskFull), (0, 1)),
            (Some(PartitionError::Unavailable("split".to_owned())), (0, 1)),
            (Some(PartitionError::Storage("block".to_owned())), (1, 0)),
            (None, (1, 0)),
        ];
        for (below, expected) in cases {
            let mut passed_over = PassedOver::default();
            passed_over.note_failure(below.as_ref(), &"it");
            assert_eq!((passed_over.count, passed_over.put_off_count), expected, "{below:?}");
        }
    }
}
