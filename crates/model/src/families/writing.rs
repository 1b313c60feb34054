//! The other way round: a model of a folder, as its family's GGUF files would have it.
//!
//! The tables that read both formats say where every tensor belongs, so they also say how it is written: folder to slot, slot to GGUF.
//! The settings are written from the blueprint. What is written must be read again as the same blueprint ([`GgufModel::check`]); a model
//! that the settings here cannot describe is refused there, never written wrongly.

use glassbox_checkpoint::{Checkpoint, CheckpointError, CheckpointKind, GgufValue};
use glassbox_mechanisms::position::{Pairing, Rotary, Scaling, yarn_attention_factor};
use glassbox_tensor::Matrix;

use super::rotary::{DIVISORS, LONG_DIVISORS, SHORT_DIVISORS};
use super::{FAMILIES, Layout, TensorRow, llama, llama_cpp};
use crate::ModelError;
use crate::blueprint::{Blueprint, Clamp, Distance, Divisors, HeadMatrix, Layer, Norm, Residual, Rotation, SoftCap, Window};
use crate::weights::{self, Weights};

/// A model as GGUF writes it, but for its tokenizer.
#[derive(Debug)]
pub struct GgufModel {
    /// What the file calls its family, in `general.architecture`.
    pub architecture: &'static str,
    /// Settings in the order of the file, `general.architecture` first.
    pub settings: Vec<(String, GgufValue)>,
    /// Tensors in the order of the file.
    pub tensors: Vec<GgufTensor>,
    /// What llama.cpp computes otherwise than the model's definition, in sentences without a full stop.
    pub otherwise_in_llama_cpp: Vec<String>,
    expected: Blueprint,
    file: String,
}

/// A tensor as GGUF names it and lays it out.
#[derive(Debug)]
pub struct GgufTensor {
    /// Its name.
    pub name: String,
    /// Sizes of the axes, the slowest first.
    pub shape: Vec<usize>,
    /// Its numbers, rows of the last axis.
    pub matrix: Matrix,
}

impl GgufModel {
    /// Translates a model of a Hugging Face folder.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Model::open`]; [`ModelError::NotWritable`] where the family has no GGUF files, or its settings no words there.
    pub fn of(checkpoint: &Checkpoint) -> Result<Self, ModelError> {
        let (family, dialect, blueprint) = super::read(checkpoint)?;
        let refuse = |what: &str| ModelError::NotWritable { file: checkpoint.label().to_owned(), what: what.to_owned() };
        if checkpoint.settings().kind() == CheckpointKind::Gguf {
            return Err(refuse("a GGUF file, which is one already"));
        }
        // A family without GGUF files of its own is written as Llama, as converters do; the check tells whether that is true of this model.
        let written_as = if family.gguf.is_some() { Some(family) } else { FAMILIES.iter().copied().find(|other| other.name == "llama") };
        let target = written_as.and_then(|family| Some((family.architectures.first().copied()?, family.gguf.as_ref()?)));
        let Some((architecture, target)) = target else { return Err(refuse("a family without GGUF files")) };
        let architecture = if architecture == "llama" && llama_cpp::needs_betas(&blueprint) { llama::STRETCHED } else { architecture };
        if let Some(what) = llama_cpp::cannot_run(architecture, &blueprint) {
            return Err(refuse(&what));
        }
        let mut weights = Weights::read(checkpoint, &blueprint, dialect)?;
        let (mut expected, divisors) = written_blueprint(&blueprint)?;
        let otherwise_in_llama_cpp = llama_cpp::runs_otherwise(architecture, &expected);
        let mut tensors = Vec::new();
        for row in target.tensors {
            if row.slots.iter().all(|slot| slot.axes(&blueprint).is_none()) {
                continue;
            }
            let layers = if row.slots[0].is_of_a_block() { blueprint.layers.len() } else { 1 };
            for layer in 0..layers {
                let tensor =
                    tensor(row, layer, &blueprint, &mut weights).ok_or_else(|| refuse("weights in a layout that is not written"))?;
                tensors.push(tensor);
            }
        }
        if let Some(slot) = weights.left_over() {
            return Err(refuse(&format!("`{}`, for which its GGUF files have no name", slot.name())));
        }
        if llama_cpp::needs_own_head(architecture, &blueprint)
            && let Some(embedding) = tensors.iter().find(|tensor| tensor.name == "token_embd.weight")
        {
            expected.unembedding.head = HeadMatrix::Own;
            let GgufTensor { shape, matrix, .. } = embedding;
            tensors.push(GgufTensor { name: "output.weight".to_owned(), shape: shape.clone(), matrix: matrix.clone() });
        }
        for (name, divisors) in divisors {
            let matrix = Matrix::from_f32(1, divisors.len(), &divisors).expect("one row of its own length");
            tensors.push(GgufTensor { name: name.to_owned(), shape: vec![divisors.len()], matrix });
        }
        let settings = settings(architecture, &expected);
        Ok(Self { architecture, settings, tensors, otherwise_in_llama_cpp, expected, file: checkpoint.label().to_owned() })
    }

    /// Number of token ids.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.expected.vocab
    }

    /// Whether a file that was written from this is read as the same model.
    ///
    /// # Errors
    ///
    /// Those of reading it; [`ModelError::NotWritable`] with the first answer that came out otherwise.
    pub fn check(&self, written: &Checkpoint) -> Result<(), ModelError> {
        let refuse = |what: String| ModelError::NotWritable { file: self.file.clone(), what: format!("{NO_WORDS}: {what}") };
        let found = match super::read(written) {
            Ok((_, _, found)) => found,
            Err(ModelError::Checkpoint(CheckpointError::Unread(unread))) => {
                let keys: Vec<String> = unread.keys.iter().map(|key| format!("`{}` = {}", key.key, key.value)).collect();
                return Err(refuse(keys.join(", ")));
            }
            Err(ModelError::Checkpoint(CheckpointError::Setting(fault))) => {
                return Err(refuse(format!(
                    "what `{}` says, wanted {}",
                    self.architecture,
                    fault.place.to_string().trim_start_matches(", ")
                )));
            }
            Err(error) => return Err(error),
        };
        first_difference(&self.expected, &found).map_or(Ok(()), |what| Err(refuse(what)))
    }
}

/// Tensors of divisors, each with its name in a GGUF file.
type DivisorTensors = Vec<(&'static str, Vec<f32>)>;

/// What a reader of the written file is to find, and the divisors that it finds as tensors: numbers of settings rounded to single precision,
/// Llama 3's stretching as divisors, and no window that is as long as the context.
fn written_blueprint(blueprint: &Blueprint) -> Result<(Blueprint, DivisorTensors), ModelError> {
    let single = |number: f64| f64::from(number as f32);
    let mut expected = blueprint.clone();
    let mut tensors = Vec::new();
    for layer in &mut expected.layers {
        layer.window = llama_cpp::window_within(layer.window, blueprint.context);
        let Rotation::Rotary { width, theta, scaling, divisors } = &mut layer.rotation else { continue };
        match scaling {
            Scaling::ByWavelength { .. } => {
                let rotary = |scaling| Rotary::new(*width, *width, *theta, scaling, Pairing::Halves);
                let (plain, stretched) = (rotary(Scaling::None)?, rotary(scaling.clone())?);
                let ratios: Vec<f32> = plain
                    .frequencies(1)
                    .iter()
                    .zip(stretched.frequencies(1))
                    .map(|(plain, stretched)| (plain / stretched) as f32)
                    .collect();
                tensors = vec![(DIVISORS, ratios.clone())];
                (*scaling, *divisors) = (Scaling::None, Divisors::EachPair(ratios));
            }
            Scaling::Linear { factor } => *factor = single(*factor),
            Scaling::Yarn { factor, beta_fast, beta_slow, attention_factor, .. } => {
                let more = single(*attention_factor / yarn_attention_factor(*factor, 1.0));
                for number in [&mut *factor, beta_fast, beta_slow] {
                    *number = single(*number);
                }
                *attention_factor = more * yarn_attention_factor(*factor, 1.0);
            }
            Scaling::LongRope { short, long, attention_factor, .. } => {
                *attention_factor = single(*attention_factor);
                tensors = vec![(LONG_DIVISORS, long.clone()), (SHORT_DIVISORS, short.clone())];
            }
            Scaling::None | Scaling::DynamicNtk { .. } => {}
        }
        *theta = single(*theta);
    }
    Ok((expected, tensors))
}

fn tensor(row: &TensorRow, layer: usize, blueprint: &Blueprint, weights: &mut Weights) -> Option<GgufTensor> {
    let axes: Vec<Vec<usize>> =
        row.slots.iter().filter_map(|slot| Some(slot.axes(blueprint)?.iter().map(|axis| axis.size).collect())).collect();
    let parts: Vec<Matrix> = row.slots.iter().map(|slot| weights.take_rows(*slot, layer)).collect();
    let is_vector = axes[0].len() == 1;
    let whole = if let [one] = parts.as_slice() { one.clone() } else { weights::joined(&parts, is_vector) };
    let matrix = match row.layout {
        Layout::AsIs => whole,
        Layout::PairsAsNeighbours => weights::neighbours(&whole, weights::heads_of(row.slots[0], blueprint.attention.heads), is_vector),
        _ => return None,
    };
    let mut shape = vec![axes.iter().map(|axes| axes[0]).sum()];
    shape.extend(axes[0].iter().skip(1));
    Some(GgufTensor { name: row.name.replace("{body}", "").replace("{layer}", &layer.to_string()), shape, matrix })
}

fn settings(architecture: &'static str, blueprint: &Blueprint) -> Vec<(String, GgufValue)> {
    let mut settings = vec![("general.architecture".to_owned(), GgufValue::Text(architecture.to_owned()))];
    let mut set = |name: &str, value: GgufValue| settings.push((format!("{architecture}.{name}"), value));
    let count = |value: usize| GgufValue::U32(u32::try_from(value).unwrap_or(u32::MAX)); // the check finds a number that was cut
    let heads = blueprint.attention.heads;
    set("vocab_size", count(blueprint.vocab));
    set("context_length", count(blueprint.context));
    set("embedding_length", count(blueprint.d_model));
    set("block_count", count(blueprint.layers.len()));
    set("feed_forward_length", count(blueprint.feed_forward.hidden()));
    set("attention.head_count", count(heads.heads()));
    set("attention.head_count_kv", count(heads.kv_heads()));
    if blueprint.layers.iter().any(|layer| layer.rotation != Rotation::None) {
        set("attention.key_length", count(heads.d_head()));
        set("attention.value_length", count(heads.d_head()));
    }
    match blueprint.norm {
        Norm::Rms { eps } => set("attention.layer_norm_rms_epsilon", GgufValue::F32(eps)),
        Norm::Layer { eps } | Norm::LayerWithoutBias { eps } => set("attention.layer_norm_epsilon", GgufValue::F32(eps)),
    }
    let windowed = |layer: &&Layer| matches!(layer.window, Window::Last(_));
    let local = blueprint.layers.iter().find(windowed);
    let global = blueprint.layers.iter().find(|layer| !windowed(layer)).or(local);
    if let Some(Rotation::Rotary { width, theta, scaling, .. }) = global.map(|layer| &layer.rotation) {
        set("rope.dimension_count", count(*width));
        set("rope.freq_base", GgufValue::F32(*theta as f32));
        stretching(scaling, &mut set);
    }
    if let Distance::Alibi { max_bias } = blueprint.attention.distance {
        set("attention.max_alibi_bias", GgufValue::F32(max_bias as f32));
    }
    if let Clamp::At(bound) = blueprint.attention.clamp {
        set("attention.clamp_kqv", GgufValue::F32(bound));
    }
    if architecture == "gptneox" {
        set("use_parallel_residual", GgufValue::Bool(blueprint.residual == Residual::SideBySide));
    }
    if let Some(Window::Last(size)) = local.map(|layer| layer.window) {
        set("attention.sliding_window", count(size));
    }
    for (name, cap) in
        [("attn_logit_softcapping", blueprint.attention.soft_cap), ("final_logit_softcapping", blueprint.unembedding.soft_cap)]
    {
        if let SoftCap::At(cap) = cap {
            set(name, GgufValue::F32(cap));
        }
    }
    settings
}

/// How the angles are stretched, as far as settings say it.
fn stretching(scaling: &Scaling, set: &mut impl FnMut(&str, GgufValue)) {
    let mut scaling_is = |kind: &str, numbers: &[(&str, f64)]| {
        set("rope.scaling.type", GgufValue::Text(kind.to_owned()));
        for (name, number) in numbers {
            set(&format!("rope.scaling.{name}"), GgufValue::F32(*number as f32));
        }
    };
    let original_context = match scaling {
        Scaling::Linear { factor } => return scaling_is("linear", &[("factor", *factor)]),
        Scaling::Yarn { factor, beta_fast, beta_slow, original_context, attention_factor, .. } => {
            let more = attention_factor / yarn_attention_factor(*factor, 1.0);
            let betas = [("yarn_beta_fast", *beta_fast), ("yarn_beta_slow", *beta_slow)];
            scaling_is("yarn", &[("factor", *factor), ("attn_factor", more), betas[0], betas[1]]);
            original_context
        }
        Scaling::LongRope { original_context, attention_factor, .. } => {
            scaling_is("longrope", &[("attn_factor", *attention_factor)]);
            original_context
        }
        Scaling::None | Scaling::ByWavelength { .. } | Scaling::DynamicNtk { .. } => return,
    };
    set("rope.scaling.original_context_length", GgufValue::U32(*original_context as u32)); // the check finds a part that was cut
}

const NO_WORDS: &str = "settings that its GGUF files have no words for";

/// The first question that the two answer differently, for a message. The name of the family is none.
fn first_difference(wanted: &Blueprint, found: &Blueprint) -> Option<String> {
    let found = Blueprint { family: wanted.family, ..found.clone() };
    if *wanted == found {
        return None;
    }
    let (wanted, found) = (format!("{wanted:#?}"), format!("{found:#?}"));
    let mut lines = wanted.lines().zip(found.lines()).filter(|(wanted, found)| wanted != found);
    let (wanted, found) = lines.next().unwrap_or_default();
    Some(format!("wanted `{}`, would be read as `{}`", wanted.trim(), found.trim()))
}
