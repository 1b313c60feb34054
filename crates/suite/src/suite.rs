//! A suite with its data, checked: what the file says, held against the data and against what each test can do.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use glassbox_record::{Bound, DataIdentity, Digest, SuiteIdentity};
use glassbox_stats::random::{Dice, seed_from};
use serde_saphyr::Spanned;

use crate::checks::{metric_names, metric_range};
use crate::data::{Data, Item};
use crate::design::{Design, Distance};
use crate::plan::GIVEN;
use crate::schema::{
    Arm, CheckSpec, Defaults, DistractorSource, GateSpec, MessageSpec, PartSpec, PromptSet, SuiteFile, TestSpec, place_of,
};
use crate::{Place, SuiteError};

/// Gives for the name of a data file, as the suite writes it, its path for messages and its bytes.
pub type ReadData<'a> = dyn Fn(&str) -> (String, io::Result<Vec<u8>>) + 'a;

/// A suite that can be planned.
#[derive(Debug, Clone)]
pub struct Suite {
    /// For the manifest.
    pub identity: SuiteIdentity,
    /// What the suite is for.
    pub description: Option<String>,
    /// What holds for every test.
    pub defaults: Defaults,
    /// The data files, for the manifest.
    pub data: Vec<DataIdentity>,
    /// The tests, in the order of the file.
    pub tests: Vec<Test>,
}

/// A test that can be planned.
#[derive(Debug, Clone)]
pub struct Test {
    /// Unique in the suite.
    pub id: String,
    /// How its items are varied.
    pub design: Design,
    /// The items asked, in seeded order; their rank balances the design.
    pub items: Vec<Item>,
    /// Prompts by language; every language of the items is there.
    pub prompts: BTreeMap<String, PromptSet>,
    /// How answers are judged.
    pub check: CheckSpec,
    /// Whether the prompt asks for a citation.
    pub cite: bool,
    /// Thresholds.
    pub gates: Vec<Gate>,
    /// Gold documents of all items by language, as easy distractors.
    pub(crate) golds: BTreeMap<String, Vec<String>>,
    /// Every value by language and attribute: what a document may state.
    pub(crate) values: BTreeMap<(String, Option<String>), BTreeSet<String>>,
}

/// A threshold on a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Name of the metric.
    pub metric: String,
    /// The threshold.
    pub bound: Bound,
    /// Where the report warns.
    pub warn: Option<f64>,
}

impl Suite {
    /// Opens a suite file and the data files that it names.
    ///
    /// Errors: an unreadable file, anything that cannot be meant, with its place and the nearest known name.
    pub fn open(path: &Path) -> Result<Self, SuiteError> {
        let shown = path.display().to_string();
        let read = |path: &Path| std::fs::read(path);
        let bytes = read(path).map_err(|source| SuiteError::Unreadable { path: shown.clone(), source })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&shown, &bytes, &|name| (folder.join(name).display().to_string(), read(&folder.join(name))))
    }

    /// Makes a suite of bytes that are already here, such as an embedded one.
    ///
    /// - `path`   for messages and the manifest
    /// - `bytes`  the YAML
    /// - `read`   for the data files
    pub fn parse(path: &str, bytes: &[u8], read: &ReadData<'_>) -> Result<Self, SuiteError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| SuiteError::refused(Place::new(path, 0, 0), format!("not UTF-8 text after {} bytes", error.valid_up_to())))?;
        let file = SuiteFile::parse(path, text)?;
        check_defaults(path, &file.defaults)?;
        let mut data = BTreeMap::new();
        for (name, source) in &file.data {
            let (data_path, bytes) = read(&source.file.value);
            let bytes = bytes.map_err(|error| {
                let message = format!("cannot read the data file `{data_path}`: {error}");
                SuiteError::refused(place_of(path, &source.file), message)
            })?;
            data.insert(name.clone(), Data::parse(name, &data_path, &bytes)?);
        }
        let mut ids = BTreeSet::new();
        let mut tests = Vec::new();
        for spec in &file.tests {
            if !ids.insert(spec.id.value.clone()) {
                return Err(SuiteError::refused(place_of(path, &spec.id), format!("two tests have the id `{}`", spec.id.value)));
            }
            tests.push(Test::check(path, spec, &file, &data)?);
        }
        if tests.is_empty() {
            return Err(SuiteError::refused(Place::new(path, 0, 0), "the suite has no tests"));
        }
        let identity = SuiteIdentity { name: file.name, path: path.to_owned(), hash: Digest::of_bytes(bytes) };
        let data = data.into_values().map(|data| data.identity).collect();
        Ok(Self { identity, description: file.description, defaults: file.defaults, data, tests })
    }

    /// Asks at most so many items in each test, the first in seeded order.
    pub fn limit_items(&mut self, most: usize) {
        for test in &mut self.tests {
            test.items.truncate(most);
        }
    }

    /// Keeps only the tests whose id `keep` accepts.
    pub fn select_tests(&mut self, keep: impl Fn(&str) -> bool) {
        self.tests.retain(|test| keep(&test.id));
    }
}

impl Test {
    fn check(path: &str, spec: &TestSpec, file: &SuiteFile, data: &BTreeMap<String, Data>) -> Result<Self, SuiteError> {
        let chosen = chosen_data(path, spec, data)?;
        let prompts = file.prompts.get(&spec.prompt.value).ok_or_else(|| {
            let error = SuiteError::refused(place_of(path, &spec.prompt), format!("no prompt `{}`", spec.prompt.value));
            error.with_nearest(&spec.prompt.value, file.prompts.keys().map(String::as_str))
        })?;
        let design = Design::check(path, spec)?;
        let items = choose_items(&chosen, spec.items, file.defaults.seed);
        let all: Vec<&Item> = chosen.iter().flat_map(|data| &data.items).collect();
        check_items(path, spec, &all, prompts, &design)?;
        let gates = spec.gate.iter().map(|gate| checked_gate(path, gate, &design, spec.cite.is_some())).collect::<Result<_, _>>()?;
        let mut golds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut values: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for item in &all {
            golds.entry(item.lang.clone()).or_default().push(item.gold.clone());
            let known = values.entry((item.lang.clone(), item.attribute.clone())).or_default();
            known.extend(item.right_values().map(str::to_owned));
            known.extend(item.counter_answer.clone());
        }
        Ok(Self {
            id: spec.id.value.clone(),
            design,
            items,
            prompts: prompts.clone(),
            check: spec.check.clone(),
            cite: spec.cite.is_some(),
            gates,
            golds,
            values,
        })
    }
}

/// Times that one request is sent again at most.
const MOST_REPLICATES: u32 = 100;

fn check_defaults(path: &str, defaults: &Defaults) -> Result<(), SuiteError> {
    let refused = |message: &str| Err(SuiteError::refused(Place::new(path, 0, 0), format!("in `defaults`: {message}")));
    match defaults {
        Defaults { floor, .. } if floor.replicates < 2 => refused("`floor.replicates` must be at least 2: one answer has no spread"),
        Defaults { floor, .. } if floor.replicates > MOST_REPLICATES => {
            refused(&format!("`floor.replicates` must be at most {MOST_REPLICATES}: each is a request for every item"))
        }
        Defaults { stats, .. } if !(stats.level > 0.5 && stats.level < 1.0) => {
            refused("`stats.level` must be between 0.5 and 1, such as 0.95")
        }
        Defaults { stats, .. } if stats.resamples < 199 => {
            refused("`stats.resamples` must be at least 199, or the ends of an interval are guesses")
        }
        Defaults { max_error_rate, .. } if !(0.0..=1.0).contains(max_error_rate) => refused("`max_error_rate` must be from 0 to 1"),
        Defaults { sampling, .. } if !sampling.temperature.is_finite() || sampling.temperature < 0.0 => {
            refused("`sampling.temperature` must be 0 or a number above it")
        }
        Defaults { sampling, .. } if sampling.max_tokens == 0 => refused("`sampling.max_tokens` must be at least 1"),
        _ => Ok(()),
    }
}

fn chosen_data<'a>(path: &str, spec: &TestSpec, data: &'a BTreeMap<String, Data>) -> Result<Vec<&'a Data>, SuiteError> {
    let find = |name: &Spanned<String>| {
        data.get(&name.value).ok_or_else(|| {
            let error = SuiteError::refused(place_of(path, name), format!("no data `{}`", name.value));
            error.with_nearest(&name.value, data.keys().map(String::as_str))
        })
    };
    let chosen: Vec<&Data> = spec.data.iter().map(find).collect::<Result<_, _>>()?;
    let mut ids = BTreeSet::new();
    for item in chosen.iter().flat_map(|data| &data.items) {
        if !ids.insert(&item.id) {
            return Err(SuiteError::refused(place_of(path, &spec.id), format!("the item `{}` is in two data files of this test", item.id)));
        }
    }
    if ids.is_empty() {
        return Err(SuiteError::refused(place_of(path, &spec.id), "this test names no data"));
    }
    Ok(chosen)
}

/// An even share of each file, in an order that depends on the seed and the ids only, file after file in turn.
fn choose_items(chosen: &[&Data], most: Option<usize>, seed: u64) -> Vec<Item> {
    let mut queues: Vec<Vec<&Item>> = Vec::new();
    for data in chosen {
        let mut ranked: Vec<(u64, &Item)> =
            data.items.iter().map(|item| (Dice::new(seed_from(&["choose item", &seed.to_string(), &item.id])).bits(), item)).collect();
        ranked.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        queues.push(ranked.into_iter().map(|(_, item)| item).collect());
    }
    let longest = queues.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..longest).flat_map(|rank| queues.iter().filter_map(move |queue| queue.get(rank).copied()));
    in_turn.take(most.unwrap_or(usize::MAX)).cloned().collect()
}

fn check_items(
    path: &str,
    spec: &TestSpec,
    items: &[&Item],
    prompts: &BTreeMap<String, PromptSet>,
    design: &Design,
) -> Result<(), SuiteError> {
    let documents = design.documents();
    for item in items {
        let refused = |message: String| SuiteError::refused(place_of(path, &spec.id), message);
        let Some(prompt) = prompts.get(&item.lang) else {
            return Err(refused(format!(
                "item `{}` is in language `{}`, and prompt `{}` has none for it",
                item.id, item.lang, spec.prompt.value
            )));
        };
        check_prompt(path, spec, &item.lang, prompt, design)?;
        let wanted = documents.passages - 1 - documents.contradictory;
        if documents.source == DistractorSource::Own && item.distractors.len() < wanted {
            return Err(refused(format!("item `{}` has {} distractors, and the design wants {wanted}", item.id, item.distractors.len())));
        }
        if item.contradictory.len() < documents.contradictory {
            return Err(refused(format!(
                "item `{}` has {} contradictory documents, and the design wants {}",
                item.id,
                item.contradictory.len(),
                documents.contradictory
            )));
        }
        if matches!(design, Design::OrderSensitivity { .. }) && !spec.design.value.allow_references {
            let texts = std::iter::once(&item.gold).chain(&item.distractors).chain(&item.contradictory);
            if let Some((phrase, text)) = texts.into_iter().find_map(|text| Some((reference_in(text)?, text))) {
                let message = format!(
                    "item `{}`: the document `{text}` refers to another place by `{phrase}`, so its meaning depends on the order",
                    item.id
                );
                return Err(refused(message).with_hint("reword it, or set `allow_references: true` in the design"));
            }
        }
    }
    Ok(())
}

fn check_prompt(path: &str, spec: &TestSpec, lang: &str, prompt: &PromptSet, design: &Design) -> Result<(), SuiteError> {
    let name = &spec.prompt.value;
    let refused =
        |message: String| Err(SuiteError::refused(place_of(path, &spec.prompt), format!("prompt `{name}` in `{lang}`: {message}")));
    let count = |messages: &[MessageSpec], wanted: fn(&PartSpec) -> bool| {
        messages.iter().flat_map(|message| &message.parts).filter(|part| wanted(part)).count()
    };
    let documents = |messages: &[MessageSpec]| count(messages, |part| matches!(part, PartSpec::Documents(_)));
    let questions = |messages: &[MessageSpec]| count(messages, |part| matches!(part, PartSpec::Question));
    for (key, messages) in [("ask", Some(&prompt.ask)), ("ask_without_citation", prompt.ask_without_citation.as_ref())] {
        if let Some(messages) = messages
            && (documents(messages) != 1 || questions(messages) != 1)
        {
            return refused(format!("`{key}` must hold `documents` once and `question` once"));
        }
    }
    if let Some(messages) = &prompt.closed_book
        && (documents(messages) != 0 || questions(messages) != 1)
    {
        return refused("`closed_book` must hold `question` once and no `documents`".to_owned());
    }
    for part in prompt.ask.iter().chain(prompt.ask_without_citation.iter().flatten()).flat_map(|message| &message.parts) {
        if let PartSpec::Documents(documents) = part
            && documents.each.value.matches("{text}").count() != 1
        {
            return Err(SuiteError::refused(
                place_of(path, &documents.each),
                "`each` must hold `{text}` once, the place of the document's text",
            ));
        }
    }
    if let Design::MemoryDecay { untold, distances, .. } = design {
        if *untold && prompt.closed_book.is_none() {
            return refused("the arm `closed` needs `closed_book`".to_owned());
        }
        if prompt.between.is_empty() {
            return refused("a test of type `memory_decay` needs `between`: neutral turns".to_owned());
        }
        let most = distances.iter().filter_map(|distance| if let Distance::Turns(turns) = distance { Some(*turns) } else { None }).max();
        if let Some(most) = most.filter(|most| *most > prompt.between.len()) {
            return refused(format!("`between` has {} turns, and the design wants {most}", prompt.between.len()));
        }
        let last = prompt.ask.last().map(std::slice::from_ref).unwrap_or_default();
        if documents(last) != 0 || questions(last) != 1 {
            return refused("the last message of `ask` must hold the `question`, and an earlier one the `documents`".to_owned());
        }
    }
    if matches!(design, Design::MinimalRewrite { .. }) {
        if prompt.rewrites.is_empty() {
            return refused("a test of type `minimal_rewrite` needs `rewrites`".to_owned());
        }
        let wrong = |(name, text): &(&String, &String)| text.matches("{question}").count() != 1 || *name == GIVEN;
        if let Some((name, text)) = prompt.rewrites.iter().find(wrong) {
            return refused(format!("the rewrite `{name}`, `{text}`, must hold `{{question}}` once, and may not be called `{GIVEN}`"));
        }
    }
    if matches!(design, Design::FactConflict { .. }) && prompt.closed_book.is_none() {
        return refused("a test of type `fact_conflict` needs `closed_book`: what is known by heart".to_owned());
    }
    if let Design::EvidencePosition { arms, .. } = design {
        if arms.contains(&Arm::Closed) && prompt.closed_book.is_none() {
            return refused("the arm `closed` needs `closed_book`".to_owned());
        }
        if arms.contains(&Arm::NoCitation) && prompt.ask_without_citation.is_none() {
            return refused("the arm `no_citation` needs `ask_without_citation`".to_owned());
        }
    }
    Ok(())
}

/// Phrases that tie a document to its place among others.
const REFERENCES: [&str; 24] = [
    "above",
    "below",
    "as follows",
    "following",
    "the former",
    "the latter",
    "previous",
    "preceding",
    "aforementioned",
    "next document",
    "step 1",
    "step 2",
    "上述",
    "如上",
    "如下",
    "以下",
    "以上",
    "前者",
    "后者",
    "前文",
    "下文",
    "上一",
    "下一",
    "第一步",
];

fn reference_in(text: &str) -> Option<&'static str> {
    // Not `contains_value`: articles matter in "the former".
    let plain = text.to_lowercase();
    REFERENCES.into_iter().find(|phrase| crate::compare::holds_whole(&plain, phrase))
}

fn checked_gate(path: &str, spec: &GateSpec, design: &Design, cite: bool) -> Result<Gate, SuiteError> {
    let name = &spec.metric.value;
    let refused = |message: String| SuiteError::refused(place_of(path, &spec.metric), message);
    let known = metric_names(design, cite);
    if !known.contains(name) {
        let error = refused(format!("no metric `{name}` in a test of type `{}` with this design", design.kind().name()));
        return Err(error.with_nearest(name, known.iter().map(String::as_str)));
    }
    let bound = match (spec.max, spec.min) {
        (Some(max), None) => Bound::Max(max),
        (None, Some(min)) => Bound::Min(min),
        _ => return Err(refused(format!("the gate on `{name}` needs either `max` or `min`"))),
    };
    if !bound.threshold().is_finite() || spec.warn.is_some_and(|warn| !warn.is_finite()) {
        return Err(refused(format!("the gate on `{name}` has a threshold that is no number")));
    }
    let (low, high) = metric_range(name);
    let outside = [Some(bound.threshold()), spec.warn].into_iter().flatten().find(|value| !(low..=high).contains(value));
    if let Some(value) = outside {
        return Err(refused(format!("the gate on `{name}` asks for {value}, and `{name}` lies between {low} and {high}")));
    }
    Ok(Gate { metric: name.clone(), bound, warn: spec.warn })
}
