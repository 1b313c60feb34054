//! Where files say how queries and keys are rotated: it has moved several times.

use glassbox_checkpoint::Settings;
use glassbox_mechanisms::position::{Scaling, longrope_attention_factor, yarn_attention_factor};

use super::Reading;
use crate::ModelError;
use crate::blueprint::{Divisors, Rotation};

/// The tensor of divisors in a GGUF file, one number a pair.
pub(super) const DIVISORS: &str = "rope_freqs.weight";

/// The tensors of LongRoPE's divisors in a GGUF file, one number a pair.
pub(super) const SHORT_DIVISORS: &str = "rope_factors_short.weight";
pub(super) const LONG_DIVISORS: &str = "rope_factors_long.weight";

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
    let original = settings.optional_f64(ORIGINAL)?;
    rotation(settings, width, default_theta, context, original)
}

/// As [`from_config`], for a family that documents a default of `original_max_position_embeddings`.
pub(super) fn from_config_with_original(
    settings: &Settings,
    width: usize,
    default_theta: f64,
    context: usize,
    original: f64,
) -> Result<Rotation, ModelError> {
    let original = settings.optional_f64(ORIGINAL)?.unwrap_or(original);
    rotation(settings, width, default_theta, context, Some(original))
}

fn rotation(
    settings: &Settings,
    width: usize,
    default_theta: f64,
    context: usize,
    original_context: Option<f64>,
) -> Result<Rotation, ModelError> {
    let outside = Outside { theta: settings.optional_f64("rope_theta")?, original_context, default_theta, context };
    match section(settings)? {
        None => Ok(plain(width, outside.theta.unwrap_or(default_theta))),
        Some(section) => from_section(&section, width, &outside),
    }
}

/// How many channels of a head turn: the factor `partial_rotary_factor` of d_head, rounded down, from `rope_parameters` (new) or from
/// `outside` (old).
pub(super) fn width(settings: &Settings, d_head: usize, outside: &str, default: f64) -> Result<usize, ModelError> {
    const INSIDE: &str = "partial_rotary_factor";
    let section = section(settings)?;
    let inside = section.as_ref().map_or(Ok(None), |section| section.optional_f64(INSIDE))?;
    let factor = match (inside, settings.optional_f64(outside)?) {
        (Some(inside), Some(other)) if inside != other => {
            let wanted = format!("{inside}, as in the section of the rotation");
            return Err(settings.refuse(outside, &wanted, &other.to_string(), "correct one of the two").into());
        }
        (inside, outside) => inside.or(outside).unwrap_or(default),
    };
    let width = (d_head as f64 * factor) as usize;
    if factor > 0.0 && factor <= 1.0 && width > 0 && width.is_multiple_of(2) {
        return Ok(width);
    }
    let wanted = format!("a part of the {d_head} channels of a head that makes pairs");
    Err(settings.refuse(outside, &wanted, &factor.to_string(), "correct the value in the file").into())
}

fn section(settings: &Settings) -> Result<Option<Settings>, ModelError> {
    match (settings.section("rope_parameters")?, settings.section("rope_scaling")?) {
        (Some(_), Some(_)) => {
            let found = "`rope_parameters` as well";
            Err(settings.refuse("rope_scaling", "one place for the rotation", found, "remove one of the two").into())
        }
        (new, old) => Ok(new.or(old)),
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
        Some(section) => from_section(&section, width, &Outside { theta: None, original_context: None, default_theta, context }),
        None => Ok(plain(width, default_theta)),
    };
    Ok((one("full_attention", default_global)?, one("sliding_attention", default_local)?))
}

/// What a section may leave to the settings around it.
struct Outside {
    theta: Option<f64>,
    original_context: Option<f64>,
    default_theta: f64,
    context: usize,
}

fn from_section(section: &Settings, width: usize, outside: &Outside) -> Result<Rotation, ModelError> {
    let theta = one_of(section, "rope_theta", outside.theta)?.unwrap_or(outside.default_theta);
    let (new, old) = (section.optional_str("rope_type")?, section.optional_str("type")?);
    let kind = match (new, old) {
        (Some(new), Some(old)) if new != old => {
            return Err(section.refuse("type", &format!("\"{new}\", as `rope_type`"), &format!("\"{old}\""), "remove it").into());
        }
        (new, old) => new.or(old).unwrap_or("default"),
    };
    let context = outside.context as f64;
    let original_context = || one_of(section, ORIGINAL, outside.original_context).map(|original| original.unwrap_or(context));
    let scaling = match kind {
        "default" => Scaling::None,
        "linear" => Scaling::Linear { factor: section.f64("factor")? },
        "llama3" => Scaling::ByWavelength {
            factor: section.f64("factor")?,
            low_frequency_factor: section.f64("low_freq_factor")?,
            high_frequency_factor: section.f64("high_freq_factor")?,
            original_context: original_context()?,
        },
        "dynamic" => {
            section.ignore(ORIGINAL, "`max_position_embeddings` decides for this stretching");
            Scaling::DynamicNtk { factor: section.f64("factor")?, original_context: context }
        }
        // Early files of this stretching call it so; only it has lists.
        "longrope" | "su" => longrope(section, original_context()?, context)?,
        "yarn" if section.contains("short_factor") => longrope(section, original_context()?, context)?,
        "yarn" => yarn(section, original_context()?, context)?,
        unknown => {
            let key = if new.is_some() { "rope_type" } else { "type" };
            let wanted = "`default`, `linear`, `dynamic`, `yarn`, `longrope` or `llama3`";
            return Err(section.refuse(key, wanted, &format!("`{unknown}`"), "other stretchings are not implemented").into());
        }
    };
    Ok(Rotation::Rotary { width, theta, scaling, divisors: Divisors::None })
}

const ORIGINAL: &str = "original_max_position_embeddings";

/// A number that may stand in the section or outside; where in both, as the same.
fn one_of(section: &Settings, key: &str, outside: Option<f64>) -> Result<Option<f64>, ModelError> {
    match (section.optional_f64(key)?, outside) {
        (Some(inside), Some(outside)) if inside != outside => {
            let wanted = format!("{outside}, as `{key}` outside");
            Err(section.refuse(key, &wanted, &inside.to_string(), "correct one of the two").into())
        }
        (inside, outside) => Ok(inside.or(outside)),
    }
}

fn yarn(section: &Settings, original_context: f64, context: f64) -> Result<Scaling, ModelError> {
    let factor = section.optional_f64("factor")?.unwrap_or(context / original_context);
    // 0 means absent here, as in the definition.
    let or = |key, default| section.optional_f64(key).map(|value| value.filter(|value| *value != 0.0).unwrap_or(default));
    let attention_factor = match (section.optional_f64("attention_factor")?, or("mscale", 0.0)?, or("mscale_all_dim", 0.0)?) {
        (Some(explicit), _, _) => explicit,
        (None, above, below) if above != 0.0 && below != 0.0 => yarn_attention_factor(factor, above) / yarn_attention_factor(factor, below),
        (None, _, _) => yarn_attention_factor(factor, 1.0),
    };
    Ok(Scaling::Yarn {
        factor,
        beta_fast: or("beta_fast", YARN_BETA_FAST)?,
        beta_slow: or("beta_slow", YARN_BETA_SLOW)?,
        original_context,
        whole_pairs: section.optional_bool("truncate")?.unwrap_or(true),
        attention_factor,
    })
}

/// The numbers of the paper, which files leave out.
pub(super) const YARN_BETA_FAST: f64 = 32.0;
pub(super) const YARN_BETA_SLOW: f64 = 1.0;

fn longrope(section: &Settings, original_context: f64, context: f64) -> Result<Scaling, ModelError> {
    let factor = section.optional_f64("factor")?.unwrap_or(context / original_context);
    let list = |key: &str| match section.optional_f64_list(key)? {
        Some(list) => Ok(list.into_iter().map(|divisor| divisor as f32).collect()),
        None => Err(ModelError::from(section.refuse(key, "a list of numbers, one a pair of channels", "nothing", "use a complete file"))),
    };
    Ok(Scaling::LongRope {
        short: list("short_factor")?,
        long: list("long_factor")?,
        original_context,
        attention_factor: section.optional_f64("attention_factor")?.unwrap_or_else(|| longrope_attention_factor(factor, original_context)),
    })
}

/// One rotation for all layers, from GGUF metadata and, where each pair has a number of its own, tensors: `rope_freqs.weight` for Llama 3's stretching,
/// `rope_factors_short.weight` and `rope_factors_long.weight` for LongRoPE.
///
/// - `width`  channels of a head that turn: of [`Reading::gguf_heads_and_rotary_width`], or all of the head
pub(super) fn from_gguf(file: &Reading<'_>, arch: &str, width: usize) -> Result<Rotation, ModelError> {
    let settings = file.settings;
    let key = |name: &str| format!("{arch}.rope.{name}");
    let theta = settings.optional_f64(&key("freq_base"))?.unwrap_or(10_000.0); // llama.cpp's documented default
    let kind_key = key("scaling.type");
    let original_key = key("scaling.original_context_length");
    // The oldest files say `scale_linear`. 0 means absent, as in llama.cpp.
    let factor_key = if settings.contains(&key("scale_linear")) { key("scale_linear") } else { key("scaling.factor") };
    let factor = || settings.optional_f64(&factor_key).map(|factor| factor.filter(|factor| *factor != 0.0));
    let lists = (each_pair(file, SHORT_DIVISORS, width)?, each_pair(file, LONG_DIVISORS, width)?);
    let scaling = match settings.optional_str(&kind_key)? {
        None | Some("longrope") if let (Some(short), Some(long)) = lists => Scaling::LongRope {
            short,
            long,
            original_context: settings.f64(&original_key)?,
            attention_factor: settings.optional_f64(&key("scaling.attn_factor"))?.unwrap_or(1.0),
        },
        None | Some("linear") => factor()?.map_or(Scaling::None, |factor| Scaling::Linear { factor }),
        Some("none") => Scaling::None,
        Some("yarn") => yarn_from_gguf(file, arch, factor()?.unwrap_or(1.0))?,
        Some(unknown) => {
            let wanted = "`none`, `linear`, `yarn`, or `longrope` with its tensors";
            return Err(settings.refuse(&kind_key, wanted, &format!("`{unknown}`"), "other stretchings are not implemented").into());
        }
    };
    settings.ignore(&original_key, "none and linear scaling do not use it");
    settings.ignore(&key("scaling.finetuned"), "says how the file came about");
    if scaling == Scaling::None {
        settings.ignore(&factor_key, "nothing is stretched");
    }
    let divisors = each_pair(file, DIVISORS, width)?.map_or(Divisors::None, Divisors::EachPair);
    Ok(Rotation::Rotary { width, theta, scaling, divisors })
}

/// YaRN of a GGUF file: the keys into which converters put what `config.json` says, so that the model is the same one.
///
/// llama.cpp reads the betas and the logarithm's weight for `mistral3` alone and takes 32, 1 and none for the other families here, whatever their files
/// say. It reads the share of the blend for none of them.
fn yarn_from_gguf(file: &Reading<'_>, arch: &str, factor: f64) -> Result<Scaling, ModelError> {
    let settings = file.settings;
    let key = |name: &str| format!("{arch}.rope.scaling.{name}");
    let or = |name: &str, default: f64| settings.optional_f64(&key(name)).map(|value| value.unwrap_or(default));
    let share = or("yarn_ext_factor", 1.0)?;
    if share != 1.0 && share >= 0.0 {
        let remedy = "`transformers` has no such number and llama.cpp does not read it for this family; remove the key";
        return Err(settings.refuse(&key("yarn_ext_factor"), "1, or less than 0 for none", &share.to_string(), remedy).into());
    }
    let below = match or("yarn_log_multiplier", 0.0)? {
        0.0 => 1.0, // absent, as in llama.cpp
        weight => yarn_attention_factor(factor, weight),
    };
    let attention_factor = or("attn_factor", 1.0)? * yarn_attention_factor(factor, 1.0) / below;
    let said = or("yarn_attn_factor", attention_factor)?;
    if (said / attention_factor - 1.0).abs() > f64::from(f32::EPSILON) {
        let (wanted, remedy) = (
            format!("{attention_factor}, which follows from the other keys"),
            "converters write two different numbers there, and llama.cpp reads none; remove the key",
        );
        return Err(settings.refuse(&key("yarn_attn_factor"), &wanted, &said.to_string(), remedy).into());
    }
    let context = settings.f64(&format!("{arch}.context_length"))?;
    Ok(Scaling::Yarn {
        factor,
        beta_fast: or("yarn_beta_fast", YARN_BETA_FAST)?,
        beta_slow: or("yarn_beta_slow", YARN_BETA_SLOW)?,
        original_context: or("original_context_length", context)?,
        whole_pairs: true,
        attention_factor,
    })
}

/// A tensor with one number for each pair that turns.
fn each_pair(file: &Reading<'_>, name: &str, width: usize) -> Result<Option<Vec<f32>>, ModelError> {
    let Some(tensor) = file.checkpoint.tensor(name)? else { return Ok(None) };
    if tensor.shape != [width / 2] {
        return Err(ModelError::TensorShape {
            tensor: name.to_owned(),
            slot: "rotary divisors",
            wanted: format!("rotary width/2={}", width / 2),
            found: tensor.shape.clone(),
            file: tensor.file().to_owned(),
        });
    }
    Ok(Some(tensor.values()?))
}
