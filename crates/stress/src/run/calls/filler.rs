//! What items are made of: letters that can't be compressed much, the same under each seed.

use crate::workload::chance::Chance;
use bytes::Bytes;

/// Letters, as many as the largest item has bytes.
#[derive(Clone, Debug)]
pub(crate) struct Filler {
    letters: Bytes,
}

impl Filler {
    pub(crate) fn new(size_bytes: u64) -> Self {
        let mut chance = Chance::of(0, 0);
        let letters: Vec<u8> = (0..size_bytes).map(|_| b'a' + chance.below(26) as u8).collect();
        Filler { letters: letters.into() }
    }

    /// So many bytes of it, without a copy.
    pub(crate) fn bytes(&self, size_bytes: u64) -> Bytes {
        self.letters.slice(..self.size(size_bytes))
    }

    /// So many letters of it.
    pub(crate) fn text(&self, size_bytes: u64) -> &str {
        // Letters are text.
        std::str::from_utf8(&self.letters[..self.size(size_bytes)]).unwrap_or_default()
    }

    fn size(&self, size_bytes: u64) -> usize {
        (size_bytes as usize).min(self.letters.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_as_much_as_is_wanted() {
        let filler = Filler::new(100);
        assert_eq!((filler.bytes(40).len(), filler.text(100).len(), filler.text(101).len()), (40, 100, 100));
        assert!(filler.text(100).bytes().all(|byte| byte.is_ascii_lowercase()));
        assert_eq!(Filler::new(0).bytes(1).len(), 0);
    }
}
