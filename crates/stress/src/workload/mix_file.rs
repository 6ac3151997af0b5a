//! A mix from a file:
//!
//! ```toml
//! [operations]           # weights: operations of the service, see `operation.rs`
//! get = 80
//! insert = 15
//! query = 5
//!
//! [sizes]
//! item_bytes = 1024      # or a list, taken in turn
//! batch_entities = 50
//! query_rows = 20
//! messages = 16
//! invisible_s = 30
//! range_bytes = 65536
//! ```
//!
//! What always holds: a key that is not known, or a value that makes no sense, is an error that names its
//! line.

use super::mix::{ITEM_SIZES_MAX, Mix, Sizes, item_size_range};
use super::operation::{operation_named, operations_of};
use settings_file::{Section, SettingsFileError, parse};
use storage_client::{GROUP_OPERATIONS_MAX, Service};

/// The largest weight of an operation.
const WEIGHT_MAX: u64 = 1_000_000;
/// Rows of a query, at most; the service gives 1,000 a page.
const QUERY_ROWS_MAX: u64 = 100_000;
/// Messages that a service gives at once.
const MESSAGES_MAX: u64 = 32;
/// The longest time that a message may be invisible: the service's 7 days.
const INVISIBLE_S_MAX: u64 = 7 * 24 * 3600;

/// The keys of `[sizes]` that a service has.
fn size_keys(service: Service) -> &'static [&'static str] {
    match service {
        Service::Table => &["item_bytes", "batch_entities", "query_rows"],
        Service::Queue => &["item_bytes", "messages", "invisible_s"],
        Service::Blob => &["item_bytes", "range_bytes"],
    }
}

/// Reads a mix of a service; `name` is what reports call it.
pub fn parse_mix_file(service: Service, name: &str, text: &str) -> Result<Mix, SettingsFileError> {
    let parsed = parse(text)?;
    let file = Section::new(text, "the file", parsed.get_ref(), &["operations", "sizes"])?;
    let mut sizes = Sizes::usual(service);
    if let Some(section) = file.section("sizes", size_keys(service))? {
        read_sizes(&section, service, &mut sizes)?;
    }
    let known: Vec<&'static str> = operations_of(service).iter().map(|kind| kind.name()).collect();
    let mut weights = Vec::new();
    if let Some(section) = file.section("operations", &known)? {
        for name in known {
            let weight = section.count(name, 0..=WEIGHT_MAX)?;
            weights.extend(operation_named(service, name).zip(weight));
        }
    }
    let wanted = "the file must give at least one operation a weight, such as [operations] and get = 1";
    let mix = Mix::new(name.to_owned(), weights, sizes);
    let mix = mix.ok_or_else(|| file.refuse("operations", wanted.to_owned()))?;
    mix.check(service).map_err(|why| file.refuse("sizes", why))?;
    Ok(mix)
}

fn read_sizes(section: &Section<'_>, service: Service, sizes: &mut Sizes) -> Result<(), SettingsFileError> {
    let items = section.counts("item_bytes", item_size_range(service))?;
    if items.len() > ITEM_SIZES_MAX {
        return Err(section.refuse("item_bytes", format!("item_bytes has more than {ITEM_SIZES_MAX} sizes")));
    }
    if !items.is_empty() {
        sizes.item_size_bytes = items;
    }
    let slots = [
        ("batch_entities", 1..=GROUP_OPERATIONS_MAX as u64, &mut sizes.batch_entities),
        ("query_rows", 1..=QUERY_ROWS_MAX, &mut sizes.query_rows),
        ("messages", 1..=MESSAGES_MAX, &mut sizes.messages),
        ("invisible_s", 1..=INVISIBLE_S_MAX, &mut sizes.invisible_s),
        ("range_bytes", 1..=*item_size_range(Service::Blob).end(), &mut sizes.range_size_bytes),
    ];
    for (key, range, slot) in slots {
        if let Some(count) = section.count(key, range)? {
            *slot = count;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::operation::OperationKind;
    use proptest::prelude::*;

    #[test]
    fn a_file_with_everything() {
        let text = "[operations]\nget = 80\ninsert = 15\nbatch = 0\n[sizes]\nitem_bytes = [512, 2048]\n\
            query_rows = 20\nbatch_entities = 50\n";
        let mix = parse_mix_file(Service::Table, "mine.toml", text).expect("a good file");
        assert_eq!(mix.weights(), [(OperationKind::Insert, 15), (OperationKind::Get, 80)]);
        assert_eq!(mix.sizes.item_size_bytes, [512, 2048]);
        assert_eq!((mix.sizes.query_rows, mix.sizes.batch_entities), (20, 50));
        assert_eq!((mix.sizes.of_item(0), mix.sizes.of_item(3)), (512, 2048));
        let queue = parse_mix_file(Service::Queue, "q", "[operations]\npeek = 1\n[sizes]\nmessages = 32\n");
        assert_eq!(queue.expect("a good file").sizes.messages, 32);
    }

    #[test]
    fn each_mistake_names_its_line() {
        for (service, text, expected) in [
            (
                Service::Table,
                "[operations]\ngit = 1",
                "line 2: operations has no key \"git\"; did you mean get?",
            ),
            (Service::Queue, "[operations]\ninsert = 1", "line 2: operations has no key \"insert\""),
            (
                Service::Table,
                "[operation]\nget = 1",
                "line 1: the file has no key \"operation\"; did you mean operations?",
            ),
            (Service::Table, "", "line 1: the file must give at least one operation a weight"),
            (
                Service::Table,
                "\n[operations]\nget = 0",
                "line 2: the file must give at least one operation a weight",
            ),
            (
                Service::Table,
                "[operations]\nget = 0.5",
                "line 2: get in operations must be a whole number from 0 to 1000000",
            ),
            (
                Service::Blob,
                "[operations]\nget = 1\n[sizes]\nquery_rows = 3",
                "line 4: sizes has no key \"query_rows\"",
            ),
            (
                Service::Table,
                "[sizes]\nitem_bytes = 10",
                "line 2: item_bytes in sizes must be a whole number from 256 to 32768, or a list of them",
            ),
            (
                Service::Table,
                "[operations]\nbatch = 1\n[sizes]\nitem_bytes = 32768",
                "line 3: 100 entities of 32768 bytes are more than a batch can hold",
            ),
            (
                Service::Table,
                "[sizes]\nbatch_entities = 101",
                "line 2: batch_entities in sizes must be a whole number from 1 to 100",
            ),
            (Service::Table, "get = ", "line 1: this is not TOML: "),
        ] {
            let error = parse_mix_file(service, "f", text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text:?}\n found {error}\nwanted {expected}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = parse_mix_file(Service::Table, "f", &text);
        }

        #[test]
        fn any_value_of_a_key_is_read_or_refused(
            key in prop::sample::select(vec!["item_bytes", "batch_entities", "query_rows"]),
            value in prop::sample::select(vec!["1", "-1", "0.5", "nan", "\"x\"", "[]", "[[1]]", "[1, -1]", "true", "9223372036854775807"]),
        ) {
            let _ = parse_mix_file(Service::Table, "f", &format!("[operations]\nget = 1\n[sizes]\n{key} = {value}\n"));
        }
    }
}
