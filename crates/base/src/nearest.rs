//! The nearest of some names to one that is none of them: "did you mean".

/// Changes of a letter up to which a name is near, for each so many of its letters.
const LETTERS_PER_CHANGE: usize = 3;

/// Letters from which on the beginning of a name stands for it.
const BEGINNING_LETTERS_MIN: usize = 3;

/// The name that is nearest to `given`, if one is near or begins with it.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let changes_max = given.chars().count().div_ceil(LETTERS_PER_CHANGE);
    let distances = names.into_iter().map(|name| (changes(&given, &name.to_lowercase()), name));
    let (changes, name) = distances.min_by_key(|(changes, _)| *changes)?;
    let begins = given.len() >= BEGINNING_LETTERS_MIN && name.to_lowercase().starts_with(&given);
    (changes <= changes_max || begins).then_some(name)
}

/// Letters to add, to leave out or to replace, so that one text becomes the other.
pub fn changes(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..to.len() {
            let replaced = diagonal + usize::from(to[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_near() {
        let names = ["probability", "every", "status", "delay_ms"];
        for (given, expected) in [
            ("probabilty", Some("probability")),
            ("Every", Some("every")),
            ("delay", Some("delay_ms")),
            ("delay-ms", Some("delay_ms")),
            ("stauts", Some("status")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, names), expected, "{given}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
