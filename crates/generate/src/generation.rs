use glassbox_mechanisms::Workers;
use glassbox_model::{Model, ModelError};
use glassbox_text::{StreamDecoder, StreamFrom, Tokenizer};

use crate::{Sampler, Sampling, SamplingError, Session, StopStrings};

/// What a generation is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts at which the answer ends; they are not part of it.
    pub stop: Vec<String>,
    /// Tokens at which the answer ends; empty to ignore the end of a turn.
    pub end_ids: Vec<u32>,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended its turn.
    EndToken,
    /// A stop string was met.
    StopString,
    /// `max_tokens` tokens were generated.
    MaxTokens,
    /// Prompt and answer fill the context.
    ContextFull,
}

/// One token of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The token.
    pub id: u32,
    /// Text that is certain since the last step; empty inside a split character or a possible stop string.
    pub text: String,
    /// The logits [vocab] that the token was chosen from.
    pub logits: Vec<f32>,
}

/// A finished answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text, without stop string and end token.
    pub text: String,
    /// Its tokens, the end token excluded.
    pub ids: Vec<u32>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// Why a generation could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The prompt leaves no room for an answer.
    #[error(
        "the prompt has {prompt_tokens} tokens, and the context has room for {context_tokens}; shorten the prompt or raise the context"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Capacity of the session.
        context_tokens: usize,
    },
    /// The model computed a logit that is no number: nothing can be chosen from such a row.
    #[error(
        "the logit of token {token} is {value} after {tokens} tokens; wanted a finite number: suspect weights that are NaN or infinite, or a number that overflowed"
    )]
    NotFinite {
        /// Tokens that the model had read.
        tokens: usize,
        /// Id of the first token whose logit is no finite number.
        token: usize,
        /// Its logit.
        value: f32,
    },
    /// A sampling setting is outside its range.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// The forward pass failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// A running generation: call [`next_step`](Self::next_step) until it gives `None`, then [`finish`](Self::finish).
pub struct Generation<'a> {
    model: &'a Model,
    workers: &'a Workers,
    session: &'a mut Session,
    tokenizer: &'a Tokenizer,
    decoder: StreamDecoder,
    sampler: Sampler,
    stop: StopStrings,
    settings: &'a Settings,
    logits: Vec<f32>,
    /// Prompt and answer.
    ids: Vec<u32>,
    prompt_tokens: usize,
    text: String,
    ended: Option<FinishReason>,
}

impl<'a> Generation<'a> {
    /// Reads the prompt into `session` and stands before the first token of the answer.
    ///
    /// # Errors
    ///
    /// Where the prompt leaves no room, a setting is out of range, the forward pass fails or gives a logit that is no finite number.
    pub fn new(
        model: &'a Model,
        tokenizer: &'a Tokenizer,
        workers: &'a Workers,
        session: &'a mut Session,
        prompt: &[u32],
        settings: &'a Settings,
    ) -> Result<Self, GenerationError> {
        let context_tokens = session.ids().len() + session.room();
        if prompt.len() >= context_tokens {
            return Err(GenerationError::PromptTooLong { prompt_tokens: prompt.len(), context_tokens });
        }
        let sampler = Sampler::new(settings.sampling.clone())?;
        let logits = session.prompt(model, prompt, workers)?;
        check_finite(&logits, prompt.len())?;
        Ok(Self {
            model,
            workers,
            session,
            tokenizer,
            decoder: StreamDecoder::new(tokenizer, StreamFrom::Continuation),
            sampler,
            stop: StopStrings::new(&settings.stop),
            settings,
            logits,
            ids: prompt.to_vec(),
            prompt_tokens: prompt.len(),
            text: String::new(),
            ended: None,
        })
    }

    /// The logits [vocab] after the last token read: before the first step those of the first token of the answer, whatever it is.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Chooses the next token; `None` where the answer has ended.
    ///
    /// # Errors
    ///
    /// Where the forward pass fails or gives a logit that is no finite number.
    pub fn next_step(&mut self) -> Result<Option<Step>, GenerationError> {
        if self.ended.is_some() {
            return Ok(None);
        }
        let answered = self.ids.len() - self.prompt_tokens;
        // The last token's key is stored with the next one, so prompt and answer together fill the context exactly.
        let stored = self.session.ids().len() < self.ids.len();
        if answered >= self.settings.max_tokens {
            self.ended = Some(FinishReason::MaxTokens);
            return Ok(None);
        }
        if self.session.room() <= usize::from(stored) {
            self.ended = Some(FinishReason::ContextFull);
            return Ok(None);
        }
        if stored {
            let last = *self.ids.last().expect("a token that is not yet stored was chosen");
            self.logits = self.session.push(self.model, last, self.workers)?;
            check_finite(&self.logits, self.ids.len())?;
        }
        let id = self.sampler.next(&self.logits, &self.ids);
        if self.settings.end_ids.contains(&id) {
            self.ended = Some(FinishReason::EndToken);
            return Ok(None);
        }
        self.ids.push(id);
        let text = self.stop.push(&self.decoder.push(self.tokenizer, id));
        if self.stop.stopped() {
            self.ended = Some(FinishReason::StopString);
        }
        self.text.push_str(&text);
        Ok(Some(Step { id, text, logits: self.logits.clone() }))
    }

    /// The answer, and the text that was still held back at its end.
    #[must_use]
    pub fn finish(mut self) -> (Answer, String) {
        let mut held = String::new();
        if !self.stop.stopped() {
            held = self.stop.push(&self.decoder.finish());
            held.push_str(&self.stop.finish());
        }
        self.text.push_str(&held);
        let ids = self.ids.split_off(self.prompt_tokens);
        (Answer { text: self.text, ids, finish_reason: self.ended.unwrap_or(FinishReason::MaxTokens) }, held)
    }
}

/// Refuses a row from which nothing can be chosen: a sampler would give some token all the same.
fn check_finite(logits: &[f32], tokens: usize) -> Result<(), GenerationError> {
    match logits.iter().position(|logit| !logit.is_finite()) {
        Some(token) => Err(GenerationError::NotFinite { tokens, token, value: logits[token] }),
        None => Ok(()),
    }
}
