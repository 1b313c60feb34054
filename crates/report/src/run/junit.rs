//! The verdicts as JUnit XML, for continuous integration.

use std::fmt::Write;

use glassbox_record::{GateVerdict, Status, TestVerdict};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::ReportError;
use crate::run::Run;
use crate::texts::{Lang, Texts};
use crate::words::{bound, interval, number};

/// Wrong answers that a failure names.
const WORST: usize = 3;

/// A suite a test, a case a gate, the fingerprint as properties.
pub(crate) fn document(run: &Run) -> Result<String, ReportError> {
    let fingerprint = &run.manifest.fingerprint;
    let mut report = Report::new(plain(&format!("glassbox {}", fingerprint.suite.name)));
    for test in &run.verdicts.tests {
        let mut suite = TestSuite::new(plain(&test.id));
        suite.add_property(("subject", plain(&fingerprint.subject.name).as_str()));
        for (name, value) in &fingerprint.subject.facts {
            suite.add_property((plain(&format!("subject.{name}")).as_str(), plain(value).as_str()));
        }
        suite.add_property(("suite.hash", fingerprint.suite.hash.to_string().as_str()));
        suite.add_property(("seed", fingerprint.seed.to_string().as_str()));
        suite.add_property(("items", test.items.to_string().as_str()));
        suite.add_test_cases(test.gates.iter().map(|gate| case(run, test, gate)));
        report.add_test_suite(suite);
    }
    report.to_string().map_err(ReportError::picture)
}

fn case(run: &Run, test: &TestVerdict, gate: &GateVerdict) -> TestCase {
    let status = match gate.status {
        Status::Pass => TestCaseStatus::success(),
        Status::CannotSay => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(plain(&gate.sentence));
            skipped
        }
        Status::Inconclusive => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(plain(&format!("inconclusive: {}", gate.sentence)));
            skipped
        }
        Status::Fail => {
            let mut failure = TestCaseStatus::non_success(NonSuccessKind::Failure);
            failure.set_message(plain(&gate.sentence)).set_type(plain(&gate.metric)).set_description(plain(&description(run, test, gate)));
            failure
        }
    };
    let mut case = TestCase::new(plain(&gate.metric), status);
    case.set_classname(plain(&format!("{}.{}", run.manifest.fingerprint.suite.name, test.id)));
    case
}

/// The text without characters that XML cannot hold, and without those that steer a terminal: logs print these files.
fn plain(text: &str) -> String {
    let forbidden =
        |character: char| (character.is_control() && !matches!(character, '\n' | '\t')) || matches!(character, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|character| if forbidden(character) { char::REPLACEMENT_CHARACTER } else { character }).collect()
}

fn description(run: &Run, test: &TestVerdict, gate: &GateVerdict) -> String {
    let t = Texts::new(Lang::En);
    let mut text = format!("{}\nthreshold: {}\n", gate.sentence, bound(&t, gate.bound));
    if let Some(metric) = test.metrics.iter().find(|metric| metric.name == gate.metric) {
        let value = metric.value.map_or_else(|| "undefined".to_owned(), number);
        let _ = writeln!(text, "value: {value}\ninterval: {}\nn: {}", interval(&t, metric.interval.as_ref()), metric.n);
    }
    let wrong = run.failing().into_iter().filter(|trial| trial.content.test == test.id).take(WORST);
    for trial in wrong {
        let content = &trial.content;
        let (expected, answered) = (&content.expected.answer, run.answer_text(trial));
        let _ = writeln!(text, "wrong: {} ({}): expected `{expected}`, answered `{answered}`", content.item, content.condition.label());
    }
    text
}
