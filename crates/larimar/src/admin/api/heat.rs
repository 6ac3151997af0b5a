//! `GET /heat`: the hottest partitions, a map of keys and time, and what is to be said about them.
//!
//! What always holds: of rows there are keys and counts only; rates are estimates from a sample; names of
//! containers are read of so many rows at most, and ids stand for the others.

use super::Call;
use super::looks::layers;
use crate::admin::route::Answer;
use crate::admin::sampled::TABLES_BY_NAME;
use crate::places::{ContainerNames, Service};
use base::date_time::date_time_text;
use partition::{
    HEAT_WINDOW_MAX, HeatQuery, HeatReport, ObjectTable, PartitionHeat, Partitions, RangeEnd,
    RangeHeatReport, RowRef, Scan, Tally, Visit,
};
use serde_json::{Value, json};
use service::container::containers_range;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Partitions that are listed unless another number is asked for.
const TOP: u64 = 20;
/// Rows of the map, all ranges together, unless another number is asked for.
const ROWS: u64 = 32;
const TOP_BOUNDS: RangeInclusive<u64> = 1..=1000;
const ROWS_BOUNDS: RangeInclusive<u64> = 1..=512;
const HOURS_BOUNDS: RangeInclusive<u64> = 1..=HEAT_WINDOW_MAX.as_secs() / 3600;
/// Rows of containers that are read for their names.
const NAMES_READ_MAX: usize = 20_000;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    top: u64,
    rows: u64,
    hours: u64,
    table: Option<ObjectTable>,
    range: Option<u64>,
}

impl Wanted {
    /// Reads a query string.
    fn parse(query: &str) -> Result<Self, Answer> {
        let hours = *HOURS_BOUNDS.start();
        let mut wanted = Wanted { top: TOP, rows: ROWS, hours, table: None, range: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let within = |bounds: RangeInclusive<u64>| {
                let number = value.parse().ok().filter(|number| bounds.contains(number));
                number.ok_or_else(|| {
                    let (least, most) = (bounds.start(), bounds.end());
                    bad(&format!("{key} has to be a whole number from {least} to {most}"))
                })
            };
            match key {
                "top" => wanted.top = within(TOP_BOUNDS)?,
                "rows" => wanted.rows = within(ROWS_BOUNDS)?,
                "hours" => wanted.hours = within(HOURS_BOUNDS)?,
                "table" => {
                    let known = TABLES_BY_NAME.into_iter().find(|(_, name)| *name == value);
                    let (table, _) = known
                        .ok_or_else(|| bad("table has to be map, container, entity, message or blob"))?;
                    wanted.table = Some(table);
                }
                "range" => {
                    let number = value.parse().map_err(|_| bad("range has to be the number of a range"))?;
                    wanted.range = Some(number);
                }
                _ => {
                    let known = "top, rows, hours, table, range";
                    return Err(bad(&format!("the query has a parameter that is none of {known}")));
                }
            }
        }
        Ok(wanted)
    }
}

fn bad(message: &str) -> Answer {
    Answer::error(400, "bad_query", message)
}

/// `GET /heat`.
pub(super) async fn heat(call: Call<'_>) -> Result<Answer, Answer> {
    let wanted = Wanted::parse(call.query)?;
    let partitions = layers(call)?.partitions;
    if let Some(id) = wanted.range {
        check_range(&partitions, wanted.table, id).await?;
    }
    let window = Duration::from_secs(3600 * wanted.hours);
    let query = HeatQuery { window, table: wanted.table, range: wanted.range, rows_max: wanted.rows };
    let report = partitions.heat(&query).await;
    let top = hottest(&report, usize::try_from(wanted.top).unwrap_or(usize::MAX));
    let names = names_of(&partitions, &top).await;
    Ok(Answer::json(200, &answer_of(&report, &top, &names)))
}

async fn check_range(partitions: &Partitions, of: Option<ObjectTable>, id: u64) -> Result<(), Answer> {
    for (table, _) in TABLES_BY_NAME.into_iter().filter(|(table, _)| of.is_none_or(|of| of == *table)) {
        if partitions.range_details(table).await.iter().any(|range| range.id == id) {
            return Ok(());
        }
    }
    Err(Answer::error(404, "no_such_range", "there is no such range; larimar admin ranges lists all"))
}

/// The hottest partitions of all ranges, with their ranges.
fn hottest(report: &HeatReport, count: usize) -> Vec<(&RangeHeatReport, &PartitionHeat)> {
    let mut all: Vec<_> = report
        .ranges
        .iter()
        .flat_map(|range| range.partitions.iter().map(move |partition| (range, partition)))
        .collect();
    all.sort_by_key(|(_, partition)| Reverse(partition.sampled.total()));
    all.truncate(count);
    all
}

/// Names of the containers of these partitions, as far as they are found.
async fn names_of(partitions: &Partitions, top: &[(&RangeHeatReport, &PartitionHeat)]) -> ContainerNames {
    let mut wanted = BTreeSet::new();
    for (range, partition) in top {
        if let (service @ (Service::Table | Service::Queue | Service::Blob), Some(account)) =
            (Service::of_table(range.table), &partition.start.account)
        {
            wanted.insert((account, service));
        }
    }
    let mut names = Names { found: ContainerNames::default(), left: NAMES_READ_MAX };
    for (account, service) in wanted {
        let keys = containers_range(account, service.name());
        let before = Names { found: names.found.clone(), left: names.left };
        names = match partitions.scan(ObjectTable::Container, keys, before).await {
            Ok((found, _)) => found,
            // Where they can't be read, ids have to do.
            Err(_) => names,
        };
    }
    names.found
}

struct Names {
    found: ContainerNames,
    left: usize,
}

impl Scan for Names {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.left == 0 {
            return Visit::StopBefore;
        }
        self.left -= 1;
        self.found.note(row.key, row.value);
        Visit::Continue
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        self.left = self.left.saturating_sub(usize::try_from(unseen).unwrap_or(usize::MAX));
        if self.left > 0 { Visit::Continue } else { Visit::StopBefore }
    }
}

/// Sampled requests as requests a second.
#[derive(Clone, Copy)]
struct Rate {
    one_in: f64,
    seconds: f64,
}

impl Rate {
    /// Over less than a second it would say nothing.
    fn new(one_in: u64, sampled_for: Duration) -> Self {
        Rate { one_in: one_in as f64, seconds: sampled_for.as_secs_f64().max(1.0) }
    }

    /// With three decimals.
    fn of(self, sampled: f64) -> f64 {
        (sampled * self.one_in / self.seconds * 1000.0).round() / 1000.0
    }
}

fn table_name(table: ObjectTable) -> &'static str {
    TABLES_BY_NAME.into_iter().find(|(known, _)| *known == table).map_or("", |(_, name)| name)
}

fn answer_of(
    report: &HeatReport,
    top: &[(&RangeHeatReport, &PartitionHeat)],
    names: &ContainerNames,
) -> Value {
    let one_in = report.sampled_one_in;
    let requests_a_second =
        |sampled: Tally, sampled_for| Rate::new(one_in, sampled_for).of(sampled.total() as f64);
    let all = report.ranges.iter().map(|range| requests_a_second(range.sampled, range.sampled_for));
    let all: f64 = all.sum();
    let share = |sampled, sampled_for| {
        let percent = requests_a_second(sampled, sampled_for) * 100.0 / all.max(f64::MIN_POSITIVE);
        (percent.min(100.0) * 10.0).round() / 10.0
    };
    let of_partition = |(range, partition): &(&RangeHeatReport, &PartitionHeat)| {
        let PartitionHeat { start, sampled, .. } = partition;
        let rate = Rate::new(one_in, range.sampled_for);
        json!({
            "table": table_name(range.table),
            "range": range.id,
            "account": start.account,
            "container_id": start.container_id,
            "container": container_of(names, range.table, partition),
            "partition": start.partition_name,
            "cut": partition.is_cut,
            "key": partition.text,
            "reads_per_second": rate.of(sampled.reads as f64),
            "writes_per_second": rate.of(sampled.writes as f64),
            "missed_per_second_max": rate.of(partition.missed_max as f64),
            "share_percent": share(*sampled, range.sampled_for),
        })
    };
    let of_range = |range: &RangeHeatReport| {
        let rate = Rate::new(one_in, range.sampled_for);
        json!({
            "table": table_name(range.table),
            "range": range.id,
            "reads_per_second": rate.of(range.sampled.reads as f64),
            "writes_per_second": rate.of(range.sampled.writes as f64),
            "other_partitions_per_second_max": rate.of(range.others_max as f64),
            "share_percent": share(range.sampled, range.sampled_for),
            "writes_go_to": range.writes_go_to.map(|end| match end {
                RangeEnd::First => "first",
                RangeEnd::Last => "last",
            }),
        })
    };
    json!({
        "sampled_one_in": one_in,
        "sketch_bytes": report.sketch_bytes,
        "unknown_ranges": report.unknown_ranges,
        "partitions": top.iter().map(of_partition).collect::<Vec<_>>(),
        "ranges": report.ranges.iter().map(of_range).collect::<Vec<_>>(),
        "map": map_of(report),
        "remarks": remarks_of(report),
    })
}

fn container_of<'a>(
    names: &'a ContainerNames,
    table: ObjectTable,
    partition: &PartitionHeat,
) -> Option<&'a str> {
    let start = &partition.start;
    names.name(Service::of_table(table), start.account.as_deref()?, start.container_id?)
}

fn map_of(report: &HeatReport) -> Value {
    let columns = report.columns.iter().map(
        |column| json!({ "begins": date_time_text(column.begins_at), "seconds": column.lasts_for.as_secs() }),
    );
    let of_row = |range: &RangeHeatReport, row: &partition::HeatRow| {
        let rates = |of_cell: fn(&partition::HeatCell) -> f64| -> Vec<f64> {
            let cells = row.cells.iter().zip(&report.columns);
            cells
                .map(|(cell, column)| Rate::new(report.sampled_one_in, column.lasts_for).of(of_cell(cell)))
                .collect()
        };
        json!({
            "table": table_name(range.table),
            "range": range.id,
            "from": row.from,
            "to": row.to,
            "reads_per_second": rates(|cell| cell.reads),
            "writes_per_second": rates(|cell| cell.writes),
        })
    };
    let rows = report.ranges.iter().flat_map(|range| range.rows.iter().map(move |row| of_row(range, row)));
    json!({ "columns": columns.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>() })
}

/// What an operator should know besides.
fn remarks_of(report: &HeatReport) -> Vec<String> {
    let mut remarks = Vec::new();
    if report.sampled_one_in == 0 {
        remarks.push("nothing is sampled: the server runs with --heat-sample 0".to_owned());
    }
    for RangeHeatReport { id, table, writes_go_to, .. } in &report.ranges {
        let (what, place) = match writes_go_to {
            None => continue,
            Some(RangeEnd::Last) => ("appends", "behind its last key"),
            Some(RangeEnd::First) => ("prepends", "before its first key"),
        };
        remarks.push(format!(
            "{what} at one end of range {id} of table {}: nearly all writes of the last minutes go {place}, so no split \
             parts them",
            table_name(*table)
        ));
    }
    if report.unknown_ranges > 0 {
        remarks.push(format!(
            "{} ranges are not in this: so many others have the sketches that there may be",
            report.unknown_ranges
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_checked_whole() {
        let usual = || Wanted { top: TOP, rows: ROWS, hours: 1, table: None, range: None };
        for (query, expected) in [
            ("", Ok(usual())),
            ("top=7&hours=4", Ok(Wanted { top: 7, hours: 4, ..usual() })),
            ("&range=12&rows=1", Ok(Wanted { range: Some(12), rows: 1, ..usual() })),
            ("top=0", Err("top has to be a whole number from 1 to 1000")),
            ("top=1001", Err("top has to be a whole number from 1 to 1000")),
            ("hours=5", Err("hours has to be a whole number from 1 to 4")),
            ("rows", Err("rows has to be a whole number from 1 to 512")),
            ("range=-1", Err("range has to be the number of a range")),
            ("table=blob", Ok(Wanted { table: Some(ObjectTable::Blob), ..usual() })),
            ("table=blobs", Err("table has to be map, container, entity, message or blob")),
            ("tops=1", Err("none of top, rows, hours, table, range")),
        ] {
            match (Wanted::parse(query), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{query}"),
                (Err(answer), Err(part)) => {
                    assert!(answer.status == 400 && answer.body.contains(part), "{query}: {}", answer.body)
                }
                (found, _) => panic!("{query}: {found:?}"),
            }
        }
    }

    fn range(id: u64, writes: u64, writes_go_to: Option<RangeEnd>) -> RangeHeatReport {
        RangeHeatReport {
            table: ObjectTable::Entity,
            id,
            sampled: Tally { reads: 0, writes },
            sampled_for: Duration::from_secs(10),
            partitions: Vec::new(),
            others_max: 0,
            rows: Vec::new(),
            writes_go_to,
        }
    }

    #[test]
    fn rates_shares_and_remarks_follow_the_sample() {
        let ranges = vec![range(3, 30, Some(RangeEnd::Last)), range(4, 10, Some(RangeEnd::First))];
        let report = HeatReport { sampled_one_in: 64, ranges, unknown_ranges: 2, ..HeatReport::default() };
        let answer = answer_of(&report, &[], &ContainerNames::default());
        let first = &answer["ranges"][0];
        assert_eq!((&first["writes_per_second"], &first["share_percent"]), (&json!(192.0), &json!(75.0)));
        assert_eq!(
            (&first["writes_go_to"], &answer["ranges"][1]["writes_go_to"]),
            (&json!("last"), &json!("first"))
        );
        let remark = |index: usize| answer["remarks"][index].as_str().unwrap_or_default().to_owned();
        assert!(remark(0).starts_with("appends at one end of range 3 of table entity: "), "{}", remark(0));
        assert!(remark(1).starts_with("prepends at one end of range 4 of table entity: "), "{}", remark(1));
        assert!(remark(2).starts_with("2 ranges are not in this"), "{}", remark(2));
        let off = answer_of(&HeatReport::default(), &[], &ContainerNames::default());
        assert!(off["remarks"][0].as_str().is_some_and(|remark| remark.contains("--heat-sample 0")), "{off}");
    }
}
