//! Gemma 2: every second layer sees a window, norms on both sides of each part, smooth bounds on scores and on logits.

use glassbox_checkpoint::Expected::Bool;
use glassbox_mechanisms::feed_forward::Activation;

use super::gemma3::{self, Sizes, alternate, locals};
use super::reading::one_over_root;
use super::{Dialect, Family, Ignored, Must, Proof, Reading, rotary};
use crate::ModelError;
use crate::blueprint::{Attention, AttentionBias, Blueprint, QueryKeyNorm, SoftCap};

pub(super) const GEMMA2: Family = Family {
    name: "gemma2",
    model_types: &["gemma2"],
    architectures: &["gemma2"],
    huggingface: Dialect {
        must: &[Must { key: "use_bidirectional_attention", allowed: &[Bool(false)], why: "only causal attention is implemented" }],
        ignore: &[
            Ignored { name: "hidden_act", reason: "an older key; the original program reads `hidden_activation`" },
            Ignored { name: "sliding_window_size", reason: "an older name of `sliding_window`, which decides" },
        ],
        blueprint: from_config,
        bodies: &["model.", ""],
        tensors: gemma3::FOLDER_TENSORS,
        spare: &[],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "gemma2.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: gemma3::GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["gemma2-gqa", "gemma2-mha"], source: "models/gemma2/modeling_gemma2.py" },
};

/// Of the definition, where a file does not say; one layer in `PATTERN` sees everything.
const WINDOW: usize = 4096;
const PATTERN: usize = 2;
const SCORE_CAP: f64 = 50.0;
const LOGIT_CAP: f64 = 30.0;

/// Published folders leave out what equals the defaults of `transformers`' `Gemma2Config`; they are repeated here.
fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let or = |key, default| settings.optional_usize(key).map(|value| value.unwrap_or(default));
    let layers = file.layers("num_hidden_layers")?;
    let context = or("max_position_embeddings", 8192)?;
    let local = match file.local_layers(layers)? {
        Some(local) => local,
        None => locals(file, "layer_types", layers, PATTERN)?,
    };
    let (heads, kv_heads, d_head) = (or("num_attention_heads", 8)?, or("num_key_value_heads", 4)?, or("head_dim", 256)?);
    let rotation = rotary::from_config(settings, d_head, 10_000.0, context)?;
    let bias = if settings.optional_bool("attention_bias")?.unwrap_or(false) { AttentionBias::All } else { AttentionBias::None };
    let (score_cap, logit_cap) = ("attn_logit_softcapping", "final_logit_softcapping");
    let sizes = Sizes {
        vocab: or("vocab_size", 256_000)?,
        d_model: or("hidden_size", 2304)?,
        hidden: or("intermediate_size", 9216)?,
        context,
        heads: file.checked_heads("num_attention_heads", heads, kv_heads, d_head)?,
        scale: one_over_root(file.positive("query_pre_attn_scalar", settings.optional_f64("query_pre_attn_scalar")?.unwrap_or(256.0))?),
        bias,
        eps: file.eps_or("rms_norm_eps", 1e-6)?,
        layers: alternate(&local, &file.window_of_layers("sliding_window", WINDOW, &local)?, &rotation, &rotation),
        head: file.head_by_setting(true)?,
        activation: file.activation("hidden_activation", Activation::GeluTanh)?,
        soft_cap: file.soft_cap(logit_cap, file.f64_unless_null(logit_cap, LOGIT_CAP)?)?,
    };
    Ok(blueprint(sizes, file.soft_cap(score_cap, file.f64_unless_null(score_cap, SCORE_CAP)?)?))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let layers = file.layers("gemma2.block_count")?;
    let heads = file.gguf_heads("gemma2")?;
    let d_model = settings.usize("gemma2.embedding_length")?;
    let rotation = rotary::from_gguf(file, "gemma2", heads.d_head())?;
    let window = super::reading::window(Some(settings.optional_usize("gemma2.attention.sliding_window")?.unwrap_or(WINDOW)));
    let cap = |key: &str, default| file.soft_cap(key, Some(settings.optional_f64(key)?.unwrap_or(default)));
    // The converter writes no scale. The 27B model, told by its 46 layers, divides by d_model / heads; all others by d_head.
    let divisor = if layers == 46 { d_model as f64 / heads.heads() as f64 } else { heads.d_head() as f64 };
    let sizes = Sizes {
        vocab: file.gguf_vocab("gemma2")?,
        d_model,
        hidden: settings.usize("gemma2.feed_forward_length")?,
        context: settings.usize("gemma2.context_length")?,
        heads,
        scale: one_over_root(divisor),
        bias: AttentionBias::None,
        eps: file.eps("gemma2.attention.layer_norm_rms_epsilon")?,
        layers: alternate(&locals(file, "gemma2.block_count", layers, PATTERN)?, &window, &rotation, &rotation),
        head: file.head_by_tensor(),
        activation: Activation::GeluTanh,
        soft_cap: cap("gemma2.final_logit_softcapping", LOGIT_CAP)?,
    };
    Ok(blueprint(sizes, cap("gemma2.attn_logit_softcapping", SCORE_CAP)?))
}

fn blueprint(sizes: Sizes, score_cap: SoftCap) -> Blueprint {
    let like = gemma3::blueprint(sizes);
    let attention = Attention { soft_cap: score_cap, query_key_norm: QueryKeyNorm::None, ..like.attention };
    Blueprint { family: GEMMA2.name, attention, ..like }
}
