//! Suite files changed at random from a fixed seed: planned or refused, never a panic.

use glassbox_suite::Suite;
use glassbox_testkit::mutations;

#[test]
fn a_changed_suite_is_planned_or_refused_with_its_place() {
    let data = include_bytes!("../../../../suites/data/facts.en.jsonl");
    for bytes in mutations("suite", 600) {
        match Suite::parse("suite.yaml", &bytes, &|name| (format!("{name}.jsonl"), Ok(data.to_vec()))) {
            Ok(suite) => drop(suite.plan()),
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("suite.yaml") || error.contains(".jsonl"), "{error}");
            }
        }
    }
}
