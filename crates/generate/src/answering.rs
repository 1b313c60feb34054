use glassbox_text::{StreamDecoder, StreamFrom, Tokenizer};

use crate::{Answer, FinishReason, GenerationError, Sampler, SamplingError, Settings, StopStrings};

/// An answer in the making: logits in, tokens and text out. It knows no model, so that one pass may serve many answers.
pub struct Answering {
    decoder: StreamDecoder,
    sampler: Sampler,
    stop: StopStrings,
    max_tokens: usize,
    context_tokens: usize,
    end_ids: Vec<u32>,
    /// Prompt and answer.
    ids: Vec<u32>,
    prompt_tokens: usize,
    text: String,
    decoded_characters: usize,
    ended: Option<FinishReason>,
}

/// A token that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The token.
    pub id: u32,
    /// Text that is certain since the last token; empty inside a split character or a possible stop string.
    pub text: String,
    /// Characters of the answer that were complete before this token, those of a possible stop string among them.
    pub start: usize,
}

impl Answering {
    /// Stands before the first token of the answer to `prompt`, where prompt and answer have room for `context_tokens`.
    ///
    /// # Errors
    ///
    /// Where a sampling setting is out of range.
    pub fn new(tokenizer: &Tokenizer, prompt: &[u32], context_tokens: usize, settings: &Settings) -> Result<Self, SamplingError> {
        let mut answering = Self {
            decoder: StreamDecoder::new(tokenizer, StreamFrom::Continuation),
            sampler: Sampler::new(settings.sampling.clone())?,
            stop: StopStrings::new(&settings.stop),
            max_tokens: settings.max_tokens,
            context_tokens,
            end_ids: settings.end_ids.clone(),
            ids: prompt.to_vec(),
            prompt_tokens: prompt.len(),
            text: String::new(),
            decoded_characters: 0,
            ended: None,
        };
        answering.ended = answering.full();
        Ok(answering)
    }

    /// Chooses the next token from the logits [vocab] after the last one; `None` where the answer has ended.
    ///
    /// # Errors
    ///
    /// Where a logit is no finite number.
    pub fn choose(&mut self, tokenizer: &Tokenizer, logits: &[f32]) -> Result<Option<Chosen>, GenerationError> {
        if self.ended.is_some() {
            return Ok(None);
        }
        check_finite(logits, self.ids.len())?;
        let id = self.sampler.next(logits, &self.ids);
        if self.end_ids.contains(&id) {
            self.ended = Some(FinishReason::EndToken);
            return Ok(None);
        }
        self.ids.push(id);
        // Bytes that waited for the rest of their character, and get something else, stand before this token as U+FFFD.
        let goes_on = tokenizer.token_bytes(id).first().is_some_and(|byte| (0x80..0xc0).contains(byte));
        let broken = if goes_on { 0 } else { String::from_utf8_lossy(self.decoder.pending()).chars().count() };
        let start = self.decoded_characters + broken;
        let decoded = self.decoder.push(tokenizer, id);
        self.decoded_characters += decoded.chars().count();
        let text = self.stop.push(&decoded);
        self.text.push_str(&text);
        self.ended = if self.stop.stopped() { Some(FinishReason::StopString) } else { self.full() };
        Ok(Some(Chosen { id, text, start }))
    }

    /// Why the answer has ended; `None` while it wants logits.
    #[must_use]
    pub fn ended(&self) -> Option<FinishReason> {
        self.ended
    }

    /// Prompt and answer.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
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

    fn full(&self) -> Option<FinishReason> {
        if self.ids.len() - self.prompt_tokens >= self.max_tokens {
            return Some(FinishReason::MaxTokens);
        }
        // The key of the last token is stored with the next one, so prompt and answer together fill the context exactly.
        (self.ids.len() >= self.context_tokens).then_some(FinishReason::ContextFull)
    }
}

/// Refuses a row from which nothing can be chosen: a sampler would give some token all the same.
pub(crate) fn check_finite(logits: &[f32], tokens: usize) -> Result<(), GenerationError> {
    match logits.iter().position(|logit| !logit.is_finite()) {
        Some(token) => Err(GenerationError::NotFinite { tokens, token, value: logits[token] }),
        None => Ok(()),
    }
}
