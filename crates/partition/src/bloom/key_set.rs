//! Which of a few keys, by their places in a list: bits of one word, so that a look-up allocates nothing for
//! them. What always holds: a place is less than [`KeySet::COUNT_MAX`].

/// Places in a list of [`KeySet::COUNT_MAX`] keys at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeySet(u128);

impl KeySet {
    /// Keys that a list may have: more than a group of changes has.
    pub(crate) const COUNT_MAX: usize = u128::BITS as usize;

    /// Adds the key at `at`.
    pub(crate) fn insert(&mut self, at: usize) {
        self.0 |= 1 << at;
    }

    /// Takes the key at `at` out.
    pub(crate) fn remove(&mut self, at: usize) {
        self.0 &= !(1 << at);
    }

    /// Those that are in both.
    pub(crate) fn intersection(self, other: KeySet) -> KeySet {
        KeySet(self.0 & other.0)
    }

    #[cfg(test)]
    pub(crate) fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The places in it, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> + Clone {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let at = rest.trailing_zeros() as usize;
            // Clears the lowest bit.
            rest &= rest.checked_sub(1)?;
            Some(at)
        })
    }

    /// The keys of it for which this holds.
    pub(crate) fn filtered(self, holds: impl Fn(usize) -> bool) -> KeySet {
        self.iter().filter(|at| holds(*at)).collect()
    }
}

impl FromIterator<usize> for KeySet {
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        places.into_iter().fold(KeySet::default(), |mut set, at| {
            set.insert(at);
            set
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        for places in [vec![], vec![0], vec![127], vec![0, 63, 64, 127], (0..128).collect()] {
            let set: KeySet = places.iter().copied().collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), places);
            assert_eq!((set.len(), set.is_empty()), (places.len(), places.is_empty()));
            assert!((0..KeySet::COUNT_MAX).all(|at| set.has(at) == places.contains(&at)));
            let odd: Vec<usize> = places.iter().copied().filter(|at| at % 2 == 1).collect();
            let odd: KeySet = odd.into_iter().collect();
            assert_eq!((set.filtered(|at| at % 2 == 1), set.intersection(odd)), (odd, odd));
            let mut rest = set;
            odd.iter().for_each(|at| rest.remove(at));
            assert_eq!(rest, set.filtered(|at| at % 2 == 0));
        }
    }
}
