//! What a request asks for: read field by field, held against the limits, before anything is allocated for it.

use std::hash::{BuildHasher, Hasher, RandomState};

use glassbox_generate::Sampling;
use glassbox_text::{Message, Piece};
use serde_json::Value;

use crate::fields::{Fields, Heed, wrong};
use crate::refusal::Refusal;

/// Most likely tokens that come beside each chosen one.
const MOST_TOP: usize = 20;
/// Most choices of one request: prompts times `n`.
const MOST_CHOICES: usize = 32;
/// Most stop strings of one request.
const MOST_STOPS: usize = 16;
/// Longest stop string, in bytes.
const LONGEST_STOP: usize = 1024;
/// A limit of tokens that no context reaches.
const MOST_TOKENS: usize = 1_000_000_000;
/// Most messages of a chat.
const MOST_MESSAGES: usize = 4096;
/// Tokens of a completion that sets no limit, as the interface has it.
const COMPLETION_TOKENS: usize = 16;

/// A request, understood.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The model that is meant; any where absent.
    pub(crate) model: Option<String>,
    pub(crate) prompts: Prompts,
    /// Choices a prompt.
    pub(crate) n: usize,
    /// Most tokens of each answer; `None` for as many as there is room.
    pub(crate) max_tokens: Option<usize>,
    pub(crate) sampling: Sampling,
    pub(crate) stop: Vec<String>,
    /// How many of the likeliest tokens come beside each chosen one; `None` where no log-probabilities are asked for.
    pub(crate) top: Option<usize>,
    pub(crate) stream: bool,
    /// Whether a stream ends with the numbers of tokens.
    pub(crate) stream_usage: bool,
    /// Whether the prompt stands before the answer.
    pub(crate) echo: bool,
}

/// What is to be answered or continued.
#[derive(Clone, Debug)]
pub(crate) enum Prompts {
    Chat(Vec<Message>),
    Texts(Vec<Given>),
}

/// A prompt of a completion.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Text(String),
    Ids(Vec<u32>),
}

const SHARED: &[(&str, Heed)] = &[
    ("model", Heed::Read),
    ("max_tokens", Heed::Read),
    ("temperature", Heed::Read),
    ("top_p", Heed::Read),
    ("top_k", Heed::Read),
    ("min_p", Heed::Read),
    ("repetition_penalty", Heed::Read),
    ("n", Heed::Read),
    ("stop", Heed::Read),
    ("seed", Heed::Read),
    ("stream", Heed::Read),
    ("stream_options", Heed::Read),
    ("logprobs", Heed::Read),
    ("presence_penalty", Heed::Nothing),
    ("frequency_penalty", Heed::Nothing),
    ("logit_bias", Heed::Nothing),
    ("user", Heed::Ignored),
    ("metadata", Heed::Ignored),
    ("store", Heed::Ignored),
];

const CHAT: &[(&str, Heed)] = &[
    ("messages", Heed::Read),
    ("max_completion_tokens", Heed::Read),
    ("top_logprobs", Heed::Read),
    ("tools", Heed::Nothing),
    ("tool_choice", Heed::Nothing),
    ("functions", Heed::Nothing),
    ("function_call", Heed::Nothing),
    ("response_format", Heed::Nothing),
    ("parallel_tool_calls", Heed::Ignored),
    ("service_tier", Heed::Ignored),
    ("safety_identifier", Heed::Ignored),
    ("prompt_cache_key", Heed::Ignored),
];

const COMPLETION: &[(&str, Heed)] = &[("prompt", Heed::Read), ("echo", Heed::Read), ("best_of", Heed::Read), ("suffix", Heed::Nothing)];

impl Asked {
    /// Reads the body of a chat.
    pub(crate) fn chat(body: &[u8]) -> Result<Self, Refusal> {
        let fields = Fields::parse(body, &[SHARED, CHAT].concat())?;
        let messages = messages(&fields)?;
        let older = fields.whole("max_tokens", 1, MOST_TOKENS)?;
        let max_tokens = fields.whole("max_completion_tokens", 1, MOST_TOKENS)?;
        if older.is_some() && max_tokens.is_some() && older != max_tokens {
            return Err(Refusal::field("max_completion_tokens", "it says something else than `max_tokens`; give one of them"));
        }
        let top = fields.whole("top_logprobs", 0, MOST_TOP)?;
        let top = match (fields.flag("logprobs")?, top) {
            (true, top) => Some(top.unwrap_or(0)),
            (false, None) => None,
            (false, Some(_)) => return Err(Refusal::field("top_logprobs", "this wants `logprobs`: true")),
        };
        Self::shared(&fields, Prompts::Chat(messages), max_tokens.or(older), top, false)
    }

    /// Reads the body of a completion.
    pub(crate) fn completion(body: &[u8]) -> Result<Self, Refusal> {
        let fields = Fields::parse(body, &[SHARED, COMPLETION].concat())?;
        let prompts = prompts(&fields)?;
        let echo = fields.flag("echo")?;
        let max_tokens = fields.whole("max_tokens", usize::from(!echo), MOST_TOKENS)?;
        let top = match fields.get("logprobs") {
            Some(Value::Bool(false)) => None,
            _ => fields.whole("logprobs", 0, MOST_TOP)?,
        };
        if echo && top.is_some() {
            return Err(Refusal::field("echo", "log-probabilities of a prompt are not served; leave out `echo` or `logprobs`"));
        }
        let n = fields.whole("n", 1, MOST_CHOICES)?.unwrap_or(1);
        if fields.whole("best_of", 1, MOST_CHOICES)?.is_some_and(|best_of| best_of != n) {
            return Err(Refusal::field("best_of", "choosing among answers is not served; leave it out"));
        }
        Self::shared(&fields, Prompts::Texts(prompts), Some(max_tokens.unwrap_or(COMPLETION_TOKENS)), top, echo)
    }

    fn shared(fields: &Fields, prompts: Prompts, max_tokens: Option<usize>, top: Option<usize>, echo: bool) -> Result<Self, Refusal> {
        let n = fields.whole("n", 1, MOST_CHOICES)?.unwrap_or(1);
        let count = match &prompts {
            Prompts::Chat(_) => 1,
            Prompts::Texts(texts) => texts.len(),
        };
        if n * count > MOST_CHOICES {
            return Err(Refusal::field("n", format!("{count} prompts times {n} are more than {MOST_CHOICES} choices")));
        }
        let sampling = Sampling {
            temperature: fields.number("temperature")?.unwrap_or(1.0),
            top_k: fields.whole("top_k", 1, MOST_TOKENS)?,
            top_p: fields.number("top_p")?.unwrap_or(1.0),
            min_p: fields.number("min_p")?.unwrap_or(0.0),
            repetition_penalty: fields.number("repetition_penalty")?.unwrap_or(1.0),
            seed: seed(fields)?,
        };
        sampling.check().map_err(|error| Refusal::request(error.to_string()))?;
        let stream = fields.flag("stream")?;
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            prompts,
            n,
            max_tokens,
            sampling,
            stop: stops(fields)?,
            top,
            stream,
            stream_usage: stream_usage(fields, stream)?,
            echo,
        })
    }
}

fn messages(fields: &Fields) -> Result<Vec<Message>, Refusal> {
    let given = fields.get("messages").ok_or_else(|| Refusal::field("messages", "this is missing"))?;
    let list = given.as_array().ok_or_else(|| wrong("messages", "a list of messages", given))?;
    if list.is_empty() || list.len() > MOST_MESSAGES {
        return Err(Refusal::field("messages", format!("wanted 1 to {MOST_MESSAGES} messages, found {}", list.len())));
    }
    list.iter().map(message).collect()
}

fn message(given: &Value) -> Result<Message, Refusal> {
    let object = given.as_object().ok_or_else(|| wrong("messages", "objects with `role` and `content`", given))?;
    let role = match object.get("role").and_then(Value::as_str) {
        // What newer clients call the system's message.
        Some("developer") => "system",
        Some(role @ ("system" | "user" | "assistant")) => role,
        _ => return Err(Refusal::field("messages", "wanted `role` to be system, developer, user or assistant")),
    };
    let known = |(name, value): (&String, &Value)| matches!(name.as_str(), "role" | "content") || value.is_null();
    if !object.iter().all(known) {
        return Err(Refusal::field("messages", "wanted `role` and `content` and nothing else: names, tools and refusals are not served"));
    }
    Ok(Message::new(role, vec![Piece::text(content(object.get("content"))?)]))
}

/// The text of a message: a string, or a list of text parts.
fn content(given: Option<&Value>) -> Result<String, Refusal> {
    let refusal = || Refusal::field("messages", "wanted `content` to be a string or a list of {\"type\": \"text\", \"text\": ...}");
    match given {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| {
                let is_text = part.get("type") == Some(&Value::from("text"));
                part.get("text").and_then(Value::as_str).filter(|_| is_text).map(str::to_owned).ok_or_else(refusal)
            };
            parts.iter().map(text).collect()
        }
        _ => Err(refusal()),
    }
}

fn prompts(fields: &Fields) -> Result<Vec<Given>, Refusal> {
    let given = fields.get("prompt").ok_or_else(|| Refusal::field("prompt", "this is missing"))?;
    let refusal = || wrong("prompt", "a string, a list of strings, token ids, or a list of those", given);
    let ids = |list: &[Value]| -> Option<Vec<u32>> { list.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect() };
    let list = match given {
        Value::String(text) => return Ok(vec![Given::Text(text.clone())]),
        Value::Array(list) => list,
        _ => return Err(refusal()),
    };
    match list.first() {
        Some(Value::Number(_)) => Ok(vec![Given::Ids(ids(list).ok_or_else(refusal)?)]),
        Some(_) if list.len() > MOST_CHOICES => {
            Err(Refusal::field("prompt", format!("wanted at most {MOST_CHOICES} prompts, found {}", list.len())))
        }
        Some(_) => {
            let one = |value: &Value| match value {
                Value::String(text) => Some(Given::Text(text.clone())),
                Value::Array(list) => ids(list).map(Given::Ids),
                _ => None,
            };
            list.iter().map(|value| one(value).ok_or_else(refusal)).collect()
        }
        None => Err(Refusal::field("prompt", "wanted at least one prompt, found an empty list")),
    }
}

fn stops(fields: &Fields) -> Result<Vec<String>, Refusal> {
    let Some(given) = fields.get("stop") else { return Ok(Vec::new()) };
    let list = match given {
        Value::String(_) => std::slice::from_ref(given),
        Value::Array(list) => list.as_slice(),
        _ => return Err(wrong("stop", "a string or a list of strings", given)),
    };
    if list.len() > MOST_STOPS {
        return Err(Refusal::field("stop", format!("wanted at most {MOST_STOPS} strings, found {}", list.len())));
    }
    let fits = |text: &&str| !text.is_empty() && text.len() <= LONGEST_STOP;
    let wanted = format!("strings of 1 to {LONGEST_STOP} bytes");
    list.iter().map(|value| value.as_str().filter(fits).map(str::to_owned).ok_or_else(|| wrong("stop", &wanted, value))).collect()
}

/// The seed; another one each time where none is given.
fn seed(fields: &Fields) -> Result<u64, Refusal> {
    match fields.get("seed") {
        Some(given) => {
            let bits = given.as_u64().or_else(|| given.as_i64().map(i64::cast_unsigned));
            bits.ok_or_else(|| wrong("seed", "a whole number of 64 bits", given))
        }
        None => Ok(RandomState::new().build_hasher().finish()),
    }
}

fn stream_usage(fields: &Fields, stream: bool) -> Result<bool, Refusal> {
    let Some(given) = fields.get("stream_options") else { return Ok(false) };
    if !stream {
        return Err(Refusal::field("stream_options", "this wants `stream`: true"));
    }
    let object = given.as_object().ok_or_else(|| wrong("stream_options", "an object with `include_usage`", given))?;
    match object.get("include_usage") {
        None | Some(Value::Null) => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| wrong("stream_options", "`include_usage` true or false", value)),
    }
}
