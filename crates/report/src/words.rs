//! Numbers and states of the record in words.

use glassbox_record::{Bound, GateVerdict, Interval, Judgement, Metric, Status};

use crate::texts::{Lang, Texts};

/// A status as the reader's word.
pub(crate) fn status(t: &Texts, status: Status) -> String {
    t.get(match status {
        Status::Pass => "status-pass",
        Status::Fail => "status-fail",
        Status::Inconclusive => "status-inconclusive",
        Status::CannotSay => "status-cannot-say",
    })
}

/// A status as a class of the style sheet.
pub(crate) const fn status_class(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::Inconclusive => "inconclusive",
        Status::CannotSay => "cannot-say",
    }
}

/// What a status of the whole run means.
pub(crate) fn status_meaning(t: &Texts, status: Status) -> String {
    t.get(match status {
        Status::Pass => "verdict-pass",
        Status::Fail => "verdict-fail",
        Status::Inconclusive => "verdict-inconclusive",
        Status::CannotSay => "verdict-cannot-say",
    })
}

/// A judgement in words.
pub(crate) fn judgement(t: &Texts, judgement: Judgement) -> String {
    t.get(match judgement {
        Judgement::Right => "judgement-right",
        Judgement::Wrong => "judgement-wrong",
        Judgement::Abstained => "judgement-abstained",
        Judgement::Unparsed => "judgement-unparsed",
        Judgement::Error => "judgement-error",
    })
}

/// A metric's value: three digits after the point.
pub(crate) fn number(value: f64) -> String {
    // Without the sign of a zero that is left after rounding.
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".to_owned() } else { text }
}

/// A share as a percentage without decimals, but never 0 for something.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 0.5 { "<1".to_owned() } else { format!("{percent:.0}") }
}

/// An interval with its level and method.
pub(crate) fn interval(t: &Texts, interval: Option<&Interval>) -> String {
    interval.map_or_else(|| "–".to_owned(), |interval| format!("{} ({})", ends(interval), method(t, interval)))
}

/// Both ends of an interval.
pub(crate) fn ends(interval: &Interval) -> String {
    format!("{} … {}", number(interval.low), number(interval.high))
}

/// The level of an interval and how it was made.
pub(crate) fn method(t: &Texts, interval: &Interval) -> String {
    format!("{}, {}", t.with("level-percent", &[("percent", &number_of_percent(interval.level))]), interval.method)
}

fn number_of_percent(level: f64) -> String {
    format!("{:.1}", 100.0 * level).trim_end_matches(".0").to_owned()
}

/// A threshold in words.
pub(crate) fn bound(t: &Texts, bound: Bound) -> String {
    let key = match bound {
        Bound::Max(_) => "at-most",
        Bound::Min(_) => "at-least",
    };
    t.with(key, &[("number", &bound.threshold())])
}

/// A gate in one sentence: as the record says it in English, made from the numbers in other languages.
pub(crate) fn gate_sentence(t: &Texts, gate: &GateVerdict, metric: Option<&Metric>) -> String {
    if t.lang() == Lang::En {
        return gate.sentence.clone();
    }
    let status = status(t, gate.status);
    match metric.and_then(|metric| metric.value.map(|value| (metric, value))) {
        Some((metric, value)) => t.with(
            "sentence-gate",
            &[
                ("metric", &format!("`{}`", gate.metric)),
                ("value", &number(value)),
                ("interval", &interval(t, metric.interval.as_ref())),
                ("bound", &bound(t, gate.bound)),
                ("status", &status),
            ],
        ),
        None => t.with("sentence-undefined", &[("metric", &format!("`{}`", gate.metric)), ("status", &status)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_is_never_called_nothing() {
        assert_eq!([percent(0.0), percent(0.001), percent(0.006), percent(0.5)], ["0", "<1", "1", "50"]);
    }

    #[test]
    fn an_interval_says_its_level_and_method() {
        let shown = Interval { low: 0.81, high: 0.9, level: 0.95, method: "Wilson".to_owned() };
        assert_eq!(interval(&Texts::new(Lang::En), Some(&shown)), "0.810 … 0.900 (95 %, Wilson)");
    }
}
