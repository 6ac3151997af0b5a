//! How long ago extents were dropped, as it is stored: a clock that runs while a stamp is swept, and
//! revisions that were there when it had some reading. Pure.
//!
//! ```text
//! <generation, 32 hex>/ages     in the metadata store
//!  1  format, 1
//!  8  the clock: milliseconds
//!  4  count of samples, of which each: 8 revision, 8 milliseconds, rising
//!  8  CRC-64/NVME of all before
//! ```
//!
//! Integers are little-endian. What always holds: an age is never longer than it is: the clock counts only
//! time between two writes of the key by one process, so it stands still while stamps change hands.

use base::checksum::crc64;
use base::codec::{DecodeError, Decoder, Encode};
use stamp::{Revision, TOMBSTONE_AGE};
use std::time::Duration;

/// The format that is read and written.
const AGES_FORMAT: u8 = 1;
/// Between two samples, at least: a quarter of the readers' grace.
const SAMPLE_EVERY: Duration = Duration::from_secs(15 * 60);
/// Samples, at most: those of a tombstone's age.
const SAMPLES_MAX: usize = (TOMBSTONE_AGE.as_secs() / SAMPLE_EVERY.as_secs()) as usize + 2;
const CHECKSUM_SIZE: usize = 8;

/// A clock, and what was there when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ages {
    clock: Duration,
    /// Each revision was there when the clock had this reading; both rise.
    samples: Vec<(Revision, Duration)>,
}

impl Ages {
    /// The same later: `passed` is the time since then, and `revision` was there at its end.
    pub(super) fn later(&self, passed: Duration, revision: Revision) -> Self {
        let mut later = self.clone();
        later.clock += passed;
        let is_due = later
            .samples
            .last()
            .is_none_or(|(last, at)| *last < revision && later.clock.saturating_sub(*at) >= SAMPLE_EVERY);
        if is_due {
            later.samples.push((revision, later.clock));
        }
        let surplus = later.samples.len().saturating_sub(SAMPLES_MAX);
        later.samples.drain(..surplus);
        later
    }

    /// How long ago `revision` was there at least.
    pub(super) fn age(&self, revision: Revision) -> Duration {
        let first = self.samples.partition_point(|(sampled, _)| *sampled < revision);
        self.samples.get(first).map_or(Duration::ZERO, |(_, at)| self.clock.saturating_sub(*at))
    }

    /// Its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![AGES_FORMAT];
        out.put_u64_field(self.clock.as_millis() as u64);
        out.put_u32_field(self.samples.len() as u32);
        for (revision, at) in &self.samples {
            out.put_u64_field(revision.0);
            out.put_u64_field(at.as_millis() as u64);
        }
        let checksum = crc64(&[&out]);
        out.put_u64_field(checksum);
        out
    }

    /// What was stored; none if it can't be read: then all ages begin anew, which is never wrong.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (checked, checksum) = bytes.split_last_chunk::<CHECKSUM_SIZE>()?;
        if crc64(&[checked]).to_le_bytes() != *checksum || checked.first() != Some(&AGES_FORMAT) {
            return None;
        }
        Self::decode_fields(checked.get(1..)?).ok()
    }

    fn decode_fields(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let clock = Duration::from_millis(decoder.u64("clock")?);
        let count = decoder.u32("count of samples")? as usize;
        let mut samples: Vec<(Revision, Duration)> = Vec::new();
        for _ in 0..count.min(SAMPLES_MAX) {
            let revision = Revision(decoder.u64("revision")?);
            let at = Duration::from_millis(decoder.u64("reading")?);
            let is_risen = samples.last().is_none_or(|(last, before)| *last < revision && *before <= at);
            if !is_risen || at > clock {
                return Err(DecodeError("samples that rise"));
            }
            samples.push((revision, at));
        }
        decoder.finish("end of the value")?;
        Ok(Ages { clock, samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Ages began anew with each process: a stamp that changed hands within the hour deleted nothing.
    #[test]
    fn ages_go_on_and_are_never_too_long() {
        let start = Ages::default().later(Duration::ZERO, Revision(10));
        assert_eq!((start.age(Revision(10)), start.age(Revision(11))), (Duration::ZERO, Duration::ZERO));
        // Another process goes on with what is stored.
        let stored = Ages::decode(&start.later(20 * MINUTE, Revision(30)).encode()).expect("ages");
        let later = stored.later(50 * MINUTE, Revision(50));
        for (revision, minutes) in [(1, 70), (10, 70), (11, 50), (30, 50), (31, 0), (50, 0), (51, 0)] {
            assert_eq!(later.age(Revision(revision)), minutes * MINUTE, "{revision}");
        }
        // Too soon for a sample, and nothing has changed since the last one.
        assert_eq!(later.later(MINUTE, Revision(60)).samples.len(), 3);
        assert_eq!(later.later(60 * MINUTE, Revision(50)).samples.len(), 3);
    }

    #[test]
    fn a_week_of_samples_is_kept() {
        let mut ages = Ages::default();
        for revision in 1..3000 {
            ages = ages.later(15 * MINUTE, Revision(revision));
        }
        assert_eq!(ages.samples.len(), SAMPLES_MAX);
        assert!(ages.age(Revision(1)) >= TOMBSTONE_AGE && ages.encode().len() < 16 << 10);
        assert_eq!(Ages::decode(&ages.encode()), Some(ages));
    }

    #[test]
    fn bad_bytes_are_no_ages() {
        let bytes = Ages::default().later(MINUTE, Revision(7)).encode();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(Ages::decode(&flipped), None, "{at}");
            assert_eq!(Ages::decode(&bytes[..at]), None, "{at}");
        }
    }
}
