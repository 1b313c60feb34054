//! Suite and data files changed at random from a fixed seed: planned or refused, never a panic.

use glassbox_suite::{Suite, SuiteError};
use glassbox_testkit::{mutations, seeds};

/// Reads `suite` with six items of each language, those in English from `english`, and plans it; gives the number of trials.
fn planned(suite: &[u8], english: &[u8]) -> Result<usize, SuiteError> {
    let chinese = include_bytes!("../../../../fuzz/seeds/data/zh");
    let data = |name: &str| if name.contains(".zh.") { chinese.to_vec() } else { english.to_vec() };
    Suite::parse("suite.yaml", suite, &|name| (name.to_owned(), Ok(data(name)))).and_then(|suite| suite.plan()).map(|plan| plan.len())
}

const ENGLISH: &[u8] = include_bytes!("../../../../fuzz/seeds/data/en");

/// How many of `files` are planned; whatever is not is refused with its place.
fn survivors(files: impl Iterator<Item = Vec<u8>>, plan: impl Fn(&[u8]) -> Result<usize, SuiteError>) -> usize {
    let is_planned = |bytes: Vec<u8>| match plan(&bytes) {
        Ok(_) => true,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("suite.yaml") || error.contains(".jsonl"), "{error}");
            false
        }
    };
    files.map(is_planned).filter(|planned| *planned).count()
}

#[test]
fn a_changed_suite_is_planned_or_refused_with_its_place() {
    for (name, suite) in seeds("suite") {
        let trials = planned(&suite, ENGLISH).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(trials > 0, "{name} plans nothing, so its changes could reach nothing");
    }
    let planned = survivors(mutations("suite", 600), |suite| planned(suite, ENGLISH));
    assert!(planned > 10, "only {planned} of the changed suites are still planned");
}

#[test]
fn a_changed_data_file_is_planned_or_refused_with_its_place() {
    let suite = include_bytes!("../../../../suites/evidence.yaml");
    let planned = survivors(mutations("data", 600), |english| planned(suite, english));
    assert!(planned > 10, "only {planned} of the changed data files are still planned");
}
