//! What a sweep could not read or remove and went past, told once for each round: what is damaged is told at every round
//! again, and must neither fill the log nor keep what is behind it.

use std::fmt::Display;

/// What one round went past.
#[derive(Debug, Default)]
pub struct PassedOver {
    count: u64,
    first: Option<String>,
}

impl PassedOver {
    /// One more, for this reason.
    pub fn note(&mut self, error: &dyn Display) {
        self.count += 1;
        self.first.get_or_insert_with(|| error.to_string());
    }

    /// Those that another part of the round went past.
    pub fn add(&mut self, other: PassedOver) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }

    /// How many there were.
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
        all.add(PassedOver { count: 1, first: Some("three".to_owned()) });
        assert_eq!((all.count(), all.first.as_deref()), (3, Some("one")));
    }
}
