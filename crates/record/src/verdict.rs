use serde::{Deserialize, Serialize};

/// `verdicts.json`: what follows from the attempts. Made anew from them at any time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Always `glassbox-verdicts`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// The worst of the tests.
    pub status: Status,
    /// What was asked and what came of it.
    pub totals: Totals,
    /// One entry a test of the suite, in its order.
    pub tests: Vec<TestVerdict>,
}

/// Counts over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Trials of the plan.
    pub planned: usize,
    /// Trials with an answer.
    pub answered: usize,
    /// Trials whose last attempt failed.
    pub failed: usize,
    /// Trials never attempted.
    pub missing: usize,
    /// Lines of `trials.jsonl`, repeated attempts included.
    pub attempts: usize,
}

/// How a gate, a test or a run came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The whole interval is on the good side of the threshold.
    Pass,
    /// The metric is not defined on these data, or the subject cannot show what it needs; the reason is given.
    CannotSay,
    /// The interval holds the threshold: more items are needed.
    Inconclusive,
    /// The whole interval is on the bad side of the threshold.
    Fail,
}

/// The verdict on one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestVerdict {
    /// Id in the suite.
    pub id: String,
    /// Type in the suite: `evidence_position`, `order_sensitivity`.
    pub kind: String,
    /// The worst of its gates; pass when it has none.
    pub status: Status,
    /// Independent items.
    pub items: usize,
    /// The gates, in the order of the suite.
    pub gates: Vec<GateVerdict>,
    /// Every metric, gated or not, most important first.
    pub metrics: Vec<Metric>,
    /// Metrics over an axis, such as accuracy by position.
    pub series: Vec<Series>,
    /// What a reader must know to trust the numbers, in whole sentences.
    pub notes: Vec<String>,
}

/// A number with its doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name in the suite file, such as `evidence_utilisation`.
    pub name: String,
    /// What it is, in one sentence.
    pub meaning: String,
    /// The value; none when it is not defined, and then `undefined` says why.
    pub value: Option<f64>,
    /// The interval of the value; none when the method has none.
    pub interval: Option<Interval>,
    /// Independent units behind it.
    pub n: usize,
    /// Probability of data at least this extreme if nothing happened, where a test was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Name of that test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_method: Option<String>,
    /// The value that pure noise gives: already subtracted from `value` where `meaning` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Where the truth may lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage, such as 0.95.
    pub level: f64,
    /// How it was made, such as `Wilson`.
    pub method: String,
}

/// A threshold on a metric and how it came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// Name of the metric.
    pub metric: String,
    /// The threshold.
    pub bound: Bound,
    /// How it came out.
    pub status: Status,
    /// Whether the value is beyond the suite's `warn` level, though not failed.
    pub warned: bool,
    /// The verdict in one sentence with its numbers.
    pub sentence: String,
    /// Smallest distance from the threshold that this many items would show with 80 % power; none when it cannot be stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
}

/// A threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The metric must not be above this.
    Max(f64),
    /// The metric must not be below this.
    Min(f64),
}

/// A metric over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name, such as `accuracy_by_position`.
    pub name: String,
    /// What the points are, such as `position of the gold document`.
    pub axis: String,
    /// Which part of the items, such as `zh`; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The points, in the order of the axis.
    pub points: Vec<Point>,
}

/// A point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where on the axis.
    pub at: String,
    /// The value.
    pub value: f64,
    /// Its interval.
    pub interval: Option<Interval>,
    /// Independent units behind it.
    pub n: usize,
}

impl Status {
    /// The word that reports print.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::CannotSay => "CANNOT-SAY",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Fail => "FAIL",
        }
    }

    /// The worst of several; pass when there are none.
    #[must_use]
    pub fn worst(all: impl IntoIterator<Item = Status>) -> Status {
        all.into_iter().max().unwrap_or(Status::Pass)
    }
}

impl Bound {
    /// The number of the threshold.
    #[must_use]
    pub const fn threshold(self) -> f64 {
        match self {
            Self::Max(threshold) | Self::Min(threshold) => threshold,
        }
    }
}
