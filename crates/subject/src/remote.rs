//! A model behind an OpenAI-compatible endpoint.

use std::num::NonZeroUsize;

use glassbox_endpoint::{Api, Ask, Client, Failed, Probed, Prompt, Reply};
use glassbox_record::{
    Answer, FailureClass, FinishReason, PromptIntegrity, RemoteAnswer, Request, Sampling, SubjectIdentity, SubjectKind, Timing,
    TokenProbability,
};

use crate::native::PLAIN_CUE;
use crate::{AtOnce, Capability, Subject, SubjectError};

/// A model behind an OpenAI-compatible endpoint: answers, and shows what the endpoint tells. What it does not tell is unknown, never zero.
#[derive(Debug)]
pub struct RemoteSubject {
    client: Client,
    probed: Probed,
    api: Api,
    at_once: NonZeroUsize,
}

impl RemoteSubject {
    /// Probes the endpoint, and makes a subject of what it can do.
    ///
    /// - `api`      chat, or the continuation of a text for base models: then the prompt is the messages, one under the other, and `Answer:`,
    ///   and the answer ends with the line, as for a native model without a chat template
    /// - `at_once`  so many requests may be under way at once
    ///
    /// # Errors
    ///
    /// As [`Client::probe`].
    pub fn connect(client: Client, api: Api, at_once: NonZeroUsize) -> Result<Self, SubjectError> {
        let probed = client.probe(api).map_err(failed)?;
        Ok(Self { client, probed, api, at_once })
    }

    /// What the probe found out.
    #[must_use]
    pub fn probed(&self) -> &Probed {
        &self.probed
    }

    fn ask(&self, request: &Request) -> Ask {
        let mut stop = request.stop.clone();
        let prompt = match self.api {
            Api::Chat => Prompt::Chat(request.messages.iter().map(|message| (message.role.name().to_owned(), message.text())).collect()),
            Api::Completions => {
                stop.push("\n".to_owned());
                let lines: String = request.messages.iter().map(|message| format!("{}\n", message.text())).collect();
                Prompt::Text(format!("{lines}{PLAIN_CUE}"))
            }
        };
        let temperature = match request.sampling {
            Sampling::Greedy => 0.0,
            Sampling::Temperature(temperature) => temperature,
        };
        Ask { prompt, max_tokens: request.max_tokens, temperature, top_p: None, stop, seed: request.seed }
    }
}

impl Subject for RemoteSubject {
    fn identity(&self) -> SubjectIdentity {
        let name = format!("{}#{}", self.client.address().base(), self.probed.model);
        SubjectIdentity { kind: SubjectKind::Remote, name, facts: self.probed.facts.clone() }
    }

    fn shows(&self, capability: Capability) -> bool {
        match capability {
            Capability::Attention | Capability::TokenIds => false,
            Capability::FirstToken => self.probed.shows_first_token,
        }
    }

    fn answer(&self, request: &Request) -> Result<Answer, SubjectError> {
        let ask = self.ask(request);
        let reply = self.client.ask(&self.probed.model, &self.probed.features, &ask).map_err(failed)?;
        Ok(answer_of(reply, !ask.stop.is_empty()))
    }

    fn at_once(&self) -> Option<AtOnce<'_>> {
        Some(AtOnce { subject: self, requests: self.at_once })
    }
}

fn answer_of(reply: Reply, may_stop_at_text: bool) -> Answer {
    let finish = match reply.finish_reason.as_deref() {
        // One word for two things: the end of the turn, and a stop text.
        Some("stop") if may_stop_at_text => FinishReason::Unknown,
        Some("stop" | "eos" | "eos_token" | "end_turn") => FinishReason::EndOfTurn,
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some("tool_calls" | "function_call") => FinishReason::ToolCalls,
        _ => FinishReason::Unknown,
    };
    let named = |candidate: glassbox_endpoint::Candidate| TokenProbability {
        id: None,
        text: candidate.text,
        log_probability: candidate.log_probability,
    };
    Answer {
        text: reply.text,
        finish,
        prompt: PromptIntegrity {
            text: None,
            request: reply.request,
            ids: None,
            tokens: reply.usage.prompt_tokens,
            bos_count: None,
            truncated: None,
        },
        answer_tokens: reply.usage.answer_tokens,
        first_token: reply.first_token.into_iter().map(named).collect(),
        timing: Timing { first_token_ms: reply.first_token_ms, total_ms: reply.total_ms },
        remote: Some(Box::new(RemoteAnswer {
            model: reply.model,
            system_fingerprint: reply.system_fingerprint,
            finish_reason: reply.finish_reason,
            reasoning: reply.reasoning,
            reasoning_tokens: reply.usage.reasoning_tokens,
            cached_prompt_tokens: reply.usage.cached_prompt_tokens,
            retries: reply.retries,
        })),
    }
}

fn failed(failed: Failed) -> SubjectError {
    let Failed { class, message, retries } = failed;
    SubjectError { retries, ..SubjectError::new(class, message) }
}

impl SubjectError {
    /// Whether nothing was asked, so that nothing came of it: the budget is spent, or somebody wants to stop.
    #[must_use]
    pub fn was_not_asked(&self) -> bool {
        matches!(self.class, FailureClass::Budget | FailureClass::Interrupted)
    }
}
