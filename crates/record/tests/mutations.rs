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
    for bytes in mutations("record", 600) {
        let Some((choice, changed)) = bytes.split_first() else { continue };
        let chosen = FILES[usize::from(*choice) % FILES.len()];
        for name in FILES {
            fs::copy(whole.join(name), folder.path().join(name)).expect("copied");
        }
        fs::write(folder.path().join(chosen), changed).expect("written");
        if let Ok(reader) = RunReader::open(folder.path()) {
            let _ = (reader.plan(), reader.attempts(), reader.outcomes(), reader.looks(), reader.scores(), reader.verdicts());
        }
    }
}
