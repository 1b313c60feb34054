use glassbox_mechanisms::Workers;
use glassbox_model::{Model, ModelError};
use glassbox_text::Tokenizer;

use crate::answering::{Answering, check_finite};
use crate::{Sampling, SamplingError, Session};

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
    answering: Answering,
    logits: Vec<f32>,
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
        settings: &Settings,
    ) -> Result<Self, GenerationError> {
        let context_tokens = session.capacity();
        if prompt.len() >= context_tokens {
            return Err(GenerationError::PromptTooLong { prompt_tokens: prompt.len(), context_tokens });
        }
        let answering = Answering::new(tokenizer, prompt, context_tokens, settings)?;
        let logits = session.prompt(model, prompt, workers)?;
        check_finite(&logits, prompt.len())?;
        Ok(Self { model, workers, session, tokenizer, answering, logits })
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
        if self.answering.ended().is_some() {
            return Ok(None);
        }
        if let Some(&last) = self.answering.ids().get(self.session.ids().len()) {
            self.logits = self.session.push(self.model, last, self.workers)?;
        }
        let chosen = self.answering.choose(self.tokenizer, &self.logits)?;
        Ok(chosen.map(|chosen| Step { id: chosen.id, text: chosen.text, logits: self.logits.clone() }))
    }

    /// The answer, and the text that was still held back at its end.
    #[must_use]
    pub fn finish(self) -> (Answer, String) {
        self.answering.finish()
    }
}
