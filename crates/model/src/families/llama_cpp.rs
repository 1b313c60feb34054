//! What llama.cpp makes of the files that are written here: a model that it would run otherwise is refused, or the difference is said.
//!
//! Source: llama.cpp as in llama-cpp-python 0.3.36, `src/models/*.cpp`, `src/llama-context.cpp`, `src/llama-model.cpp`.

use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::position::Scaling;

use super::llama::STRETCHED;
use super::rotary::{YARN_BETA_FAST, YARN_BETA_SLOW};
use crate::blueprint::{AttentionBias, Blueprint, FeedForward, HeadMatrix, Rotation, Window};

/// Architectures whose layers may see a window.
const WITH_WINDOWS: &[&str] = &["gemma2", "gemma3", "phi3"];

/// Architectures that read divisors for short and for long sequences.
const WITH_LISTS: &[&str] = &["llama", STRETCHED, "phi3"];

/// Architectures that do not load without an output matrix of their own.
const WITH_OWN_HEAD: &[&str] = &["gptneox", "olmo2"];

/// Architectures whose heads together are as wide as the residual stream.
const AS_WIDE_AS_THE_STREAM: &[&str] = &["bert", "bloom", "gpt2", "gptneox", "mpt", "olmo2", "phi3", "qwen2"];

/// Whether the model has YaRN with other numbers than the paper's.
pub(super) fn needs_betas(blueprint: &Blueprint) -> bool {
    scalings(blueprint).any(|scaling| match scaling {
        Scaling::Yarn { beta_fast, beta_slow, .. } => (*beta_fast, *beta_slow) != (YARN_BETA_FAST, YARN_BETA_SLOW),
        _ => false,
    })
}

/// What keeps llama.cpp from running the model, for the end of "cannot be written as GGUF: ".
pub(super) fn cannot_run(architecture: &str, blueprint: &Blueprint) -> Option<String> {
    let is = |architectures: &[&str]| architectures.contains(&architecture);
    for scaling in scalings(blueprint) {
        let what = match scaling {
            Scaling::DynamicNtk { .. } => {
                "dynamic NTK, of which llama.cpp knows nothing: its angles do not depend on the length of the text"
            }
            Scaling::Yarn { whole_pairs: false, .. } => "YaRN with `truncate` false; llama.cpp's blend begins and ends at whole pairs",
            Scaling::Yarn { .. } if needs_betas(blueprint) && architecture != STRETCHED => {
                "YaRN with other numbers than `beta_fast` 32 and `beta_slow` 1, which llama.cpp does not read for this family"
            }
            Scaling::LongRope { .. } if !is(WITH_LISTS) => "LongRoPE, whose lists llama.cpp does not read for this family",
            _ => continue,
        };
        return Some(what.to_owned());
    }
    let window = blueprint.layers.iter().find_map(|layer| window_within(layer.window, blueprint.context).keys());
    if let Some(keys) = window.filter(|_| !is(WITH_WINDOWS)) {
        return Some(format!("a sliding window of {keys} tokens, which llama.cpp does not have for this family: it would see everything"));
    }
    if architecture == "gptneox" && blueprint.attention.bias != AttentionBias::All {
        return Some("attention without biases, without which llama.cpp does not load this family".to_owned());
    }
    let heads = blueprint.attention.heads;
    let width = heads.query_width();
    (width != blueprint.d_model && is(AS_WIDE_AS_THE_STREAM)).then(|| {
        let d_model = blueprint.d_model;
        format!("heads of {width} channels together; llama.cpp wants as many as `d_model`, {d_model}, in this family")
    })
}

/// Whether the embedding table must be written a second time, as the output matrix.
pub(super) fn needs_own_head(architecture: &str, blueprint: &Blueprint) -> bool {
    blueprint.unembedding.head == HeadMatrix::TiedToEmbedding && WITH_OWN_HEAD.contains(&architecture)
}

/// What llama.cpp computes otherwise, in sentences without a full stop.
pub(super) fn runs_otherwise(architecture: &str, blueprint: &Blueprint) -> Vec<String> {
    let mut differences = Vec::new();
    if let FeedForward::Plain { activation, .. } | FeedForward::Gated { activation, .. } = blueprint.feed_forward
        && activation == Activation::GeluErf
    {
        differences.push("llama.cpp computes GELU by the hyperbolic tangent, this model by the error function".to_owned());
    }
    let window = blueprint.layers.iter().find_map(|layer| layer.window.keys());
    if let Some(keys) = window.filter(|_| architecture == "phi3") {
        differences.push(format!(
            "llama.cpp has switched the sliding window of this family off: texts of more than {keys} tokens go on otherwise"
        ));
    }
    differences
}

/// A window that hides something in a context of so many tokens, or none.
pub(super) fn window_within(window: Window, context: usize) -> Window {
    match window {
        Window::Last(keys) if keys < context => window,
        _ => Window::Whole,
    }
}

fn scalings(blueprint: &Blueprint) -> impl Iterator<Item = &Scaling> {
    blueprint.layers.iter().filter_map(|layer| match &layer.rotation {
        Rotation::Rotary { scaling, .. } => Some(scaling),
        Rotation::None => None,
    })
}
