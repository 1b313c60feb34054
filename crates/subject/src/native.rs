//! A model that this engine runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use glassbox_checkpoint::Checkpoint;
use glassbox_generate::{FinishReason, Generation, GenerationError, Sampling, Session, Settings};
use glassbox_lens::NextTokens;
use glassbox_mechanisms::Workers;
use glassbox_mechanisms::cache::{KvType, Pool};
use glassbox_model::{Keeping, Model, Windows};
use glassbox_record::{
    Answer, Digest, FailureClass, Looked, PromptIntegrity, Request, SubjectIdentity, SubjectKind, Timing, TokenProbability,
};
use glassbox_text::{ChatTemplate, Message, Piece, Prompt, RenderOptions, Specials, Tokenizer};

use crate::{Capability, Subject, SubjectError, Watch, look};

/// Likeliest first tokens that an answer keeps.
const CANDIDATES: usize = 5;
/// What stands last in the prompt of a model without a chat template: without a cue such a model goes on with questions of its own.
pub(crate) const PLAIN_CUE: &str = "Answer:";
/// A context grows in steps of this many tokens, so that prompts of similar length share one cache.
const CONTEXT_STEP: usize = 256;

/// A model that this engine runs: answers, and shows what its answers read.
///
/// Prompts that begin alike share their beginning in the cache; by the contract of equal bits no answer depends on that.
pub struct NativeSubject {
    name: String,
    pub(crate) model: Model,
    pub(crate) workers: Workers,
    pub(crate) tokenizer: Tokenizer,
    memory_limit: u64,
    template: Option<ChatTemplate>,
    facts: BTreeMap<String, String>,
    kv_type: KvType,
    session: RefCell<Option<Session>>,
}

/// An answer with the tokens that look and answer share.
pub(crate) struct Told {
    pub(crate) prompt: Prompt,
    pub(crate) ids: Vec<u32>,
    pub(crate) answer: Answer,
}

impl NativeSubject {
    /// A subject from an opened model.
    ///
    /// - `name`          as the user named it
    /// - `memory_limit`  most bytes that the cache may take
    ///
    /// A model without a chat template is asked in plain text: the messages, one under the other, then `Answer:`. It has no end of a turn, so
    /// its answer ends with the line.
    ///
    /// # Errors
    ///
    /// Where the model has no tokenizer, its template cannot be read, or its files cannot be hashed.
    pub fn new(name: String, checkpoint: &Checkpoint, model: Model, workers: Workers, memory_limit: u64) -> Result<Self, SubjectError> {
        let trouble = |error: &dyn std::fmt::Display| SubjectError::new(FailureClass::Prompt, error.to_string());
        let tokenizer = Tokenizer::open(checkpoint).map_err(|error| trouble(&error))?;
        tokenizer.check_fits(model.blueprint().vocab).map_err(|error| trouble(&error))?;
        let template = match ChatTemplate::open(checkpoint, None) {
            Ok(template) => Some(template),
            Err(glassbox_text::Error::NoTemplate { .. }) => None,
            Err(error) => return Err(trouble(&error)),
        };
        let mut facts = BTreeMap::new();
        let mut fact = |name: &str, value: String| facts.insert(name.to_owned(), value);
        fact("weights", checkpoint.content_hash());
        fact("settings", checkpoint.settings_hash().map_err(|error| trouble(&error))?);
        fact(
            "template",
            template
                .as_ref()
                .map_or_else(|| format!("none: plain text that ends with `{PLAIN_CUE}`"), |template| template.hash().to_owned()),
        );
        fact("architecture", model.blueprint().family.to_owned());
        fact("kernels", format!("{:?}", model.kernels()).to_lowercase());
        fact("activations", format!("{:?}", model.activations()).to_lowercase());
        fact("cache", KvType::F32.name().to_owned());
        fact("threads", workers.threads().to_string());
        fact("path", checkpoint.label().to_owned());
        Ok(Self { name, model, workers, tokenizer, memory_limit, template, facts, kv_type: KvType::F32, session: RefCell::new(None) })
    }

    /// The same subject with keys and values stored as `kv_type`. Answers depend on it, so it is among the facts.
    #[must_use]
    pub fn with_kv_type(mut self, kv_type: KvType) -> Self {
        self.kv_type = kv_type;
        self.facts.insert("cache".to_owned(), kv_type.name().to_owned());
        self.session = RefCell::new(None);
        self
    }

    /// Renders and tokenises a request.
    fn prompt(&self, request: &Request) -> Result<Prompt, SubjectError> {
        let pieces = |message: &glassbox_record::Message| -> Vec<Piece> {
            message.pieces.iter().map(|piece| Piece { text: piece.text.clone(), span: piece.span.clone() }).collect()
        };
        let prompt = match &self.template {
            Some(template) => {
                let messages: Vec<Message> =
                    request.messages.iter().map(|message| Message::new(message.role.name(), pieces(message))).collect();
                Prompt::chat(&self.tokenizer, template, &messages, &RenderOptions::default())
            }
            None => {
                let mut plain: Vec<Piece> = Vec::new();
                for message in &request.messages {
                    plain.extend(pieces(message));
                    plain.push(Piece::text("\n"));
                }
                plain.push(Piece::text(PLAIN_CUE));
                Prompt::plain(&self.tokenizer, &plain, Specials::Literal)
            }
        };
        prompt.map_err(|error| SubjectError::new(FailureClass::Prompt, error.to_string()))
    }

    /// Answers, and keeps the tokens.
    pub(crate) fn tell(&self, request: &Request) -> Result<Told, SubjectError> {
        let started = Instant::now();
        let prompt = self.prompt(request)?;
        let settings = self.settings(request);
        let mut held = self.session.borrow_mut();
        let session = self.session_for(&mut held, prompt.ids.len(), request.max_tokens)?;
        let generation = Generation::new(&self.model, &self.tokenizer, &self.workers, session, &prompt.ids, &settings);
        let mut generation = generation.map_err(|error| trouble_of(&error))?;
        // Taken before the first step: where that token ends the answer, it is what explains the empty answer.
        let first_token = self.candidates(generation.logits());
        let first_token_ms = milliseconds(started);
        while generation.next_step().map_err(|error| trouble_of(&error))?.is_some() {}
        let (told, _) = generation.finish();
        let finish = match told.finish_reason {
            FinishReason::EndToken => glassbox_record::FinishReason::EndOfTurn,
            FinishReason::StopString => glassbox_record::FinishReason::StopText,
            FinishReason::MaxTokens => glassbox_record::FinishReason::Length,
            FinishReason::ContextFull => glassbox_record::FinishReason::ContextFull,
        };
        let total_ms = milliseconds(started);
        let ids: Vec<u8> = prompt.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let answer = Answer {
            text: told.text,
            finish,
            prompt: PromptIntegrity {
                text: Some(Digest::of_bytes(prompt.text.as_bytes())),
                request: None,
                ids: Some(Digest::of_bytes(&ids)),
                tokens: Some(prompt.ids.len()),
                bos_count: Some(prompt.bos_count),
                truncated: Some(false),
            },
            answer_tokens: Some(told.ids.len()),
            first_token,
            timing: Timing { first_token_ms: Some(first_token_ms), total_ms },
            remote: None,
        };
        Ok(Told { prompt, ids: told.ids, answer })
    }

    fn settings(&self, request: &Request) -> Settings {
        let temperature = match request.sampling {
            glassbox_record::Sampling::Greedy => 0.0,
            glassbox_record::Sampling::Temperature(temperature) => temperature as f32,
        };
        let mut stop = request.stop.clone();
        if self.template.is_none() {
            stop.push("\n".to_owned());
        }
        Settings {
            max_tokens: request.max_tokens,
            sampling: Sampling { temperature, seed: request.seed, ..Sampling::default() },
            stop,
            end_ids: self.tokenizer.end_ids().to_vec(),
        }
    }

    /// The session, grown where the prompt and the longest answer need more room. A model whose angles depend on the capacity gets the same one for the same
    /// request, whatever was asked before.
    fn session_for<'s>(
        &self,
        held: &'s mut Option<Session>,
        prompt_tokens: usize,
        max_tokens: usize,
    ) -> Result<&'s mut Session, SubjectError> {
        let wanted = prompt_tokens.saturating_add(max_tokens);
        let context = self.model.blueprint().context;
        let capacity = wanted.next_multiple_of(CONTEXT_STEP).min(context);
        let fits = |session: &Session| match self.model.blueprint().depends_on_capacity() {
            true => session.capacity() == capacity,
            false => session.capacity() >= wanted.min(context),
        };
        if !held.as_ref().is_some_and(fits) {
            let keeping = Keeping { kv_type: self.kv_type, windows: Windows::Whole };
            let session = Session::keeping(&self.model, capacity, keeping, &Pool::new(self.memory_limit));
            *held = Some(session.map_err(|error| SubjectError::new(FailureClass::Memory, error.to_string()))?);
        }
        held.as_mut().ok_or_else(|| SubjectError::new(FailureClass::Internal, "there is no session"))
    }

    fn candidates(&self, logits: &[f32]) -> Vec<TokenProbability> {
        let top = NextTokens::of(logits, CANDIDATES).top;
        let named = |token: &glassbox_lens::NextToken| TokenProbability {
            id: Some(token.id),
            text: self.tokenizer.token_name(token.id),
            log_probability: token.log_probability,
        };
        top.iter().map(named).collect()
    }
}

impl Subject for NativeSubject {
    fn identity(&self) -> SubjectIdentity {
        SubjectIdentity { kind: SubjectKind::Native, name: self.name.clone(), facts: self.facts.clone() }
    }

    fn shows(&self, capability: Capability) -> bool {
        match capability {
            Capability::Attention | Capability::FirstToken | Capability::TokenIds => true,
        }
    }

    fn answer(&self, request: &Request) -> Result<Answer, SubjectError> {
        self.tell(request).map(|told| told.answer)
    }

    fn look(&self, request: &Request, watch: &Watch) -> Result<Looked, SubjectError> {
        let told = self.tell(request)?;
        let held = self.session.borrow().as_ref().map(Session::fork);
        let session = held.ok_or_else(|| SubjectError::new(FailureClass::Internal, "there is no session"))?;
        look::look(self, &told, session, watch)
    }
}

fn trouble_of(error: &GenerationError) -> SubjectError {
    let class = match error {
        GenerationError::PromptTooLong { .. } => FailureClass::ContextTooLong,
        GenerationError::NotFinite { .. } => FailureClass::Numeric,
        GenerationError::Sampling(_) => FailureClass::Rejected,
        _ => FailureClass::Internal,
    };
    SubjectError::new(class, error.to_string())
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
