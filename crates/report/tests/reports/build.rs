//! Records by hand: small, whole, and with whatever text a test wants in them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use glassbox_record::{
    Answer, Attempt, Bound, Condition, DataIdentity, Digest, Expected, FORMAT_VERSION, Fingerprint, FinishReason, GateVerdict, HeadMap,
    Interval, Judgement, LayerLook, Look, LookReason, Looked, Machine, Message, Metric, NewRun, Outcome, Passage, PassageRole, Piece,
    PlannedTrial, Point, PromptIntegrity, PromptSpan, Request, Role, RunReader, RunWriter, Sampling, Score, Series, Status,
    SubjectIdentity, SubjectKind, SuiteIdentity, TestVerdict, Timestamp, Timing, TokenText, Totals, TrialContent, Verdicts,
};
use glassbox_report::{ReportError, Run};

/// A run to be written: every item is answered wrongly, except for one that is watched for contrast.
pub(crate) struct Building {
    /// Stands wherever a record holds text from outside.
    pub(crate) text: String,
    /// Wrong answers.
    pub(crate) wrong: usize,
    /// Whether answers were watched.
    pub(crate) watched: bool,
    /// Tokens of a watched prompt and answer.
    pub(crate) tokens: usize,
    /// How the gates came out.
    pub(crate) gates: Vec<Status>,
    /// Whether the verdicts are written.
    pub(crate) finished: bool,
}

impl Default for Building {
    fn default() -> Self {
        let gates = vec![Status::Pass, Status::Fail, Status::Inconclusive, Status::CannotSay];
        Self { text: "plain".to_owned(), wrong: 2, watched: true, tokens: 12, gates, finished: true }
    }
}

/// A run in a folder that goes away with this.
pub(crate) struct Built {
    pub(crate) _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Built {
    pub(crate) fn load(&self) -> Result<Run, ReportError> {
        Run::load(&RunReader::open(&self.path).expect("a run"))
    }
}

impl Building {
    pub(crate) fn build(&self) -> Built {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let now = Timestamp::from_unix_ms(1_796_072_052_345);
        let plan: Vec<PlannedTrial> = (0..=self.wrong).map(|number| self.trial(number)).collect();
        let new = NewRun { fingerprint: self.fingerprint(), machine: Machine::default(), plan: &plan };
        let mut writer = RunWriter::create(folder.path(), new, now).expect("a new run");
        let mut scores = Vec::new();
        for (number, trial) in plan.iter().enumerate() {
            let right = number == self.wrong;
            writer.append(&self.attempt(trial, now), now).expect("appended");
            if self.watched {
                let reason = if right { LookReason::Contrast } else { LookReason::Failing };
                writer.append_look(&Look { trial: trial.id.clone(), reason, looked: self.looked() }, now).expect("appended");
            }
            scores.push(self.score(trial, right));
        }
        if self.finished {
            writer.conclude(&scores, &self.verdicts(plan.len()), now).expect("concluded");
        }
        Built { path: writer.folder().to_owned(), _folder: folder }
    }

    fn fingerprint(&self) -> Fingerprint {
        let (text, hash) = (self.text.clone(), Digest::of_bytes(b"x"));
        Fingerprint {
            glassbox: "0.1.0".to_owned(),
            suite: SuiteIdentity { name: text.clone(), path: text.clone(), hash: hash.clone() },
            data: vec![DataIdentity { name: text.clone(), path: text.clone(), hash, items: 3 }],
            subject: SubjectIdentity {
                kind: SubjectKind::Native,
                name: text.clone(),
                facts: BTreeMap::from([("architecture".to_owned(), text)]),
            },
            seed: 7,
        }
    }

    fn trial(&self, number: usize) -> PlannedTrial {
        let passage = |role| Passage { role, text: self.text.clone(), value: None };
        let roles = [PassageRole::Distractor, PassageRole::Gold, PassageRole::Contradictory];
        let piece = Piece { span: Some("question".to_owned()), text: self.text.clone() };
        let content = TrialContent {
            test: self.text.clone(),
            item: format!("{}-{number}", self.text),
            lang: "en".to_owned(),
            condition: Condition { position: Some(2), ..Condition::of_arm("position") },
            replicate: 0,
            request: Request {
                messages: vec![Message { role: Role::User, pieces: vec![piece] }],
                max_tokens: 8,
                sampling: Sampling::Greedy,
                stop: Vec::new(),
                seed: 7,
            },
            expected: Expected {
                question: self.text.clone(),
                answer: self.text.clone(),
                aliases: Vec::new(),
                passages: roles.into_iter().map(passage).collect(),
            },
        };
        PlannedTrial::new(content).expect("JSON")
    }

    fn attempt(&self, trial: &PlannedTrial, now: Timestamp) -> Attempt {
        let prompt = PromptIntegrity {
            text: Some(Digest::of_bytes(b"p")),
            request: None,
            ids: None,
            tokens: Some(9),
            bos_count: Some(1),
            truncated: Some(false),
        };
        let answer = Answer {
            text: self.text.clone(),
            finish: FinishReason::EndOfTurn,
            prompt,
            answer_tokens: Some(1),
            remote: None,
            first_token: Vec::new(),
            timing: Timing::default(),
        };
        Attempt { trial: trial.id.clone(), attempt: 1, started: now, outcome: Outcome::Answered(answer) }
    }

    fn score(&self, trial: &PlannedTrial, right: bool) -> Score {
        Score {
            trial: trial.id.clone(),
            judgement: if right { Judgement::Right } else { Judgement::Wrong },
            rung: None,
            extracted: Some(self.text.clone()),
            cited: vec![1, 99],
            captured_by: (!right).then_some(3),
            grounded: Some(true),
            note: Some(self.text.clone()),
        }
    }

    /// Two layers of two heads; document 2 is the right one and gets a twentieth, document 3 the most.
    fn looked(&self) -> Looked {
        let span = |name: &str, first_token: usize| PromptSpan { name: name.to_owned(), first_token, tokens: 2 };
        let (mass, uniform) = (vec![0.1, 0.05, 0.4, 0.001], vec![0.2, 0.2, 0.2, 0.1]);
        let layer = |layer: usize| LayerLook {
            layer,
            mass: mass.clone(),
            uniform: uniform.clone(),
            lift: vec![None; 4],
            heads: vec![mass.clone(); 2],
        };
        let row: Vec<f32> = (0..self.tokens).map(|key| if key % 3 == 0 { 0.2 } else { 0.1 }).collect();
        let map =
            |head: usize| HeadMap { layer: 1, head, why: self.text.clone(), queries: vec![self.tokens - 1], weights: vec![row.clone()] };
        Looked {
            answer: self.text.clone(),
            answer_rows: 1,
            spans: vec![span("document 1", 1), span("document 2", 3), span("document 3", 5), span("question", 7)],
            layers: vec![layer(0), layer(1)],
            tokens: (0..self.tokens).map(|id| TokenText { id: id as u32, text: self.text.clone() }).collect(),
            maps: vec![map(0), map(1)],
        }
    }

    fn verdicts(&self, trials: usize) -> Verdicts {
        let interval = |low, high| Some(Interval { low, high, level: 0.95, method: "Wilson".to_owned() });
        let metric = |index: usize, status: Status| Metric {
            name: format!("metric_{index}"),
            meaning: self.text.clone(),
            value: (status != Status::CannotSay).then_some(0.5),
            interval: if status == Status::CannotSay { None } else { interval(0.4, 0.6) },
            n: 80,
            p_value: None,
            p_method: None,
            floor: None,
            undefined: (status == Status::CannotSay).then(|| self.text.clone()),
        };
        let gate = |index: usize, status: Status| GateVerdict {
            metric: format!("metric_{index}"),
            bound: Bound::Min(0.7),
            status,
            warned: false,
            sentence: format!("`metric_{index}` {}", self.text),
            detectable: Some(0.1),
        };
        let points = |value: f64| {
            let place = |place: usize| Point { at: place.to_string(), value, interval: interval(value - 0.1, value + 0.05), n: 40 };
            (1..=3).map(place).collect::<Vec<_>>()
        };
        let series = |name: &str, slice: Option<&str>, value| Series {
            name: name.to_owned(),
            axis: self.text.clone(),
            slice: slice.map(str::to_owned),
            points: points(value),
        };
        let statuses = || self.gates.iter().copied().enumerate();
        let test = TestVerdict {
            id: self.text.clone(),
            kind: "evidence_position".to_owned(),
            status: Status::worst(self.gates.iter().copied()),
            items: 80,
            gates: statuses().map(|(index, status)| gate(index, status)).collect(),
            metrics: statuses().map(|(index, status)| metric(index, status)).collect(),
            series: vec![
                series("accuracy_by_position", None, 0.9),
                series("accuracy_by_position", Some("en"), 0.95),
                series("accuracy_by_position", Some("zh"), 0.8),
                series("gold_attention_by_layer", Some("wrong answers"), 0.2),
                series("gold_attention_by_layer", Some("wrong answers, uniform baseline"), 0.15),
                series("other_by_thing", Some(&self.text), 0.5),
            ],
            notes: vec![self.text.clone()],
        };
        Verdicts {
            format: "glassbox-verdicts".to_owned(),
            version: FORMAT_VERSION,
            status: test.status,
            totals: Totals { planned: trials, answered: trials, failed: 0, missing: 0, attempts: trials },
            tests: vec![test],
        }
    }
}
