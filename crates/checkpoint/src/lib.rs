//! Files on disk as named tensors, configuration and tokenizer files: safetensors and GGUF.
//!
//! - [`Checkpoint`]: a Hugging Face folder or a GGUF file, opened and checked
//! - [`StoredTensor`]: one tensor as it lies in its file
//! - [`Settings`]: the strict reader of `config.json` and of GGUF metadata; what nothing reads is refused
//! - [`TokenizerSource`]: what the model brings for turning text into tokens
//! - [`locate`], [`HubCache`]: which file or folder a model's name means; the Hugging Face cache
//! - [`GgufWriter`]: writes a GGUF file, whole or not at all
//! - [`ModelName`], [`gguf_choices`]: a name on the hub, and which GGUF file its quantisation means
//! - [`CheckpointError`]: what can be wrong, with the file, the place, and a remedy
//!
//! Invariant: a file is never believed. Every count, length and offset is held against the bytes that are there before anything is
//! allocated, and no file, however damaged, makes this crate panic.

mod cache;
mod checkpoint;
mod error;
mod folder;
mod gguf;
mod gguf_choice;
mod harmless;
mod json;
mod locate;
mod mapped;
mod model_name;
mod recognise;
mod safetensors_file;
mod settings;
mod sharded;
mod tensor;
mod tokenizer_source;
mod value;

pub use cache::{CachedModel, HubCache, HubEnvironment, Usable, repository_folder};
pub use checkpoint::{Checkpoint, StorageShare};
pub use error::{CheckpointError, Fault, Place, Unread, UnreadKey};
pub use gguf::{GgufValue, GgufWriter, Strings};
pub use gguf_choice::{GgufChoice, NoChoice, choose_gguf, gguf_choices};
pub use locate::{LocalModel, Location, locate, models_in};
pub use model_name::ModelName;
pub use settings::{Allowance, CheckpointKind, Expected, IgnoredSetting, Settings};
pub use tensor::StoredTensor;
pub use tokenizer_source::{ChatTemplateSource, GgufTokenizer, JsonTokenizer, SpecialIds, TokenizerSource, WordList};
