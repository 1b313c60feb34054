//! The paths of the interface.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Value, json};

use crate::Settings;
use crate::asked::Asked;
use crate::desk::{Desk, Ready, Underway, unix_seconds};
use crate::engine::Told;
use crate::refusal::Refusal;
use crate::stream::{Telling, events};
use crate::wire::{Api, Heading, Scored, Usage, Whole};

/// Longest body of a request.
const BODY_BYTES: usize = 16 << 20;
/// A body must have come after so long.
const BODY_WAIT: Duration = Duration::from_secs(30);
/// What is said where the engine ends under a request.
pub(crate) const STOPPED: &str = "the server stopped before the answer was complete";

/// All that a request meets.
#[derive(Clone)]
pub(crate) struct House {
    desk: Arc<Desk>,
    key: Option<Arc<str>>,
    /// Whether only this machine can reach the server.
    loopback: bool,
    started: i64,
}

impl House {
    pub(crate) fn new(desk: Desk, settings: &Settings) -> Self {
        let key = settings.key.as_deref().map(Arc::from);
        Self { desk: Arc::new(desk), key, loopback: settings.address.ip().is_loopback(), started: unix_seconds() }
    }

    /// Ends the engine after the pass at hand.
    pub(crate) fn stop(&self) {
        self.desk.engine.state.stop();
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/health", get(health))
            .route("/v1/models", get(models))
            .route("/v1/models/{*name}", get(model))
            .route("/v1/chat/completions", post(chat))
            .route("/v1/completions", post(completions))
            .fallback(async || Refusal::status(StatusCode::NOT_FOUND, PATHS))
            .method_not_allowed_fallback(async || Refusal::status(StatusCode::METHOD_NOT_ALLOWED, PATHS))
            .layer(middleware::from_fn_with_state(self.clone(), admit))
            .with_state(self)
    }
}

const PATHS: &str = "there is nothing here; POST /v1/chat/completions, POST /v1/completions, GET /v1/models and GET /health are served";

/// Holds off strangers: pages of other sites in a browser of this machine, and callers without the key.
async fn admit(State(house): State<House>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if house.loopback && !(of_this_machine(headers, header::HOST) && of_this_machine(headers, header::ORIGIN)) {
        let message = "this server is for programs of this machine: wanted `Host` and `Origin` to be localhost or a loopback address";
        return Refusal::status(StatusCode::FORBIDDEN, message).into_response();
    }
    if let Some(key) = house.key.as_deref().filter(|_| request.uri().path() != "/health") {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if !given.is_some_and(|given| equal_in_constant_time(given.as_bytes(), key.as_bytes())) {
            return Refusal::status(StatusCode::UNAUTHORIZED, "wanted the key of this server as `Authorization: Bearer ...`")
                .into_response();
        }
    }
    let is_json = |headers: &HeaderMap| {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    };
    if request.method() == Method::POST && !is_json(headers) {
        return Refusal::status(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wanted `Content-Type: application/json`").into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static(concat!("glassbox/", env!("CARGO_PKG_VERSION"))));
    response
}

/// Whether a header that names a host names this machine; one that is absent is no stranger's.
fn of_this_machine(headers: &HeaderMap, name: header::HeaderName) -> bool {
    let Some(value) = headers.get(name) else { return true };
    let Ok(text) = value.to_str() else { return false };
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares without telling by its time how much was right.
fn equal_in_constant_time(given: &[u8], wanted: &[u8]) -> bool {
    let differences = given.iter().zip(wanted).fold(0, |differences, (a, b)| differences | (a ^ b));
    given.len() == wanted.len() && differences == 0
}

async fn health(State(house): State<House>) -> Response {
    let state = &house.desk.engine.state;
    let trouble = state.trouble();
    let status = if trouble.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let document = json!({"status": trouble.unwrap_or("ok"), "active": state.active(), "waiting": state.waiting()});
    (status, Json(document)).into_response()
}

fn model_document(house: &House) -> Value {
    let served = &house.desk.served;
    json!({
        "id": served.name, "object": "model", "created": house.started, "owned_by": "glassbox",
        "max_model_len": served.context, "system_fingerprint": served.fingerprint,
    })
}

async fn models(State(house): State<House>) -> Response {
    Json(json!({"object": "list", "data": [model_document(&house)]})).into_response()
}

async fn model(State(house): State<House>, Path(name): Path<String>) -> Response {
    if name == house.desk.served.name {
        return Json(model_document(&house)).into_response();
    }
    Refusal::status(StatusCode::NOT_FOUND, format!("no such model; `{}` is served here", house.desk.served.name)).into_response()
}

async fn chat(State(house): State<House>, request: Request) -> Response {
    answer(&house, Api::Chat, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn completions(State(house): State<House>, request: Request) -> Response {
    answer(&house, Api::Completions, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(house: &House, api: Api, request: Request) -> Result<Response, Refusal> {
    let body = body(request.into_body()).await?;
    let desk = Arc::clone(&house.desk);
    // Templates and tokenizers take their time with long texts; other requests go on.
    let prepared = tokio::task::spawn_blocking(move || {
        let asked = match api {
            Api::Chat => Asked::chat(&body),
            Api::Completions => Asked::completion(&body),
        }?;
        let ready = desk.prepare(&asked)?;
        Ok((asked, ready))
    });
    let (asked, ready) = prepared.await.map_err(|_| Refusal::fault("the request could not be prepared"))??;
    let underway = house.desk.admit(&asked, &ready)?;
    let served = Arc::clone(&house.desk.served);
    let before =
        (0..underway.choices).map(|choice| if asked.echo { ready[choice / asked.n].text.clone() } else { String::new() }).collect();
    let telling = Telling {
        heading: Heading::new(&served, api),
        served,
        api,
        scores: asked.top.is_some(),
        with_usage: asked.stream_usage,
        before,
        usage: Usage { prompt_tokens: ready.iter().map(|ready: &Ready| ready.ids.len()).sum(), ..Usage::default() },
    };
    if asked.stream { Ok(events(telling, underway)) } else { whole(telling, underway).await }
}

/// Waits for all choices. A caller who goes away drops this, and with it the receiver: the work ends.
async fn whole(telling: Telling, mut underway: Underway) -> Result<Response, Refusal> {
    let mut usage = telling.usage;
    let mut going = underway.choices;
    let choice = |before: &String| Whole {
        text: before.clone(),
        scores: telling.scores.then(|| Scored::new(telling.api)),
        reason: glassbox_generate::FinishReason::MaxTokens,
    };
    let mut choices: Vec<Whole> = telling.before.iter().map(choice).collect();
    while going > 0 {
        match underway.told.recv().await {
            Some((choice, Told::Token(token))) => {
                let before = telling.before[choice].chars().count();
                choices[choice].text.push_str(&token.text);
                if let Some(scores) = &mut choices[choice].scores {
                    scores.push(&telling.served.tokenizer, &token, before);
                }
            }
            Some((choice, Told::End { held, reason, answer_tokens, cached_tokens })) => {
                choices[choice].text.push_str(&held);
                choices[choice].reason = reason;
                usage.answer_tokens += answer_tokens;
                usage.cached_tokens += cached_tokens;
                going -= 1;
            }
            Some((_, Told::Failed(message))) => return Err(Refusal::fault(message)),
            None => return Err(Refusal::fault(STOPPED)),
        }
    }
    Ok(Json(telling.heading.whole(&choices, usage)).into_response())
}

async fn body(body: Body) -> Result<Vec<u8>, Refusal> {
    let collected = tokio::time::timeout(BODY_WAIT, Limited::new(body, BODY_BYTES).collect()).await;
    let too_slow = |_| {
        let message = format!("the body did not come to its end within {} s", BODY_WAIT.as_secs());
        Refusal::status(StatusCode::REQUEST_TIMEOUT, message)
    };
    match collected.map_err(too_slow)? {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Refusal::status(StatusCode::PAYLOAD_TOO_LARGE, format!("wanted a body of at most {BODY_BYTES} bytes")))
        }
        Err(_) => Err(Refusal::request("the body broke off, or its framing is wrong")),
    }
}
