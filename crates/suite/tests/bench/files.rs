//! Suite and data files: the shipped ones are valid, and what is written wrongly is refused with its place.

use glassbox_suite::{BUILT_IN_SUITES, Suite, SuiteError, built_in, json_schema};

const ITEM: &str = r#"{"id":"a","lang":"en","question":"What is the colour of Zorvex?","answer":"teal","gold":"Zorvex comes in teal.","distractors":["Talmin comes in amber.","Brivex comes in mint."]}"#;

const SUITE: &str = r#"version: 1
name: small
data:
  qa: {file: qa.jsonl}
prompts:
  plain:
    en:
      ask:
        - role: user
          parts:
            - documents: {each: "[{n}] {text}", after_each: "\n"}
            - question
tests:
  - id: evidence
    type: evidence_position
    data: [qa]
    prompt: plain
    design: {passages: 3, positions: all, arms: [oracle, no_gold]}
    gate:
      - {metric: u_contrast, max: 0.1}
"#;

fn parse(suite: &str, data: &str) -> Result<Suite, SuiteError> {
    Suite::parse("small.yaml", suite.as_bytes(), &|file| (file.to_owned(), Ok(data.as_bytes().to_vec())))
}

/// Replaces `from` in the suite and returns the message and the hint.
fn refusal(from: &str, to: &str) -> (String, String) {
    assert!(SUITE.contains(from), "`{from}` is in the suite");
    let error = parse(&SUITE.replacen(from, to, 1), ITEM).expect_err("the suite is wrong");
    (error.to_string(), error.hint().unwrap_or_default().to_owned())
}

#[test]
fn the_shipped_suites_are_valid_and_their_plans_never_change_by_themselves() {
    for name in BUILT_IN_SUITES {
        let suite = built_in(name).expect("it is built in").expect("it is valid");
        let plan = suite.plan().expect("it can be planned");
        assert_eq!(plan, suite.plan().expect("it can be planned"), "{name}");
        let ids: std::collections::BTreeSet<_> = plan.iter().map(|trial| &trial.id).collect();
        assert_eq!(ids.len(), plan.len(), "{name}");
    }
    assert!(built_in("no such suite").is_none());
}

#[test]
fn every_suite_of_the_folder_is_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
    let entries = std::fs::read_dir(folder).expect("the suites are beside the crates").filter_map(Result::ok);
    let suites: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect();
    assert!(suites.len() >= 3, "{suites:?}");
    for path in suites {
        Suite::open(&path)
            .and_then(|suite| suite.plan())
            .map_err(|error| format!("{error}: {:?}", error.hint()))
            .expect("it can be planned");
    }
}

#[test]
fn a_group_is_never_split_and_its_conditions_come_in_seeded_order() {
    let suite = built_in("evidence").expect("it is built in").expect("it is valid");
    let plan = suite.plan().expect("it can be planned");
    let mut seen = std::collections::BTreeSet::new();
    let mut last = None;
    let mut first_arms = std::collections::BTreeSet::new();
    for trial in &plan {
        if last != Some(&trial.content.item) {
            assert!(seen.insert(&trial.content.item), "{} comes twice", trial.content.item);
            first_arms.insert(trial.content.condition.label());
        }
        last = Some(&trial.content.item);
    }
    assert!(first_arms.len() > 5, "groups begin with different conditions: {first_arms:?}");
}

#[test]
fn the_gold_document_stands_where_the_condition_says_and_nowhere_else() {
    let suite = built_in("evidence").expect("it is built in").expect("it is valid");
    let (mut passages, mut with_value) = (0, 0);
    for trial in suite.plan().expect("it can be planned") {
        let content = &trial.content;
        let wanted = match content.condition.arm.as_str() {
            "position" | "no_citation" => content.condition.position,
            "oracle" => Some(1),
            _ => None,
        };
        assert_eq!(content.expected.gold_number(), wanted, "{}", content.condition.label());
        let text = content.request.plain_text();
        let holds = content
            .expected
            .passages
            .iter()
            .enumerate()
            .all(|(index, passage)| text.contains(&format!("[{}] {}\n", index + 1, passage.text)));
        assert!(holds && text.contains(&content.expected.question), "{text}");
        passages += content.expected.passages.len();
        with_value += content.expected.passages.iter().filter(|passage| passage.value.is_some()).count();
    }
    assert!(with_value * 20 > passages * 19, "the value of nearly every document is known: {with_value} of {passages}");
}

#[test]
fn a_misspelt_key_is_refused_with_its_place_and_the_nearest_one() {
    let (message, hint) = refusal("    design:", "    desing:");
    assert_eq!((message.as_str(), hint.as_str()), ("unknown key `desing` (small.yaml:18:5)", "did you mean `design`?"));
    let (message, hint) = refusal("passages: 3", "pasages: 3");
    assert_eq!((message.as_str(), hint.as_str()), ("unknown key `pasages` (small.yaml:18:14)", "did you mean `passages`?"));
    let (message, hint) = refusal("type: evidence_position", "type: evidence_postion");
    assert_eq!(
        (message.as_str(), hint.as_str()),
        ("unknown value `evidence_postion` (small.yaml:15:11)", "did you mean `evidence_position`?")
    );
    let (message, hint) = refusal("arms: [oracle,", "arms: [orakle,");
    assert_eq!((message.as_str(), hint.as_str()), ("unknown value `orakle` (small.yaml:18:50)", "did you mean `oracle`?"));
    let (message, hint) = refusal("metric: u_contrast", "metric: u_contrst");
    assert_eq!(message, "no metric `u_contrst` in a test of type `evidence_position` with this design (small.yaml:20:18)");
    assert_eq!(hint, "did you mean `u_contrast`?");
    let (message, hint) = refusal("data: [qa]", "data: [qq]");
    assert_eq!((message.as_str(), hint.as_str()), ("no data `qq` (small.yaml:16:12)", "known are `qa`"));
    let (message, hint) = refusal("prompt: plain", "prompt: plian");
    assert_eq!((message.as_str(), hint.as_str()), ("no prompt `plian` (small.yaml:17:13)", "did you mean `plain`?"));
}

/// A number in a suite may not become more requests, or longer ones, than anybody can mean: nothing is planned for it.
#[test]
fn a_suite_that_asks_for_texts_or_requests_without_end_is_refused_with_the_limit() {
    const MEMORY: &str = r#"version: 1
name: small
data:
  qa: {file: qa.jsonl}
prompts:
  plain:
    en:
      ask:
        - {role: user, parts: [documents: {each: "{text}"}]}
        - {role: user, parts: [question]}
      between: [{user: a, assistant: b}]
      rewrites: {polite: "Please: {question}"}
tests:
  - id: t
    type: memory_decay
    data: [qa]
    prompt: plain
    design: {passages: 1, characters: [0, 500]}
"#;
    assert!(parse(MEMORY, ITEM).and_then(|suite| suite.plan()).is_ok_and(|plan| plan.len() >= 2));
    let many = (0..33).map(|distance| distance.to_string()).collect::<Vec<_>>().join(", ");
    for (from, to, wanted) in [
        ("[0, 500]", "[0, 9223372036854775807]", "wanted at most 1000000"),
        ("[0, 500]", "[500000, 500001]", "wanted at most 1000000"),
        ("[0, 500]", &format!("[{many}]"), "at most 32 distances, found 33"),
        ("characters: [0, 500]", "turns: [0, 2]", "`between` has 1 turns, and the design wants 2"),
        ("name: small", "name: small\ndefaults: {floor: {replicates: 4000000000}}", "must be at most 100"),
        ("memory_decay", "minimal_rewrite", "belong to tests of type `memory_decay`"),
    ] {
        let error = parse(&MEMORY.replacen(from, to, 1), ITEM).expect_err("the suite is wrong").to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let rewrite = MEMORY.replace("memory_decay", "minimal_rewrite").replace(", characters: [0, 500]", "");
    assert!(parse(&rewrite, ITEM).is_ok());
    let error = parse(&rewrite.replace("{question}", "{question}{question}"), ITEM).expect_err("twice").to_string();
    assert!(error.contains("must hold `{question}` once"), "{error}");
    let orders = SUITE
        .replace("evidence_position", "order_sensitivity")
        .replace("passages: 3, positions: all, arms: [oracle, no_gold]", "passages: 12, orders: 1000");
    let error = parse(&orders.replace("u_contrast", "eos"), ITEM).expect_err("too many").to_string();
    assert!(error.contains("from 2 to 720 orders"), "{error}");
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_reason() {
    for (from, to, wanted) in [
        ("version: 1", "version: 2", "suite version 2; this glassbox reads version 1 (small.yaml:1:10)"),
        ("arms: [oracle, no_gold]", "arms: [closed]", "prompt `plain` in `en`: the arm `closed` needs `closed_book` (small.yaml:17:13)"),
        ("passages: 3", "passages: 9", "item `a` has 2 distractors, and the design wants 8 (small.yaml:14:9)"),
        (
            "passages: 3",
            "passages: 3, orders: 4",
            "`orders` belongs to tests of type `order_sensitivity`; this one is `evidence_position` (small.yaml:18:13)",
        ),
        (
            "positions: all",
            "positions: {only: [1, 4]}",
            "wanted at least 2 `passages` and `positions` from 1 to 3, found [1, 4] (small.yaml:18:13)",
        ),
        ("max: 0.1}", "max: 0.1, min: 0.2}", "the gate on `u_contrast` needs either `max` or `min` (small.yaml:20:18)"),
        ("max: 0.1}", "max: 10}", "the gate on `u_contrast` asks for 10, and `u_contrast` lies between -1 and 1 (small.yaml:20:18)"),
        (
            "metric: u_contrast, max: 0.1",
            "metric: accuracy, min: 85",
            "the gate on `accuracy` asks for 85, and `accuracy` lies between 0 and 1 (small.yaml:20:18)",
        ),
        ("- question", "- {text: x}", "prompt `plain` in `en`: `ask` must hold `documents` once and `question` once (small.yaml:17:13)"),
        ("[{n}] {text}", "[{n}]", "`each` must hold `{text}` once, the place of the document's text (small.yaml:11:33)"),
        ("[{n}] {text}", "{text}{text}", "`each` must hold `{text}` once, the place of the document's text (small.yaml:11:33)"),
        (
            "metric: u_contrast",
            "metric: memory_of_elephants",
            "no metric `memory_of_elephants` in a test of type `evidence_position` with this design (small.yaml:20:18)",
        ),
        (
            "name: small",
            "name: small\ndefaults: {floor: {replicates: 1}}",
            "in `defaults`: `floor.replicates` must be at least 2: one answer has no spread (small.yaml)",
        ),
    ] {
        assert_eq!(refusal(from, to).0, wanted);
    }
    let error = parse(&SUITE.replace("    design: {passages: 3, positions: all, arms: [oracle, no_gold]}\n", ""), ITEM)
        .expect_err("no design")
        .to_string();
    assert_eq!(error, "the key `design` is missing (small.yaml:18:5)");
}

#[test]
fn every_random_answer_has_a_stream_of_its_own_and_greedy_ones_share_the_suites_seed() {
    for name in BUILT_IN_SUITES {
        let mut suite = built_in(name).expect("it is built in").expect("it is valid");
        suite.limit_items(20);
        let seeds = |suite: &Suite| -> Vec<u64> {
            suite.plan().expect("it can be planned").iter().map(|trial| trial.content.request.seed).collect()
        };
        assert!(seeds(&suite).iter().all(|seed| *seed == suite.defaults.seed), "{name}");
        suite.defaults.sampling.temperature = 1.0;
        let random = seeds(&suite);
        let distinct: std::collections::BTreeSet<_> = random.iter().collect();
        assert_eq!(distinct.len(), random.len(), "{name}: items that share a stream are not independent");
        suite.defaults.seed += 1;
        assert!(seeds(&suite).iter().all(|seed| !distinct.contains(seed)), "{name}");
    }
}

#[test]
fn an_item_that_cannot_measure_anything_is_refused_with_its_line() {
    let other = ITEM.replace("\"a\"", "\"b\"");
    for (line, wanted) in [
        (ITEM.to_owned(), "the id `a` occurs twice, first in line 1 (qa.jsonl:2)"),
        (
            other.replace("comes in amber", "comes in Teal"),
            "item `b`: the distractor `Talmin comes in Teal.` holds the answer `teal`: an answer could not tell which document was read (qa.jsonl:2)",
        ),
        (
            other.replace("Zorvex comes in teal", "Zorvex is blue"),
            "item `b`: the gold document does not hold the answer `teal` (qa.jsonl:2)",
        ),
        (other.replace("\"answer\":\"teal\",", ""), "missing field `answer` (qa.jsonl:2)"),
        (other.replace("\"teal\"", "\"\""), "item `b`: `answer` is empty (qa.jsonl:2)"),
        (
            other.replace("\"gold\"", "\"golden\""),
            "unknown field `golden`, expected one of `id`, `lang`, `question`, `answer`, `aliases`, `gold`, `distractors`, `contradictory`, `counter_answer`, `kind`, `entity`, `attribute` (qa.jsonl:2)",
        ),
        ("{".to_owned(), "EOF while parsing an object (qa.jsonl:2)"),
    ] {
        let error = parse(SUITE, &format!("{ITEM}\n{line}\n")).expect_err("line 2 is wrong");
        assert_eq!(error.to_string(), wanted);
    }
    assert_eq!(parse(SUITE, "\n").expect_err("nothing").to_string(), "no items: wanted one JSON object a line (qa.jsonl)");
}

#[test]
fn a_document_that_refers_to_its_neighbours_is_refused_where_order_varies() {
    let suite = SUITE
        .replace("evidence_position", "order_sensitivity")
        .replace("{passages: 3, positions: all, arms: [oracle, no_gold]}", "{passages: 3, orders: 4}")
        .replace("u_contrast", "eos");
    parse(&suite, ITEM).expect("no document refers to another");
    let referring = ITEM.replace("Talmin comes in amber.", "Unlike the above, Talmin comes in amber.");
    let error = parse(&suite, &referring).expect_err("the meaning depends on the order");
    assert!(error.to_string().contains("refers to another place by `above`"), "{error}");
    assert_eq!(error.hint(), Some("reword it, or set `allow_references: true` in the design"));
    parse(&suite.replace("orders: 4", "orders: 4, allow_references: true"), &referring).expect("waived");
    assert!(parse(SUITE, &referring).is_ok(), "only reordering is in danger");
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("none.yaml");
    assert!(Suite::open(&path).expect_err("no such file").to_string().starts_with(&format!("cannot read `{}`: ", path.display())));
    let path = folder.path().join("small.yaml");
    std::fs::write(&path, SUITE).expect("writable");
    let error = Suite::open(&path).expect_err("the data file is missing").to_string();
    assert!(error.contains("cannot read the data file `") && error.ends_with("small.yaml:4:14)"), "{error}");
    std::fs::write(folder.path().join("qa.jsonl"), ITEM).expect("writable");
    Suite::open(&path).expect("both files are there");
}

#[test]
fn the_json_schema_refuses_unknown_keys_too() {
    let schema = json_schema();
    assert_eq!(schema["additionalProperties"], serde_json::json!(false));
    assert!(schema["properties"]["tests"].is_object());
}
