//! What a tokenizer and a chat template are made of, independent of where the files lie.

use glassbox_checkpoint::{ChatTemplateSource, Checkpoint, GgufTokenizer, JsonTokenizer, TokenizerSource};
use serde_json::Value;

use crate::error::Error;

/// The tokenizer part of a checkpoint.
#[derive(Debug, Clone)]
pub enum TextSource {
    /// A folder in Hugging Face layout.
    Json(JsonFiles),
    /// The `tokenizer.*` metadata of a GGUF file.
    Gguf(GgufVocabulary),
}

/// The text files of a Hugging Face folder that concern text.
#[derive(Debug, Clone, Default)]
pub struct JsonFiles {
    /// `tokenizer.json`; of a folder that has only `vocab.txt`, what that file would be.
    pub tokenizer: Vec<u8>,
    /// `tokenizer_config.json`.
    pub config: Option<Value>,
    /// `special_tokens_map.json`, from older folders.
    pub special_tokens_map: Option<Value>,
    /// Ids that end a text, from `generation_config.json` and `config.json`.
    pub end_ids: Vec<u32>,
    /// The chat templates by name, `default` first.
    pub templates: Vec<(String, String)>,
}

/// Kinds of entries in `tokenizer.ggml.token_type`.
pub(crate) mod token_type {
    pub(crate) const NORMAL: i32 = 1;
    pub(crate) const UNKNOWN: i32 = 2;
    pub(crate) const CONTROL: i32 = 3;
    pub(crate) const USER_DEFINED: i32 = 4;
    pub(crate) const UNUSED: i32 = 5;
    pub(crate) const BYTE: i32 = 6;
}

/// The `tokenizer.*` metadata of a GGUF file.
#[derive(Debug, Clone, Default)]
pub struct GgufVocabulary {
    /// `tokenizer.ggml.model`: `gpt2`, `llama` or `bert`.
    pub model: String,
    /// `tokenizer.ggml.pre`.
    pub pre: Option<String>,
    /// `tokenizer.ggml.tokens`, by id.
    pub tokens: Vec<String>,
    /// `tokenizer.ggml.scores`, by id; only for model `llama`.
    pub scores: Vec<f32>,
    /// `tokenizer.ggml.token_type`, by id; empty when the file has none.
    pub token_types: Vec<i32>,
    /// `tokenizer.ggml.merges`, best first; only for model `gpt2`.
    pub merges: Vec<String>,
    /// `tokenizer.ggml.bos_token_id`.
    pub bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`.
    pub eot: Option<u32>,
    /// `tokenizer.ggml.eom_token_id`.
    pub eom: Option<u32>,
    /// `tokenizer.ggml.unknown_token_id`.
    pub unknown: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub padding: Option<u32>,
    /// `tokenizer.ggml.cls_token_id`, which begins a text for an encoder.
    pub cls: Option<u32>,
    /// `tokenizer.ggml.seperator_token_id` (spelt so), which ends one.
    pub sep: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`.
    pub add_eos: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix`.
    pub add_space_prefix: Option<bool>,
    /// `tokenizer.ggml.remove_extra_whitespaces`.
    pub remove_extra_whitespaces: Option<bool>,
    /// Whether the file has `tokenizer.ggml.precompiled_charsmap`, a normalisation that this crate does not run.
    pub has_charsmap: bool,
    /// `tokenizer.chat_template` as `default`, and `tokenizer.chat_template.<name>`.
    pub templates: Vec<(String, String)>,
}

impl TextSource {
    /// What a checkpoint has for text; read it once for tokenizer and template.
    ///
    /// # Errors
    /// [`Error::NoTokenizer`]; [`Error::Checkpoint`] with the reader's words when a file is damaged.
    pub fn open(checkpoint: &Checkpoint) -> Result<Self, Error> {
        let source = checkpoint.tokenizer_source().map_err(|error| Error::Checkpoint(error.to_string()))?;
        Self::try_from(&source)
    }
}

impl TryFrom<&TokenizerSource> for TextSource {
    type Error = Error;

    fn try_from(source: &TokenizerSource) -> Result<Self, Error> {
        match source {
            TokenizerSource::Json(files) => Ok(Self::Json(files.into())),
            TokenizerSource::Words(list) => crate::word_list::json_files(list).map(Self::Json),
            TokenizerSource::Gguf(metadata) => Ok(Self::Gguf(metadata.into())),
            TokenizerSource::None { found } => Err(Error::NoTokenizer { found: found.clone() }),
            _ => Err(Error::NoTokenizer { found: "a kind of tokenizer that is not read here".to_owned() }),
        }
    }
}

impl From<&JsonTokenizer> for JsonFiles {
    fn from(files: &JsonTokenizer) -> Self {
        Self {
            tokenizer: files.tokenizer_json.to_vec(),
            config: files.tokenizer_config.clone(),
            special_tokens_map: files.special_tokens_map.clone(),
            end_ids: [&files.generation_ids.eos[..], &files.config_ids.eos].concat(),
            templates: named(&files.chat_templates),
        }
    }
}

impl From<&GgufTokenizer> for GgufVocabulary {
    fn from(metadata: &GgufTokenizer) -> Self {
        let texts = |strings: &glassbox_checkpoint::Strings| strings.iter().map(str::to_owned).collect();
        Self {
            model: metadata.model.clone(),
            pre: metadata.pre.clone(),
            tokens: texts(&metadata.tokens),
            scores: metadata.scores.clone().unwrap_or_default(),
            token_types: metadata.token_types.clone().unwrap_or_default(),
            merges: metadata.merges.as_ref().map(texts).unwrap_or_default(),
            bos: metadata.bos,
            eos: metadata.eos,
            eot: metadata.eot,
            eom: metadata.eom,
            unknown: metadata.unknown,
            padding: metadata.pad,
            cls: metadata.cls,
            sep: metadata.sep,
            add_bos: metadata.add_bos,
            add_eos: metadata.add_eos,
            add_space_prefix: metadata.add_space_prefix,
            remove_extra_whitespaces: metadata.remove_extra_whitespaces,
            has_charsmap: metadata.precompiled_charsmap.is_some(),
            templates: named(&metadata.chat_templates),
        }
    }
}

fn named(templates: &[ChatTemplateSource]) -> Vec<(String, String)> {
    templates.iter().map(|template| (template.name.clone(), template.text.clone())).collect()
}
