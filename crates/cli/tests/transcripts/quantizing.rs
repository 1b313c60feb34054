//! `quantize`: what it says, and what others make of its files.

use crate::desk::Desk;

#[test]
fn a_quantised_file_answers_and_says_what_it_is() {
    let desk = Desk::new();
    let summary = desk.json(&["quantize", "specimen", "--to", "q4_k", "-o", "m.gguf", "--json"]);
    assert_eq!(summary["target"], "q4_k");
    assert_eq!(summary["file_bytes"].as_u64(), Some(std::fs::metadata(desk.path("m.gguf")).expect("there").len()));
    let names: Vec<&str> =
        summary["types"].as_array().expect("a list").iter().map(|one| one["storage"].as_str().expect("a text")).collect();
    assert_eq!(names, ["F32", "Q5_0", "Q4_K"]);
    assert_eq!(summary["fallbacks"].as_array().map(Vec::len), Some(3), "rows of 384 are no whole blocks of 256");
    let ask = |model: &str| desk.ok(&["generate", "-m", model, "--chat", "What is the capital of Ilmonia?", "-n", "12"]);
    assert_eq!(ask("m.gguf"), ask("specimen"));
    assert_eq!(desk.names(), ["m.gguf"]);
}

#[test]
fn a_person_reads_errors_by_type_and_what_was_stored_otherwise() {
    let desk = Desk::new();
    let told = desk.run(&["quantize", "specimen", "--to", "q6_k", "--out", "m.gguf"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.out.contains("rms error") && told.out.contains("Q6_K") && told.out.contains('%'), "{}", told.out);
    assert!(told.err.contains("`blk.0.ffn_down.weight` is stored as Q8_0: rows of 384 numbers"), "{}", told.err);
    assert!(told.err.contains("wrote m.gguf"), "{}", told.err);
}

#[test]
fn what_cannot_be_written_is_refused_before_or_after_the_work_and_leaves_nothing() {
    let desk = Desk::new();
    desk.refuses(&["quantize", "specimen", "--to", "q8_0", "-o", "missing/m.gguf"], 2, &["missing/m.gguf", "make the folder first"]);
    desk.refuses(&["quantize", "specimen", "--to", "q3_k", "-o", "m.gguf"], 2, &["q3_k", "q4_k"]);
    desk.refuses(&["quantize", "nowhere.gguf", "--to", "q8_0", "-o", "m.gguf"], 2, &["nowhere.gguf", "nothing at this path"]);
    assert!(desk.names().is_empty(), "{:?}", desk.names());
}
