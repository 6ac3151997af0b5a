//! Whether the object store answers the parts of a process, and what others should know of that: pure.
//!
//! What always holds: a word that may be in the metadata store, whatever came of the try, is taken back once
//! the object store has answered after it was chosen.

use std::time::Duration;

/// What others should know next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    /// Parts wait, and none is answered.
    CutOff,
    /// The store answers again.
    Answered,
}

/// A word that may be in the metadata store.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    is_there: bool,
    /// The object store has answered since the word was chosen.
    is_answered: bool,
}

/// When the object store last answered a part of this process.
#[derive(Debug, Default)]
pub(crate) struct PartsAnswered {
    under_way: usize,
    /// By the monotonic clock: the newest answer, or when the first of those under way was sent after it.
    unanswered_since: Duration,
    word: Option<Word>,
}

impl PartsAnswered {
    /// A part is sent.
    pub(crate) fn sent(&mut self, now: Duration) {
        if self.under_way == 0 {
            self.unanswered_since = now;
        }
        self.under_way += 1;
    }

    /// The object store has answered.
    pub(crate) fn answered(&mut self, now: Duration) {
        self.unanswered_since = now;
        if let Some(word) = &mut self.word {
            word.is_answered = true;
        }
    }

    /// A part waits no more, whatever came of it.
    pub(crate) fn ended(&mut self) {
        self.under_way -= 1;
    }

    /// What others should know now, if they don't.
    pub(crate) fn choose_tell(&mut self, now: Duration, patience: Duration) -> Option<Tell> {
        match self.word {
            Some(word) if word.is_answered => Some(Tell::Answered),
            Some(word) => (!word.is_there).then_some(Tell::CutOff),
            None => {
                let is_cut_off = self.under_way > 0 && now.saturating_sub(self.unanswered_since) >= patience;
                self.word = is_cut_off.then(Word::default);
                is_cut_off.then_some(Tell::CutOff)
            }
        }
    }

    /// This is in the metadata store now.
    pub(crate) fn committed(&mut self, tell: Tell) {
        match (tell, &mut self.word) {
            (Tell::CutOff, Some(word)) => word.is_there = true,
            (Tell::CutOff, None) => {}
            (Tell::Answered, word) => *word = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn a_process_is_cut_off_once_parts_wait_and_none_is_answered() {
        let mut parts = PartsAnswered::default();
        assert_eq!(parts.choose_tell(at(9), PATIENCE), None, "nothing was sent");
        parts.sent(at(10));
        parts.sent(at(11));
        assert_eq!(parts.choose_tell(at(11), PATIENCE), None);
        parts.answered(at(12));
        parts.ended();
        assert_eq!(parts.choose_tell(at(13), PATIENCE), None, "one of two was answered");
        assert_eq!(parts.choose_tell(at(14), PATIENCE), Some(Tell::CutOff));
        let mut idle = PartsAnswered::default();
        idle.sent(at(10));
        idle.ended();
        assert_eq!(idle.choose_tell(at(19), PATIENCE), None, "nothing waits");
    }

    #[test]
    fn the_word_is_sent_until_it_is_there_and_stands_until_the_store_answers() {
        let mut parts = PartsAnswered::default();
        parts.sent(at(10));
        for second in [12, 13] {
            assert_eq!(parts.choose_tell(at(second), PATIENCE), Some(Tell::CutOff), "at {second}");
        }
        parts.committed(Tell::CutOff);
        parts.ended();
        assert_eq!(parts.choose_tell(at(15), PATIENCE), None, "the part was given up");
        parts.sent(at(20));
        parts.answered(at(21));
        for second in [21, 30] {
            assert_eq!(parts.choose_tell(at(second), PATIENCE), Some(Tell::Answered), "at {second}");
        }
        parts.committed(Tell::Answered);
        assert_eq!(parts.choose_tell(at(22), PATIENCE), None);
        assert_eq!(parts.choose_tell(at(23), PATIENCE), Some(Tell::CutOff), "the part still waits");
    }

    #[test]
    fn a_word_of_unknown_outcome_is_taken_back_too() {
        let mut parts = PartsAnswered::default();
        parts.sent(at(10));
        assert_eq!(parts.choose_tell(at(12), PATIENCE), Some(Tell::CutOff));
        // Before the answer of the metadata store, or without one.
        parts.answered(at(12));
        parts.ended();
        assert_eq!(parts.choose_tell(at(13), PATIENCE), Some(Tell::Answered));
        parts.committed(Tell::Answered);
        assert_eq!(parts.choose_tell(at(99), PATIENCE), None);
    }
}
