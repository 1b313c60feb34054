//! The forward pass of one blueprint, written out: every site with its sizes and its formula, and only the branches it takes.

use glassbox_anatomy::Site;
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::position::Scaling;

use crate::blueprint::{
    AddedPositions, AttentionBias, Bias, Blueprint, Clamp, Direction, Distance, Divisors, EmbeddingNorm, FeedForward, HeadMatrix, Layer,
    Norm, NormPlaces, Pooler, QueryKeyNorm, Residual, Rotation, SoftCap, TokenTypes, Window,
};

/// The forward pass of `blueprint` as text, one line a site. Layers that differ in nothing are written once.
#[must_use]
pub fn explain(blueprint: &Blueprint) -> String {
    let heads = blueprint.attention.heads;
    let mut pass = Pass { blueprint, text: String::new() };
    pass.line(&format!(
        "{}: {} layers; d_model {}; {} heads over {} kv heads, d_head {}; hidden {}; vocab {}; made for {} tokens",
        blueprint.family,
        blueprint.layers.len(),
        blueprint.d_model,
        heads.heads(),
        heads.kv_heads(),
        heads.d_head(),
        blueprint.feed_forward.hidden(),
        blueprint.vocab,
        blueprint.context,
    ));
    pass.line("");
    pass.step(Site::EmbedOut, &embedding(blueprint));
    for (layers, layer) in kinds(&blueprint.layers) {
        pass.line("");
        pass.line(&format!("blocks.{layers}"));
        pass.block(layer);
    }
    pass.line("");
    let head = match blueprint.unembedding.head {
        HeadMatrix::TiedToEmbedding => "embed.w, the embedding table itself",
        HeadMatrix::Own => "unembed.w",
        HeadMatrix::None => {
            pass.line("  the last block's out are the vectors of the text");
            if blueprint.pooler == Pooler::FirstToken {
                pass.line("  pooled: tanh(the first token's vector by pooler.w + pooler.b)");
            }
            return pass.text;
        }
    };
    pass.step(Site::NormOut, &format!("{} of the last block's out", norm(blueprint.norm)));
    pass.step(Site::Logits, &soft_capped(format!("norm.out by {head}"), blueprint.unembedding.soft_cap));
    pass.text
}

struct Pass<'a> {
    blueprint: &'a Blueprint,
    text: String,
}

impl Pass<'_> {
    fn block(&mut self, layer: &Layer) {
        let blueprint = self.blueprint;
        let read = |of: &str| match blueprint.norm_places {
            NormPlaces::Before | NormPlaces::BeforeAndAfter => format!("{} of {of}", norm(blueprint.norm)),
            NormPlaces::After | NormPlaces::OnStream => format!("{of} as it is"),
        };
        self.step(Site::BlockIn, "the residual stream");
        self.step(Site::Norm1, &read("in"));
        self.attention(layer);
        self.step(Site::AttnAdded, &self.added("attn.out"));
        self.step(Site::Mid, &self.stream("in + attn.added"));
        self.step(
            Site::Norm2,
            &match blueprint.residual {
                Residual::OneAfterAnother => read("mid"),
                Residual::SideBySide => format!("{}, beside attention", read("in")),
            },
        );
        let (hidden, bias) = match blueprint.feed_forward {
            FeedForward::Plain { activation, bias, .. } => {
                (format!("{}(norm_2.out by w_up{})", name(activation), plus(bias, "b_up")), bias)
            }
            FeedForward::Gated { activation, bias, .. } => {
                let gate = format!("{}(norm_2.out by w_gate{})", name(activation), plus(bias, "b_gate"));
                (format!("{gate} · (norm_2.out by w_up{})", plus(bias, "b_up")), bias)
            }
        };
        self.step(Site::FfnHidden, &hidden);
        self.step(Site::FfnOut, &format!("ffn.hidden by w_down{}", plus(bias, "b_down")));
        self.step(Site::FfnAdded, &self.added("ffn.out"));
        self.step(Site::BlockOut, &self.stream("mid + ffn.added"));
    }

    fn attention(&mut self, layer: &Layer) {
        let attention = &self.blueprint.attention;
        let clamp = match attention.clamp {
            Clamp::None => String::new(),
            Clamp::At(bound) => format!(", kept within ±{bound}"),
        };
        let bias = |name| if attention.bias == AttentionBias::None { clamp.clone() } else { format!(" + {name}{clamp}") };
        self.step(Site::Query, &format!("norm_1.out by w_q{}", bias("b_q")));
        self.step(Site::Key, &format!("norm_1.out by w_k{}", bias("b_k")));
        self.step(Site::Value, &format!("norm_1.out by w_v{}", bias("b_v")));
        let normed = |of: &str| match attention.query_key_norm {
            QueryKeyNorm::None => of.to_owned(),
            QueryKeyNorm::EachHead => format!("rms norm over d_head of {of}"),
            QueryKeyNorm::AllHeads => format!("rms norm over all heads together of {of}"),
        };
        let turned = rotation(&layer.rotation, attention.heads.d_head());
        self.step(Site::QueryRotated, &format!("{}{turned}", normed("attn.q")));
        self.step(Site::KeyRotated, &format!("{}{turned}; into the cache", normed("attn.k")));
        let keys = match (attention.direction, layer.window) {
            (Direction::Backward, Window::Whole) => "keys up to the query's own".to_owned(),
            (Direction::Backward, Window::Last(tokens)) => format!("the last {tokens} keys, the query's own among them"),
            (Direction::Both, Window::Whole) => "all keys, earlier and later".to_owned(),
            (Direction::Both, Window::Last(tokens)) => format!("keys nearer than {tokens}, earlier and later"),
        };
        let shared = match attention.heads.group() {
            1 => String::new(),
            group => format!(" of kv head = head / {group}"),
        };
        let scores = soft_capped(format!("attn.q_rot · attn.k_rot{shared} × {}", attention.scale), attention.soft_cap);
        let distance = match attention.distance {
            Distance::Free => String::new(),
            Distance::Alibi { max_bias } => format!(" - distance × slope of head (ALiBi to 2^-{max_bias})"),
        };
        self.step(Site::Scores, &format!("{scores}{distance}; {keys}"));
        self.step(Site::Pattern, "softmax of attn.scores over key");
        self.step(Site::Statistics, "entropy, support, distances and shares of each row of attn.pattern");
        self.step(Site::Mixed, &format!("sum over key of attn.pattern · attn.v{shared}"));
        let bias = if attention.bias == AttentionBias::All { " + b_out" } else { "" };
        self.step(Site::AttnOut, &format!("attn.z by w_out{bias}"));
    }

    fn added(&self, part: &str) -> String {
        match self.blueprint.norm_places {
            NormPlaces::Before | NormPlaces::OnStream => part.to_owned(),
            NormPlaces::BeforeAndAfter | NormPlaces::After => format!("{} of {part}", norm(self.blueprint.norm)),
        }
    }

    fn stream(&self, sum: &str) -> String {
        match self.blueprint.norm_places {
            NormPlaces::OnStream => format!("{} of {sum}", norm(self.blueprint.norm)),
            NormPlaces::Before | NormPlaces::BeforeAndAfter | NormPlaces::After => sum.to_owned(),
        }
    }

    fn step(&mut self, site: Site, formula: &str) {
        let sizes: Vec<String> = site.axes().iter().map(|axis| self.size(axis)).collect();
        self.line(&format!("  {:<12} {:<36} {formula}", site.name(), format!("[{}]", sizes.join(", "))));
    }

    fn size(&self, axis: &str) -> String {
        let heads = self.blueprint.attention.heads;
        match axis {
            "d_model" => format!("d_model={}", self.blueprint.d_model),
            "head" => format!("head={}", heads.heads()),
            "kv_head" => format!("kv_head={}", heads.kv_heads()),
            "d_head" => format!("d_head={}", heads.d_head()),
            "hidden" => format!("hidden={}", self.blueprint.feed_forward.hidden()),
            "vocab" => format!("vocab={}", self.blueprint.vocab),
            other => other.to_owned(),
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn embedding(blueprint: &Blueprint) -> String {
    let mut formula = "row of embed.w".to_owned();
    if blueprint.embedding_scale != 1.0 {
        formula.push_str(&format!(" × {}", blueprint.embedding_scale));
    }
    if let TokenTypes::Table { types } = blueprint.token_types {
        formula.push_str(&format!(" + row of embed.token_types, of which there are {types}"));
    }
    match blueprint.added_positions {
        AddedPositions::None => {}
        AddedPositions::Sinusoidal => formula.push_str(" + sinusoids of the position"),
        AddedPositions::Learned { positions } => {
            formula.push_str(&format!(" + row of embed.positions, of which there are {positions}"));
        }
    }
    match blueprint.embedding_norm {
        EmbeddingNorm::None => formula,
        EmbeddingNorm::AsInBlocks => format!("{} of {formula}", norm(blueprint.norm)),
    }
}

/// Layers that differ in nothing, in order of their first: `0-4,6-10` and the layer.
fn kinds(layers: &[Layer]) -> Vec<(String, &Layer)> {
    let mut kinds: Vec<(Vec<(usize, usize)>, &Layer)> = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        match kinds.iter_mut().find(|(_, kind)| *kind == layer) {
            None => kinds.push((vec![(index, index)], layer)),
            Some((ranges, _)) => match ranges.last_mut() {
                Some((_, last)) if *last + 1 == index => *last = index,
                _ => ranges.push((index, index)),
            },
        }
    }
    let range = |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    kinds.into_iter().map(|(ranges, layer)| (ranges.iter().map(range).collect::<Vec<_>>().join(","), layer)).collect()
}

fn norm(norm: Norm) -> String {
    match norm {
        Norm::Layer { eps } => format!("layer norm (eps {eps:e})"),
        Norm::LayerWithoutBias { eps } => format!("layer norm without bias (eps {eps:e})"),
        Norm::Rms { eps } => format!("rms norm (eps {eps:e})"),
    }
}

fn rotation(rotation: &Rotation, d_head: usize) -> String {
    let Rotation::Rotary { width, theta, scaling, divisors } = rotation else { return String::new() };
    let scaling = match scaling {
        Scaling::None => String::new(),
        Scaling::Linear { factor } => format!(", all angles / {factor}"),
        Scaling::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => format!(
            ", angles / {factor} where they turn less than {low_frequency_factor} times in {original_context} tokens, kept above {high_frequency_factor} times"
        ),
        Scaling::DynamicNtk { factor, original_context } => {
            format!(", theta grown with factor {factor} where the cache holds over {original_context} tokens")
        }
        Scaling::Yarn { factor, beta_fast, beta_slow, original_context, attention_factor, .. } => format!(
            ", angles / {factor} where they turn less than {beta_slow} times in {original_context} tokens, kept above {beta_fast} times, result × {attention_factor}"
        ),
        Scaling::LongRope { original_context, attention_factor, .. } => format!(
            ", each pair's angle divided by the file's own number, another where the cache holds over {original_context} tokens, result × {attention_factor}"
        ),
    };
    let divisors = match divisors {
        Divisors::None => "",
        Divisors::EachPair(_) => ", each pair's angle divided by the file's own number",
    };
    let part = if *width == d_head { String::new() } else { format!("the first {width} channels ") };
    format!(", {part}rotated in halves (theta {theta}{scaling}{divisors})")
}

fn soft_capped(formula: String, cap: SoftCap) -> String {
    match cap {
        SoftCap::None => formula,
        SoftCap::At(cap) => format!("{cap} · tanh(({formula}) / {cap})"),
    }
}

fn name(activation: Activation) -> &'static str {
    match activation {
        Activation::Relu => "relu",
        Activation::GeluErf => "gelu by erf",
        Activation::GeluTanh => "gelu by tanh",
        Activation::Silu => "silu",
        Activation::ReluSquared => "squared relu",
        Activation::Sigmoid => "sigmoid",
    }
}

fn plus(bias: Bias, name: &str) -> String {
    match bias {
        Bias::None => String::new(),
        Bias::Added => format!(" + {name}"),
    }
}
