//! A filter with a caret under the place where it can't be read.

/// Characters of the filter that are shown at most, and how many of them are before the place.
const SHOWN_MAX: usize = 96;
const SHOWN_BEFORE: usize = 64;
/// Stands for what is left out.
const ELLIPSIS: char = '…';

/// The filter, or what of it is near the place, and a line with a caret under the place, which counts UTF-16
/// units from 0. Control characters are shown as blanks. Each character is taken to be one column wide.
pub fn caret(filter: &str, position: usize) -> [String; 2] {
    let shown = |one: char| if one.is_control() { ' ' } else { one };
    let characters: Vec<char> = filter.chars().map(shown).collect();
    let (mut units, mut at) = (0, 0);
    while at < characters.len() && units < position {
        units += characters[at].len_utf16();
        at += 1;
    }
    let from = if characters.len() <= SHOWN_MAX { 0 } else { at.saturating_sub(SHOWN_BEFORE) };
    let to = characters.len().min(from + SHOWN_MAX);
    let mut line = String::new();
    if from > 0 {
        line.push(ELLIPSIS);
    }
    line.extend(&characters[from..to]);
    if to < characters.len() {
        line.push(ELLIPSIS);
    }
    let column = at - from + usize::from(from > 0);
    [line, " ".repeat(column) + "^"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::Filter;

    #[test]
    fn the_caret_is_under_the_place() {
        for (filter, column) in [
            ("A eqq 1", 2),
            ("PartitionKey eq 'a' and", 23),
            ("", 0),
            ("'\u{1f600}' eq A and A eq B", 15),
            ("A\teq\n B", 2),
        ] {
            let position = Filter::parse(filter).err().and_then(|error| error.position()).unwrap_or(0);
            let [line, mark] = caret(filter, position);
            assert_eq!(mark, " ".repeat(column) + "^", "{line}");
            assert_eq!(line.chars().count(), filter.chars().count());
            assert!(!line.contains(['\t', '\n']));
        }
    }

    #[test]
    fn of_a_long_filter_the_part_near_the_place_is_shown() {
        let filter = format!("A eq '{}' andd B eq '{}'", "x".repeat(200), "y".repeat(200));
        let position = Filter::parse(&filter).expect_err("andd").position().expect("a place");
        let [line, mark] = caret(&filter, position);
        assert!(line.starts_with(ELLIPSIS) && line.ends_with(ELLIPSIS));
        assert_eq!(line.chars().count(), SHOWN_MAX + 2);
        let under: String = line.chars().skip(mark.len() - 1).take(4).collect();
        assert_eq!(under, "andd");
    }
}
