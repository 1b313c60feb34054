//! From per-item numbers to metrics with their doubt. The statistics are those of `glassbox-stats`; here they get names and sentences.

use glassbox_record::{Interval, Metric, Point, Series};
use glassbox_stats::bootstrap::{Resampling, over_items};
use glassbox_stats::bounded::bounded_mean;
use glassbox_stats::proportion::proportion_interval;
use glassbox_stats::random::seed_from;
use glassbox_stats::{Estimate, TestOutcome, Undefined};

/// Level, draws and seeds of one test's statistics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure<'a> {
    pub(crate) level: f64,
    pub(crate) resamples: usize,
    pub(crate) seed: u64,
    pub(crate) test: &'a str,
}

/// A metric, and what single items can be in it: what a gate needs to say which effect it could have seen.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) metric: Metric,
    pub(crate) items: PerItem,
}

/// What single items can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PerItem {
    /// Right or wrong.
    YesOrNo,
    /// Any number in a range.
    Graded,
}

/// Name and meaning of a metric.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) meaning: String,
}

pub(crate) fn named(name: impl Into<String>, meaning: impl Into<String>) -> Named {
    Named { name: name.into(), meaning: meaning.into() }
}

impl Measure<'_> {
    pub(crate) fn resampling(&self, metric: &str) -> Resampling {
        let seed = seed_from(&["metric", &self.seed.to_string(), self.test, metric]);
        Resampling { resamples: self.resamples, level: self.level, seed }
    }

    /// The share of items for which something holds.
    pub(crate) fn share(&self, named: Named, outcomes: &[bool]) -> Measured {
        let successes = outcomes.iter().filter(|outcome| **outcome).count();
        let estimate = proportion_interval(successes, outcomes.len(), self.level);
        Measured { metric: metric(named, estimate, outcomes.len()), items: PerItem::YesOrNo }
    }

    /// The mean of per-item numbers that lie in a range.
    pub(crate) fn mean(&self, named: Named, values: &[f64], low: f64, high: f64) -> Measured {
        let estimate = bounded_mean(values, low..=high, self.resampling(&named.name));
        Measured { metric: metric(named, estimate, values.len()), items: PerItem::Graded }
    }

    /// How far the ratio `(reached - closed) / (oracle - closed)` of per-item scores gets.
    ///
    /// - `items`  [item] mean score with documents, closed-book score, oracle score; each from 0 to 1
    ///
    /// Undefined if closed book and oracle are within [`SMALLEST_GAIN`]: then the documents have nothing to give. The interval is a bootstrap
    /// over items (BCa); where fewer than [`FEWEST_VARYING`] items differ from the commonest one it is too narrow or does not exist, and the
    /// interval then holds every `t` for which the mean of `reached - closed - t (oracle - closed)` may be 0 (Fieller's way, on a bounded mean).
    pub(crate) fn utilisation(&self, named: Named, items: &[[f64; 3]]) -> Measured {
        let n = items.len();
        let mean = |index: usize| items.iter().map(|item| item[index]).sum::<f64>() / n.max(1) as f64;
        let (reached, closed, oracle) = (mean(0), mean(1), mean(2));
        if n == 0 {
            return Measured { metric: undefined(named, 0, "no item has answers in all arms".to_owned()), items: PerItem::Graded };
        }
        if oracle - closed < SMALLEST_GAIN {
            let reason = format!(
                "with the gold document alone {oracle:.3} are right and without documents {closed:.3}: the gain is under {SMALLEST_GAIN}, so its used share means nothing"
            );
            return Measured { metric: undefined(named, n, reason), items: PerItem::Graded };
        }
        let resampling = self.resampling(&named.name);
        let mut kinds: std::collections::BTreeMap<[u64; 3], usize> = std::collections::BTreeMap::new();
        for item in items {
            *kinds.entry(item.map(f64::to_bits)).or_default() += 1;
        }
        let varying = n - kinds.values().max().copied().unwrap_or(0);
        let ratio = |drawn: &[&[f64; 3]]| {
            let sum = |index: usize| drawn.iter().map(|item| item[index]).sum::<f64>();
            let gain = sum(2) - sum(1);
            if gain > 0.0 { (sum(0) - sum(1)) / gain } else { f64::NAN }
        };
        let bootstrap = if varying >= FEWEST_VARYING { over_items(items, ratio, resampling).ok() } else { None };
        let metric = match bootstrap {
            Some(estimate) => metric(named, Ok(estimate), n),
            None => {
                let value = (reached - closed) / (oracle - closed);
                match fieller(items, value, resampling) {
                    Some(interval) => {
                        Metric { value: Some(value), interval: Some(interval), ..undefined(named, n, String::new()) }.defined()
                    }
                    None => undefined(named, n, format!("it is {value:.3}, but of so few items ({n}) its interval has no end")),
                }
            }
        };
        Measured { metric, items: PerItem::Graded }
    }

    pub(crate) fn point(&self, at: impl Into<String>, outcomes: &[bool]) -> Option<Point> {
        let successes = outcomes.iter().filter(|outcome| **outcome).count();
        let estimate = proportion_interval(successes, outcomes.len(), self.level).ok()?;
        Some(Point { at: at.into(), value: estimate.value, interval: Some(interval(&estimate)), n: outcomes.len() })
    }
}

/// Below this gain from documents their used share is a ratio of noise.
pub(crate) const SMALLEST_GAIN: f64 = 0.1;
/// With fewer differing items a bootstrap's ends are a matter of single items.
const FEWEST_VARYING: usize = 10;
/// Halvings of a range of 3: 3 / 2^12 is below any digit that a report prints.
const HALVINGS: usize = 12;

/// How far from the value an end is looked for: a ratio that may be so far off says nothing.
const FARTHEST: f64 = 1.5;

/// None where an end is farther than [`FARTHEST`] or does not exist.
fn fieller(items: &[[f64; 3]], value: f64, resampling: Resampling) -> Option<Interval> {
    let ends = |t: f64| {
        let (of_closed, of_oracle) = (t - 1.0, -t);
        let low = of_closed.min(0.0) + of_oracle.min(0.0);
        let high = 1.0 + of_closed.max(0.0) + of_oracle.max(0.0);
        let values: Vec<f64> = items.iter().map(|[reached, closed, oracle]| reached + of_closed * closed + of_oracle * oracle).collect();
        bounded_mean(&values, low - 1e-9..=high + 1e-9, resampling).map(|estimate| (estimate.interval.low, estimate.interval.high)).ok()
    };
    let bisect = |mut inside: f64, mut outside: f64, excluded: &dyn Fn(f64, f64) -> bool| {
        if !ends(outside).is_some_and(|(low, high)| excluded(low, high)) {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inside, outside);
            match ends(middle) {
                Some((low, high)) if excluded(low, high) => outside = middle,
                _ => inside = middle,
            }
        }
        Some(outside)
    };
    let low = bisect(value, value - FARTHEST, &|low, _| low > 0.0)?;
    let high = bisect(value, value + FARTHEST, &|_, high| high < 0.0)?;
    Some(Interval { low, high, level: resampling.level, method: "Fieller on a bounded mean".to_owned() })
}

pub(crate) fn metric(named: Named, estimate: Result<Estimate, Undefined>, n: usize) -> Metric {
    match estimate {
        Ok(estimate) => {
            Metric { value: Some(estimate.value), interval: Some(interval(&estimate)), ..undefined(named, estimate.n, String::new()) }
                .defined()
        }
        Err(reason) => undefined(named, n, reason.to_string()),
    }
}

pub(crate) fn undefined(named: Named, n: usize, reason: String) -> Metric {
    Metric {
        name: named.name,
        meaning: named.meaning,
        value: None,
        interval: None,
        n,
        p_value: None,
        p_method: None,
        floor: None,
        undefined: Some(reason),
    }
}

trait Defined {
    fn defined(self) -> Self;
}

impl Defined for Metric {
    fn defined(mut self) -> Self {
        self.undefined = None;
        self
    }
}

pub(crate) fn interval(estimate: &Estimate) -> Interval {
    let Estimate { interval, method, .. } = estimate;
    Interval { low: interval.low, high: interval.high, level: interval.level, method: method.name().to_owned() }
}

impl Measured {
    pub(crate) fn with_test(mut self, test: &Result<TestOutcome, Undefined>) -> Self {
        if let Ok(test) = test {
            self.metric.p_value = Some(test.p_value);
            self.metric.p_method = Some(test.method.name().to_owned());
        }
        self
    }

    pub(crate) fn with_floor(mut self, floor: Option<f64>) -> Self {
        self.metric.floor = floor;
        self
    }
}

/// Series of shares over an axis, for all items and, where there are several languages, for each of them.
pub(crate) fn series_by_language<'a>(
    name: &str,
    axis: &str,
    measure: &Measure<'_>,
    axis_points: &[String],
    outcomes: &[(&'a str, usize, bool)],
) -> Vec<Series> {
    let languages: std::collections::BTreeSet<&'a str> = outcomes.iter().map(|(lang, _, _)| *lang).collect();
    let slices = std::iter::once(None).chain(languages.iter().filter(|_| languages.len() > 1).map(|lang| Some(*lang)));
    slices
        .map(|slice| {
            let points = axis_points.iter().enumerate().filter_map(|(index, at)| {
                let wanted = |(lang, place, _): &&(&str, usize, bool)| *place == index && slice.is_none_or(|slice| slice == *lang);
                let chosen: Vec<bool> = outcomes.iter().filter(wanted).map(|(_, _, right)| *right).collect();
                measure.point(at.clone(), &chosen)
            });
            Series { name: name.to_owned(), axis: axis.to_owned(), slice: slice.map(str::to_owned), points: points.collect() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utilisation(items: &[[f64; 3]]) -> Metric {
        let measure = Measure { level: 0.95, resamples: 999, seed: 3, test: "evidence" };
        measure.utilisation(named("evidence_utilisation", "the share"), items).metric
    }

    #[test]
    fn a_subject_that_uses_everything_has_an_interval_that_says_how_sure_that_is() {
        let metric = utilisation(&[[1.0, 0.0, 1.0]; 100]);
        let interval = metric.interval.expect("every item has all arms");
        assert_eq!(metric.value, Some(1.0));
        // One unseen item in a hundred at 97.5 %: 1 - 0.025^(1/100) = 0.0362 of the items, and each could count double.
        assert!((0.91..0.975).contains(&interval.low), "{interval:?}");
        assert!(interval.high >= 1.0, "{interval:?}");
    }

    #[test]
    fn where_documents_have_nothing_to_give_the_used_share_is_undefined() {
        let metric = utilisation(&[[1.0, 1.0, 1.0]; 50]);
        assert_eq!(metric.value, None);
        assert!(metric.undefined.expect("a reason").contains("the gain is under 0.1"));
    }

    #[test]
    fn of_one_or_two_items_the_used_share_has_no_interval_and_says_so() {
        for n in [1, 2] {
            let metric = utilisation(&vec![[1.0, 0.0, 1.0]; n]);
            assert_eq!((metric.value, metric.interval), (None, None), "{n}");
            assert!(metric.undefined.expect("a reason").contains("its interval has no end"));
        }
    }

    #[test]
    fn both_kinds_of_interval_agree_where_both_exist() {
        let items: Vec<[f64; 3]> = (0..200).map(|index| [f64::from(u8::from(index % 4 != 0)), 0.0, 1.0]).collect();
        let bootstrap = utilisation(&items).interval.expect("many items vary");
        assert_eq!(bootstrap.method, "BCa bootstrap");
        let measure = Measure { level: 0.95, resamples: 999, seed: 3, test: "evidence" };
        let inverted = fieller(&items, 0.75, measure.resampling("x")).expect("200 items bound it");
        assert!((bootstrap.low - inverted.low).abs() < 0.03 && (bootstrap.high - inverted.high).abs() < 0.03, "{bootstrap:?} {inverted:?}");
    }
}
