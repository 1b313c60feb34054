//! Mistral: Llama with a sliding window in every layer, in the first version; later versions say that there is none.

use glassbox_mechanisms::feed_forward::Activation;

use super::llama::{FOLDER_TENSORS, Like, like_in_folder};
use super::qwen2::with_windows;
use super::{Dialect, Family, Ignored, Proof, Reading};
use crate::ModelError;
use crate::blueprint::Blueprint;

pub(super) const MISTRAL: Family = Family {
    name: "mistral",
    model_types: &["mistral"],
    architectures: &[],
    huggingface: Dialect {
        must: &[],
        ignore: &[],
        blueprint: from_config,
        bodies: &["model.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[Ignored { name: "{body}layers.{layer}.self_attn.rotary_emb.inv_freq", reason: "computed from the base of the rotation" }],
    },
    gguf: None, // its files say `llama`
    proof: Proof { fixtures: &["mistral-gqa", "mistral-whole"], source: "models/mistral/modeling_mistral.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let heads = file.heads("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")?;
    let activation = file.activation("hidden_act", Activation::Silu)?;
    let like = like_in_folder(file, &Like { family: MISTRAL.name, heads, activation, context: 131_072, tied: false })?;
    let windows = vec![file.window_unless_null("sliding_window", 4096)?; like.layers.len()];
    Ok(with_windows(like, windows))
}
