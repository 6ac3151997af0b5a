//! Line plots as SVG, to stand in a page.
//!
//! What always holds: whatever the points are, all that is drawn is finite and within the plot; texts are
//! escaped; nothing is loaded from elsewhere.

use std::fmt::Write as _;

/// The drawing's size, in its own units; it scales with the page.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
/// Of the field in which lines are, from the drawing's edges.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;
/// Ticks of an axis, about.
const TICKS: f64 = 5.0;
/// Up to so many points of a line are marked one by one.
const MARKED_POINTS_MAX: usize = 40;
/// Points of a line that are drawn: more are not told apart.
const DRAWN_POINTS_MAX: usize = 1200;

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From 0 on.
    Linear,
    /// In powers of ten. What is not above 0 is left out.
    Log,
}

/// An axis.
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) scale: Scale,
    /// Where ticks are and what they say; none are chosen by the values.
    pub(crate) ticks: Option<Vec<(f64, String)>>,
    /// What a chosen tick says.
    pub(crate) text: fn(f64) -> String,
}

/// A line.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A plot.
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    /// Straight lines across, at these values.
    pub(crate) marks: Vec<(String, f64)>,
}

/// The text with what HTML would read as its own replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // No character of a page.
            control if control.is_control() && control != '\n' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// The part of an axis that is shown, as a transformed range.
struct Field {
    scale: Scale,
    from: f64,
    to: f64,
}

impl Field {
    /// Around all values that can be shown.
    fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let shown = values.filter(|value| value.is_finite() && (scale == Scale::Linear || *value > 0.0));
        let (low, high) = shown
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (from, to) = match scale {
            _ if low > high => (0.0, 1.0),
            Scale::Linear => (low.min(0.0), high),
            Scale::Log => (low.log10().floor(), high.log10().ceil()),
        };
        Field { scale, from, to: if to > from { to } else { from + 1.0 } }
    }

    /// Where a value is, from 0 to 1; none if it can't be shown.
    fn place(&self, value: f64) -> Option<f64> {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        };
        let place = (value - self.from) / (self.to - self.from);
        (place.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&place)).then_some(place)
    }

    fn ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        if let Some(ticks) = &axis.ticks {
            return ticks.clone();
        }
        let tick = |value: f64| (value, (axis.text)(value));
        match self.scale {
            Scale::Linear => {
                let step = nice((self.to - self.from) / TICKS);
                let first = (self.from / step).ceil() as i64;
                let last = (self.to / step + 1e-9).floor() as i64;
                (first..=last).map(|index| tick(index as f64 * step)).collect()
            }
            Scale::Log => {
                let step = ((self.to - self.from) / TICKS).ceil().max(1.0) as usize;
                let powers = (self.from as i32..=self.to as i32).step_by(step);
                powers.map(|power| tick(10f64.powi(power))).collect()
            }
        }
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

fn x_at(place: f64) -> f64 {
    LEFT + place * (WIDTH - LEFT - RIGHT)
}

fn y_at(place: f64) -> f64 {
    HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM)
}

/// The plot with its title and legend.
pub(crate) fn svg(plot: &Plot) -> String {
    let xs = plot.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let ticks = plot.x.ticks.iter().flatten().map(|(at, _)| *at);
    let x = Field::around(plot.x.scale, xs.chain(ticks));
    let ys = plot.lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y));
    let y = Field::around(plot.y.scale, ys.chain(plot.marks.iter().map(|(_, at)| *at)));
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<figure><figcaption>{}{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(plot.title),
        legend(plot),
        escaped(plot.title)
    );
    put_axes(&mut out, plot, &x, &y);
    for (index, line) in plot.lines.iter().enumerate() {
        put_line(&mut out, index, line, &x, &y);
    }
    for (_, at) in &plot.marks {
        if let Some(place) = y.place(*at) {
            let at = y_at(place);
            let _ = writeln!(
                out,
                "<line class=\"mark\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
                WIDTH - RIGHT
            );
        }
    }
    out.push_str("</svg></figure>\n");
    out
}

fn legend(plot: &Plot) -> String {
    let lines = plot.lines.iter().enumerate();
    let lines = lines.map(|(index, line)| format!("<span class=\"l{index}\">{}</span>", escaped(&line.name)));
    let marks = plot.marks.iter().map(|(name, _)| format!("<span class=\"mark\">{}</span>", escaped(name)));
    lines.chain(marks).collect()
}

fn put_axes(out: &mut String, plot: &Plot, x: &Field, y: &Field) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, text) in y.ticks(&plot.y) {
        if let Some(at) = y.place(value).map(y_at) {
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                escaped(&text)
            );
        }
    }
    for (value, text) in x.ticks(&plot.x) {
        if let Some(at) = x.place(value).map(x_at) {
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                escaped(&text)
            );
        }
    }
    let _ = writeln!(
        out,
        "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"label\" x=\"12\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {:.1})\">{}</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 6.0,
        escaped(plot.x.label),
        (TOP + bottom) / 2.0,
        (TOP + bottom) / 2.0,
        escaped(plot.y.label)
    );
}

fn put_line(out: &mut String, index: usize, line: &Line, x: &Field, y: &Field) {
    let step = line.points.len().div_ceil(DRAWN_POINTS_MAX).max(1);
    let place = |(at, value): &(f64, f64)| Some((x_at(x.place(*at)?), y_at(y.place(*value)?)));
    let points: Vec<(f64, f64)> = line.points.iter().step_by(step).filter_map(place).collect();
    let texts: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(out, "<polyline class=\"l{index}\" points=\"{}\"/>", texts.join(" "));
    if points.len() <= MARKED_POINTS_MAX {
        for (x, y) in &points {
            let _ = write!(out, "<circle class=\"l{index}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plot(scale: Scale, points: Vec<(f64, f64)>) -> String {
        let axis = |label, scale| Axis { label, scale, ticks: None, text: |value| format!("{value}") };
        svg(&Plot {
            title: "A & B",
            x: axis("time", Scale::Linear),
            y: axis("rate", scale),
            lines: vec![Line { name: "<done>".to_owned(), points }],
            marks: vec![("published".to_owned(), 50.0)],
        })
    }

    /// All numbers of an attribute.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let separator = format!("{attribute}=\"");
        let parts = svg.split(&separator).skip(1);
        let values = parts.filter_map(|part| part.split('"').next());
        values.flat_map(|value| value.split([',', ' '])).filter_map(|number| number.parse().ok()).collect()
    }

    #[test]
    fn points_are_where_their_values_are() {
        let svg = plot(Scale::Linear, vec![(0.0, 0.0), (10.0, 100.0)]);
        assert_eq!(numbers(&svg, "points"), [62.0, 198.0, 610.0, 12.0]);
        assert!(svg.contains("A &amp; B") && svg.contains("&lt;done&gt;") && !svg.contains("<done>"));
        assert!(svg.contains(">20</text>") && svg.contains(">100</text>"), "{svg}");
        // The published value is half way up.
        assert!(
            svg.contains("<line class=\"mark\" x1=\"62\" x2=\"610.0\" y1=\"105.0\" y2=\"105.0\"/>"),
            "{svg}"
        );
        let log = plot(Scale::Log, vec![(0.0, 1.0), (1.0, 0.0), (2.0, 100.0)]);
        assert_eq!(numbers(&log, "points"), [62.0, 198.0, 610.0, 12.0], "0 has no place");
    }

    #[test]
    fn steps_are_round() {
        for (step, expected) in [(0.7, 1.0), (1.0, 1.0), (13.0, 20.0), (230.0, 500.0), (0.03, 0.05)] {
            assert!((nice(step) - expected).abs() < 1e-9, "{step}: {}", nice(step));
        }
    }

    #[test]
    fn a_plot_without_points_is_a_plot() {
        for scale in [Scale::Linear, Scale::Log] {
            let svg = plot(scale, Vec::new());
            assert!(
                svg.contains("<polyline class=\"l0\" points=\"\"/>") && svg.ends_with("</svg></figure>\n")
            );
        }
    }

    proptest! {
        #[test]
        fn all_that_is_drawn_is_within_the_plot(
            is_log in any::<bool>(),
            points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..50),
        ) {
            let svg = plot(if is_log { Scale::Log } else { Scale::Linear }, points);
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
            for (attribute, end) in [("x1", WIDTH), ("cx", WIDTH), ("y1", HEIGHT), ("cy", HEIGHT)] {
                for number in numbers(&svg, attribute) {
                    prop_assert!((0.0..=end).contains(&number), "{} {}", attribute, number);
                }
            }
        }
    }
}
