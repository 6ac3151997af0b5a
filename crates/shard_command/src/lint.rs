//! Advice about a map's shard key: whether new keys come in rising order to one shard, whether keys change,
//! whether few keys or shards get most of the load.
//!
//! What always holds: an advice names its reason, in figures if it comes from a sample.

use crate::description::MapDescription;
use crate::sample::Sample;
use shard_map::{EncodedKey, KeyKind, Name};
use std::collections::BTreeMap;
use std::fmt;

/// A sample with fewer keys says nothing.
const SAMPLE_KEYS_MIN: usize = 20;
/// Of neighbours in a sample, the share that rises from which on keys are taken as generated in order.
const RISING_SHARE: f64 = 0.95;
/// Share of a sample that one key may have.
const KEY_SHARE_MAX: f64 = 0.1;
/// How many times the mean a shard may have of a sample.
const SHARD_SHARE_MAX: f64 = 1.5;
/// Distinct keys a shard from which on shards can be balanced.
const KEYS_A_SHARD_MIN: usize = 10;

/// A warning about a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The map.
    pub map: Name,
    /// Which rule: `auto-increment`, `changing`, `skewed-key`, `skewed-shard`, `few-keys`.
    pub rule: &'static str,
    /// Why, and what helps.
    pub text: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "map `{}`: {}: {}", self.map, self.rule, self.text)
    }
}

/// Judges a map by what is declared of it, and by a sample of its keys.
pub fn lint(described: &MapDescription, sample: Option<&Sample>) -> Vec<Advice> {
    let mut found = declared(described);
    let sample = sample.filter(|sample| sample.keys.len() >= SAMPLE_KEYS_MIN);
    if let Some(sample) = sample {
        found.extend(sampled(described, sample, found.iter().any(|advice| advice.0 == "auto-increment")));
    }
    let map = described.map.name();
    found.into_iter().map(|(rule, text)| Advice { map: map.clone(), rule, text }).collect()
}

type Found = (&'static str, String);

fn declared(described: &MapDescription) -> Vec<Found> {
    let mut found = Vec::new();
    let map = &described.map;
    let is_ranged = map.ranges().len() > 0;
    if described.is_generated && is_ranged {
        let why = "keys are generated in rising order, so all new ones come to the last range; hash them, or put a column \
                   before them";
        found.push(("auto-increment", why.to_owned()));
    } else if described.is_generated {
        let why = "keys are generated: two shards that generate them by themselves make the same ones; make them at one \
                   place, or use Guids";
        found.push(("auto-increment", why.to_owned()));
    } else if is_ranged && map.key_type().kinds().first() == Some(&KeyKind::DateTime) {
        let why = "ranges by time: all that is new comes to the last one; that is right for archives, else hash the key";
        found.push(("auto-increment", why.to_owned()));
    }
    if described.may_change {
        let why = "a row whose key changes belongs to another shard at once, and no transaction spans both; choose a \
                   column that never changes";
        found.push(("changing", why.to_owned()));
    }
    found
}

fn sampled(described: &MapDescription, sample: &Sample, is_known_to_rise: bool) -> Vec<Found> {
    let map = &described.map;
    let encoded: Vec<EncodedKey> =
        sample.keys.iter().filter_map(|key| map.key_type().encode(key).ok()).collect();
    let count = encoded.len();
    let mut found = Vec::new();
    let rising = encoded.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let share = |part: usize| part as f64 / count.max(1) as f64;
    if !is_known_to_rise && map.ranges().len() > 0 && share(rising + 1) >= RISING_SHARE {
        let why = format!(
            "{rising} of {count} keys of the sample are above the one before: if it is in the order in which they were \
             made, all new keys come to the last range; hash them"
        );
        found.push(("auto-increment", why));
    }
    let mut by_key: BTreeMap<&EncodedKey, usize> = BTreeMap::new();
    let mut by_shard: BTreeMap<Name, usize> =
        map.placements().map(|placement| (placement.shard.clone(), 0)).collect();
    for key in &encoded {
        *by_key.entry(key).or_default() += 1;
        if let Some(route) = map.route_encoded(key) {
            *by_shard.entry(route.placement.shard.clone()).or_default() += 1;
        }
    }
    let shard_count = by_shard.len();
    if by_key.len() < KEYS_A_SHARD_MIN * shard_count && by_key.len() * 2 < count {
        let why = format!(
            "the sample has {} different keys for {shard_count} shards, too few to balance; choose a column with more \
             values",
            by_key.len()
        );
        found.push(("few-keys", why));
    } else if let Some((key, most)) = by_key.into_iter().max_by_key(|(_, most)| *most)
        && share(most) > KEY_SHARE_MAX
    {
        let percent = share(most) * 100.0;
        let why = format!(
            "key {} is {percent:.0} % of the sample; pin it to a shard of its own",
            map.key_text(key)
        );
        found.push(("skewed-key", why));
    }
    if let Some((shard, most)) = by_shard.into_iter().max_by_key(|(_, most)| *most)
        && shard_count > 1
        && most as f64 > SHARD_SHARE_MAX * count as f64 / shard_count as f64
    {
        let percent = share(most) * 100.0;
        let why = format!(
            "shard `{shard}` gets {percent:.0} % of the sample, and {:.0} % would be even; place its mappings anew",
            100.0 / shard_count as f64
        );
        found.push(("skewed-shard", why));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;

    const HEAD: &str = "catalog = \"a\"\n[maps.m]\nkey = \"int64\"\n";
    const HASH: &str = "hash = { count = 64, shards = [\"one\", \"two\"] }\n";
    const RANGES: &str = "ranges = [{ high = 500, shard = \"one\" }, { low = 500, shard = \"two\" }]\n";

    fn rules(rest: &str, keys: Option<Vec<i64>>) -> Vec<&'static str> {
        let described = Description::parse(&format!("{HEAD}{rest}")).expect("a description").maps.remove(0);
        let sample = keys.map(|keys| Sample { keys: keys.into_iter().map(|key| vec![key.into()]).collect() });
        lint(&described, sample.as_ref()).into_iter().map(|advice| advice.rule).collect()
    }

    #[test]
    fn what_is_declared_and_what_a_sample_shows() {
        let mixed = |count: i64| (0..count).map(|number| number * 7919 % 1000).collect::<Vec<_>>();
        let rising = || (0..1000).collect::<Vec<_>>();
        let large = || mixed(500).into_iter().chain(std::iter::repeat_n(7, 200)).collect::<Vec<_>>();
        for (rest, keys, expected) in [
            (HASH.to_owned(), None, vec![]),
            (HASH.to_owned(), Some(rising()), vec![]),
            (RANGES.to_owned(), Some(mixed(1000)), vec![]),
            (format!("generated = true\n{RANGES}"), Some(rising()), vec!["auto-increment"]),
            (format!("generated = true\n{HASH}"), None, vec!["auto-increment"]),
            (RANGES.to_owned(), Some(rising()), vec!["auto-increment"]),
            (format!("changes = true\n{HASH}"), None, vec!["changing"]),
            (HASH.to_owned(), Some(large()), vec!["skewed-key"]),
            (
                HASH.to_owned(),
                Some(mixed(1000).iter().map(|key| key % 12).collect()),
                vec!["few-keys", "skewed-shard"],
            ),
            (RANGES.to_owned(), Some(mixed(1000).iter().map(|key| key / 2).collect()), vec!["skewed-shard"]),
            (RANGES.to_owned(), Some((0..10).collect()), vec![]),
        ] {
            assert_eq!(rules(&rest, keys), expected, "{rest}");
        }
    }
}
