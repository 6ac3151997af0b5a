//! The page of `larimar stress --html` as a browser shows it: all plots are there with their lines, no text
//! lies on another, nothing is wider than the window, and nothing was loaded.
//!
//! The page runs nothing, so a copy of it gets a script that measures it and leaves what it found in the
//! page, which Chromium prints.

use crate::client::server_process::ServerProcess;
use crate::client::shared_key::connection_string;
use crate::workspace::Scratch;
use crate::{Outcome, programs};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const BROWSER: &str = "chromium";
/// Widths of a window: of a desk and of a phone.
const WIDTHS: [u32; 2] = [1280, 500];
const HEIGHT: u32 = 2400;
/// An error now and then, fewer than end the rise of the rate: its message has a key without blanks.
const RULES: &str =
    "[[fault]]\noperation = \"GetEntity\"\nevery = 300\nstatus = 400\ncode = \"InvalidInput\"\n";
/// What the page is measured by, in its own units.
const PLOT_WIDTH_MIN: f64 = 300.0;
const PLOT_HEIGHT_MIN: f64 = 100.0;
/// What was done, operations, steps, errors, targets.
const TABLES_MIN: f64 = 5.0;
/// A screenshot of an empty page is smaller.
const SCREENSHOT_SIZE_BYTES_MIN: u64 = 20_000;
/// Before what the script found.
const FOUND: &str = "PAGE-FOUND ";

const SCRIPT: &str = r#"<script>
const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
const apart = (a, b) => a.right <= b.left + 0.5 || b.right <= a.left + 0.5 || a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5;
const plots = [...document.querySelectorAll("svg")].map((svg) => {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const outside = [...svg.querySelectorAll("polyline, circle, line")].filter((one) => !inside(one.getBoundingClientRect(), box));
  const overlaps = [];
  texts.forEach(([a, aBox], index) => texts.slice(index + 1).forEach(([b, bBox]) => { if (!apart(aBox, bBox)) overlaps.push(a + " / " + b); }));
  return {
    name: svg.getAttribute("aria-label"), width: box.width, height: box.height,
    points: [...svg.querySelectorAll("polyline")].map((line) => line.points.numberOfItems),
    clipped: texts.filter(([, one]) => !inside(one, box)).map(([text]) => text), outside: outside.length, overlaps,
    colours: new Set([...svg.querySelectorAll("polyline")].map((line) => getComputedStyle(line).stroke)).size,
  };
});
const found = {
  plots, tables: document.querySelectorAll("table").length, width: document.documentElement.scrollWidth, window: innerWidth,
  loaded: performance.getEntriesByType("resource").map((one) => one.name),
};
document.body.append(Object.assign(document.createElement("pre"), { textContent: "PAGE-" + "FOUND " + JSON.stringify(found) }));
</script>"#;

pub(crate) fn run(binary: &Path) -> Outcome<()> {
    if Command::new(BROWSER).arg("--version").output().is_err() {
        programs::install_packages("the look at the page of a load test", &[BROWSER])?;
    }
    let scratch = Scratch::create("stress-page")?;
    let rules = scratch.path().join("rules.toml");
    std::fs::write(&rules, RULES)?;
    let rules = rules.to_str().ok_or("the folder's name is no text")?;
    let data = scratch.path().join("data");
    let server = ServerProcess::start_larimar_with(binary, &data, &["--simulate", rules])?;
    let connection_string = connection_string(&server)?;
    let page = scratch.path().join("report.html");
    let mut stress = Command::new(binary);
    stress.args(["stress", "--mix", "mixed", "--key-count", "500", "--until-rate", "2000", "--seconds", "1"]);
    stress
        .args(["--warm-up", "0", "--html"])
        .arg(&page)
        .env("AZURE_STORAGE_CONNECTION_STRING", connection_string);
    programs::finish(&mut stress)?;
    let text = std::fs::read_to_string(&page)?;
    for way in ["<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import"] {
        if text.contains(way) {
            return Err(format!("the page has {way}, which loads or runs something").into());
        }
    }
    for width in WIDTHS {
        look(&text, width, scratch.path())?;
    }
    let status = server.terminate()?;
    if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
}

/// Looks at the page in a window of that width.
fn look(text: &str, width: u32, scratch: &Path) -> Outcome<()> {
    let copy = scratch.join("measured.html");
    std::fs::write(&copy, text.replace("</body>", &format!("{SCRIPT}</body>")))?;
    let browser = |what: &str| {
        let mut command = Command::new(BROWSER);
        // The sandbox is not to be had as root; the page is ours.
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--virtual-time-budget=5000",
        ]);
        command.arg("--host-resolver-rules=MAP * ~NOTFOUND").arg(format!("--window-size={width},{HEIGHT}"));
        command.arg(format!("--user-data-dir={}", scratch.join("browser").display()));
        command.arg(what).arg(format!("file://{}", copy.display()));
        command
    };
    let output = browser("--dump-dom").output()?;
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = dom.rfind(FOUND).and_then(|at| {
        let found = dom[at + FOUND.len()..].split("</pre>").next()?;
        serde_json::from_str::<Value>(&found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
            .ok()
    });
    let found = found
        .ok_or_else(|| format!("{BROWSER} shows no page: {}", String::from_utf8_lossy(&output.stderr)))?;
    judge(&found)?;
    let picture = scratch.join("page.png");
    browser(&format!("--screenshot={}", picture.display())).output()?;
    let size = std::fs::metadata(&picture)?.len();
    if size < SCREENSHOT_SIZE_BYTES_MIN {
        return Err(format!("the picture of the page has only {size} bytes").into());
    }
    println!(
        "{width} wide: {} plots, a picture of {size} bytes",
        found["plots"].as_array().map_or(0, Vec::len)
    );
    Ok(())
}

/// What must hold of a page, from what the script found.
fn judge(found: &Value) -> Outcome<()> {
    let plots = found["plots"].as_array().ok_or("no plots")?;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let mut wrong = Vec::new();
    if plots.len() != 4 || number(&found["tables"]) < TABLES_MIN {
        wrong.push(format!("{} plots and {} tables", plots.len(), found["tables"]));
    }
    if number(&found["width"]) > number(&found["window"]) {
        wrong.push(format!("it is {} wide in a window of {}", found["width"], found["window"]));
    }
    if !is_empty(&found["loaded"]) {
        wrong.push(format!("it loads {}", found["loaded"]));
    }
    for plot in plots {
        let lines = plot["points"].as_array().map_or(&[][..], Vec::as_slice);
        let is_small = number(&plot["width"]) < PLOT_WIDTH_MIN || number(&plot["height"]) < PLOT_HEIGHT_MIN;
        let is_drawn = lines.first().is_some_and(|points| number(points) > 0.0);
        let is_told_apart = number(&plot["colours"]) >= lines.len() as f64;
        let is_clear = is_empty(&plot["clipped"]) && is_empty(&plot["overlaps"]) && plot["outside"] == 0;
        if is_small || !is_drawn || !is_clear || !is_told_apart {
            wrong.push(format!("a plot: {plot}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("the page is wrong: {}", wrong.join("; ")).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_that_is_wrong_in_any_way_is_refused() {
        let plot = json!({
            "name": "Rate", "width": 600, "height": 200, "points": [3, 3], "clipped": [], "outside": 0,
            "overlaps": [], "colours": 2,
        });
        let good = json!({
            "plots": [plot, plot, plot, plot], "tables": 6, "width": 500, "window": 500, "loaded": [],
        });
        assert!(judge(&good).is_ok());
        for (pointer, value) in [
            ("/tables", json!(1)),
            ("/width", json!(501)),
            ("/loaded", json!(["a.js"])),
            ("/plots/0/width", json!(20)),
            ("/plots/1/points", json!([0, 3])),
            ("/plots/2/clipped", json!(["50 %"])),
            ("/plots/3/overlaps", json!(["a / b"])),
            ("/plots/3/outside", json!(1)),
            ("/plots/3/colours", json!(1)),
        ] {
            let mut page = good.clone();
            *page.pointer_mut(pointer).expect("a value") = value;
            assert!(judge(&page).is_err(), "{pointer}");
        }
    }
}
