//! What a record survives: being cut at any byte, two writers, a newer format, drift, damage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use glassbox_record::*;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_unix_ms(1_796_072_052_345);

fn request(question: &str) -> Request {
    Request {
        messages: vec![Message {
            role: Role::User,
            pieces: vec![
                Piece { span: Some("question".to_owned()), text: question.to_owned() },
                Piece { span: None, text: "\n".to_owned() },
            ],
        }],
        max_tokens: 16,
        sampling: Sampling::Greedy,
        stop: Vec::new(),
        seed: 7,
    }
}

fn plan(trials: usize) -> Vec<PlannedTrial> {
    let planned = |index: usize| {
        PlannedTrial::new(TrialContent {
            test: "evidence".to_owned(),
            item: format!("item-{index}"),
            lang: "en".to_owned(),
            condition: Condition { position: Some(index % 5 + 1), ..Condition::of_arm("position") },
            replicate: 0,
            request: request(&format!("What is number {index}?")),
            expected: Expected {
                question: format!("What is number {index}?"),
                answer: index.to_string(),
                aliases: vec![],
                passages: vec![],
            },
        })
        .expect("the content is plain")
    };
    (0..trials).map(planned).collect()
}

fn fingerprint() -> Fingerprint {
    Fingerprint {
        glassbox: "0.1.0".to_owned(),
        suite: SuiteIdentity { name: "evidence".to_owned(), path: "suites/evidence.yaml".to_owned(), hash: Digest::of_bytes(b"suite") },
        data: vec![DataIdentity { name: "qa".to_owned(), path: "qa.jsonl".to_owned(), hash: Digest::of_bytes(b"data"), items: 3 }],
        subject: SubjectIdentity {
            kind: SubjectKind::Scripted,
            name: "healthy".to_owned(),
            facts: BTreeMap::from([("weights".to_owned(), "abc".to_owned()), ("threads".to_owned(), "2".to_owned())]),
        },
        seed: 7,
    }
}

fn prompt_integrity() -> PromptIntegrity {
    let text = Some(Digest::of_bytes(b"text"));
    PromptIntegrity { text, request: None, ids: None, tokens: Some(12), bos_count: Some(1), truncated: Some(false) }
}

fn answered(trial: &PlannedTrial, attempt: u32) -> Attempt {
    let answer = Answer {
        text: format!("{} \u{1F980}\n\"[1]\"", trial.content.expected.answer),
        finish: FinishReason::EndOfTurn,
        prompt: prompt_integrity(),
        answer_tokens: Some(4),
        first_token: vec![TokenProbability { id: Some(3), text: "4".to_owned(), log_probability: -0.25 }],
        timing: Timing { first_token_ms: Some(1.5), total_ms: 3.25 },
        remote: None,
    };
    Attempt { trial: trial.id.clone(), attempt, started: NOW, outcome: Outcome::Answered(answer) }
}

fn failed(trial: &PlannedTrial, attempt: u32) -> Attempt {
    let failure = Failure { class: FailureClass::Timeout, message: "no answer after 30 s".to_owned(), retries: Vec::new() };
    Attempt { trial: trial.id.clone(), attempt, started: NOW, outcome: Outcome::Failed(failure) }
}

/// A run with one answer for each of its trials.
fn written_run(runs: &Path, trials: usize) -> (PathBuf, Vec<PlannedTrial>) {
    let plan = plan(trials);
    let new = NewRun { fingerprint: fingerprint(), machine: Machine::default(), plan: &plan };
    let mut writer = RunWriter::create(runs, new, NOW).expect("the folder is writable");
    for trial in &plan {
        writer.append(&answered(trial, 1), NOW).expect("the folder is writable");
    }
    (writer.folder().to_owned(), plan)
}

#[test]
fn what_was_written_is_read() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (folder, plan) = written_run(runs.path(), 4);
    let reader = RunReader::open(&folder).expect("a run");
    assert_eq!(reader.manifest().fingerprint, fingerprint());
    assert_eq!(reader.manifest().created, NOW);
    assert_eq!(reader.plan().expect("a plan"), plan);
    let expected: Vec<Attempt> = plan.iter().map(|trial| answered(trial, 1)).collect();
    assert_eq!(reader.attempts().expect("attempts"), expected);
    assert!(reader.verdicts().expect("readable").is_none() && reader.scores().expect("readable").is_none());
    assert!(folder.file_name().expect("a name").to_string_lossy().starts_with("20261130T205412Z-"));
}

#[test]
fn two_runs_of_the_same_moment_get_two_folders() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    assert_ne!(written_run(runs.path(), 1).0, written_run(runs.path(), 1).0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_file_cut_at_any_byte_keeps_every_whole_line_and_can_be_written_on(share in 0.0f64..1.0) {
        let runs = tempfile::tempdir().expect("a temporary folder");
        let (folder, plan) = written_run(runs.path(), 4);
        let path = folder.join("trials.jsonl");
        let bytes = fs::read(&path).expect("just written");
        let header = bytes.iter().position(|byte| *byte == b'\n').expect("a header line") + 1;
        let cut = header + ((bytes.len() - header) as f64 * share) as usize;
        fs::write(&path, &bytes[..cut]).expect("writable");
        let whole = bytes[header..cut].iter().filter(|byte| **byte == b'\n').count();

        let reader = RunReader::open(&folder).expect("a run");
        prop_assert_eq!(reader.attempts().expect("readable").len(), whole);
        let mut resumed = RunWriter::resume(&folder, &fingerprint(), NOW).expect("resumable");
        prop_assert_eq!(resumed.attempts.len(), whole);
        for trial in &plan[whole..] {
            resumed.writer.append(&answered(trial, 1), NOW).expect("writable");
        }
        prop_assert_eq!(fs::read(&path).expect("readable"), bytes);
    }
}

#[test]
fn a_last_line_of_zeros_as_a_power_cut_leaves_it_is_left_out() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (folder, _) = written_run(runs.path(), 3);
    let path = folder.join("trials.jsonl");
    let mut bytes = fs::read(&path).expect("just written");
    let length = bytes.len();
    bytes.extend([0; 40]);
    bytes.push(b'\n');
    fs::write(&path, &bytes).expect("writable");
    assert_eq!(RunReader::open(&folder).expect("a run").attempts().expect("readable").len(), 3);
    drop(RunWriter::resume(&folder, &fingerprint(), NOW).expect("resumable"));
    assert_eq!(fs::read(&path).expect("readable").len(), length);
}

#[test]
fn a_damaged_line_before_the_last_is_named_and_not_skipped() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (folder, _) = written_run(runs.path(), 3);
    let path = folder.join("trials.jsonl");
    let text = fs::read_to_string(&path).expect("just written");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "{\"trial\":";
    fs::write(&path, lines.join("\n") + "\n").expect("writable");
    let error = RunReader::open(&folder).expect("a run").attempts().expect_err("line 3 is damaged").to_string();
    assert!(error.contains("trials.jsonl`:3: unreadable"), "{error}");
}

#[test]
fn the_first_answer_of_a_trial_counts_and_failures_before_it_do_not() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let plan = plan(3);
    let new = NewRun { fingerprint: fingerprint(), machine: Machine::default(), plan: &plan };
    let mut writer = RunWriter::create(runs.path(), new, NOW).expect("the folder is writable");
    let attempts = [failed(&plan[0], 1), answered(&plan[0], 2), answered(&plan[0], 3), failed(&plan[1], 1), failed(&plan[1], 2)];
    for attempt in &attempts {
        writer.append(attempt, NOW).expect("the folder is writable");
    }
    let outcomes = RunReader::open(writer.folder()).expect("a run").outcomes().expect("readable");
    assert_eq!(outcomes.get(&plan[0].id), Some(&attempts[1]));
    assert_eq!(outcomes.get(&plan[1].id), Some(&attempts[4]));
    assert_eq!(outcomes.get(&plan[2].id), None);
}

/// Verdicts that count `attempts` answers, one a trial.
fn verdicts(attempts: usize) -> Verdicts {
    let totals = Totals { planned: attempts, answered: attempts, failed: 0, missing: 0, attempts };
    Verdicts { format: "glassbox-verdicts".to_owned(), version: 1, status: Status::Pass, totals, tests: Vec::new() }
}

fn score(trial: &PlannedTrial) -> Score {
    Score {
        trial: trial.id.clone(),
        judgement: Judgement::Right,
        rung: None,
        extracted: None,
        cited: Vec::new(),
        captured_by: None,
        grounded: None,
        note: None,
    }
}

#[test]
fn verdicts_that_do_not_follow_from_the_attempts_are_found_out() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (folder, plan) = written_run(runs.path(), 4);
    let mut resumed = RunWriter::resume(&folder, &fingerprint(), NOW).expect("resumable");
    let scores: Vec<Score> = plan.iter().map(score).collect();
    resumed.writer.conclude(&scores, &verdicts(4), NOW).expect("writable");
    drop(resumed);
    let check = || RunReader::open(&folder).expect("a run").check_derived(&verdicts(4));
    check().expect("nothing was changed");

    let changed = |name: &str, change: &dyn Fn(&str) -> String| {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).expect("just written");
        fs::write(&path, change(&text)).expect("writable");
        let error = check().expect_err("changed").to_string();
        fs::write(&path, text).expect("writable");
        error
    };
    let without_last = |text: &str| text[..=text.trim_end().rfind('\n').expect("several lines")].to_owned();
    let begins = format!("the verdicts of `{}` were made from 4 answers of 4 trials in 4 attempts, and its ", folder.display());
    assert_eq!(changed("trials.jsonl", &without_last), format!("{begins}`trials.jsonl` now holds 3 answers of 4 trials in 3 attempts"));
    assert_eq!(changed("scores.jsonl", &without_last), format!("{begins}`scores.jsonl` now holds 3 of 4 scores"));
    // The same counts, another answer.
    assert_eq!(changed("trials.jsonl", &|text| text.replacen("[1]", "[2]", 1)), format!("{begins}`trials.jsonl` was changed since"));
    // A record from before the hash was written is held against its counts.
    let unsigned = |text: &str| {
        let (header, rest) = text.split_once('\n').expect("a header");
        format!("{}}}\n{rest}", header.split(",\"derived_from\"").next().expect("a part"))
    };
    let path = folder.join("scores.jsonl");
    fs::write(&path, unsigned(&fs::read_to_string(&path).expect("written"))).expect("writable");
    check().expect("the counts agree");
    assert!(changed("trials.jsonl", &without_last).ends_with("3 attempts"));
}

#[test]
fn a_second_writer_is_refused_while_the_first_lives_and_welcome_after() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let plan = plan(1);
    let new = NewRun { fingerprint: fingerprint(), machine: Machine::default(), plan: &plan };
    let writer = RunWriter::create(runs.path(), new, NOW).expect("the folder is writable");
    let folder = writer.folder().to_owned();
    let refused = RunWriter::resume(&folder, &fingerprint(), NOW);
    assert!(matches!(refused, Err(RecordError::Locked { .. })), "{refused:?}");
    drop(writer);
    RunWriter::resume(&folder, &fingerprint(), NOW).expect("nobody writes any more");
}

#[test]
fn a_run_is_not_mixed_from_two_different_things() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (folder, _) = written_run(runs.path(), 1);
    let mut other = fingerprint();
    other.subject.facts.insert("threads".to_owned(), "8".to_owned());
    RunWriter::resume(&folder, &other, NOW).expect("the number of threads changes no answer");
    other.subject.facts.insert("weights".to_owned(), "def".to_owned());
    other.seed = 8;
    let error = RunWriter::resume(&folder, &other, NOW).expect_err("other weights, another seed").to_string();
    assert!(error.contains("subject weights was `abc` and is `def`; seed was `7` and is `8`"), "{error}");
}

#[test]
fn a_newer_format_is_refused_with_both_versions() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let (folder, _) = written_run(runs.path(), 1);
    for (name, newest) in [("trials.jsonl", TRIALS_VERSION), ("plan.jsonl", FORMAT_VERSION), ("manifest.json", FORMAT_VERSION)] {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).expect("just written");
        let found = newest + 1;
        let newer = text.replacen(&format!("\"version\":{newest}"), &format!("\"version\":{found}"), 1);
        let newer = newer.replacen(&format!("\"version\": {newest}"), &format!("\"version\": {found}"), 1);
        assert_ne!(text, newer);
        fs::write(&path, newer).expect("writable");
        let error = match RunReader::open(&folder) {
            Err(error) => error,
            Ok(reader) => reader.outcomes().expect_err("a newer file"),
        };
        let wanted = format!("{name}` has format version {found}; this glassbox reads up to version {newest}: use a newer one");
        assert!(error.to_string().ends_with(&wanted), "{error}");
        fs::write(&path, text).expect("writable");
    }
}

#[test]
fn a_folder_without_a_manifest_is_no_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = RunReader::open(folder.path()).expect_err("an empty folder").to_string();
    assert!(error.ends_with("holds no run: wanted a `manifest.json` in it"), "{error}");
}

#[test]
fn a_trial_planned_twice_is_refused_before_a_folder_is_made() {
    let runs = tempfile::tempdir().expect("a temporary folder");
    let mut plan = plan(2);
    plan.push(plan[0].clone());
    let new = NewRun { fingerprint: fingerprint(), machine: Machine::default(), plan: &plan };
    let error = RunWriter::create(runs.path(), new, NOW).expect_err("the first trial twice").to_string();
    assert!(error.ends_with("is planned twice, the second time for item `item-0` of test `evidence`"), "{error}");
    assert_eq!(fs::read_dir(runs.path()).expect("the folder").count(), 0);
}

#[test]
fn records_of_every_version_are_still_read() {
    for version in ["v1", "v2"] {
        old_record_is_read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old").join(version));
    }
}

#[test]
fn what_an_endpoint_did_not_tell_is_absent_and_not_zero() {
    let reader = RunReader::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old/v2")).expect("a run");
    let attempts = reader.attempts().expect("readable");
    let answer = |index: usize| attempts[index].outcome.answer().expect("it answered");
    let unknown = answer(0);
    assert_eq!((unknown.finish, unknown.answer_tokens, unknown.timing.first_token_ms), (FinishReason::Unknown, None, None));
    let integrity = &unknown.prompt;
    assert_eq!((&integrity.text, integrity.tokens, integrity.truncated), (&None, None, None));
    assert_eq!(unknown.remote, Some(Box::new(RemoteAnswer::default())));
    let told = answer(1).remote.as_ref().expect("an endpoint");
    assert_eq!((told.retries[0].class, told.retries[0].waited_ms), (FailureClass::RateLimited, 1_000));
    assert_eq!(answer(1).first_token[0].id, None);
}

fn old_record_is_read(folder: &Path) {
    let reader = RunReader::open(folder).expect("a run");
    let plan = reader.plan().expect("readable");
    assert_eq!((plan.len(), reader.outcomes().expect("readable").len()), (reader.manifest().trials, plan.len()));
    let verdicts = reader.verdicts().expect("readable").expect("it was concluded");
    assert_eq!((verdicts.version, verdicts.totals.planned, verdicts.totals.failed), (1, plan.len(), 0));
    assert_eq!(reader.scores().expect("readable").map(|scores| scores.len()), Some(plan.len()));
    assert!(reader.looks().expect("readable").iter().any(|look| !look.looked.layers.is_empty() && !look.looked.maps.is_empty()));
    reader.check_derived(&verdicts).expect("its verdicts follow from its attempts");
}
