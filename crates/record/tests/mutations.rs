//! Files of a run changed at random from a fixed seed: read or refused, never a panic.

use std::fs;
use std::path::Path;

use glassbox_record::RunReader;
use glassbox_testkit::mutations;

const FILES: [&str; 6] = ["manifest.json", "plan.jsonl", "trials.jsonl", "looks.jsonl", "scores.jsonl", "verdicts.json"];

#[test]
fn a_changed_file_of_a_run_is_read_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old/v1");
    let restore = |name: &str| {
        fs::copy(whole.join(name), folder.path().join(name)).expect("copied");
    };
    FILES.into_iter().for_each(restore);
    let mut read = 0;
    for bytes in mutations("record", 2_000) {
        let Some((choice, changed)) = bytes.split_first() else { continue };
        let chosen = FILES[usize::from(*choice) % FILES.len()];
        fs::write(folder.path().join(chosen), changed).expect("written");
        if let Ok(reader) = RunReader::open(folder.path()) {
            read += usize::from(match chosen {
                "plan.jsonl" => reader.plan().is_ok(), // its hash stands in the manifest, so hardly any change is accepted
                "trials.jsonl" => reader.outcomes().is_ok(),
                "looks.jsonl" => reader.looks().is_ok(),
                "scores.jsonl" => reader.scores().is_ok(),
                "verdicts.json" => reader.verdicts().is_ok(),
                _ => reader.plan().is_ok(),
            });
        }
        restore(chosen);
    }
    assert!(read > 200, "only {read} of the changed files can be read: the changes are too coarse to reach anything");
}
