//! A mix from a file:
//!
//! ```toml
//! [queries."orders of a customer"]
//! equal = "CustomerId"       # or a list
//! range = "At"               # optional: a range of this property is wanted
//! length = "7d"              # of times with s, m, h or d, of numbers a number; without it to the end
//! newest = 20                # optional: only so many, those with the latest At
//! per_day = 50000
//! within_ms = 50             # how long one may take; without it 1000
//!
//! [writes."new order"]
//! per_day = 20000            # entities
//! together = "CustomerId"    # optional: written in one transaction are entities that have this in common
//! group = 3                  # how many these are
//! ```
//!
//! What always holds: a key that is not known, or a value that makes no sense, is an error that names its
//! line; a property that the sample does not have is named by [`crate::advise`].

use super::classes::{Mix, Query, Write};
use settings_file::{Section, SettingsFileError, parse};
use std::ops::RangeInclusive;
use toml::de::DeTable;

/// Classes of queries and of writes, at most of each.
const CLASSES_MAX: usize = 256;
const PER_DAY: RangeInclusive<f64> = 0.0..=1e13;
const WITHIN_MS: RangeInclusive<f64> = 0.1..=1e9;
/// Entities of a transaction, at most: the service's bound.
const GROUP: RangeInclusive<f64> = 1.0..=100.0;
const NEWEST: RangeInclusive<u64> = 1..=1_000_000;
const LENGTH: RangeInclusive<f64> = 1e-9..=1e15;

const QUERY_KEYS: [&str; 6] = ["equal", "range", "length", "newest", "per_day", "within_ms"];
const WRITE_KEYS: [&str; 3] = ["per_day", "together", "group"];

type Result<T> = std::result::Result<T, SettingsFileError>;

/// Reads a mix.
pub fn parse_mix(text: &str) -> Result<Mix> {
    let parsed = parse(text)?;
    let file = Section::new(text, "the mix", parsed.get_ref(), &["queries", "writes"])?;
    let mut mix = Mix::default();
    for (name, at, table) in named(&file, "queries")? {
        let section = Section::new(text, "a query", table, &QUERY_KEYS)?;
        mix.queries.push(query(name, at, &section)?);
    }
    for (name, at, table) in named(&file, "writes")? {
        let section = Section::new(text, "a write", table, &WRITE_KEYS)?;
        mix.writes.push(write(name, at, &section)?);
    }
    if mix.queries.is_empty() {
        return Err(file.refuse("queries", "the mix has no queries, such as [queries.one]".to_owned()));
    }
    Ok(mix)
}

/// The tables of a table, in the order of the file: name, where it stands, content.
fn named<'a>(file: &Section<'a>, key: &str) -> Result<Vec<(&'a str, usize, &'a DeTable<'a>)>> {
    let Some((value, at)) = file.value(key) else { return Ok(Vec::new()) };
    let table = value.as_table().ok_or_else(|| file.wrong(key, at, "a table of tables"))?;
    let mut found = Vec::new();
    for (name, value) in table {
        let at = name.span().start;
        let inner = value.get_ref().as_table();
        let inner =
            inner.ok_or_else(|| file.refuse_at(at, format!("{key}.{} must be a table", name.get_ref())))?;
        found.push((name.get_ref().as_ref(), at, inner));
    }
    if found.len() > CLASSES_MAX {
        return Err(file.refuse(key, format!("{key} has more than {CLASSES_MAX} tables")));
    }
    found.sort_by_key(|(_, at, _)| *at);
    Ok(found)
}

fn query(name: &str, at: usize, section: &Section<'_>) -> Result<Query> {
    let missing = |what: &str| section.refuse_at(at, format!("query {name:?}: {what} is missing"));
    let (equal, _) = section.texts("equal")?;
    let range = section.text("range")?.map(|(text, _)| text.to_owned());
    let newest = section.count("newest", NEWEST)?;
    if range.is_none() && (newest.is_some() || section.value("length").is_some()) {
        return Err(missing("range, which length and newest are about,"));
    }
    Ok(Query {
        name: name.to_owned(),
        equal: equal.into_iter().map(str::to_owned).collect(),
        range,
        length: length(section)?,
        newest,
        per_day: section.number("per_day", PER_DAY)?.ok_or_else(|| missing("per_day"))?,
        within_ms: section.number("within_ms", WITHIN_MS)?.unwrap_or(1000.0),
    })
}

fn length(section: &Section<'_>) -> Result<Option<f64>> {
    let Some((value, at)) = section.value("length") else { return Ok(None) };
    let Some(text) = value.as_str() else { return section.number("length", LENGTH) };
    let wrong = || section.wrong("length", at, "a number, or a time such as 90s, 15m, 24h or 7d");
    let (digits, unit) = text.split_at(text.len().saturating_sub(text.ends_with(char::is_alphabetic).into()));
    let seconds = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let length = digits.parse::<f64>().ok().map(|number| number * seconds);
    length.filter(|length| LENGTH.contains(length)).ok_or_else(wrong).map(Some)
}

fn write(name: &str, at: usize, section: &Section<'_>) -> Result<Write> {
    let (together, _) = section.texts("together")?;
    let group = section.number("group", GROUP)?;
    if together.is_empty() && group.is_some_and(|group| group > 1.0) {
        let what =
            format!("write {name:?}: group needs together: what entities of a transaction have in common");
        return Err(section.refuse_at(at, what));
    }
    let per_day = section.number("per_day", PER_DAY)?;
    Ok(Write {
        name: name.to_owned(),
        per_day: per_day
            .ok_or_else(|| section.refuse_at(at, format!("write {name:?}: per_day is missing")))?,
        together: together.into_iter().map(str::to_owned).collect(),
        group: group.unwrap_or(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_with_everything() {
        let mix = parse_mix(
            "[queries.\"a b\"]\nequal = [\"C\", \"D\"]\nrange = \"At\"\nlength = \"36h\"\nnewest = 20\nper_day = 5.5\n\
             within_ms = 50\n[queries.all]\nper_day = 1\n[writes.w]\nper_day = 7\ntogether = \"C\"\ngroup = 3\n",
        )
        .expect("a good mix");
        let expected = Query {
            name: "a b".to_owned(),
            equal: vec!["C".to_owned(), "D".to_owned()],
            range: Some("At".to_owned()),
            length: Some(129_600.0),
            newest: Some(20),
            per_day: 5.5,
            within_ms: 50.0,
        };
        assert_eq!(mix.queries[0], expected);
        assert_eq!((mix.queries.len(), mix.queries[1].within_ms), (2, 1000.0));
        assert_eq!((mix.writes[0].group, mix.written_per_day()), (3.0, 7.0));
    }

    #[test]
    fn each_mistake_names_its_line() {
        for (text, expected) in [
            ("", "line 1: the mix has no queries, such as [queries.one]"),
            ("[query.a]\n", "line 1: the mix has no key \"query\""),
            ("[queries.a]\nequal = \"C\"\n", "line 1: query \"a\": per_day is missing"),
            (
                "[queries.a]\nper_day = 1\nnewest = 2\n",
                "line 1: query \"a\": range, which length and newest are about, is missing",
            ),
            ("[queries.a]\nper_day = -1\n", "line 2: "),
            ("[queries.a]\nper_day = 1\nrange = \"A\"\nlength = \"1w\"\n", "line 4: "),
            ("[queries.a]\nper_day = 1\nrange = \"A\"\nlength = \"d\"\n", "line 4: "),
            (
                "[queries.a]\nper_day = 1\n[writes.b]\nper_day = 1\ngroup = 2\n",
                "line 3: write \"b\": group needs",
            ),
            ("[queries.a]\nper_day = 1\n[writes]\nb = 1\n", "line 4: writes.b must be a table"),
        ] {
            let error = parse_mix(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
