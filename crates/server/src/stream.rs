//! An answer as a stream of events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::Value;

use crate::Served;
use crate::desk::Underway;
use crate::engine::Told;
use crate::refusal::Refusal;
use crate::wire::{Api, Heading, Scored, Usage};

/// A quiet stream says so often that it still lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a stream has to tell of a request beside the answers.
pub(crate) struct Telling {
    pub(crate) served: Arc<Served>,
    pub(crate) heading: Heading,
    pub(crate) api: Api,
    /// Whether tokens come with log-probabilities.
    pub(crate) scores: bool,
    /// Whether the numbers of tokens come at the end.
    pub(crate) with_usage: bool,
    /// The text before each choice: its prompt, where that is echoed.
    pub(crate) before: Vec<String>,
    pub(crate) usage: Usage,
}

struct State {
    telling: Telling,
    underway: Underway,
    /// Events that are ready.
    ready: VecDeque<String>,
    /// Choices that go on.
    going: usize,
    ended: bool,
}

/// The events of an answer: chunks, the numbers of tokens where asked for, and `[DONE]`. A failure is an event too, and the last one.
pub(crate) fn events(telling: Telling, underway: Underway) -> Response {
    let mut ready = VecDeque::new();
    for (choice, text) in telling.before.iter().enumerate() {
        match telling.api {
            Api::Chat => ready.push_back(telling.heading.opening(choice).to_string()),
            Api::Completions if text.is_empty() => {}
            Api::Completions => ready.push_back(telling.heading.piece(choice, text, None).to_string()),
        }
    }
    let state = State { going: underway.choices, telling, underway, ready, ended: false };
    let stream = unfold(state, async |mut state: State| {
        loop {
            if let Some(text) = state.ready.pop_front() {
                return Some((Ok::<_, Infallible>(Event::default().data(text)), state));
            }
            if state.ended {
                return None;
            }
            let told = state.underway.told.recv().await;
            state.take(told);
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

impl State {
    fn take(&mut self, told: Option<(usize, Told)>) {
        let failed = match told {
            Some((choice, Told::Token(token))) => {
                let scores = self.telling.scores.then(|| {
                    let mut scored = Scored::new(self.telling.api);
                    scored.push(&self.telling.served.tokenizer, &token, self.telling.before[choice].chars().count());
                    scored
                });
                if scores.is_some() || !token.text.is_empty() {
                    self.put(&self.telling.heading.piece(choice, &token.text, scores.as_ref()));
                }
                return;
            }
            Some((choice, Told::End { held, reason, answer_tokens, cached_tokens })) => {
                if !held.is_empty() {
                    self.put(&self.telling.heading.piece(choice, &held, None));
                }
                self.put(&self.telling.heading.ending(choice, reason));
                self.telling.usage.answer_tokens += answer_tokens;
                self.telling.usage.cached_tokens += cached_tokens;
                self.going -= 1;
                if self.going == 0 {
                    if self.telling.with_usage {
                        self.put(&self.telling.heading.usage(self.telling.usage));
                    }
                    self.ready.push_back("[DONE]".to_owned());
                    self.ended = true;
                }
                return;
            }
            Some((_, Told::Failed(message))) => message,
            None => crate::routes::STOPPED.to_owned(),
        };
        self.put(&Refusal::fault(failed).document());
        self.ended = true;
        self.underway.told.close();
    }

    fn put(&mut self, document: &Value) {
        self.ready.push_back(document.to_string());
    }
}
