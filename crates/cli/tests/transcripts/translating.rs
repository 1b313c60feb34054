//! Reports of the built-in suites in Chinese: no sentence of a check stays in English.

use serde_json::Value;

use crate::desk::Desk;
use crate::testing::folder_of;

#[test]
fn every_sentence_that_a_check_writes_is_chinese_in_a_chinese_report() {
    for suite in ["evidence", "order", "rewrite", "memory", "conflict"] {
        let desk = Desk::new();
        let told = desk.run(&["test", suite, "-n", "6", "--lang", "zh-CN", "--quiet"]);
        assert!(matches!(told.code, 0 | 100), "{suite}: {told:?}");
        let folder = folder_of(&desk);
        let page = desk.text(&format!("{folder}/report.html"));
        let report: Value = serde_json::from_str(&desk.text(&format!("{folder}/report.json"))).expect("JSON");
        let tests = report["verdicts"]["tests"].as_array().expect("a list");
        let list = |test: &Value, name: &str| test[name].as_array().cloned().unwrap_or_default();
        let mut sentences: Vec<String> = Vec::new();
        for test in tests {
            sentences.extend(list(test, "metrics").iter().filter_map(|metric| metric["meaning"].as_str().map(str::to_owned)));
            sentences.extend(list(test, "notes").iter().filter_map(|note| note.as_str().map(str::to_owned)));
            sentences.extend(list(test, "series").iter().filter_map(|series| series["axis"].as_str().map(str::to_owned)));
        }
        assert!(sentences.len() > 5, "{suite}: {sentences:?}");
        for sentence in sentences {
            // As far as no character is escaped in a page.
            let plain = sentence.split(['"', '\'', '<', '>', '&']).next().unwrap_or_default();
            // A single word may be a name in the page itself.
            assert!(!plain.trim().contains(' ') || !page.contains(plain), "{suite}: `{plain}` stays in English");
        }
    }
}
