//! A text between two others, about in the middle: where to look for keys next.
//!
//! What always holds: what is found lies strictly between both by code units and by code points, so that
//! services of either order divide their rows there in the same way; it has only characters that keys may
//! have and that need no escape, beside those of the two texts.

use super::key::is_plain;

/// Characters of the text beyond those that both have in common, at most.
const DEPTH_MAX: usize = 64;

/// Characters for new texts, in their order.
fn letters() -> impl DoubleEndedIterator<Item = char> + Clone {
    ('!'..='~').filter(|letter| !"#%&'+/?\\".contains(*letter))
}

/// A text behind `low` and before `high`, which may be open; none if there is no such text of these letters.
pub(crate) fn midpoint(low: &str, high: Option<&str>) -> Option<String> {
    if !is_plain(low) || high.is_some_and(|high| !is_plain(high) || high <= low) {
        return None;
    }
    let (low, high): (Vec<char>, Option<Vec<char>>) =
        (low.chars().collect(), high.map(|high| high.chars().collect()));
    let common =
        high.as_ref().map_or(0, |high| low.iter().zip(high).take_while(|(low, high)| low == high).count());
    let mut text: String = low[..common].iter().collect();
    let mut high = high.as_ref().map(|high| &high[common..]);
    for at in common..common + DEPTH_MAX {
        let below = low.get(at).copied();
        let above = high.and_then(|high| high.first().copied());
        let between: Vec<char> = letters()
            .filter(|letter| below.is_none_or(|below| *letter > below))
            .filter(|letter| high.is_none() || above.is_some_and(|above| *letter < above))
            .collect();
        if let Some(letter) = between.get(between.len() / 2) {
            text.push(*letter);
            return Some(text);
        }
        match (below, high) {
            // A beginning of the upper text is before it.
            (_, Some([first, _, ..])) if below.is_none_or(|below| below < *first) => {
                text.push(*first);
                return Some(text);
            }
            // Behind the lower text's character there is no upper bound any more.
            (Some(below), _) => {
                text.push(below);
                high = None;
            }
            (None, _) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn middles_are_between() {
        for (low, high, expected) in [
            ("", None, Some("S")),
            ("p", None, Some("x")),
            ("p1", Some("p9"), Some("p5")),
            ("p1", Some("p2"), Some("p1S")),
            ("p19", Some("p2"), Some("p1]")),
            ("p", Some("p!"), None),
            ("p", Some("p!!"), Some("p!")),
            ("a", Some("bc"), Some("b")),
            ("~", None, Some("~S")),
            ("b", Some("a"), None),
            ("a", Some("a"), None),
            ("\u{e000}", None, None),
        ] {
            assert_eq!(midpoint(low, high).as_deref(), expected, "{low} {high:?}");
        }
    }

    proptest! {
        #[test]
        fn a_middle_is_between(low in "[ -~é]{0,6}", high in proptest::option::of("[ -~é]{0,6}")) {
            if let Some(middle) = midpoint(&low, high.as_deref()) {
                prop_assert!(middle > low && high.is_none_or(|high| middle < high));
            }
        }

        /// Halving comes to an end, wherever the key is.
        #[test]
        fn a_key_is_found_by_halving(key in "[0-9a-z]{1,8}") {
            let (mut low, mut high) = (String::new(), None);
            for _ in 0..100 {
                let Some(middle) = midpoint(&low, high.as_deref()) else { return Ok(()) };
                if middle <= key { low = middle } else { high = Some(middle) }
            }
            prop_assert!(false, "{low} {high:?}");
        }
    }
}
