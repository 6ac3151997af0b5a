//! A map as a person describes it, in TOML:
//!
//! ```toml
//! catalog = "app"
//!
//! [shards.one]
//! location = "postgres://app@db1/app"
//! tags = { region = "eu" }
//!
//! [maps.tenants]
//! key = ["text", "int64"]              # kinds of the columns
//! generated = false                    # whether the database or the clock makes keys in rising order
//! changes = false                      # whether a row's key may change
//! pins = [{ key = ["eu", 17], shard = "one" }]
//! ranges = [{ high = ["m"], shard = "one" }, { low = ["m"], shard = "one" }]
//! hash = { columns = 2, count = 1024, shards = ["one"] }
//! ```
//!
//! What always holds: the first mistake is one error with its line; an unknown key is named with the nearest.

use crate::keys::key_of;
use settings_file::{Section, SettingsFileError, meant, parse};
use shard_map::{
    Change, Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, Name, Placement, Shard, ShardMap,
    VIRTUAL_SHARDS_MAX,
};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

const FILE_KEYS: [&str; 3] = ["catalog", "shards", "maps"];
const SHARD_KEYS: [&str; 2] = ["location", "tags"];
const MAP_KEYS: [&str; 6] = ["key", "generated", "changes", "pins", "ranges", "hash"];

/// What a file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The catalog's name.
    pub catalog: Name,
    /// Its shards.
    pub shards: Vec<Shard>,
    /// Its maps.
    pub maps: Vec<MapDescription>,
}

/// A map, and what is declared of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDescription {
    /// The map.
    pub map: ShardMap,
    /// Whether keys are made in rising order: an identity, a sequence, a time stamp.
    pub is_generated: bool,
    /// Whether a row's key may change.
    pub may_change: bool,
}

type Result<T> = std::result::Result<T, SettingsFileError>;

impl Description {
    /// Reads a description.
    pub fn parse(text: &str) -> Result<Self> {
        let parsed = parse(text)?;
        let file = Section::new(text, "the description", parsed.get_ref(), &FILE_KEYS)?;
        let (catalog, at) = file.text("catalog")?.ok_or_else(|| file.refuse("", missing("catalog")))?;
        let catalog = Name::parse(catalog).map_err(|error| file.refuse_at(at, error.to_string()))?;
        let shards =
            named(&file, "shards")?.map(|(name, table)| shard(text, name, table)).collect::<Result<_>>()?;
        let maps =
            named(&file, "maps")?.map(|(name, table)| map(text, name, table)).collect::<Result<_>>()?;
        Ok(Description { catalog, shards, maps })
    }

    /// What makes an empty catalog one as described.
    pub fn changes(&self) -> Vec<Change> {
        let shards = self.shards.iter().cloned().map(Change::AddShard);
        shards.chain(self.maps.iter().map(|described| Change::AddMap(described.map.clone()))).collect()
    }
}

fn missing(key: &str) -> String {
    format!("{key} is missing")
}

/// A table's name, and where it stands.
type Named<'a> = ((&'a str, usize), &'a DeTable<'a>);

/// The tables of a table, in the order of the file.
fn named<'a>(file: &Section<'a>, key: &str) -> Result<impl Iterator<Item = Named<'a>> + use<'a>> {
    let mut found = Vec::new();
    if let Some((value, at)) = file.value(key) {
        let table = value.as_table().ok_or_else(|| file.wrong(key, at, "a table"))?;
        for (name, value) in table {
            let at = name.span().start;
            let inner = value.get_ref().as_table();
            let inner = inner
                .ok_or_else(|| file.refuse_at(at, format!("{key}.{} must be a table", name.get_ref())))?;
            found.push(((name.get_ref().as_ref(), at), inner));
        }
    }
    found.sort_by_key(|((_, at), _)| *at);
    Ok(found.into_iter())
}

fn shard(text: &str, (name, at): (&str, usize), table: &DeTable<'_>) -> Result<Shard> {
    let section = Section::new(text, "a shard", table, &SHARD_KEYS)?;
    let refuse = |what: String| section.refuse_at(at, what);
    let name = Name::parse(name).map_err(|error| refuse(error.to_string()))?;
    let (location, _) = section.text("location")?.ok_or_else(|| refuse(missing("location")))?;
    let mut shard = Shard::new(name, location);
    if let Some((tags, at)) = section.value("tags") {
        let wrong = || section.wrong("tags", at, "a table of texts");
        for (key, value) in tags.as_table().ok_or_else(wrong)? {
            let name =
                Name::parse(key.get_ref()).map_err(|error| section.refuse_at(at, error.to_string()))?;
            shard.tags.insert(name, value.get_ref().as_str().ok_or_else(wrong)?.to_owned());
        }
    }
    Ok(shard)
}

fn map(text: &str, (name, at): (&str, usize), table: &DeTable<'_>) -> Result<MapDescription> {
    let section = Section::new(text, "a map", table, &MAP_KEYS)?;
    let refuse = |what: String| section.refuse_at(at, what);
    let name = Name::parse(name).map_err(|error| refuse(error.to_string()))?;
    let key = key_type(&section)?.ok_or_else(|| refuse(missing("key")))?;
    let mut map = MapBuilder::new(name, key.clone());
    for pin in tables(&section, "pins", &["key", "shard"])? {
        let values = values(&pin, "key", &key)?.ok_or_else(|| pin.refuse("", missing("key")))?;
        map.pin(&values, placement(&pin)?).map_err(|error| pin.refuse("key", error.to_string()))?;
    }
    for range in tables(&section, "ranges", &["low", "high", "shard"])? {
        let low = values(&range, "low", &key)?.unwrap_or_default();
        let high = values(&range, "high", &key)?;
        let added = map.range(&low, high.as_deref(), placement(&range)?);
        added.map_err(|error| range.refuse("low", error.to_string()))?;
    }
    if let Some(hash) = section.section("hash", &["columns", "count", "shards"])? {
        let columns =
            hash.count("columns", 1..=key.kinds().len() as u64)?.unwrap_or(key.kinds().len() as u64);
        let count = hash.count("count", 1..=u64::from(VIRTUAL_SHARDS_MAX))?;
        let count = count.ok_or_else(|| hash.refuse("count", missing("count")))?;
        // Both are in the ranges above.
        let hashed = Hashed { hash: KeyHash::Sha256V1, columns: columns as usize, count: count as u32 };
        let (shards, at) = hash.texts("shards")?;
        let shards: std::result::Result<Vec<Name>, _> = shards.into_iter().map(Name::parse).collect();
        let shards = shards.map_err(|error| hash.refuse_at(at, error.to_string()))?;
        let spread = map.hash(hashed).and_then(|map| map.spread(&shards));
        spread.map_err(|error| hash.refuse("shards", error.to_string()))?;
    }
    Ok(MapDescription {
        map: map.build().map_err(|error| refuse(error.to_string()))?,
        is_generated: section.flag("generated")?.unwrap_or_default(),
        may_change: section.flag("changes")?.unwrap_or_default(),
    })
}

fn key_type(section: &Section<'_>) -> Result<Option<KeyType>> {
    let (names, at) = section.texts("key")?;
    if names.is_empty() {
        return Ok(None);
    }
    let kind = |name: &&str| {
        let known = || KeyKind::ALL.into_iter().map(KeyKind::name);
        let found = KeyKind::ALL.into_iter().find(|kind| kind.name() == *name);
        found.ok_or_else(|| {
            section.refuse_at(at, format!("there is no kind {name:?} of keys{}", meant(name, known())))
        })
    };
    let kinds = names.iter().map(kind).collect::<Result<Vec<_>>>()?;
    KeyType::new(kinds).map(Some).map_err(|error| section.refuse_at(at, error.to_string()))
}

/// The tables of a list.
fn tables<'a>(section: &Section<'a>, key: &str, known: &[&'static str]) -> Result<Vec<Section<'a>>> {
    let Some((value, at)) = section.value(key) else { return Ok(Vec::new()) };
    let wrong = || section.wrong(key, at, "a list of tables");
    let list: &'a DeArray<'a> = value.as_array().ok_or_else(wrong)?;
    let table = |value: &'a Spanned<DeValue<'a>>| {
        let table = value.get_ref().as_table().ok_or_else(wrong)?;
        Section::new(section.text, "a mapping", table, known)
    };
    list.iter().map(table).collect()
}

/// The values of a key or bound: one, or a list.
fn values(section: &Section<'_>, name: &str, key: &KeyType) -> Result<Option<Vec<KeyValue>>> {
    let Some((value, at)) = section.value(name) else { return Ok(None) };
    let text = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        _ => Err(section.wrong(name, at, "a text, a whole number, or a list of them")),
    };
    let texts: Vec<String> = match value {
        DeValue::Array(list) => list.iter().map(|value| text(value.get_ref())).collect::<Result<_>>()?,
        one => vec![text(one)?],
    };
    key_of(key, &texts).map(Some).map_err(|error| section.refuse_at(at, error.to_string()))
}

fn placement(section: &Section<'_>) -> Result<Placement> {
    let (shard, at) = section.text("shard")?.ok_or_else(|| section.refuse("", missing("shard")))?;
    let name = Name::parse(shard).map_err(|error| section.refuse_at(at, error.to_string()))?;
    Ok(Placement::on(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str = "catalog = \"app\"\n[shards.one]\nlocation = \"x\"\ntags = { region = \"eu\" }\n[shards.two]\n\
        location = \"y\"\n[maps.tenants]\nkey = [\"text\", \"int64\"]\npins = [{ key = [\"eu\", 17], shard = \"one\" }]\n\
        ranges = [{ low = \"a\", high = [\"b\", 3], shard = \"two\" }]\nhash = { count = 16, shards = [\"one\", \"two\"] }\n";

    #[test]
    fn a_description_becomes_changes_that_apply() {
        let described = Description::parse(APP).expect("a description");
        let catalog = shard_map::Catalog::new(described.catalog.clone(), [1; 16]);
        let catalog = catalog.apply(&described.changes()).expect("it applies").catalog;
        let route = |tenant: &str, number: i64| {
            let map = catalog.map("tenants").expect("the map");
            map.route(&[tenant.into(), number.into()]).expect("a route").placement.shard.to_string()
        };
        assert_eq!([route("eu", 17), route("a", 1), route("b", 2)], ["one", "two", "two"]);
        assert_eq!(catalog.shard("one").expect("it").tags.len(), 1);
    }

    #[test]
    fn mistakes_name_their_line_and_the_nearest_name() {
        for (text, expected) in [
            ("[shards]", "line 1: catalog is missing"),
            (
                "catalog = \"a\"\nshard = 1",
                "line 2: the description has no key \"shard\"; did you mean shards?",
            ),
            (
                "catalog = \"a\"\n[shards.x]\nlocaton = \"y\"",
                "line 3: a shard has no key \"locaton\"; did you mean location?",
            ),
            (
                "catalog = \"a\"\n[maps.m]\nkey = \"int3\"",
                "line 3: there is no kind \"int3\" of keys; did you mean int32?",
            ),
            (
                "catalog = \"a\"\n[maps.m]\nkey = \"int32\"\npins = [{ key = \"x\", shard = \"one\" }]",
                "line 4: ",
            ),
            (
                "catalog = \"a\"\n[maps.m]\nkey = \"int32\"\nranges = [{ low = 0, shard = \"one\" }]",
                "line 2: map `m`",
            ),
            (
                "catalog = \"a\"\n[maps.m]\nkey = \"int32\"\nhash = { shards = \"one\" }",
                "line 4: count is missing",
            ),
        ] {
            let error = Description::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
