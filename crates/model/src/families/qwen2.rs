//! Qwen2 and Qwen2.5: Llama with biases at queries, keys and values, and in some models a sliding window in the upper layers.

use glassbox_checkpoint::Expected::Bool;
use glassbox_mechanisms::feed_forward::Activation;

use super::llama::{FOLDER_TENSORS, Like, attention, like_in_folder, like_in_gguf};
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow};
use crate::ModelError;
use crate::blueprint::{AttentionBias, Blueprint, Layer, Window};
use crate::slot::Slot;

pub(super) const QWEN2: Family = Family {
    name: "qwen2",
    model_types: &["qwen2"],
    architectures: &["qwen2"],
    huggingface: Dialect {
        must: &[Must { key: "use_mrope", allowed: &[Bool(false)], why: "positions in several dimensions are not implemented" }],
        ignore: &[],
        blueprint: from_config,
        bodies: &["model.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[Ignored { name: "{body}layers.{layer}.self_attn.rotary_emb.inv_freq", reason: "computed from the base of the rotation" }],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "qwen2.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["qwen2-gqa", "qwen2-window", "qwen2-yarn"], source: "models/qwen2/modeling_qwen2.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let heads = file.heads("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")?;
    let activation = file.activation("hidden_act", Activation::Silu)?;
    let like = like_in_folder(file, &Like { family: QWEN2.name, heads, activation, context: 32_768, tied: false })?;
    let windows = windows(file, like.layers.len())?;
    Ok(Blueprint { attention: attention(heads, AttentionBias::QueryKeyValue), ..with_windows(like, windows) })
}

/// The same model with a window for each layer.
pub(super) fn with_windows(blueprint: Blueprint, windows: Vec<Window>) -> Blueprint {
    let layers = blueprint.layers.into_iter().zip(windows).map(|(layer, window)| Layer { window, ..layer }).collect();
    Blueprint { layers, ..blueprint }
}

/// `use_sliding_window` false: all layers see everything, whatever the other keys say. True: the layers that `layer_types` names, or
/// without it those from `max_window_layers` on, see the last `sliding_window` tokens.
pub(super) fn windows(file: &Reading<'_>, layers: usize) -> Result<Vec<Window>, ModelError> {
    let settings = file.settings;
    let size = settings.optional_usize("sliding_window")?;
    let first = settings.optional_usize("max_window_layers")?.unwrap_or(28);
    let local = file.local_layers(layers)?;
    if !settings.optional_bool("use_sliding_window")?.unwrap_or(false) {
        if local.is_some_and(|local| local.contains(&true)) {
            let found = "`sliding_attention` in it, while `use_sliding_window` is false";
            return Err(settings.refuse("layer_types", "only `full_attention`", found, "correct one of the two keys").into());
        }
        return Ok(vec![Window::Whole; layers]);
    }
    let local = local.unwrap_or_else(|| (0..layers).map(|layer| layer >= first).collect());
    Ok(local.into_iter().map(|local| if local { super::reading::window(size) } else { Window::Whole }).collect())
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let like = like_in_gguf(file, QWEN2.name, "qwen2", Activation::Silu)?;
    Ok(Blueprint { attention: attention(like.attention.heads, AttentionBias::QueryKeyValue), ..like })
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a GGUF file; q and k keep the order of the folder. Shared by the families for which that holds.
pub(super) const GGUF_TENSORS: &[TensorRow] = &[
    TensorRow::new("token_embd.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("blk.{layer}.attn_norm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("blk.{layer}.attn_q.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("blk.{layer}.attn_q.bias", &[Slot::BQuery], AS_IS),
    TensorRow::new("blk.{layer}.attn_k.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("blk.{layer}.attn_k.bias", &[Slot::BKey], AS_IS),
    TensorRow::new("blk.{layer}.attn_v.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_v.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_q_norm.weight", &[Slot::QueryNormGain], AS_IS),
    TensorRow::new("blk.{layer}.attn_k_norm.weight", &[Slot::KeyNormGain], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("blk.{layer}.ffn_norm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("blk.{layer}.ffn_gate.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("output_norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("output.weight", &[Slot::WUnembedding], AS_IS),
];
