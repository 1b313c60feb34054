use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glassbox_record::{Digest, FailureClass, Retry};

use crate::address::{Address, Secret};
use crate::ask::{Ask, Features};
use crate::clock::Clock;
use crate::failed::{Again, Failed, Trouble};
use crate::field::{Field, parse};
use crate::limits::{Admit, Limits};
use crate::reply::{Assembly, Reply, error_in};
use crate::retry::wait_before;
use crate::settings::Settings;
use crate::stream::{Event, Events};
use crate::transport::{Incoming, Web};

/// How long the end of a connection is waited for after the last word.
const LINGER: Duration = Duration::from_millis(20);

/// Asks one endpoint. Several threads may ask at once; pace, circuit breaker and budget are theirs together.
pub struct Client {
    address: Address,
    key: Option<Secret>,
    settings: Settings,
    web: Web,
    clock: Arc<dyn Clock>,
    limits: Mutex<Limits>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of this endpoint.
    ///
    /// Whether the key may go there is the caller's to check: [`Address::check_may_carry_key`].
    #[must_use]
    pub fn new(address: Address, key: Option<Secret>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let web = Web::new(&address, key.clone(), settings.deadlines.connect);
        Self { web, limits: Mutex::new(Limits::new(settings.clone())), address, key, settings, clock }
    }

    /// Where it asks.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Asks, and gives the answer when it is whole.
    ///
    /// - `model`     its name there
    /// - `features`  what the request may hold, as [`Client::probe`] found out
    ///
    /// Errors: no answer, with its class and everything that was tried. Nothing was sent where the class is `budget`.
    pub fn ask(&self, model: &str, features: &Features, ask: &Ask) -> Result<Reply, Failed> {
        self.ask_with(model, features, ask, &mut |_| {})
    }

    /// The same; `told` gets the text of a stream as it comes. Once it got some, nothing is tried again.
    pub fn ask_with(&self, model: &str, features: &Features, ask: &Ask, told: &mut dyn FnMut(&str)) -> Result<Reply, Failed> {
        let body = features.body(model, ask);
        let request = Digest::of_bytes(body.as_bytes());
        let has_told = Cell::new(false);
        let mut told = |text: &str| {
            has_told.set(has_told.get() | !text.is_empty());
            told(text);
        };
        let url = format!("{}{}", self.address.base(), ask.prompt.api().path());
        let mut retries = Vec::new();
        loop {
            let exchanged = self.limited(|| self.exchange(&url, &body, ask, &mut told));
            let trouble = match exchanged {
                Ok(reply) => return Ok(self.clean(Reply { request: Some(request), retries, ..reply })),
                Err(trouble) => trouble,
            };
            let trouble = if has_told.get() { Trouble { again: Again::Never, ..trouble } } else { trouble };
            self.before_next(&trouble, &request, &mut retries)?;
        }
    }

    /// Asks for something below the base address: the value of `Server`, and the body.
    pub(crate) fn get(&self, path: &str) -> Result<(Option<String>, Vec<u8>), Failed> {
        let url = format!("{}{path}", self.address.base());
        let request = Digest::of_bytes(path.as_bytes());
        let mut retries = Vec::new();
        loop {
            let exchanged = self.limited(|| {
                let deadline = Instant::now() + self.settings.deadlines.whole;
                let mut incoming = self.web.send(&url, None, deadline, self.settings.largest_answer_bytes)?;
                self.check_status(&mut incoming, deadline)?;
                let body = incoming.whole(deadline)?;
                Ok((incoming.head.server, body))
            });
            match exchanged {
                Ok(found) => return Ok(found),
                Err(trouble) => self.before_next(&trouble, &request, &mut retries)?,
            }
        }
    }

    /// Posts to something beside the interface, once.
    pub(crate) fn post_beside(&self, path: &str, body: &str) -> Result<Vec<u8>, Trouble> {
        self.limited(|| {
            let deadline = Instant::now() + self.settings.deadlines.whole;
            let mut incoming = self.web.send(&self.address.beside(path), Some(body), deadline, self.settings.largest_answer_bytes)?;
            self.check_status(&mut incoming, deadline)?;
            incoming.whole(deadline)
        })
    }

    /// Sends a request as soon as it may be sent, and notes whether it met a working endpoint.
    fn limited<T>(&self, send: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        self.wait_for_leave()?;
        let sent = send();
        let now = self.clock.now();
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.met(!sent.as_ref().err().is_some_and(|trouble| trouble.down), now);
        if let Err(Trouble { again: Again::After(wait), .. }) = &sent {
            limits.quiet(now.saturating_add(*wait).min(now + self.settings.patience.longest_wait));
        }
        sent
    }

    fn wait_for_leave(&self) -> Result<(), Trouble> {
        let mut quiet = Duration::ZERO;
        loop {
            if self.clock.interrupted() {
                return Err(Trouble::finally(FailureClass::Interrupted, "stopped before it was asked"));
            }
            let admitted = self.limits.lock().unwrap_or_else(PoisonError::into_inner).admit(self.clock.now());
            match admitted {
                Admit::Go => return Ok(()),
                Admit::Spent(limit) => return Err(Trouble::finally(FailureClass::Budget, limit)),
                Admit::Pace(wait) => self.clock.wait(wait),
                Admit::Quiet(wait) => {
                    quiet += wait;
                    if quiet > self.settings.patience.longest_wait {
                        let message = format!("the endpoint was down or asked for quiet for {} s; nothing was sent", quiet.as_secs());
                        return Err(Trouble::finally(FailureClass::Connection, message));
                    }
                    self.clock.wait(wait);
                }
            }
        }
    }

    /// Waits before the next request, or gives up.
    fn before_next(&self, trouble: &Trouble, request: &Digest, retries: &mut Vec<Retry>) -> Result<(), Failed> {
        let patience = &self.settings.patience;
        let failures = u32::try_from(retries.len()).unwrap_or(u32::MAX).saturating_add(1);
        let wait = match trouble.again {
            Again::Never => None,
            _ if failures >= patience.attempts => None,
            Again::Soon => Some(wait_before(patience, request, failures)),
            Again::After(wait) if wait > patience.longest_wait => {
                let asked = format!(
                    "{}; it asks to wait {} s, longer than the {} s that are waited",
                    trouble.message,
                    wait.as_secs(),
                    patience.longest_wait.as_secs()
                );
                return Err(self.failed(&Trouble { message: asked, ..trouble.clone() }, std::mem::take(retries)));
            }
            Again::After(wait) => Some(wait),
        };
        let Some(wait) = wait else { return Err(self.failed(trouble, std::mem::take(retries))) };
        let waited_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        retries.push(Retry { class: trouble.class, message: self.redacted(&trouble.message), waited_ms });
        self.clock.wait(wait);
        Ok(())
    }

    fn exchange(&self, url: &str, body: &str, ask: &Ask, told: &mut dyn FnMut(&str)) -> Result<Reply, Trouble> {
        let deadlines = &self.settings.deadlines;
        let started = Instant::now();
        let whole = started + deadlines.whole;
        let wants_stream = body.contains("\"stream\":true");
        let head_by = if wants_stream { whole.min(started + deadlines.first_token) } else { whole };
        let mut incoming = self.web.send(url, Some(body), head_by, self.settings.largest_answer_bytes)?;
        self.check_status(&mut incoming, head_by)?;
        let mut assembly = Assembly::new(ask.prompt.api());
        // An endpoint that cannot stream answers in one piece all the same.
        let streamed = incoming.head.content_type.to_ascii_lowercase().contains("text/event-stream");
        let mut first_token_ms = None;
        if streamed {
            first_token_ms = self.read_stream(&mut incoming, &mut assembly, started, told)?;
        } else {
            let body = incoming.whole(whole)?;
            let value = parse(&body)?;
            error_in(&Field::document(&value), &body)?;
            assembly.whole(&Field::document(&value))?;
        }
        let total_ms = milliseconds(started);
        let reply = Reply { first_token_ms, total_ms, streamed, server: incoming.head.server, ..assembly.finish() };
        self.count(&reply, body);
        Ok(reply)
    }

    /// Reads events to the end of the answer; gives the milliseconds to the first token.
    fn read_stream(
        &self,
        incoming: &mut Incoming,
        assembly: &mut Assembly,
        started: Instant,
        told: &mut dyn FnMut(&str),
    ) -> Result<Option<f64>, Trouble> {
        let deadlines = &self.settings.deadlines;
        let mut first_token_ms = None;
        let mut events = Some(Events::default());
        let mut token_by = started + deadlines.first_token;
        while let Some(mut reading) = events.take() {
            let deadline = token_by.min(started + deadlines.whole);
            if Instant::now() >= deadline {
                return Err(Trouble::timeout("no token came in time, though the endpoint kept the connection"));
            }
            let bytes = incoming.next(deadline)?;
            let ended = bytes.is_empty();
            let found = if ended {
                reading.finish().into_iter().collect()
            } else {
                let found = reading.push(&bytes);
                events = Some(reading);
                found
            };
            for event in found {
                if event.data.trim_ascii() == b"[DONE]" {
                    // A connection that was read to its end can be used again. Its end comes with the last word or not at all.
                    let _ = incoming.next(Instant::now() + LINGER);
                    return Ok(first_token_ms);
                }
                let before = assembly.pieces();
                let text = take_event(&event, assembly)?;
                if assembly.pieces() > before {
                    first_token_ms.get_or_insert_with(|| milliseconds(started));
                    token_by = Instant::now() + deadlines.between_tokens;
                }
                told(&text);
            }
        }
        // Without the last word, the reason of the end shows that the answer is whole.
        if assembly.has_finish() {
            return Ok(first_token_ms);
        }
        Err(Trouble::connection("the stream ended before the answer did"))
    }

    fn check_status(&self, incoming: &mut Incoming, deadline: Instant) -> Result<(), Trouble> {
        if (200..300).contains(&incoming.head.status) {
            return Ok(());
        }
        Err(incoming.refusal(deadline, self.clock.time_of_day()))
    }

    /// Counts tokens for pace and budget. What the endpoint does not tell is taken as a token for every four bytes.
    fn count(&self, reply: &Reply, body: &str) {
        let estimate = |bytes: usize| bytes.div_ceil(4);
        let prompt = reply.usage.prompt_tokens.unwrap_or_else(|| estimate(body.len()));
        let thought = reply.reasoning.as_ref().map_or(0, String::len);
        let answer = reply.usage.answer_tokens.unwrap_or_else(|| estimate(reply.text.len() + thought));
        let now = self.clock.now();
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).used(prompt as u64, answer as u64, now);
    }

    /// A text without the key.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redacted(text))
    }

    pub(crate) fn failed(&self, trouble: &Trouble, retries: Vec<Retry>) -> Failed {
        Failed { class: trouble.class, message: self.redacted(&trouble.message), retries }
    }

    /// Takes the key out of everything that will be recorded, should an endpoint send it back.
    fn clean(&self, reply: Reply) -> Reply {
        let clean = |text: Option<String>| text.map(|text| self.redacted(&text));
        let first_token =
            reply.first_token.into_iter().map(|candidate| crate::reply::Candidate { text: self.redacted(&candidate.text), ..candidate });
        Reply {
            text: self.redacted(&reply.text),
            reasoning: clean(reply.reasoning),
            finish_reason: clean(reply.finish_reason),
            model: clean(reply.model),
            system_fingerprint: clean(reply.system_fingerprint),
            server: clean(reply.server),
            first_token: first_token.collect(),
            ..reply
        }
    }
}

fn take_event(event: &Event, assembly: &mut Assembly) -> Result<String, Trouble> {
    if event.data.trim_ascii().is_empty() {
        return Ok(String::new());
    }
    let value = parse(&event.data)?;
    let document = Field::document(&value);
    if event.name == "error" {
        let said = crate::transport::said_in_error(&event.data);
        let trouble = Trouble::finally(FailureClass::Internal, format!("the endpoint broke its answer off with an error: {said}"));
        return Err(Trouble { again: Again::Soon, ..trouble });
    }
    error_in(&document, &event.data)?;
    assembly.chunk(&document)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
