//! What the families' readers share: counts, heads, norms and heads of the file, each checked as it is read.

use glassbox_checkpoint::{Checkpoint, CheckpointKind, Settings};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::{Dialect, Family, Reading};
use crate::ModelError;
use crate::blueprint::{Blueprint, HeadMatrix, SoftCap, Window};

/// Reads the blueprint with the tables of `dialect`; a model of several parts keeps its language model's settings in `text_config`.
pub(super) fn blueprint(family: &Family, dialect: &Dialect, settings: &Settings, checkpoint: &Checkpoint) -> Result<Blueprint, ModelError> {
    let text = if settings.kind() == CheckpointKind::HuggingFace { settings.section("text_config")? } else { None };
    if let Some(text) = &text {
        ignore_other_parts(family, settings, text)?;
    }
    let (whole, settings) = (settings, text.as_ref().unwrap_or(settings));
    for rule in dialect.must {
        settings.must_be(rule.key, rule.allowed, rule.why)?;
    }
    for rule in dialect.ignore {
        settings.ignore(rule.name, rule.reason);
    }
    let blueprint = (dialect.blueprint)(&Reading { settings, whole, checkpoint })?;
    for (size, name) in [(blueprint.vocab, "vocab"), (blueprint.d_model, "d_model"), (blueprint.feed_forward.hidden(), "hidden")] {
        if size == 0 {
            return Err(ModelError::EmptyAxis { file: settings.file().to_owned(), axis: name });
        }
    }
    Ok(blueprint)
}

fn ignore_other_parts(family: &Family, whole: &Settings, text: &Settings) -> Result<(), ModelError> {
    let name = text.optional_str("model_type")?.unwrap_or(family.model_types[0]);
    if name != family.model_types[0] {
        let wanted = format!("\"{}\"", family.model_types[0]);
        return Err(text.refuse("model_type", &wanted, &format!("\"{name}\""), "this language model is not implemented").into());
    }
    for key in [
        "vision_config",
        "mm_tokens_per_image",
        "image_token_index",
        "boi_token_index",
        "eoi_token_index",
        "image_token_id",
        "boi_token_id",
        "eoi_token_id",
    ] {
        whole.ignore(key, "for pictures; the language model is run alone");
    }
    const TIED: &str = "tie_word_embeddings";
    match (whole.optional_bool(TIED)?, text.optional_bool(TIED)?) {
        (Some(outside), Some(inside)) if outside != inside => {
            let (wanted, found) = (format!("{outside}, as outside `text_config`"), inside.to_string());
            Err(text.refuse(TIED, &wanted, &found, "correct one of the two").into())
        }
        _ => Ok(()),
    }
}

/// A window of `size` tokens; absent or 0 means none, never an empty row.
pub(super) fn window(size: Option<usize>) -> Window {
    match size {
        None | Some(0) => Window::Whole,
        Some(size) => Window::Last(size),
    }
}

/// 1 / √x, computed in f64 and rounded once, as `transformers` hands it to its kernels.
pub(super) fn one_over_root(x: f64) -> f32 {
    (1.0 / x.sqrt()) as f32
}

impl Reading<'_> {
    /// The number of layers; never more than the file has tensors, so that nothing is allocated which a file merely claims.
    pub(super) fn layers(&self, key: &str) -> Result<usize, ModelError> {
        let layers = self.settings.usize(key)?;
        let tensors = self.checkpoint.tensor_names().count();
        if layers == 0 || layers > tensors {
            let wanted = format!("a number from 1 to {tensors}, the number of tensors in the file");
            return Err(self.settings.refuse(key, &wanted, &layers.to_string(), "use the weights that belong to these settings").into());
        }
        Ok(layers)
    }

    /// The name under which a setting is found: its own, or an older one. A file that has both is refused, because one stays unread.
    pub(super) fn either<'k>(&self, key: &'k str, older: &'k str) -> &'k str {
        if !self.settings.contains(key) && self.settings.contains(older) { older } else { key }
    }

    /// Heads by the names of `config.json`; kv heads may be absent (one a head), and so may the width (d_model / heads).
    pub(super) fn heads(&self, heads_key: &str, kv_heads_key: &str, d_head_key: &str, d_model_key: &str) -> Result<Heads, ModelError> {
        let heads = self.settings.usize(heads_key)?;
        let kv_heads = self.settings.optional_usize(kv_heads_key)?.unwrap_or(heads);
        let d_model = self.settings.usize(d_model_key)?;
        let d_head = match self.settings.optional_usize(d_head_key)? {
            Some(d_head) => d_head,
            None if heads > 0 && d_model.is_multiple_of(heads) => d_model / heads,
            None => {
                let wanted = format!("a divisor of `{d_model_key}` = {d_model}, because `{d_head_key}` is absent");
                return Err(self.settings.refuse(heads_key, &wanted, &heads.to_string(), "correct the value in the file").into());
            }
        };
        self.checked_heads(heads_key, heads, kv_heads, d_head)
    }

    /// Heads of a family for which `transformers` documents a width, rather than d_model / heads, where the file does not say one.
    pub(super) fn heads_of_width(&self, heads_key: &str, kv_heads_key: &str, d_head_key: &str, d_head: usize) -> Result<Heads, ModelError> {
        let heads = self.settings.usize(heads_key)?;
        let kv_heads = self.settings.optional_usize(kv_heads_key)?.unwrap_or(heads);
        self.checked_heads(heads_key, heads, kv_heads, self.settings.optional_usize(d_head_key)?.unwrap_or(d_head))
    }

    /// Heads by the names of GGUF metadata, of which keys and values have one width and all of it turns.
    pub(super) fn gguf_heads(&self, arch: &str) -> Result<Heads, ModelError> {
        let (heads, width) = self.gguf_heads_and_rotary_width(arch)?;
        let d_head = heads.d_head();
        if width != d_head {
            let wanted = format!("{d_head}, the width of a head");
            let key = format!("{arch}.rope.dimension_count");
            return Err(self
                .settings
                .refuse(&key, &wanted, &width.to_string(), "rotating a part of a head is not known of this family")
                .into());
        }
        Ok(heads)
    }

    /// As [`Reading::gguf_heads`], of which a part turns: the second result is the number of channels.
    pub(super) fn gguf_heads_and_rotary_width(&self, arch: &str) -> Result<(Heads, usize), ModelError> {
        let key = |name: &str| format!("{arch}.{name}");
        let (lengths, values) = (key("attention.key_length"), key("attention.value_length"));
        let heads = self.heads(&key("attention.head_count"), &key("attention.head_count_kv"), &lengths, &key("embedding_length"))?;
        let d_head = heads.d_head();
        let found = self.settings.optional_usize(&values)?.unwrap_or(d_head);
        if found != d_head {
            let wanted = format!("{d_head}, the width of a head");
            return Err(self.settings.refuse(&values, &wanted, &found.to_string(), "other widths are not implemented").into());
        }
        Ok((heads, self.settings.optional_usize(&key("rope.dimension_count"))?.unwrap_or(d_head)))
    }

    pub(super) fn checked_heads(&self, key: &str, heads: usize, kv_heads: usize, d_head: usize) -> Result<Heads, ModelError> {
        Heads::new(heads, kv_heads, d_head).map_err(|error| {
            let found = format!("{heads} heads over {kv_heads} kv heads of width {d_head}");
            self.settings.refuse(key, "heads that share their kv heads evenly", &found, &error.to_string()).into()
        })
    }

    /// A number that divides or multiplies scores.
    pub(super) fn positive(&self, key: &str, value: f64) -> Result<f64, ModelError> {
        if value > 0.0 && value.is_finite() {
            return Ok(value);
        }
        Err(self.settings.refuse(key, "a positive number", &value.to_string(), "correct the value in the file").into())
    }

    /// A number for which null says something else (`None`) than being absent (`default`).
    pub(super) fn f64_unless_null(&self, key: &str, default: f64) -> Result<Option<f64>, ModelError> {
        if self.settings.is_null(key) { Ok(None) } else { Ok(Some(self.settings.optional_f64(key)?.unwrap_or(default))) }
    }

    /// A window that null takes away, with its documented size where the key is absent.
    pub(super) fn window_unless_null(&self, key: &str, default: usize) -> Result<Window, ModelError> {
        if self.settings.is_null(key) {
            return Ok(Window::Whole);
        }
        Ok(window(Some(self.settings.optional_usize(key)?.unwrap_or(default))))
    }

    /// As [`Reading::window_unless_null`], where `local` says which layers see a window: null is refused while one of them does.
    pub(super) fn window_of_layers(&self, key: &str, default: usize, local: &[bool]) -> Result<Window, ModelError> {
        if self.settings.is_null(key) && local.contains(&true) {
            let wanted = "a number of tokens, because some layers see a window only";
            return Err(self.settings.refuse(key, wanted, "null", "correct the value in the file, or `layer_types`").into());
        }
        self.window_unless_null(key, default)
    }

    /// The function of the feed-forward, by the names of `transformers`.
    pub(super) fn activation(&self, key: &str, default: Activation) -> Result<Activation, ModelError> {
        match self.settings.optional_str(key)? {
            None => Ok(default),
            Some("silu" | "swish") => Ok(Activation::Silu),
            Some("gelu" | "gelu_python") => Ok(Activation::GeluErf),
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" | "gelu_python_tanh" | "gelu_accurate") => Ok(Activation::GeluTanh),
            Some("relu") => Ok(Activation::Relu),
            Some("relu2") => Ok(Activation::ReluSquared),
            Some("sigmoid") => Ok(Activation::Sigmoid),
            Some(other) => {
                let wanted = "`silu`, `swish`, `gelu`, `gelu_new`, `gelu_fast`, `gelu_pytorch_tanh`, `relu`, `relu2` or `sigmoid`";
                let remedy = "other activations are not implemented, and running it otherwise would give wrong numbers";
                Err(self.settings.refuse(key, wanted, &format!("`{other}`"), remedy).into())
            }
        }
    }

    /// What a norm adds before it divides.
    pub(super) fn eps(&self, key: &str) -> Result<f32, ModelError> {
        self.checked_eps(key, self.settings.f64(key)?)
    }

    pub(super) fn eps_or(&self, key: &str, default: f64) -> Result<f32, ModelError> {
        self.checked_eps(key, self.settings.optional_f64(key)?.unwrap_or(default))
    }

    fn checked_eps(&self, key: &str, eps: f64) -> Result<f32, ModelError> {
        if eps > 0.0 && eps < 1.0 {
            return Ok(eps as f32);
        }
        Err(self.settings.refuse(key, "a number between 0 and 1", &eps.to_string(), "correct the value in the file").into())
    }

    /// A bound on scores or logits; absent means none.
    pub(super) fn soft_cap(&self, key: &str, cap: Option<f64>) -> Result<SoftCap, ModelError> {
        match cap {
            None => Ok(SoftCap::None),
            Some(0.0) => Ok(SoftCap::None),
            Some(cap) if cap > 0.0 => Ok(SoftCap::At(cap as f32)),
            Some(cap) => {
                Err(self.settings.refuse(key, "a positive number, or none", &cap.to_string(), "correct the value in the file").into())
            }
        }
    }

    /// Which layers see a window only, where `layer_types` says so for each.
    pub(super) fn local_layers(&self, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
        let refuse = |wanted: &str, found: &str| self.settings.refuse("layer_types", wanted, found, "correct the list in the file").into();
        let Some(types) = self.settings.optional_str_list("layer_types")? else { return Ok(None) };
        if types.len() != layers {
            return Err(refuse(&format!("{layers} entries, one for each layer"), &format!("{} entries", types.len())));
        }
        let local = types.iter().map(|name| match name.as_str() {
            "sliding_attention" => Ok(true),
            "full_attention" => Ok(false),
            other => Err(refuse("`full_attention` or `sliding_attention`", &format!("`{other}`"))),
        });
        local.collect::<Result<_, _>>().map(Some)
    }

    /// The output matrix, as `tie_word_embeddings` says.
    pub(super) fn head_by_setting(&self, tied_by_default: bool) -> Result<HeadMatrix, ModelError> {
        const TIED: &str = "tie_word_embeddings";
        let tied = self.settings.optional_bool(TIED)?.or(self.whole.optional_bool(TIED)?).unwrap_or(tied_by_default);
        Ok(if tied { HeadMatrix::TiedToEmbedding } else { HeadMatrix::Own })
    }

    /// The output matrix of a GGUF file: its own where it is there, else the embedding table.
    pub(super) fn head_by_tensor(&self) -> HeadMatrix {
        if self.checkpoint.contains_tensor("output.weight") { HeadMatrix::Own } else { HeadMatrix::TiedToEmbedding }
    }

    /// The number of token ids of a GGUF file: as it says, or else the rows of its embedding table.
    pub(super) fn gguf_vocab(&self, arch: &str) -> Result<usize, ModelError> {
        let key = format!("{arch}.vocab_size");
        match (self.settings.optional_usize(&key)?, self.checkpoint.shape("token_embd.weight")) {
            (Some(vocab), _) => Ok(vocab),
            (None, Some([vocab, _])) => Ok(*vocab),
            (None, _) => {
                Err(self.settings.refuse(&key, "a number", "neither it nor a tensor `token_embd.weight`", "use a complete file").into())
            }
        }
    }
}
