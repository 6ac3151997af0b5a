//! Load by place: by partition of a table, or by blob.
//!
//! What always holds: no more places are counted than were loaded, and at most [`PLACES_MAX`]; what is done
//! elsewhere is one sum.

/// Places that are counted apart.
pub(crate) const PLACES_MAX: u64 = 10_000;

/// Items that were read or written, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heat {
    counts: Vec<u64>,
    elsewhere: u64,
}

impl Heat {
    /// For so many places.
    pub(crate) fn new(places: u64) -> Self {
        Heat { counts: vec![0; places.min(PLACES_MAX) as usize], elsewhere: 0 }
    }

    pub(crate) fn count(&mut self, place: Option<usize>, items: u64) {
        match place.and_then(|place| self.counts.get_mut(place)) {
            Some(count) => *count += items,
            None => self.elsewhere += items,
        }
    }

    pub(crate) fn add(&mut self, other: &Heat) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.elsewhere += other.elsewhere;
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.elsewhere = 0;
    }

    /// Whether places are distinguished at all.
    pub(crate) fn tells_apart(&self) -> bool {
        !self.counts.is_empty()
    }

    /// The share of the load that the place with most of it has; none without load. What is done elsewhere
    /// counts as one place: under keys that only rise or fall it is one at a time.
    pub(crate) fn hottest_share(&self) -> Option<f64> {
        let all = self.counts.iter().sum::<u64>() + self.elsewhere;
        let hottest = self.counts.iter().copied().max().unwrap_or(0).max(self.elsewhere);
        (all > 0).then(|| hottest as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_place_has_its_share() {
        let mut heat = Heat::new(3);
        assert_eq!(heat.hottest_share(), None);
        heat.count(Some(0), 1);
        heat.count(Some(2), 6);
        heat.count(None, 1);
        assert_eq!(heat.hottest_share(), Some(0.75));
        heat.count(Some(7), 24);
        assert_eq!(heat.hottest_share(), Some(25.0 / 32.0));
        let mut more = heat.clone();
        more.add(&heat);
        assert_eq!(more.hottest_share(), heat.hottest_share());
        heat.clear();
        assert_eq!(heat, Heat::new(3));
        assert_eq!(Heat::new(u64::MAX).counts.len() as u64, PLACES_MAX);
    }
}
