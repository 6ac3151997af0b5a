//! `larimar explain`: what a filter makes a query read, and what it cost when it was run.
//!
//! What always holds: a filter that can't be read is refused before any request, with a caret under the
//! place; what the service does not say is said to be unknown.

use super::settings::{address, settings};
use super::{in_runtime, print, with_environment};
use crate::Failure;
use crate::arguments::explain_arguments::ExplainArguments;
use advise::explain::{advice, caret, range_text, service_text};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use storage_client::Service;
use table::{FilterError, FilterPlan};
use table_tools::{PageCost, QueryCost, QueryRun, TablePlace, TableSize};

/// Ranges that are named, at most; the others are counted.
const RANGES_NAMED_MAX: usize = 10;

/// Does what was asked for.
pub(crate) fn explain(of: &ExplainArguments) -> Result<ExitCode, Failure> {
    let plan = FilterPlan::parse(&of.filter).map_err(|error| unreadable(&of.filter, &error))?;
    let is_blank = of.filter.trim().is_empty();
    let run = QueryRun {
        place: TablePlace {
            address: address("--endpoint", &of.reach.endpoint, Service::Table)?,
            settings: settings(&of.reach)?,
            table: of.table.clone(),
        },
        filter: (!is_blank).then(|| of.filter.clone()),
        select: of.select.clone(),
        top: of.top,
        pages_max: of.pages,
        counted_max: of.count,
    };
    let cost = in_runtime(async {
        with_environment(async |environment| table_tools::explain(&run, environment).await).await
    })?;
    match of.json {
        true => print(&(as_json(&plan, &cost).to_string() + "\n")),
        false => print(&as_text(&of.filter, &plan, &cost)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Three lines: what is wrong, the filter, a caret under the place.
fn unreadable(filter: &str, error: &FilterError) -> Failure {
    let Some(position) = error.position() else {
        return Failure::of_words(format!("--filter: {error}"));
    };
    let what = match error {
        FilterError::Syntax { .. } => "it can't be read".to_owned(),
        FilterError::Literal { .. } => "its type can't hold this literal".to_owned(),
        FilterError::NotImplemented { .. } => {
            "a property can only be compared with a constant; the answer is 501 NotImplemented".to_owned()
        }
        error => error.to_string(),
    };
    let [line, mark] = caret(filter, position);
    Failure::of_words(format!("--filter: {what}, at character {}:\n  {line}\n  {mark}", position + 1))
}

fn as_text(filter: &str, plan: &FilterPlan, cost: &QueryCost) -> String {
    let mut out = String::new();
    let mut put = |label: &str, text: &str| {
        // Text takes everything.
        let _ = writeln!(out, "{label:<10} {text}");
    };
    let filter = if filter.trim().is_empty() { "none" } else { filter };
    put("filter", filter);
    put("class", plan.class.name());
    let count = plan.ranges.len();
    put("reads", &format!("{} of keys", counted(count as u64, "range", "ranges")));
    plan.ranges.iter().take(RANGES_NAMED_MAX).for_each(|range| put("", &range_text(range)));
    if count > RANGES_NAMED_MAX {
        put("", &format!("and {} more", count - RANGES_NAMED_MAX));
    }
    let [pages, rest] = measured_text(cost);
    put("measured", &pages);
    put("", &rest);
    cost.described.iter().enumerate().for_each(|(index, page)| put("", &page_text(index, page)));
    if cost.pages > cost.described.len() as u64 {
        put("", &format!("and {} more pages", cost.pages - cost.described.len() as u64));
    }
    put("rows read", &rows_text(cost));
    put("table", &table_text(cost));
    put("elsewhere", &format!("on the live service: {}", service_text(plan.class)));
    let advice = advice(plan);
    if advice.is_empty() {
        put("advice", "none: there is no better class for what it wants");
    }
    advice.iter().for_each(|one| put("advice", one));
    out
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn measured_text(cost: &QueryCost) -> [String; 2] {
    let pages = counted(cost.pages, "page", "pages");
    let tokens = counted(cost.tokens, "token", "tokens");
    let entities = counted(cost.entities, "entity", "entities");
    let end = if cost.is_complete { "" } else { "; there are more: --pages was reached" };
    [
        format!("{pages} with {tokens}, {} of them empty{end}", cost.empty_pages),
        format!("{entities} in {} bytes, in {:.1} ms", cost.size_bytes, cost.took.as_secs_f64() * 1e3),
    ]
}

fn page_text(index: usize, page: &PageCost) -> String {
    let rows = page.rows_read.map_or_else(String::new, |rows| format!(", {rows} rows read"));
    let next = match &page.next {
        Some(next) => format!("; next: {} {}", next.partition_key, next.row_key.as_deref().unwrap_or("")),
        None => String::new(),
    };
    let (number, ms) = (index + 1, page.took.as_secs_f64() * 1e3);
    let text = format!(
        "page {number}: {} of {} bytes{rows}, {ms:.1} ms{next}",
        counted(page.entities, "entity", "entities"),
        page.size_bytes
    );
    text.trim_end().to_owned()
}

fn rows_text(cost: &QueryCost) -> String {
    match (cost.rows_read, &cost.class) {
        (Some(read), Some(class)) => {
            let returned = cost.entities;
            let each = match returned {
                0 => "none was returned".to_owned(),
                _ => format!("{:.1} for each that was returned", read as f64 / returned as f64),
            };
            format!("{read} to return {returned}: {each}; the service calls the class {class}")
        }
        _ => "this service does not say it: how many rows, ranges and servers a query touches can't be seen there, \
              only pages, tokens, bytes and times"
            .to_owned(),
    }
}

fn table_text(cost: &QueryCost) -> String {
    let Some(TableSize { entities, is_all }) = cost.table else {
        return "not counted: --count 0".to_owned();
    };
    let size = match is_all {
        true => counted(entities, "entity", "entities"),
        false => format!("more than {entities} entities; --count sets how many are counted"),
    };
    let share = |part: u64| 100.0 * part as f64 / entities.max(1) as f64;
    let at_most = if is_all { "" } else { "less than " };
    let returned = format!("{at_most}{:.2} % of it was returned", share(cost.entities));
    match cost.rows_read {
        Some(read) => format!("{size}: {at_most}{:.2} % of it was read, {returned}", share(read)),
        None => format!("{size}: {returned}"),
    }
}

fn as_json(plan: &FilterPlan, cost: &QueryCost) -> Value {
    let pages = cost.described.iter().map(|page| {
        json!({
            "entities": page.entities, "bytes": page.size_bytes, "rows_read": page.rows_read,
            "ms": page.took.as_secs_f64() * 1e3,
            "next_partition_key": page.next.as_ref().map(|next| &next.partition_key),
            "next_row_key": page.next.as_ref().and_then(|next| next.row_key.as_ref()),
        })
    });
    json!({
        "class": plan.class.name(),
        "ranges": plan.ranges.iter().map(range_text).collect::<Vec<_>>(),
        "partitions": plan.partition_count,
        "pages": cost.pages, "tokens": cost.tokens, "empty_pages": cost.empty_pages,
        "entities": cost.entities, "bytes": cost.size_bytes, "ms": cost.took.as_secs_f64() * 1e3,
        "is_complete": cost.is_complete, "first_pages": pages.collect::<Vec<_>>(),
        "rows_read": cost.rows_read, "service_class": cost.class,
        "table_entities": cost.table.map(|table| table.entities),
        "table_is_counted": cost.table.map(|table| table.is_all),
        "advice": advice(plan),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(filter: &str) -> String {
        unreadable(filter, &FilterPlan::parse(filter).expect_err("a mistake")).line
    }

    #[test]
    fn mistakes_have_a_caret_under_their_place() {
        assert_eq!(
            lines("PartitionKey eqq 'a'"),
            "--filter: it can't be read, at character 14:\n  PartitionKey eqq 'a'\n               ^"
        );
        assert!(lines("A eq B").contains("501") && lines("A eq B").ends_with("\n    ^"));
        assert!(lines("A eq 99999999999").starts_with("--filter: its type can't hold"));
        assert!(lines("A lt null").contains("null"));
        assert_eq!(lines(&"(".repeat(400)).lines().count(), 1);
    }

    /// Of a service without statistics nothing is made up.
    #[test]
    fn what_is_not_known_is_said_to_be_unknown() {
        let plan = FilterPlan::parse("PartitionKey eq 'a'").expect("a filter");
        let size = TableSize { entities: 200, is_all: false };
        let cost = QueryCost { pages: 1, entities: 2, table: Some(size), ..QueryCost::default() };
        let text = as_text("PartitionKey eq 'a'", &plan, &cost);
        assert!(text.contains("this service does not say it"), "{text}");
        assert!(text.contains("more than 200 entities") && text.contains("less than 1.00 %"), "{text}");
        assert!(as_json(&plan, &cost)["rows_read"].is_null());
        let cost = QueryCost { rows_read: Some(10), class: Some("row-range".to_owned()), ..cost };
        assert!(as_text("x", &plan, &cost).contains("10 to return 2: 5.0 for each"), "{text}");
    }
}
