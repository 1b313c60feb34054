//! A series as a small chart: a point and its interval for each place on the axis.

use std::fmt::Write;

use glassbox_record::{Point, Series};

use crate::token_text::{escape, fit};
use crate::words::number;

const ROW: f64 = 24.0;
const WIDTH: f64 = 210.0;
/// Room for the numbers beside a chart.
const NOTES: f64 = 205.0;
/// Pixels that a column of text takes at the size of the style sheet.
const COLUMN: f64 = 7.2;
/// Longest name of a place, in columns.
const LONGEST_NAME: usize = 24;
/// Axes begin and end on multiples of this.
const STEP: f64 = 0.1;

/// The values that an axis covers; charts that are to be compared share one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// The shortest axis on tenths that holds every value and interval, at least three tenths long, inside 0 to 1 where the values are.
    pub(crate) fn around<'a>(series: impl Iterator<Item = &'a Series>) -> Self {
        let ends = |point: &Point| point.interval.as_ref().map_or([point.value; 2], |interval| [interval.low, interval.high]);
        let all: Vec<f64> = series.flat_map(|series| series.points.iter().flat_map(ends)).filter(|end| end.is_finite()).collect();
        let (least, most) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(*end), high.max(*end)));
        if least > most {
            return Self { low: 0.0, high: 1.0 };
        }
        // A thousandth of slack: 0.30000000000000004 is no reason for a longer axis.
        let (mut low, mut high) = ((least / STEP + 0.001).floor() * STEP, (most / STEP - 0.001).ceil() * STEP);
        let missing = (3.0 * STEP - (high - low)).max(0.0);
        if most <= 1.0 && least >= 0.0 {
            high = (high + missing).min(1.0);
            low = (high - (high - low).max(3.0 * STEP)).max(0.0);
        } else {
            high += missing;
        }
        Self { low, high }
    }

    fn x(self, value: f64) -> f64 {
        WIDTH * ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

/// The chart as SVG.
///
/// - `baseline`  what each point would be without preference, drawn as a mark beside it
pub(crate) fn points(series: &Series, baseline: Option<&Series>, axis: Axis) -> String {
    let longest = series.points.iter().map(|point| fit(&point.at, LONGEST_NAME).chars().count()).max().unwrap_or(0);
    let names = COLUMN * longest as f64 + 14.0;
    let height = ROW * series.points.len() as f64 + 26.0;
    let mut svg = format!(
        "<svg class=\"chart\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{height:.0}\"><title>{}</title>",
        names + WIDTH + NOTES,
        escape(&series.name)
    );
    for value in [axis.low, f64::midpoint(axis.low, axis.high), axis.high] {
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{1:.0}\"/><text x=\"{0:.1}\" y=\"{2:.0}\" text-anchor=\"middle\">{value:.2}</text>",
            names + axis.x(value),
            height - 22.0,
            height - 8.0,
        );
    }
    for (index, point) in series.points.iter().enumerate() {
        let y = ROW * index as f64 + 14.0;
        row(&mut svg, point, baseline.and_then(|baseline| baseline.points.get(index)), axis, names, y);
    }
    svg.push_str("</svg>");
    svg
}

fn row(svg: &mut String, point: &Point, baseline: Option<&Point>, axis: Axis, names: f64, y: f64) {
    let name = escape(&fit(&point.at, LONGEST_NAME));
    let _ = write!(svg, "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{name}</text>", names - 10.0, y + 4.0);
    let mut note = number(point.value);
    if let Some(interval) = &point.interval {
        let (low, high) = (names + axis.x(interval.low), names + axis.x(interval.high));
        let _ = write!(
            svg,
            "<path class=\"whisker\" d=\"M{low:.1} {top:.0}v10M{low:.1} {y:.0}H{high:.1}M{high:.1} {top:.0}v10\"/>",
            top = y - 5.0
        );
        let _ = write!(note, " [{}, {}]", number(interval.low), number(interval.high));
    }
    if let Some(baseline) = baseline {
        let _ = write!(
            svg,
            "<line class=\"baseline\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.0}\" y2=\"{2:.0}\"/>",
            names + axis.x(baseline.value),
            y - 9.0,
            y + 9.0
        );
        let _ = write!(note, " ({})", number(baseline.value));
    }
    let _ = write!(
        svg,
        "<circle class=\"point\" cx=\"{:.1}\" cy=\"{y:.0}\" r=\"4.5\"/><text x=\"{:.0}\" y=\"{:.0}\">{note}, n = {}</text>",
        names + axis.x(point.value),
        names + WIDTH + 16.0,
        y + 4.0,
        point.n
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[f64]) -> [f64; 2] {
        let points = values.iter().map(|value| Point { at: "1".to_owned(), value: *value, interval: None, n: 1 });
        let series = Series { name: "s".to_owned(), axis: "a".to_owned(), slice: None, points: points.collect() };
        let Axis { low, high } = Axis::around([&series].into_iter());
        [low, high].map(|end| (end * 1e6).round() / 1e6)
    }

    #[test]
    fn an_axis_holds_every_value_and_is_not_longer_than_it_must() {
        for (values, wanted) in [
            (&[0.76, 1.0][..], [0.7, 1.0]),
            (&[0.95, 0.99], [0.7, 1.0]),
            (&[0.0, 0.02], [0.0, 0.3]),
            (&[0.0, 1.0], [0.0, 1.0]),
            (&[-0.24, 0.3], [-0.3, 0.3]),
            (&[], [0.0, 1.0]),
            (&[f64::NAN], [0.0, 1.0]),
        ] {
            assert_eq!(axis(values), wanted, "{values:?}");
        }
    }
}
