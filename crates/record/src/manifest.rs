use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, Timestamp};

/// `manifest.json`: what was tested, with what, where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `glassbox-run`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Name of the run and of its folder.
    pub run: String,
    /// When the run was begun.
    pub created: Timestamp,
    /// Everything that may change an answer or a verdict.
    pub fingerprint: Fingerprint,
    /// Where it ran.
    pub machine: Machine,
    /// Hash of `plan.jsonl`.
    pub plan: Digest,
    /// Trials of the plan.
    pub trials: usize,
}

/// Everything that may change an answer or a verdict. Two runs with equal fingerprints are comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Version of glassbox.
    pub glassbox: String,
    /// The suite.
    pub suite: SuiteIdentity,
    /// Its data files.
    pub data: Vec<DataIdentity>,
    /// The thing under test.
    pub subject: SubjectIdentity,
    /// Seed of the plan.
    pub seed: u64,
}

/// Which suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteIdentity {
    /// `name` of the suite file.
    pub name: String,
    /// Where it was read; `built-in` for an embedded one.
    pub path: String,
    /// Hash of the file.
    pub hash: Digest,
}

/// Which data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataIdentity {
    /// Name in the suite.
    pub name: String,
    /// Where it was read.
    pub path: String,
    /// Hash of the file.
    pub hash: Digest,
    /// Items in it.
    pub items: usize,
}

/// Which thing is under test. Fields that do not apply are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectIdentity {
    /// How it is run.
    pub kind: SubjectKind,
    /// The name that the user gave, such as a path or `specimen`.
    pub name: String,
    /// What is known about it: `weights`, `tokenizer`, `template` (hashes), `architecture`, `kernels`, `activations`, `cache`, `threads`, `path` and so on.
    pub facts: BTreeMap<String, String>,
}

/// How a subject is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubjectKind {
    /// By this engine; can be watched.
    Native,
    /// Behind an HTTP interface.
    Remote,
    /// By a script with known faults, to test the bench.
    Scripted,
    /// Answers are taken from an earlier record.
    Recorded,
}

/// Where a run ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system, such as `linux`.
    pub os: String,
    /// Instruction set, such as `x86_64`.
    pub arch: String,
    /// Processors that the process may use.
    pub processors: usize,
}

/// One fact that two fingerprints do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which fact.
    pub what: String,
    /// Its value in the record.
    pub recorded: String,
    /// Its value now.
    pub now: String,
}

/// Facts of a subject that cannot change an answer: by contract the bits do not depend on them.
const HARMLESS: [&str; 2] = ["threads", "path"];

impl Fingerprint {
    /// Every difference that may change an answer, in the order of the fields; empty when answers of both may be mixed.
    ///
    /// - `now`  the fingerprint to hold against this recorded one
    ///
    /// The number of threads and the places of files are left out: hashes stand for the files, and answers do not depend on threads.
    #[must_use]
    pub fn differences(&self, now: &Fingerprint) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |what: &str, recorded: &str, now: &str| {
            if recorded != now {
                found.push(Difference { what: what.to_owned(), recorded: recorded.to_owned(), now: now.to_owned() });
            }
        };
        compare("glassbox version", &self.glassbox, &now.glassbox);
        compare("suite name", &self.suite.name, &now.suite.name);
        compare("suite hash", self.suite.hash.as_hex(), now.suite.hash.as_hex());
        let hashes = |data: &[DataIdentity]| data.iter().map(|data| (data.name.clone(), data.hash.to_string())).collect();
        compare_maps("data", &hashes(&self.data), &hashes(&now.data), &mut compare);
        compare("subject kind", &format!("{:?}", self.subject.kind), &format!("{:?}", now.subject.kind));
        if self.subject.facts.is_empty() && now.subject.facts.is_empty() {
            compare("subject name", &self.subject.name, &now.subject.name);
        }
        compare_maps("subject", &self.subject.facts, &now.subject.facts, &mut compare);
        compare("seed", &self.seed.to_string(), &now.seed.to_string());
        found
    }
}

fn compare_maps(
    what: &str,
    recorded: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    compare: &mut impl FnMut(&str, &str, &str),
) {
    let names: std::collections::BTreeSet<&String> = recorded.keys().chain(now.keys()).collect();
    for name in names.into_iter().filter(|name| !HARMLESS.contains(&name.as_str())) {
        let value = |map: &BTreeMap<String, String>| map.get(name).cloned().unwrap_or_else(|| "(absent)".to_owned());
        compare(&format!("{what} {name}"), &value(recorded), &value(now));
    }
}
