//! Which shard holds which key, and since when: a shard map without I/O.
//!
//! A [`Catalog`] has shards (databases, accounts) and maps that share them. A [`ShardMap`] has up to three
//! layers of mappings for keys of one [`KeyType`]: pins of single keys, over ranges, over a hash into virtual
//! shards. Each mapping has a [`Placement`]: a shard, a state (online, read-only, offline), and the epoch
//! since which it is so.
//!
//! ```
//! use shard_map::{
//!     Catalog, Change, Hashed, KeyHash, KeyKind, KeyType, MapBuilder, MapChange, Name, Selection, Shard,
//! };
//!
//! let [one, two] = [Name::parse("one")?, Name::parse("two")?];
//! let tenants = Name::parse("tenants")?;
//! let mut map = MapBuilder::new(tenants.clone(), KeyType::new([KeyKind::Int64])?);
//! map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 64 })?.spread(&[one.clone(), two.clone()])?;
//! let catalog = Catalog::new(Name::parse("app")?, [7; 16]).apply(&[
//!     Change::AddShard(Shard::new(one.clone(), "postgres://db1/app")),
//!     Change::AddShard(Shard::new(two.clone(), "postgres://db2/app")),
//!     Change::AddMap(map.build()?),
//! ])?;
//!
//! // A large tenant gets a shard of its own, and the change can be undone.
//! let key = vec![17_i64.into()];
//! let pin = MapChange::Pin { key: key.clone(), shard: two.clone() };
//! let pinned = catalog.catalog.apply(&[Change::Map(tenants.clone(), pin)])?;
//! assert_eq!(pinned.catalog.map("tenants").expect("it").route(&key)?.placement.shard, two);
//! let undone = pinned.catalog.undo(&pinned.diff)?;
//! assert_eq!(undone.catalog.map("tenants").expect("it").pins().len(), 0);
//! assert_eq!(undone.catalog.epoch().0, 3);
//! # let _ = Selection::Virtual(0, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What always holds:
//!
//! * a key has at most one mapping, and exactly one unless its map has pins only;
//! * encoded keys are ordered as their values are;
//! * a catalog that was read, changed or patched is right as a whole, or there is an error that names both
//!   sides of what does not fit;
//! * if a key's mapping at one epoch is there at a later one with the same `since`, it is still the key's
//!   mapping, on the same shard in the same state: so a shard that compares `since` needs to know nothing
//!   else of a client's map;
//! * a frozen mapping keeps its keys and its shard until it is thawed (`catalog/frozen.rs`);
//! * a change applied and undone gives the catalog back, all but epochs and what is frozen.
//!
//! Absent: I/O, clock, chance, a runtime; data of shards.
//!
//! | folder | content |
//! |---|---|
//! | `key/` | values of keys, their encoding and hash |
//! | `catalog/` | shards, maps, placements, routes; where epochs rise |
//! | `change/` | changes: one operation, one file |
//! | `diff/` | what differs between epochs; patch and undo |
//! | `document/` | a catalog as JSON |

mod catalog;
mod change;
mod diff;
mod document;
mod key;
mod limits;
mod name;

pub use catalog::catalog::{Catalog, CatalogError};
pub use catalog::frozen::Frozen;
pub use catalog::map::{Hashed, Range, ShardMap, VirtualShards};
pub use catalog::map_builder::MapBuilder;
pub use catalog::map_error::MapError;
pub use catalog::mapping_id::MappingId;
pub use catalog::placement::{Epoch, Placement, State};
pub use catalog::route::{Route, RouteError};
pub use catalog::shard::{Shard, ShardError, has_password};
pub use change::apply::{Change, Changed, MapChange, Selection};
pub use change::error::ChangeError;
pub use diff::difference::Diff;
pub use diff::edit::{
    Bytes, FrozenEdit, MapEdit, MapHeader, PinEdit, RangeBody, RangeEdit, ShardEdit, VirtualEdit,
};
pub use diff::patch::PatchError;
pub use diff::undo::UndoError;
pub use document::error::DocumentError;
pub use document::format::FORMAT;
pub use key::encoded::{Bound, EncodedKey};
pub use key::error::KeyError;
pub use key::hash::{KeyHash, VIRTUAL_SHARDS_MAX};
pub use key::key_type::KeyType;
pub use key::kind::KeyKind;
pub use key::value::KeyValue;
pub use limits::{
    COLUMNS_MAX, EPOCH_MAX, FROZEN_BY_BYTES_MAX, KEY_BYTES_MAX, LOCATION_BYTES_MAX, MAPS_MAX, PINS_MAX,
    RANGES_MAX, SHARDS_MAX, TAG_BYTES_MAX, TAGS_MAX,
};
pub use name::{NAME_LEN_MAX, Name, NameError};
