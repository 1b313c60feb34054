//! What a model brings for turning text into tokens: files of a folder, or GGUF metadata.

use glassbox_tensor::Bytes;
use serde_json::Value as Json;

use crate::error::{CheckpointError, Fault, Place, clip};
use crate::folder::Folder;
use crate::gguf::Strings;
use crate::settings::Settings;
use crate::value::{List, Value};

/// Where the tokenizer comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TokenizerSource {
    /// `tokenizer.json` and its neighbours.
    Json(JsonTokenizer),
    /// `vocab.txt` and its neighbours, without `tokenizer.json`.
    Words(WordList),
    /// Metadata of a GGUF file.
    Gguf(GgufTokenizer),
    /// The model has no tokenizer that is read here; token ids only.
    None {
        /// What is there instead, for the message of whoever needs a tokenizer.
        found: String,
    },
}

/// The tokenizer of a Hugging Face folder.
#[derive(Clone, Debug)]
pub struct JsonTokenizer {
    /// The file as messages name it.
    pub file: String,
    /// `tokenizer.json`, unparsed.
    pub tokenizer_json: Bytes,
    /// `tokenizer_config.json`.
    pub tokenizer_config: Option<Json>,
    /// `special_tokens_map.json`.
    pub special_tokens_map: Option<Json>,
    /// `generation_config.json`.
    pub generation_config: Option<Json>,
    /// The templates, `default` first where there is one. A file `chat_template.jinja` goes before `tokenizer_config.json`, as in
    /// `transformers`.
    pub chat_templates: Vec<ChatTemplateSource>,
    /// Ids that `config.json` gives.
    pub config_ids: SpecialIds,
    /// Ids that `generation_config.json` gives; they go before those of `config.json` when text is generated.
    pub generation_ids: SpecialIds,
}

/// The tokenizer of a folder as encoders had it before `tokenizer.json`: a token a line.
#[derive(Clone, Debug)]
pub struct WordList {
    /// The file as messages name it.
    pub file: String,
    /// `vocab.txt`, unread: the line is the id.
    pub words: Bytes,
    /// `tokenizer_config.json`.
    pub tokenizer_config: Option<Json>,
    /// `special_tokens_map.json`.
    pub special_tokens_map: Option<Json>,
    /// `added_tokens.json`: tokens beside those of the list, with their ids.
    pub added_tokens: Option<Json>,
}

/// A chat template, not yet compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatTemplateSource {
    /// `default`, or the name that the model gives (`tool_use`, `rag`).
    pub name: String,
    /// The Jinja text.
    pub text: String,
    /// The file it comes from, as messages name it.
    pub file: String,
}

/// Ids of special tokens. A file may give one id or a list; both become a list, empty where the file says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Beginning of a sequence.
    pub bos: Vec<u32>,
    /// End of a sequence: any of these ends generation.
    pub eos: Vec<u32>,
    /// Padding.
    pub pad: Vec<u32>,
}

/// The tokenizer of a GGUF file.
#[derive(Clone, Debug)]
pub struct GgufTokenizer {
    /// The file as messages name it.
    pub file: String,
    /// `tokenizer.ggml.model`: `gpt2` (byte-level BPE), `llama` (SentencePiece), …
    pub model: String,
    /// `tokenizer.ggml.pre`: names the pre-tokenizer of byte-level BPE.
    pub pre: Option<String>,
    /// The vocabulary; the index is the id.
    pub tokens: Strings,
    /// SentencePiece scores, one a token.
    pub scores: Option<Vec<f32>>,
    /// Kinds of tokens, one a token: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub token_types: Option<Vec<i32>>,
    /// BPE merges in order of rank, each two pieces with a space between.
    pub merges: Option<Strings>,
    /// Beginning of a sequence.
    pub bos: Option<u32>,
    /// End of a sequence.
    pub eos: Option<u32>,
    /// End of a turn.
    pub eot: Option<u32>,
    /// End of a message.
    pub eom: Option<u32>,
    /// The unknown token.
    pub unknown: Option<u32>,
    /// Padding.
    pub pad: Option<u32>,
    /// What begins a text for an encoder.
    pub cls: Option<u32>,
    /// What ends a text for an encoder.
    pub sep: Option<u32>,
    /// Whether encoding starts with `bos`; `None` where the file leaves it to the kind of tokenizer.
    pub add_bos: Option<bool>,
    /// Whether encoding ends with `eos`.
    pub add_eos: Option<bool>,
    /// Whether a space is put before the text.
    pub add_space_prefix: Option<bool>,
    /// Whether runs of spaces become one.
    pub remove_extra_whitespaces: Option<bool>,
    /// Compiled normalisation rules of SentencePiece.
    pub precompiled_charsmap: Option<Vec<u8>>,
    /// The templates, `default` first where there is one.
    pub chat_templates: Vec<ChatTemplateSource>,
}

const TOKENIZER: &str = "tokenizer.json";
const WORDS: &str = "vocab.txt";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE_FILE: &str = "chat_template.jinja";
const TEMPLATE_FOLDER: &str = "additional_chat_templates";
const DEFAULT: &str = "default";

pub(crate) fn from_folder(folder: &Folder, settings: &Settings) -> Result<TokenizerSource, CheckpointError> {
    let Some(tokenizer_json) = folder.get(TOKENIZER)? else {
        if let Some(words) = folder.get(WORDS)? {
            return Ok(TokenizerSource::Words(WordList {
                file: folder.label(WORDS),
                words,
                tokenizer_config: folder.json(TOKENIZER_CONFIG)?,
                special_tokens_map: folder.json("special_tokens_map.json")?,
                added_tokens: folder.json("added_tokens.json")?,
            }));
        }
        let others: Vec<&str> = ["tokenizer.model", "vocab.json"].into_iter().filter(|name| folder.has(name)).collect();
        let found = match others.as_slice() {
            [] => format!("no {TOKENIZER}"),
            others => format!("no {TOKENIZER}, only {}", others.join(", ")),
        };
        return Ok(TokenizerSource::None { found: format!("{}: {found}", folder.label(TOKENIZER)) });
    };
    let tokenizer_config = folder.json(TOKENIZER_CONFIG)?;
    let generation_config = folder.json("generation_config.json")?;
    let text_config = settings.section("text_config").ok().flatten();
    let ids = |key: &str| {
        let own = config_ids(settings, key)?;
        if !own.is_empty() {
            return Ok(own);
        }
        text_config.as_ref().map_or(Ok(own), |section| config_ids(section, key))
    };
    Ok(TokenizerSource::Json(JsonTokenizer {
        file: folder.label(TOKENIZER),
        tokenizer_json,
        special_tokens_map: folder.json("special_tokens_map.json")?,
        chat_templates: templates_of_folder(folder, tokenizer_config.as_ref())?,
        config_ids: SpecialIds { bos: ids("bos_token_id")?, eos: ids("eos_token_id")?, pad: ids("pad_token_id")? },
        generation_ids: generation_config.as_ref().map_or(Ok(SpecialIds::default()), |config| generation_ids(folder, config))?,
        tokenizer_config,
        generation_config,
    }))
}

/// Names of the files beside the weights that can change an answer.
pub(crate) fn files_beside_weights(folder: &Folder) -> Result<Vec<String>, CheckpointError> {
    const NAMES: [&str; 8] = [
        "config.json",
        "generation_config.json",
        TOKENIZER,
        WORDS,
        TOKENIZER_CONFIG,
        "special_tokens_map.json",
        TEMPLATE_FILE,
        "added_tokens.json",
    ];
    let wanted = |name: &String| NAMES.contains(&name.as_str()) || is_named_template(name).is_some();
    Ok(folder.names(Some(TEMPLATE_FOLDER))?.into_iter().filter(wanted).collect())
}

fn is_named_template(path: &str) -> Option<&str> {
    path.strip_prefix(TEMPLATE_FOLDER)?.strip_prefix('/')?.strip_suffix(".jinja")
}

/// One id, a list of ids, or nothing.
fn config_ids(settings: &Settings, key: &str) -> Result<Vec<u32>, CheckpointError> {
    let id = |value: &Value| value.integer().and_then(|id| u32::try_from(id).ok());
    let ids = match settings.look(key) {
        None => Some(Vec::new()),
        Some(Value::List(list)) => list.values().and_then(|values| values.iter().map(id).collect()),
        Some(value) => match value.integer() {
            Some(-1) => Some(Vec::new()), // old configurations write "none" so
            _ => id(value).map(|id| vec![id]),
        },
    };
    ids.ok_or_else(|| settings.wrong(key, "a token id or a list of token ids", "something else"))
}

fn generation_ids(folder: &Folder, config: &Json) -> Result<SpecialIds, CheckpointError> {
    let ids = |key: &str| {
        let id = |value: &Json| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let ids = match config.get(key) {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::Array(list)) => list.iter().map(id).collect(),
            Some(value) => id(value).map(|id| vec![id]),
        };
        ids.ok_or_else(|| {
            CheckpointError::Setting(Box::new(Fault {
                file: folder.label("generation_config.json"),
                place: Place::Key(key.to_owned()),
                wanted: "a token id or a list of token ids".to_owned(),
                found: clip(&config[key].to_string()),
                remedy: "correct the value in the file".to_owned(),
            }))
        })
    };
    Ok(SpecialIds { bos: ids("bos_token_id")?, eos: ids("eos_token_id")?, pad: ids("pad_token_id")? })
}

fn templates_of_folder(folder: &Folder, tokenizer_config: Option<&Json>) -> Result<Vec<ChatTemplateSource>, CheckpointError> {
    let mut templates = Vec::new();
    if let Some(bytes) = folder.get(TEMPLATE_FILE)? {
        templates.push(template_file(folder, DEFAULT, TEMPLATE_FILE, &bytes)?);
    }
    for path in folder.names(Some(TEMPLATE_FOLDER))? {
        if let Some(name) = is_named_template(&path)
            && let Some(bytes) = folder.get(&path)?
        {
            templates.push(template_file(folder, name, &path, &bytes)?);
        }
    }
    if !templates.is_empty() {
        return Ok(templates);
    }
    let file = folder.label(TOKENIZER_CONFIG);
    let template = |name: &str, text: &str| ChatTemplateSource { name: name.to_owned(), text: text.to_owned(), file: file.clone() };
    let wrong = |found: &Json| {
        CheckpointError::Setting(Box::new(Fault {
            file: file.clone(),
            place: Place::Key("chat_template".to_owned()),
            wanted: "a text, or a list of objects with `name` and `template`".to_owned(),
            found: clip(&found.to_string()),
            remedy: "correct the value in the file".to_owned(),
        }))
    };
    match tokenizer_config.and_then(|config| config.get("chat_template")) {
        None | Some(Json::Null) => {}
        Some(Json::String(text)) => templates.push(template(DEFAULT, text)),
        Some(Json::Array(list)) => {
            for named in list {
                let (name, text) = (named.get("name").and_then(Json::as_str), named.get("template").and_then(Json::as_str));
                templates.push(name.zip(text).map(|(name, text)| template(name, text)).ok_or_else(|| wrong(named))?);
            }
            templates.sort_by_key(|template| template.name != DEFAULT);
        }
        Some(other) => return Err(wrong(other)),
    }
    Ok(templates)
}

fn template_file(folder: &Folder, name: &str, path: &str, bytes: &[u8]) -> Result<ChatTemplateSource, CheckpointError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        CheckpointError::Malformed(Box::new(Fault {
            file: folder.label(path),
            place: Place::Byte(error.valid_up_to() as u64),
            wanted: "a template in UTF-8".to_owned(),
            found: error.to_string(),
            remedy: "save the file as UTF-8".to_owned(),
        }))
    })?;
    Ok(ChatTemplateSource { name: name.to_owned(), text: text.to_owned(), file: folder.label(path) })
}

/// Keys below `tokenizer.` that change no id, and why.
const GGUF_HARMLESS: &[(&str, &str)] = &[
    ("ggml.mask_token_id", "masked language models are not run"),
    ("ggml.add_sep_token", "separators are put by whoever writes the prompt"),
    ("ggml.token_type_count", "segment embeddings are the model's matter"),
    ("ggml.prefix_token_id", "filling in the middle is up to the prompt"),
    ("ggml.suffix_token_id", "filling in the middle is up to the prompt"),
    ("ggml.middle_token_id", "filling in the middle is up to the prompt"),
    ("ggml.fim_pre_token_id", "filling in the middle is up to the prompt"),
    ("ggml.fim_suf_token_id", "filling in the middle is up to the prompt"),
    ("ggml.fim_mid_token_id", "filling in the middle is up to the prompt"),
    ("ggml.fim_pad_token_id", "filling in the middle is up to the prompt"),
    ("ggml.fim_rep_token_id", "filling in the middle is up to the prompt"),
    ("ggml.fim_sep_token_id", "filling in the middle is up to the prompt"),
    ("ggml.added_tokens", "they are in the vocabulary too"),
    ("huggingface.json", "the same tokenizer in another format"),
    ("chat_templates", "names the templates, which are read one by one"),
];

pub(crate) fn from_gguf(settings: &Settings) -> Result<TokenizerSource, CheckpointError> {
    let none = || TokenizerSource::None { found: format!("{}: no metadata `tokenizer.ggml.model`", settings.file()) };
    let Some(all) = settings.section("tokenizer")? else { return Ok(none()) };
    let Some(model) = all.optional_str("ggml.model")?.map(str::to_owned) else { return Ok(none()) };
    if matches!(model.as_str(), "no_vocab" | "none") {
        return Ok(TokenizerSource::None { found: format!("{}: `tokenizer.ggml.model` is `{model}`", settings.file()) });
    }
    let tokens = strings(&all, "ggml.tokens")?
        .ok_or_else(|| all.refuse("ggml.tokens", "the vocabulary", "no such key", "convert the model again with its tokenizer"))?;
    let len = tokens.len();
    let id = |key: &str| token_id(&all, key, len);
    let tokenizer = GgufTokenizer {
        file: settings.file().to_owned(),
        model,
        pre: all.optional_str("ggml.pre")?.map(str::to_owned),
        scores: one_each(&all, "ggml.scores", len, narrow)?,
        token_types: one_each(&all, "ggml.token_type", len, |value| value.integer().and_then(|kind| i32::try_from(kind).ok()))?,
        merges: strings(&all, "ggml.merges")?,
        bos: id("ggml.bos_token_id")?,
        eos: id("ggml.eos_token_id")?,
        eot: id("ggml.eot_token_id")?,
        eom: id("ggml.eom_token_id")?,
        unknown: id("ggml.unknown_token_id")?,
        pad: id("ggml.padding_token_id")?,
        cls: id("ggml.cls_token_id")?,
        // The first spelling is the format's.
        sep: id("ggml.seperator_token_id")?.or(id("ggml.separator_token_id")?),
        add_bos: all.optional_bool("ggml.add_bos_token")?,
        add_eos: all.optional_bool("ggml.add_eos_token")?,
        add_space_prefix: all.optional_bool("ggml.add_space_prefix")?,
        remove_extra_whitespaces: all.optional_bool("ggml.remove_extra_whitespaces")?,
        precompiled_charsmap: charsmap(&all)?,
        chat_templates: templates_of_gguf(&all)?,
        tokens,
    };
    for (key, reason) in GGUF_HARMLESS {
        all.ignore(key, reason);
    }
    all.finish_section()?;
    Ok(TokenizerSource::Gguf(tokenizer))
}

fn strings(section: &Settings, key: &str) -> Result<Option<Strings>, CheckpointError> {
    match section.look(key) {
        None => Ok(None),
        Some(Value::List(List::Gguf(array))) => match array.strings() {
            Some(strings) => Ok(Some(strings)),
            None => Err(section.wrong(key, "a list of texts in UTF-8", "other values, or a text that is no UTF-8")),
        },
        Some(other) => Err(section.wrong(key, "a list of texts", &other.describe())),
    }
}

fn token_id(section: &Settings, key: &str, tokens: usize) -> Result<Option<u32>, CheckpointError> {
    let Some(id) = section.optional_usize(key)? else { return Ok(None) };
    match u32::try_from(id) {
        Ok(small) if id < tokens => Ok(Some(small)),
        _ if id == u32::MAX as usize => Ok(None), // converters write -1 as u32 for "none"
        _ => Err(section.wrong(key, &format!("an id below {tokens}, the size of the vocabulary"), &id.to_string())),
    }
}

/// A list with one value for each token.
fn one_each<T>(section: &Settings, key: &str, tokens: usize, get: impl Fn(&Value) -> Option<T>) -> Result<Option<Vec<T>>, CheckpointError> {
    let list = match section.look(key) {
        None => return Ok(None),
        Some(Value::List(List::Gguf(array))) => {
            array.fixed().and_then(|values| values.map(|value| get(&value)).collect::<Option<Vec<T>>>())
        }
        Some(_) => None,
    };
    match list {
        Some(list) if list.len() == tokens => Ok(Some(list)),
        Some(list) => Err(section.wrong(key, &format!("{tokens} numbers, one for each token"), &format!("{} numbers", list.len()))),
        None => Err(section.wrong(key, "a list of numbers", "something else")),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the file stores f32; widening and narrowing again changes nothing")]
fn narrow(value: &Value) -> Option<f32> {
    match value {
        Value::Float(value) => Some(*value as f32),
        _ => None,
    }
}

fn charsmap(section: &Settings) -> Result<Option<Vec<u8>>, CheckpointError> {
    const KEY: &str = "ggml.precompiled_charsmap";
    let bytes = match section.look(KEY) {
        None => return Ok(None),
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "converters store the bytes as i8 or u8")]
        Some(Value::List(List::Gguf(array))) => array.fixed().and_then(|values| {
            values
                .map(|value| value.integer().filter(|byte| (-128..256).contains(byte)).map(|byte| byte as u8))
                .collect::<Option<Vec<u8>>>()
        }),
        Some(_) => None,
    };
    bytes.map(Some).ok_or_else(|| section.wrong(KEY, "a list of bytes", "something else"))
}

fn templates_of_gguf(section: &Settings) -> Result<Vec<ChatTemplateSource>, CheckpointError> {
    const KEY: &str = "chat_template";
    let file = section.file();
    let names: Vec<String> = section.keys().filter_map(|key| key.strip_prefix("chat_template.")).map(str::to_owned).collect();
    let mut templates = Vec::new();
    if let Some(Value::Text(text)) = section.look(KEY) {
        templates.push(ChatTemplateSource { name: DEFAULT.to_owned(), text: text.clone(), file: file.to_owned() });
    } else if section.keys().any(|key| key == KEY) {
        return Err(section.wrong(KEY, "a text in UTF-8", "something else"));
    }
    for name in names {
        let text = section.str(&format!("{KEY}.{name}"))?.to_owned();
        templates.push(ChatTemplateSource { name, text, file: file.to_owned() });
    }
    Ok(templates)
}
