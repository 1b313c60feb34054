//! The built-in model: files of `specimens/specimen` that every binary carries.

use glassbox_checkpoint::{Checkpoint, CheckpointError};

/// The name under which it is asked for.
pub(crate) const NAME: &str = "specimen";

const FILES: &[(&str, &[u8])] = &[
    ("config.json", include_bytes!("../../../specimens/specimen/config.json")),
    ("generation_config.json", include_bytes!("../../../specimens/specimen/generation_config.json")),
    ("model.safetensors", include_bytes!("../../../specimens/specimen/model.safetensors")),
    ("tokenizer.json", include_bytes!("../../../specimens/specimen/tokenizer.json")),
    ("tokenizer_config.json", include_bytes!("../../../specimens/specimen/tokenizer_config.json")),
];

/// Opens it.
pub(crate) fn open() -> Result<Checkpoint, CheckpointError> {
    Checkpoint::from_embedded(NAME, FILES)
}
