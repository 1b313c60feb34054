use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use glassbox_record::{
    Answer, Digest, FailureClass, FinishReason, HeadMap, LayerLook, Looked, PromptIntegrity, PromptSpan, Request, SubjectIdentity,
    SubjectKind, Timing, TokenText,
};

use crate::{Capability, Subject, SubjectError, Watch};

/// How a scripted subject behaves. Every number is a probability from 0 to 1; [`Script::healthy`] has no fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Start of all its choices: the same seed behaves the same.
    pub seed: u64,
    /// Reads the value from the gold document when it sees it, prompt by prompt.
    pub accuracy: f64,
    /// Overlooks a gold document that is neither the first nor the last.
    pub blind_to_middle: f64,
    /// Answers from the first document, whatever it holds.
    pub bound_to_first: f64,
    /// Knows the answer by heart, question by question.
    pub memory: f64,
    /// Makes something up from a document when no document holds the answer.
    pub invents: f64,
    /// Names a source.
    pub cites: f64,
    /// Names the right source when it names one.
    pub cites_rightly: f64,
    /// Reads another document where the question is put in other words, prompt by prompt.
    pub startled_by_wording: f64,
    /// Answers what it knows by heart where a document says otherwise, question by question.
    pub stubborn: f64,
    /// Answers from the last of two documents that contradict one another, prompt by prompt.
    pub bound_to_last: f64,
    /// Forgets what it was told more than `forgets_after` turns ago, question by question.
    pub forgets: f64,
    /// Turns that it remembers.
    pub forgets_after: usize,
    /// Gives another answer than the last time, call by call.
    pub noise: f64,
    /// Fails, call by call.
    pub fails: f64,
    /// Ends without an answer.
    pub silent: f64,
}

impl Script {
    /// Always right, cites rightly, knows nothing by heart, says so when the documents do not hold the answer.
    #[must_use]
    pub fn healthy(seed: u64) -> Self {
        Self {
            seed,
            accuracy: 1.0,
            blind_to_middle: 0.0,
            bound_to_first: 0.0,
            memory: 0.0,
            invents: 0.0,
            cites: 1.0,
            cites_rightly: 1.0,
            startled_by_wording: 0.0,
            stubborn: 0.0,
            bound_to_last: 0.0,
            forgets: 0.0,
            forgets_after: 0,
            noise: 0.0,
            fails: 0.0,
            silent: 0.0,
        }
    }
}

/// What a scripted subject needs to know of an item to read its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedFact {
    /// The question as it stands in the prompt.
    pub question: String,
    /// The right value.
    pub answer: String,
    /// The document that holds it.
    pub gold: String,
    /// Documents that say otherwise, and what they say.
    pub counters: Vec<(String, String)>,
}

/// A subject that follows a [`Script`]: the truth about it is known, so that the bench can be tested on it.
#[derive(Debug)]
pub struct ScriptedSubject {
    script: Script,
    facts: Vec<ScriptedFact>,
    /// How often each prompt was asked; only noise and failures depend on it.
    calls: Mutex<HashMap<Digest, u64>>,
}

struct Asked<'a> {
    fact: Option<&'a ScriptedFact>,
    documents: Vec<&'a str>,
    /// Whether the question is put in other words.
    rewritten: bool,
    /// Turns since the documents.
    turns: usize,
    text: String,
}

struct Reply {
    text: String,
    read: Option<usize>,
}

impl ScriptedSubject {
    /// A subject that reads these items as `script` says.
    #[must_use]
    pub fn new(script: Script, facts: Vec<ScriptedFact>) -> Self {
        Self { script, facts, calls: Mutex::new(HashMap::new()) }
    }

    fn understand<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        let pieces = || request.messages.iter().flat_map(|message| &message.pieces);
        let named = |name: &'static str| pieces().filter(move |piece| piece.span.as_deref().is_some_and(|span| span.starts_with(name)));
        let question: String = named("question").map(|piece| piece.text.as_str()).collect();
        let fact = self.facts.iter().filter(|fact| question.contains(&fact.question)).max_by_key(|fact| fact.question.len());
        let documents = named("document ").map(|piece| piece.text.as_str()).collect();
        let told = |message: &glassbox_record::Message| {
            message.pieces.iter().any(|piece| piece.span.as_deref().is_some_and(|span| span.starts_with("document ")))
        };
        // After them come an acknowledgement, two messages a turn, and the question.
        let later = request.messages.iter().rposition(told).map_or(0, |place| request.messages.len() - 1 - place);
        let rewritten = fact.is_some_and(|fact| question != fact.question);
        Asked { fact, documents, rewritten, turns: later.saturating_sub(1) / 2, text: request.plain_text() }
    }

    fn reply(&self, asked: &Asked<'_>, call: u64) -> Reply {
        let script = &self.script;
        let now = call.to_string();
        let happens = |what: &str, probability: f64| unit(&[what, &script.seed.to_string(), &asked.text]) < probability;
        let happens_now = |what: &str, probability: f64| unit(&[what, &script.seed.to_string(), &asked.text, &now]) < probability;
        let Some(fact) = asked.fact else { return Reply { text: "I do not know.".to_owned(), read: None } };
        if happens("silent", script.silent) {
            return Reply { text: String::new(), read: None };
        }
        let gold = asked.documents.iter().position(|document| document.contains(&fact.gold));
        let counter = |document: &str| fact.counters.iter().find(|(text, _)| document.contains(text.as_str())).map(|(_, value)| value);
        let contradicting = asked.documents.iter().position(|document| counter(document).is_some());
        if contradicting.is_some() && unit(&["stubborn", &script.seed.to_string(), &fact.question]) < script.stubborn {
            return Reply { text: fact.answer.clone(), read: None };
        }
        let at_an_end = gold.is_some_and(|index| index == 0 || index + 1 == asked.documents.len());
        let other = |salt: &str| {
            let others: Vec<usize> = (0..asked.documents.len()).filter(|index| Some(*index) != gold).collect();
            let choice = unit(&["which", &script.seed.to_string(), &asked.text, salt]) * others.len() as f64;
            others.get(choice as usize).copied()
        };
        let read = match gold {
            _ if happens_now("noise", script.noise) => other(&now),
            _ if asked.turns > script.forgets_after && unit(&["forgets", &script.seed.to_string(), &fact.question]) < script.forgets => {
                None
            }
            _ if asked.rewritten && happens("wording", script.startled_by_wording) => other("wording"),
            _ if happens("first", script.bound_to_first) => asked.documents.first().map(|_| 0),
            Some(_) if contradicting.is_some() && happens("last", script.bound_to_last) => Some(asked.documents.len() - 1),
            Some(_) if !at_an_end && happens("blind", script.blind_to_middle) => Some(0),
            Some(_) if !happens("accuracy", script.accuracy) => other(""),
            Some(index) => Some(index),
            None if contradicting.is_some() && happens("accuracy", script.accuracy) => contradicting,
            None if unit(&["memory", &script.seed.to_string(), &fact.question]) < script.memory => {
                return Reply { text: fact.answer.clone(), read: None };
            }
            None if happens("invents", script.invents) => other(""),
            None => None,
        };
        let Some(index) = read else { return Reply { text: unknown(&fact.question).to_owned(), read: None } };
        let value = match counter(asked.documents[index]) {
            _ if gold == Some(index) => fact.answer.clone(),
            Some(value) => value.clone(),
            None => value_of(asked.documents[index], fact),
        };
        if !happens("cites", script.cites) {
            return Reply { text: value, read };
        }
        let source = if happens("cites rightly", script.cites_rightly) { index } else { other("").unwrap_or(index) };
        Reply { text: format!("{value} [{}]", source + 1), read }
    }

    fn next_call(&self, text: &str) -> u64 {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.entry(Digest::of_bytes(text.as_bytes())).or_insert(0);
        *count += 1;
        *count
    }
}

impl Subject for ScriptedSubject {
    fn identity(&self) -> SubjectIdentity {
        let facts = BTreeMap::from([("script".to_owned(), format!("{:?}", self.script))]);
        SubjectIdentity { kind: SubjectKind::Scripted, name: "scripted".to_owned(), facts }
    }

    fn shows(&self, capability: Capability) -> bool {
        capability == Capability::Attention
    }

    fn answer(&self, request: &Request) -> Result<Answer, SubjectError> {
        let asked = self.understand(request);
        let call = self.next_call(&asked.text);
        if unit(&["fails", &self.script.seed.to_string(), &asked.text, &call.to_string()]) < self.script.fails {
            return Err(SubjectError::new(FailureClass::Connection, format!("the script says to fail at call {call}")));
        }
        let reply = self.reply(&asked, call);
        let tokens = asked.text.split_whitespace().count();
        Ok(Answer {
            finish: FinishReason::EndOfTurn,
            prompt: PromptIntegrity {
                text: Some(Digest::of_bytes(asked.text.as_bytes())),
                request: None,
                ids: None,
                tokens: Some(tokens),
                bos_count: None,
                truncated: Some(false),
            },
            answer_tokens: Some(reply.text.split_whitespace().count()),
            first_token: Vec::new(),
            timing: Timing { first_token_ms: Some(0.0), total_ms: 0.0 },
            remote: None,
            text: reply.text,
        })
    }

    /// Two layers of two heads; the second layer puts 0.7 on the document that the answer was read from.
    fn look(&self, request: &Request, watch: &Watch) -> Result<Looked, SubjectError> {
        let asked = self.understand(request);
        let reply = self.reply(&asked, 0);
        let words: Vec<&str> = asked.documents.iter().flat_map(|document| document.split_whitespace()).collect();
        let mut spans = Vec::new();
        let mut first_token = 0;
        for (index, document) in asked.documents.iter().enumerate() {
            let tokens = document.split_whitespace().count();
            spans.push(PromptSpan { name: format!("document {}", index + 1), first_token, tokens });
            first_token += tokens;
        }
        let uniform: Vec<f64> = spans.iter().map(|span| span.tokens as f64 / words.len().max(1) as f64).collect();
        let layer_look = |layer: usize| {
            let attends = |index: usize| if layer == 1 && reply.read == Some(index) { 0.7 } else { 0.3 * uniform[index] };
            let mass: Vec<f64> = (0..spans.len()).map(attends).collect();
            let lift = mass.iter().zip(&uniform).map(|(mass, uniform)| (*uniform > 0.0).then(|| mass / uniform)).collect();
            LayerLook { layer, heads: vec![mass.clone(), mass.clone()], mass, uniform: uniform.clone(), lift }
        };
        let map = HeadMap {
            layer: 1,
            head: 0,
            why: "the script reads with this head".to_owned(),
            queries: vec![words.len().saturating_sub(1)],
            weights: vec![vec![1.0 / words.len().max(1) as f32; words.len()]],
        };
        let tokens = words.iter().zip(0..).map(|(word, id)| TokenText { id, text: format!("{word} ") }).collect();
        let layers = vec![layer_look(0), layer_look(1)];
        Ok(Looked { answer: reply.text, answer_rows: 1, spans, layers, tokens, maps: vec![map; watch.heads_in_full.min(1)] })
    }
}

fn unknown(question: &str) -> &'static str {
    if question.is_ascii() { "I do not know." } else { "不知道。" }
}

/// The part of a document that belongs to it alone: its last word, or its last run of characters, that neither the question nor the gold
/// document holds.
fn value_of(document: &str, fact: &ScriptedFact) -> String {
    let shared = format!("{} {}", fact.question, fact.gold);
    let own = |part: &&str| !part.is_empty() && !part.starts_with('[') && !shared.contains(*part);
    if document.is_ascii() {
        let mut words = document.split_whitespace().map(|word| word.trim_matches(['.', ',', '?', '!']));
        return words.rfind(own).unwrap_or("nothing").to_owned();
    }
    let mut runs = document.split(|letter: char| letter.is_ascii() || "。，？！：".contains(letter) || shared.contains(letter));
    runs.rfind(own).unwrap_or("无").to_owned()
}

/// A number in [0, 1) that depends on these texts alone.
fn unit(texts: &[&str]) -> f64 {
    let digest = Digest::of_bytes(texts.join("\u{0}").as_bytes());
    let first_digits = digest.as_hex().get(..13).expect("a hash has 64 digits");
    // 13 hexadecimal digits are 52 bits: every value is exact in f64.
    u64::from_str_radix(first_digits, 16).expect("a hash has hexadecimal digits") as f64 / (1_u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use glassbox_record::{Message, Piece, Role, Sampling};

    use super::*;

    fn subject(script: Script) -> ScriptedSubject {
        let fact = ScriptedFact {
            question: "What is the colour of Zorvex?".to_owned(),
            answer: "teal".to_owned(),
            gold: "Zorvex comes in teal.".to_owned(),
            counters: vec![("Zorvex is puce.".to_owned(), "puce".to_owned())],
        };
        ScriptedSubject::new(script, vec![fact])
    }

    fn request(documents: &[&str]) -> Request {
        let mut pieces: Vec<Piece> = documents
            .iter()
            .enumerate()
            .map(|(index, text)| Piece { span: Some(format!("document {}", index + 1)), text: format!("[{}] {text}", index + 1) })
            .collect();
        pieces.push(Piece { span: Some("question".to_owned()), text: "What is the colour of Zorvex?".to_owned() });
        Request { messages: vec![Message { role: Role::User, pieces }], max_tokens: 8, sampling: Sampling::Greedy, stop: vec![], seed: 0 }
    }

    fn said(script: Script, documents: &[&str]) -> String {
        subject(script).answer(&request(documents)).expect("the script does not fail").text
    }

    const OTHER: &str = "Talmin comes in amber.";
    const ANOTHER: &str = "Quenlo comes in ochre.";
    const GOLD: &str = "Zorvex comes in teal.";

    #[test]
    fn a_healthy_script_reads_cites_and_knows_when_it_does_not_know() {
        assert_eq!(said(Script::healthy(1), &[OTHER, GOLD, OTHER]), "teal [2]");
        assert_eq!(said(Script::healthy(1), &[OTHER]), "I do not know.");
        assert_eq!(said(Script::healthy(1), &[]), "I do not know.");
    }

    #[test]
    fn each_fault_shows_where_it_should_and_only_there() {
        let blind = Script { blind_to_middle: 1.0, ..Script::healthy(1) };
        assert_eq!(said(blind.clone(), &[OTHER, GOLD, OTHER]), "amber [1]");
        assert_eq!(said(blind, &[OTHER, OTHER, GOLD]), "teal [3]");
        let bound = Script { bound_to_first: 1.0, ..Script::healthy(1) };
        assert_eq!(said(bound, &[OTHER, OTHER, GOLD]), "amber [1]");
        let knowing = Script { memory: 1.0, ..Script::healthy(1) };
        assert_eq!(said(knowing, &[]), "teal");
        let inventing = Script { invents: 1.0, ..Script::healthy(1) };
        assert_eq!(said(inventing, &[OTHER]), "amber [1]");
        assert_eq!(said(Script { cites: 0.0, ..Script::healthy(1) }, &[GOLD]), "teal");
        assert_eq!(said(Script { silent: 1.0, ..Script::healthy(1) }, &[GOLD]), "");
        assert!(subject(Script { fails: 1.0, ..Script::healthy(1) }).answer(&request(&[GOLD])).is_err());
    }

    #[test]
    fn only_noise_differs_from_call_to_call() {
        let texts = |script: Script| {
            let subject = subject(script);
            let mut texts: Vec<String> =
                (0..40).map(|_| subject.answer(&request(&[OTHER, GOLD, ANOTHER])).expect("the script does not fail").text).collect();
            texts.sort();
            texts.dedup();
            texts.len()
        };
        for accuracy in [0.0, 0.5] {
            assert_eq!(texts(Script { accuracy, cites_rightly: 0.0, ..Script::healthy(3) }), 1, "accuracy {accuracy}");
        }
        assert_eq!(texts(Script { noise: 0.5, ..Script::healthy(3) }), 3);
    }

    #[test]
    fn a_look_shows_the_document_that_was_read() {
        let looked = subject(Script::healthy(1)).look(&request(&[OTHER, GOLD]), &Watch::default()).expect("it can be watched");
        assert_eq!(looked.layers[1].mass, [0.15, 0.7]);
        assert_eq!(looked.answer, "teal [2]");
    }
}
