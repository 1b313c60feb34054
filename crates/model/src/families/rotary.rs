//! Where files say how queries and keys are rotated: it has moved several times.

use glassbox_checkpoint::Settings;
use glassbox_mechanisms::position::Scaling;

use super::Reading;
use crate::ModelError;
use crate::blueprint::{Divisors, Rotation};

/// The rotation without stretching.
pub(super) fn plain(width: usize, theta: f64) -> Rotation {
    Rotation::Rotary { width, theta, scaling: Scaling::None, divisors: Divisors::None }
}

/// One rotation for all layers, from `rope_parameters` (new) or from `rope_theta` and `rope_scaling` (old).
///
/// - `width`          channels of a head that turn
/// - `default_theta`  what `transformers` documents for files that do not say
/// - `context`        `max_position_embeddings`, the documented default of `original_max_position_embeddings`
pub(super) fn from_config(settings: &Settings, width: usize, default_theta: f64, context: usize) -> Result<Rotation, ModelError> {
    let section = match (settings.section("rope_parameters")?, settings.section("rope_scaling")?) {
        (Some(_), Some(_)) => {
            let found = "`rope_parameters` as well";
            return Err(settings.refuse("rope_scaling", "one place for the rotation", found, "remove one of the two").into());
        }
        (new, old) => new.or(old),
    };
    let theta = settings.optional_f64("rope_theta")?;
    match section {
        None => Ok(plain(width, theta.unwrap_or(default_theta))),
        Some(section) => from_section(&section, width, theta, default_theta, context),
    }
}

/// The rotations of layers that see everything and of those that see a window, from nested `rope_parameters` (new) or from
/// `rope_theta`, `rope_scaling` and `rope_local_base_freq` (old).
pub(super) fn from_config_by_layer_type(
    settings: &Settings,
    width: usize,
    default_global: f64,
    default_local: f64,
    context: usize,
) -> Result<(Rotation, Rotation), ModelError> {
    let Some(parameters) = settings.section("rope_parameters")? else {
        let local = settings.optional_f64("rope_local_base_freq")?.unwrap_or(default_local);
        return Ok((from_config(settings, width, default_global, context)?, plain(width, local)));
    };
    let one = |name: &str, default_theta| match parameters.section(name)? {
        Some(section) => from_section(&section, width, None, default_theta, context),
        None => Ok(plain(width, default_theta)),
    };
    Ok((one("full_attention", default_global)?, one("sliding_attention", default_local)?))
}

fn from_section(
    section: &Settings,
    width: usize,
    theta_outside: Option<f64>,
    default_theta: f64,
    context: usize,
) -> Result<Rotation, ModelError> {
    let theta = match (section.optional_f64("rope_theta")?, theta_outside) {
        (Some(inside), Some(outside)) if inside != outside => {
            let wanted = format!("{outside}, as `rope_theta` outside");
            return Err(section.refuse("rope_theta", &wanted, &inside.to_string(), "correct one of the two").into());
        }
        (inside, outside) => inside.or(outside).unwrap_or(default_theta),
    };
    let (new, old) = (section.optional_str("rope_type")?, section.optional_str("type")?);
    let kind = match (new, old) {
        (Some(new), Some(old)) if new != old => {
            return Err(section.refuse("type", &format!("\"{new}\", as `rope_type`"), &format!("\"{old}\""), "remove it").into());
        }
        (new, old) => new.or(old).unwrap_or("default"),
    };
    let scaling = match kind {
        "default" => Scaling::None,
        "linear" => Scaling::Linear { factor: section.f64("factor")? },
        "llama3" => Scaling::ByWavelength {
            factor: section.f64("factor")?,
            low_frequency_factor: section.f64("low_freq_factor")?,
            high_frequency_factor: section.f64("high_freq_factor")?,
            original_context: section.optional_f64("original_max_position_embeddings")?.unwrap_or(context as f64),
        },
        unknown => {
            let key = if new.is_some() { "rope_type" } else { "type" };
            let wanted = "`default`, `linear` or `llama3`";
            return Err(section.refuse(key, wanted, &format!("`{unknown}`"), "other stretchings are not implemented").into());
        }
    };
    Ok(Rotation::Rotary { width, theta, scaling, divisors: Divisors::None })
}

/// One rotation for all layers, from GGUF metadata and, for Llama 3's stretching, the tensor `rope_freqs.weight`.
///
/// - `width`  channels of a head that turn: of [`Reading::gguf_heads_and_rotary_width`], or all of the head
pub(super) fn from_gguf(file: &Reading<'_>, arch: &str, width: usize) -> Result<Rotation, ModelError> {
    let settings = file.settings;
    let key = |name: &str| format!("{arch}.rope.{name}");
    let theta = settings.optional_f64(&key("freq_base"))?.unwrap_or(10_000.0); // llama.cpp's documented default
    let kind_key = key("scaling.type");
    let scaling = match settings.optional_str(&kind_key)?.unwrap_or("none") {
        "none" => Scaling::None,
        "linear" => Scaling::Linear { factor: settings.f64(&key("scaling.factor"))? },
        unknown => {
            let wanted = "`none` or `linear`";
            return Err(settings.refuse(&kind_key, wanted, &format!("`{unknown}`"), "other stretchings are not implemented").into());
        }
    };
    settings.ignore(&key("scaling.original_context_length"), "none and linear scaling do not use it");
    settings.ignore(&key("scaling.finetuned"), "says how the file came about");
    Ok(Rotation::Rotary { width, theta, scaling, divisors: divisors(file, width)? })
}

fn divisors(file: &Reading<'_>, width: usize) -> Result<Divisors, ModelError> {
    const NAME: &str = "rope_freqs.weight";
    let Some(tensor) = file.checkpoint.tensor(NAME)? else { return Ok(Divisors::None) };
    if tensor.shape != [width / 2] {
        return Err(ModelError::TensorShape {
            tensor: NAME.to_owned(),
            slot: "rotary divisors",
            wanted: format!("rotary width/2={}", width / 2),
            found: tensor.shape.clone(),
            file: tensor.file().to_owned(),
        });
    }
    Ok(Divisors::EachPair(tensor.values()?))
}
