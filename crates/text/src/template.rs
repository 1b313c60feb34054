//! Chat templates, rendered as `transformers` renders them, within limits.

use std::collections::BTreeMap;
use std::io;

use glassbox_checkpoint::Checkpoint;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::Map;

use crate::clock::CivilTime;
use crate::error::Error;
use crate::prompt::Message;
use crate::source::TextSource;
use crate::template_values::{self, on_a_deep_stack};
use crate::{python, template_source};

/// Work that one rendering may do: about one unit an instruction and one for 64 bytes. A chat of 1 000 messages in the
/// longest known template needs some 200 000.
pub const TEMPLATE_FUEL: u64 = 1_000_000;
/// Bytes that one rendering may write.
pub const TEMPLATE_OUTPUT_BYTES: usize = 16 << 20;
/// Nested calls that one rendering may make; the library counts a macro as several.
pub const TEMPLATE_NESTING: usize = 200;
/// Bytes of the longest template; the longest known has 20 KB.
pub const TEMPLATE_SOURCE_BYTES: usize = 1 << 20;

/// How a conversation is turned into text.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// What comes after the last message.
    pub ending: Ending,
    /// Tools, as the JSON schemas that templates expect; `None` is Python's `None`.
    pub tools: Option<serde_json::Value>,
    /// Documents, for templates that place them; `None` is Python's `None`.
    pub documents: Option<serde_json::Value>,
    /// More variables of the template, for example `enable_thinking`.
    pub variables: Map<String, serde_json::Value>,
    /// The time that `strftime_now` writes. Nothing here reads a clock.
    pub now: Option<CivilTime>,
}

/// What comes after the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// The header of an answer, so that the model answers next (`add_generation_prompt`).
    #[default]
    Answer,
    /// Nothing: the conversation as it is.
    Closed,
    /// The last message stays open, and the model goes on with it (`continue_final_message`).
    Continue,
}

/// A chat template of a model, ready to render.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    name: String,
    source: String,
    hash: String,
    environment: Environment<'static>,
    variables: Map<String, serde_json::Value>,
}

impl ChatTemplate {
    /// The template of a checkpoint: `name`, or without a name the `default` one.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] when the files cannot be read; those of [`ChatTemplate::from_source`].
    pub fn open(checkpoint: &Checkpoint, name: Option<&str>) -> Result<Self, Error> {
        Self::from_source(&TextSource::open(checkpoint)?, name)
    }

    /// The names of the templates that a model brings; most bring one, `default`.
    pub fn names(source: &TextSource) -> Vec<String> {
        templates(source).iter().map(|(name, _)| name.clone()).collect()
    }

    /// The template `name` of a model, or without a name its `default`.
    ///
    /// # Errors
    /// [`Error::NoTemplate`] with the names there are; [`Error::Template`] when it does not compile.
    pub fn from_source(source: &TextSource, name: Option<&str>) -> Result<Self, Error> {
        let all = templates(source);
        let wanted = name.unwrap_or("default");
        let only_one = name.is_none() && all.len() == 1;
        let Some((name, text)) = all.iter().find(|(name, _)| only_one || name == wanted) else {
            return Err(Error::NoTemplate {
                wanted: format!("`{wanted}`"),
                known: if all.is_empty() {
                    "none".to_owned()
                } else {
                    all.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                },
            });
        };
        let variables = match source {
            TextSource::Json(files) => crate::framing::special_texts(files),
            TextSource::Gguf(metadata) => crate::from_gguf::special_texts(metadata),
        };
        Self::compile(name, text, variables)
    }

    /// Compiles a template of one's own; `variables` are what it sees besides the conversation, `bos_token` for example.
    ///
    /// # Errors
    /// [`Error::Template`] with the line; [`Error::TemplateLimit`] for a source that is too long or nested too deeply.
    pub fn compile(name: &str, source: &str, variables: Map<String, serde_json::Value>) -> Result<Self, Error> {
        if source.len() > TEMPLATE_SOURCE_BYTES {
            return Err(Error::TemplateLimit {
                name: name.to_owned(),
                limit: "source size",
                value: format!("{TEMPLATE_SOURCE_BYTES} bytes"),
            });
        }
        let mut environment = environment();
        let prepared = template_source::prepared(name, source)?;
        let compiled = on_a_deep_stack(|| environment.add_template_owned(TEMPLATE, prepared));
        compiled.ok_or_else(|| gave_up(name))?.map_err(|error| explain(name, &error))?;
        Ok(Self {
            name: name.to_owned(),
            source: source.to_owned(),
            hash: blake3::hash(source.as_bytes()).to_hex().to_string(),
            environment,
            variables,
        })
    }

    /// The template's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The template's text as the model brings it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// BLAKE3 of the source, in hex: two prompts are comparable only when it is the same.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whether the template can write the header of an answer; if not, [`Ending::Answer`] adds nothing.
    pub fn knows_generation_prompt(&self) -> bool {
        self.source.contains("add_generation_prompt")
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// [`Error::TemplateRaised`] with the template's own words, [`Error::Template`], [`Error::TemplateLimit`],
    /// [`Error::NoClock`]; [`Error::Request`] for [`Ending::Continue`] without a last message that the template keeps.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String, Error> {
        let contents: Vec<String> = messages.iter().map(Message::content).collect();
        self.render_contents(messages, &contents, options)
    }

    /// Renders with other texts in the place of the messages' own.
    pub(crate) fn render_contents(&self, messages: &[Message], contents: &[String], options: &RenderOptions) -> Result<String, Error> {
        let Some(last) = messages.len().checked_sub(1) else {
            return Err(Error::Request { wanted: "at least one message".to_owned(), found: "none".to_owned() });
        };
        let open = options.ending == Ending::Continue;
        let messages: Vec<serde_json::Value> = messages
            .iter()
            .zip(contents)
            .enumerate()
            .map(|(index, (message, content))| {
                let tag = if open && index == last { OPEN_END } else { "" };
                message.as_json(format!("{content}{tag}"))
            })
            .collect();
        let mut context = self.variables.clone();
        context.extend(options.variables.clone());
        context.insert("messages".to_owned(), messages.into());
        context.insert("tools".to_owned(), options.tools.clone().unwrap_or_default());
        context.insert("documents".to_owned(), options.documents.clone().unwrap_or_default());
        context.insert("add_generation_prompt".to_owned(), (options.ending == Ending::Answer).into());
        let text = self.run(&context, options.now)?;
        if open { self.cut_at_open_end(&text, python::python_strip(&contents[last])) } else { Ok(text) }
    }

    fn run(&self, context: &Map<String, serde_json::Value>, now: Option<CivilTime>) -> Result<String, Error> {
        let context: BTreeMap<String, Value> = context
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(Serde(value))))
            .chain([("strftime_now".to_owned(), clock(now))])
            .collect();
        let template = self.environment.get_template(TEMPLATE).map_err(|error| explain(&self.name, &error))?;
        let mut output = Bounded::default();
        // The context is dropped on the deep stack, too.
        let result = on_a_deep_stack(|| template.render_captured_to(Value::from(context), &mut output).map(|_| ()));
        if output.exceeded {
            return Err(Error::TemplateLimit {
                name: self.name.clone(),
                limit: "output size",
                value: format!("{TEMPLATE_OUTPUT_BYTES} bytes"),
            });
        }
        result.ok_or_else(|| gave_up(&self.name))?.map_err(|error| explain(&self.name, &error))?;
        Ok(String::from_utf8(output.bytes).expect("the template library writes text"))
    }

    fn cut_at_open_end(&self, text: &str, last: &str) -> Result<String, Error> {
        let Some(at) = text.rfind(OPEN_END.trim_end()).filter(|_| text.contains(last)) else {
            return Err(Error::Request {
                wanted: format!("a last message that template `{}` keeps whole, to continue it", self.name),
                found: "a template that drops or cuts it".to_owned(),
            });
        };
        // Where the template trims messages, it would also have trimmed the text before the mark.
        let kept = text[at..].starts_with(OPEN_END);
        let before = &text[..at];
        Ok(if kept { before.to_owned() } else { before.trim_end_matches(python::is_python_space).to_owned() })
    }
}

const TEMPLATE: &str = "chat";
/// Of the words of `raise_exception`, so many are repeated.
const RAISED_CHARACTERS: usize = 2_000;
/// Marks the end of a message that is to be continued; ends in a space so that trimming shows.
const OPEN_END: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

fn templates(source: &TextSource) -> &[(String, String)] {
    match source {
        TextSource::Gguf(metadata) => &metadata.templates,
        TextSource::Json(files) => &files.templates,
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(false)
            .build()
            .expect("these settings need no delimiters"),
    );
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.set_recursion_limit(TEMPLATE_NESTING);
    environment.set_unknown_method_callback(python::method);
    environment.add_filter("tojson", |value: &Value, args: Kwargs| python::to_json(value, &args));
    environment.add_filter("trim", python::trim);
    environment.add_filter(template_source::KEPT, template_values::kept);
    environment.add_filter(template_source::KEPT_IN_NAMESPACE, template_values::kept_in_namespace);
    environment.set_formatter(|output, state, value| {
        if value.is_number() && !value.is_integer() {
            let text = python::python_float(f64::try_from(value.clone())?);
            return minijinja::escape_formatter(output, state, &Value::from(text));
        }
        minijinja::escape_formatter(output, state, value)
    });
    environment.add_function("raise_exception", |message: Value| -> Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(Raised(message.to_string())))
    });
    environment
}

/// The function `strftime_now` for a fixed time.
fn clock(now: Option<CivilTime>) -> Value {
    Value::from_function(move |format: String| -> Result<String, minijinja::Error> {
        let now = now.ok_or_else(|| minijinja::Error::new(ErrorKind::InvalidOperation, "strftime_now").with_source(NoClock))?;
        now.format(&format)
            .map_err(|directive| minijinja::Error::new(ErrorKind::InvalidOperation, format!("strftime_now does not know `{directive}`")))
    })
}

/// The template called `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

/// The template asked for a time that nobody gave.
#[derive(Debug, thiserror::Error)]
#[error("no time was given")]
struct NoClock;

/// The library panicked, or there is no memory for a stack.
fn gave_up(name: &str) -> Error {
    Error::Template { name: name.to_owned(), line: 0, message: "the template library gave up".to_owned() }
}

fn explain(name: &str, error: &minijinja::Error) -> Error {
    let limit = |limit, value: String| Error::TemplateLimit { name: name.to_owned(), limit, value };
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut innermost = error.to_string();
    while let Some(current) = cause {
        if let Some(raised) = current.downcast_ref::<Raised>() {
            return Error::TemplateRaised(raised.0.chars().take(RAISED_CHARACTERS).collect());
        }
        if current.downcast_ref::<NoClock>().is_some() {
            return Error::NoClock;
        }
        if let Some(error) = current.downcast_ref::<minijinja::Error>() {
            let detail = error.detail().unwrap_or_default();
            if error.kind() == ErrorKind::OutOfFuel {
                return limit("fuel", format!("{TEMPLATE_FUEL} steps"));
            }
            if detail.contains("recursion limit") {
                return limit("nesting", format!("{TEMPLATE_NESTING} levels"));
            }
            if !detail.is_empty() {
                innermost = format!("{}: {detail}", error.kind());
            }
        }
        cause = current.source();
    }
    Error::Template { name: name.to_owned(), line: error.line().unwrap_or(0), message: innermost }
}

/// A writer that stops at the output limit.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    exceeded: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > TEMPLATE_OUTPUT_BYTES {
            self.exceeded = true;
            return Err(io::Error::other("output limit"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
