//! A series as a small chart: a point and its interval for each place on the axis.

use std::fmt::Write;

use glassbox_record::Series;

use crate::token_text::{escape, label};
use crate::words::number;

const ROW: f64 = 24.0;
const NAMES: f64 = 170.0;
const WIDTH: f64 = 320.0;

/// The chart as SVG; values are shares from 0 to 1, others are scaled to the largest end of an interval.
pub(crate) fn points(series: &Series) -> String {
    let high = |point: &glassbox_record::Point| point.interval.as_ref().map_or(point.value, |interval| interval.high);
    let most = series.points.iter().map(high).fold(1.0, f64::max);
    let least = series.points.iter().map(|point| point.interval.as_ref().map_or(point.value, |interval| interval.low)).fold(0.0, f64::min);
    let x = |value: f64| NAMES + WIDTH * (value - least) / (most - least);
    let height = ROW * series.points.len() as f64 + 26.0;
    let mut svg = format!(
        "<svg class=\"chart\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{height:.0}\"><title>{}</title>",
        NAMES + WIDTH + 240.0,
        escape(&series.name)
    );
    for value in [least, f64::midpoint(least, most), most] {
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{1:.0}\"/><text x=\"{0:.1}\" y=\"{2:.0}\" text-anchor=\"middle\">{3}</text>",
            x(value),
            height - 22.0,
            height - 8.0,
            number(value)
        );
    }
    for (index, point) in series.points.iter().enumerate() {
        let y = ROW * index as f64 + 14.0;
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            NAMES - 10.0,
            y + 4.0,
            escape(&label(&point.at, 24))
        );
        let mut note = format!("{} (n = {})", number(point.value), point.n);
        if let Some(interval) = &point.interval {
            let _ = write!(
                svg,
                "<line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.0}\" y2=\"{y:.0}\"/>",
                x(interval.low),
                x(interval.high)
            );
            note = format!("{} [{}, {}] (n = {})", number(point.value), number(interval.low), number(interval.high), point.n);
        }
        let _ = write!(svg, "<circle class=\"point\" cx=\"{:.1}\" cy=\"{y:.0}\" r=\"5\"/>", x(point.value));
        let _ = write!(svg, "<text x=\"{:.0}\" y=\"{:.0}\">{note}</text>", NAMES + WIDTH + 16.0, y + 4.0);
    }
    svg.push_str("</svg>");
    svg
}
