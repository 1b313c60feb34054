//! Faults that others shipped, each as a test by its number in the field reports.

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_mechanisms::position::Scaling;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::blueprint::{Rotation, SoftCap, Window};
use glassbox_model::{Model, Rows};
use glassbox_tensor::{View, ViewMut};

use crate::edited::Edited;
use crate::tiny::{LIMIT, golden, logits, open, open_twin, walk};

/// Enough tokens that every position-dependent fault shows.
const IDS: [u32; 12] = [1, 5, 9, 33, 2, 40, 17, 8, 56, 3, 21, 30];

fn theta(model: &Model, layer: usize) -> f64 {
    match model.blueprint().layers[layer].rotation {
        Rotation::Rotary { theta, .. } => theta,
        Rotation::None => panic!("layer {layer} is not rotated"),
    }
}

#[test]
fn bl_01_rows_of_k_are_permuted_by_kv_heads() {
    let heads = open("llama-gqa", Kernels::Fast).blueprint().attention.heads;
    assert_ne!(heads.group(), heads.kv_heads(), "where the two are equal, the fault cannot show");
    walk(&open_twin("llama-gqa", Kernels::Fast), &golden("llama-gqa"), usize::MAX).expect("the GGUF file is the same model");
}

#[test]
fn bl_02_the_declared_width_of_a_head_wins_and_null_means_derived() {
    let model = open("llama-gqa", Kernels::Fast);
    assert_eq!(model.blueprint().attention.heads.d_head(), 10);
    assert_eq!(model.blueprint().attention.scale, (1.0 / 10.0_f64.sqrt()) as f32);
    assert_eq!(open_twin("llama-gqa", Kernels::Fast).blueprint().attention.heads.d_head(), 10);
    let derived = Edited::of("llama-mha").set("head_dim", "null").set("num_key_value_heads", "null").open();
    assert_eq!(logits(&derived, &IDS), logits(&open("llama-mha", Kernels::Fast), &IDS));
}

#[test]
fn bl_04_the_rotary_base_is_found_in_its_old_and_its_new_place() {
    let new = Edited::of("qwen2-gqa").open();
    let old = Edited::of("qwen2-gqa").unset("rope_parameters").set("rope_theta", "1e6").set("rope_scaling", "null").open();
    assert_eq!(theta(&new, 0), 1_000_000.0);
    assert_eq!(logits(&new, &IDS), logits(&old, &IDS));
    let absent = Edited::of("qwen2-gqa").unset("rope_parameters").open();
    assert_eq!(theta(&absent, 0), 10_000.0, "the documented default of the family");
    assert_ne!(logits(&absent, &IDS), logits(&new, &IDS));
    let message = Edited::of("qwen2-gqa").set("rope_theta", "5e5").refusal();
    assert!(message.contains("key `rope_parameters.rope_theta`: wanted 500000, as `rope_theta` outside, found 1000000"), "{message}");
    let message = Edited::of("qwen2-gqa").unset("rope_parameters").set("rope_theta", "\"1000000\"").refusal();
    assert!(message.contains("key `rope_theta`: wanted a finite number, found the text"), "{message}");
}

#[test]
fn bl_04_nested_rotary_settings_reach_their_layers() {
    let new = open("gemma3-gqa", Kernels::Fast);
    assert_eq!([theta(&new, 0), theta(&new, 1), theta(&new, 2)], [10_000.0, 10_000.0, 1_000_000.0]);
    let old = Edited::of("gemma3-gqa")
        .unset("rope_parameters")
        .set("rope_theta", "1000000")
        .set("rope_local_base_freq", "10000.0")
        .set("rope_scaling", r#"{"rope_type": "linear", "factor": 8.0}"#)
        .open();
    assert_eq!(logits(&new, &IDS), logits(&old, &IDS));
}

#[test]
fn bl_04_the_oldest_name_of_the_rotary_base_is_read_and_may_not_contradict() {
    let new = Edited::of("gpt_neox-parallel").open();
    let parts = r#"{"rope_type": "default", "partial_rotary_factor": 0.34"#;
    let old = Edited::of("gpt_neox-parallel").unset("rope_parameters").set("rotary_pct", "0.34").set("rotary_emb_base", "10000").open();
    assert_eq!(logits(&old, &IDS), logits(&new, &IDS));
    let other = Edited::of("gpt_neox-parallel").set("rope_parameters", &format!("{parts}}}")).set("rotary_emb_base", "20000").open();
    assert_eq!(theta(&other, 0), 20_000.0);
    let message = Edited::of("gpt_neox-parallel").set("rotary_emb_base", "20000").refusal();
    assert!(message.contains("key `rotary_emb_base`: wanted 10000, as in the section of the rotation, found 20000"), "{message}");
}

#[test]
fn bl_14_llama3_scaling_is_used() {
    let scaled = open("llama-scaled", Kernels::Fast);
    let plain = Edited::of("llama-scaled").set("rope_parameters", r#"{"rope_type": "default", "rope_theta": 500000.0}"#).open();
    assert_ne!(logits(&scaled, &IDS), logits(&plain, &IDS));
    let linear = |json| Edited::of("llama-biased").unset("rope_parameters").set("rope_scaling", json).open();
    let (new, old) = (linear(r#"{"rope_type": "linear", "factor": 3.0}"#), linear(r#"{"type": "linear", "factor": 3}"#));
    assert_eq!(logits(&new, &IDS), logits(&open("llama-biased", Kernels::Fast), &IDS));
    assert_eq!(logits(&new, &IDS), logits(&old, &IDS));
}

#[test]
fn bl_15_each_gguf_architecture_pairs_as_its_converter_does() {
    for name in ["llama-gqa", "llama-scaled", "llama-biased", "qwen2-gqa", "gemma3-mqa"] {
        walk(&open_twin(name, Kernels::Fast), &golden(name), usize::MAX).unwrap_or_else(|divergence| panic!("{name}: {divergence}"));
    }
}

/// Keeps the attention weights of one layer.
struct Pattern {
    layer: usize,
    sizes: Vec<usize>,
    weights: Vec<f32>,
}

impl Observer for Pattern {
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Pattern && at.layer == self.layer { Interest::See } else { Interest::Nothing }
    }

    fn see(&mut self, _: At, value: View<'_>) {
        (self.sizes, self.weights) = (value.sizes().to_vec(), value.values().to_vec());
    }
}

fn keys_seen(model: &Model, layer: usize, query: usize) -> Vec<usize> {
    let mut seen = Pattern { layer, sizes: Vec::new(), weights: Vec::new() };
    let mut cache = model.new_cache(IDS.len(), LIMIT).expect("tiny");
    model.forward_observed(&IDS, &mut cache, Rows::None, &Workers::new(1), &mut seen).expect("sound ids");
    let keys = seen.sizes[2];
    let row = &seen.weights[query * keys..(query + 1) * keys];
    (0..keys).filter(|key| row[*key] > 0.0).collect()
}

/// The scaling of a model's first layer.
fn scaling(model: &Model) -> Scaling {
    match &model.blueprint().layers[0].rotation {
        Rotation::Rotary { scaling, .. } => scaling.clone(),
        Rotation::None => panic!("layer 0 is not rotated"),
    }
}

#[test]
fn bl_16_every_key_of_yarn_is_used() {
    let ids = IDS.map(|id| id % 53);
    let with = |keys: &str| {
        let json = format!(r#"{{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4{keys}}}"#);
        Edited::of("qwen2-yarn").set("rope_parameters", &json).open()
    };
    let plain = logits(&with(""), &ids);
    assert_eq!(plain, logits(&open("qwen2-yarn", Kernels::Fast), &ids));
    let attention_factor = |keys: &str| scaling(&with(keys)).attention_factor();
    assert!((attention_factor("") - 1.138_629).abs() < 1e-6);
    assert_eq!(attention_factor(r#", "attention_factor": 1.0"#), 1.0);
    assert_eq!(attention_factor(r#", "mscale": 0.707, "mscale_all_dim": 0.707"#), 1.0);
    let one_of_two = attention_factor(r#", "mscale": 1.0, "mscale_all_dim": 0.5"#);
    assert!((one_of_two - 1.138_629_4 / 1.069_314_7).abs() < 1e-6, "{one_of_two}");
    for keys in [r#", "attention_factor": 1.0"#, r#", "beta_fast": 2"#, r#", "beta_slow": 2.5"#, r#", "truncate": false"#] {
        assert_ne!(logits(&with(keys), &ids), plain, "{keys}");
    }
    assert_eq!(logits(&with(r#", "beta_fast": 32.0, "beta_slow": null"#), &ids), plain);
}

/// A sequence has one set of angles: were they to change while it grows, its first keys would not fit its last queries.
#[test]
fn angles_that_depend_on_length_are_those_of_the_cache_from_the_first_token_on() {
    let model = open("llama-dynamic", Kernels::Fast);
    let run = |capacity: usize, piece: usize| {
        let mut cache = model.new_cache(capacity, LIMIT).expect("tiny");
        let pieces = IDS.chunks(piece).map(|ids| model.forward(ids, &mut cache, Rows::All, &Workers::new(1)).expect("sound ids"));
        pieces.flatten().collect::<Vec<f32>>()
    };
    assert_eq!(run(16, 12), run(12, 1), "up to the context of 16 tokens nothing is stretched");
    assert_ne!(run(17, 12), run(16, 12));
    assert_eq!(run(40, 12), run(40, 1));
}

#[test]
fn bl_21_a_window_counts_the_query_itself() {
    let window = |size: &str| Edited::of("qwen2-window").set("sliding_window", size).unset("layer_types").open();
    assert_eq!(keys_seen(&window("4"), 1, 9), [6, 7, 8, 9]);
    assert_eq!(keys_seen(&window("4"), 0, 9), (0..=9).collect::<Vec<_>>(), "layers below `max_window_layers` see everything");
    for none in ["null", "0"] {
        assert_eq!(keys_seen(&window(none), 1, 9), (0..=9).collect::<Vec<_>>(), "a window of {none}");
    }
    let off = Edited::of("qwen2-window").set("use_sliding_window", "false").unset("layer_types").open();
    assert!(off.blueprint().layers.iter().all(|layer| layer.window == Window::Whole));
    let message = Edited::of("qwen2-window").set("use_sliding_window", "false").refusal();
    assert!(message.contains("found `sliding_attention` in it, while `use_sliding_window` is false"), "{message}");
}

#[test]
fn bl_26_the_final_soft_cap_bends_every_logit_and_zero_is_off() {
    let plain = logits(&open("gemma3-gqa", Kernels::Fast), &IDS);
    let capped = logits(&Edited::of("gemma3-gqa").set("final_logit_softcapping", "3.0").open(), &IDS);
    for (plain, capped) in plain.iter().zip(&capped) {
        let wanted = 3.0 * (f64::from(*plain) / 3.0).tanh();
        assert!((f64::from(*capped) - wanted).abs() < 1e-6, "{plain} became {capped}");
    }
    let off = Edited::of("gemma3-gqa").set("final_logit_softcapping", "0").open();
    assert_eq!(off.blueprint().unembedding.soft_cap, SoftCap::None);
}

/// Changes the values of one kv head, and watches which heads' mixes change.
struct OneKvHead {
    kv_head: usize,
    mixed: Vec<f32>,
}

impl Observer for OneKvHead {
    fn interest(&self, at: At) -> Interest {
        match (at.layer, at.site) {
            (0, Site::Value) => Interest::Edit,
            (0, Site::Mixed) => Interest::See,
            _ => Interest::Nothing,
        }
    }

    fn see(&mut self, _: At, value: View<'_>) {
        self.mixed = value.values().to_vec();
    }

    fn edit(&mut self, _: At, mut value: ViewMut<'_>) {
        let [_, kv_heads, d_head] = value.view().sizes_of(["token", "kv_head", "d_head"]).expect("the axes of values");
        for token in value.values().chunks_exact_mut(kv_heads * d_head) {
            if let Some(head) = token.chunks_exact_mut(d_head).nth(self.kv_head) {
                head.fill(100.0);
            }
        }
    }
}

#[test]
fn bl_31_consecutive_heads_share_a_kv_head() {
    let model = open("llama-gqa", Kernels::Fast);
    for (kv_head, readers) in [(0, 0..3), (1, 3..6)] {
        let mut observer = OneKvHead { kv_head, mixed: Vec::new() };
        let mut cache = model.new_cache(IDS.len(), LIMIT).expect("tiny");
        model.forward_observed(&IDS, &mut cache, Rows::None, &Workers::new(1), &mut observer).expect("sound ids");
        for (head, mixed) in observer.mixed.chunks_exact(10).enumerate() {
            let edited = (mixed[0] - 100.0).abs() < 1e-3;
            assert_eq!(edited, readers.contains(&(head % 6)), "kv head {kv_head}, head {}", head % 6);
        }
    }
}

#[test]
fn bl_37_the_one_is_added_once_from_either_file() {
    // Golden gains are far from 0 and 1; a folder stores w, a GGUF file 1 + w.
    let (folder, gguf) = (open("gemma3-mqa", Kernels::Fast), open_twin("gemma3-mqa", Kernels::Fast));
    assert_eq!(logits(&folder, &IDS), logits(&gguf, &IDS));
    walk(&gguf, &golden("gemma3-mqa"), usize::MAX).expect("every norm agrees");
}

#[test]
fn bl_38_gemma_scales_its_embedding_by_the_root_in_f32_and_gates_by_tanh() {
    assert_eq!(open("gemma3-gqa", Kernels::Fast).blueprint().embedding_scale, 5.656_854);
    // An older key of the same files says `gelu` and means tanh, because `hidden_activation` decides.
    let old = Edited::of("gemma3-gqa").set("hidden_act", "\"gelu\"").open();
    assert_eq!(logits(&old, &IDS), logits(&open("gemma3-gqa", Kernels::Fast), &IDS));
}

#[test]
fn bl_38_each_name_of_gelu_is_its_own_function_or_refused() {
    let of = |name: &str| logits(&Edited::of("gpt2").set("activation_function", &format!("\"{name}\"")).open(), &IDS);
    let (erf, tanh) = (of("gelu"), of("gelu_new"));
    assert_ne!(erf, tanh);
    assert_eq!(of("gelu_python"), erf);
    for name in ["gelu_fast", "gelu_pytorch_tanh", "gelu_accurate"] {
        assert_eq!(of(name), tanh, "{name}");
    }
    for name in ["quick_gelu", "gelu_10", "GELU"] {
        let message = Edited::of("gpt2").set("activation_function", &format!("\"{name}\"")).refusal();
        assert!(message.contains(&format!("found `{name}`")), "{message}");
    }
    // The first Gemma says `gelu` and means tanh.
    let gemma = Edited::of("gemma-mqa").set("hidden_act", "\"gelu\"").open();
    assert_eq!(logits(&gemma, &IDS), logits(&open("gemma-mqa", Kernels::Fast), &IDS));
}

#[test]
fn bl_40_biases_and_norms_of_heads_are_used_or_the_file_is_refused() {
    let message = Edited::of("llama-gqa").with("model.layers.0.self_attn.q_proj.bias", &[60], 0.5).refusal();
    assert!(message.contains("fit no slot of family llama: `model.layers.0.self_attn.q_proj.bias`"), "{message}");
    let message = Edited::of("qwen2-gqa").with("model.layers.0.self_attn.o_proj.bias", &[36], 0.5).refusal();
    assert!(message.contains("fit no slot of family qwen2: `model.layers.0.self_attn.o_proj.bias`"), "{message}");
    let message = Edited::of("qwen2-gqa").without("model.layers.0.self_attn.k_proj.bias").refusal();
    assert!(message.contains("`model.layers.0.self_attn.k_proj.bias`"), "{message}");
    // On every path: token by token as in one pass.
    for name in ["gemma3-gqa", "qwen2-gqa"] {
        walk(&open(name, Kernels::Fast), &golden(name), 1).unwrap_or_else(|divergence| panic!("{name}: {divergence}"));
    }
}

#[test]
fn names_with_and_without_their_prefix_are_the_same_model() {
    for name in ["llama-biased", "qwen2-gqa", "gpt2"] {
        let bare = |tensor: &str| tensor.trim_start_matches("model.").trim_start_matches("transformer.").to_owned();
        let model = Edited::of(name).renamed(bare).open();
        assert_eq!(logits(&model, &IDS), logits(&open(name, Kernels::Fast), &IDS), "{name}");
    }
}

#[test]
fn the_language_model_of_a_gemma3_with_pictures_is_read_alone() {
    let text = Edited::of("gemma3-gqa");
    let settings = serde_json::to_string(&text.settings).expect("JSON of JSON");
    let mut whole = text.renamed(|name| name.replace("model.", "model.language_model.")).with("model.vision_tower.patch", &[3], 1.0);
    whole.settings.clear();
    let whole = whole
        .set("model_type", "\"gemma3\"")
        .set("text_config", &settings)
        .set("vision_config", r#"{"hidden_size": 8}"#)
        .set("mm_tokens_per_image", "256");
    assert_eq!(logits(&whole.open(), &IDS), logits(&open("gemma3-gqa", Kernels::Fast), &IDS));
}

#[test]
fn buffers_that_older_files_carry_are_not_needed() {
    Edited::of("llama-gqa").with("model.layers.1.self_attn.rotary_emb.inv_freq", &[5], 1.0).open();
    Edited::of("gpt2").with("transformer.h.0.attn.bias", &[1, 1, 64, 64], 1.0).with("transformer.h.1.attn.masked_bias", &[], -1e4).open();
}

/// Keeps what one site of layer 0 shows.
struct One {
    site: Site,
    values: Vec<f32>,
}

impl Observer for One {
    fn interest(&self, at: At) -> Interest {
        if at.site == self.site && at.layer == 0 { Interest::See } else { Interest::Nothing }
    }

    fn see(&mut self, _: At, value: View<'_>) {
        self.values = value.values().to_vec();
    }
}

fn at_site(model: &Model, site: Site) -> Vec<f32> {
    let mut one = One { site, values: Vec::new() };
    let mut cache = model.new_cache(IDS.len(), LIMIT).expect("tiny");
    model.forward_observed(&IDS, &mut cache, Rows::None, &Workers::new(1), &mut one).expect("sound ids");
    one.values
}

#[test]
fn bl_41_rows_of_gpt_neox_are_q_k_v_of_each_head_and_a_part_of_it_turns() {
    // Rows numbered 0 to 107 by their bias, with weights of zero: 3 heads of 12 channels.
    let mut edited = Edited::of("gpt_neox-parallel").with("gpt_neox.layers.0.attention.query_key_value.weight", &[108, 36], 0.0);
    let numbered: Vec<u8> = (0..108_u8).flat_map(|row| f32::from(row).to_le_bytes()).collect();
    edited.tensors.insert("gpt_neox.layers.0.attention.query_key_value.bias".to_owned(), (vec![108], numbered));
    let model = edited.open();
    for (site, first) in [(Site::Query, 0), (Site::Key, 12), (Site::Value, 24)] {
        let rows = at_site(&model, site);
        assert_eq!([rows[0], rows[11], rows[12], rows[24]], [first, first + 11, first + 36, first + 72].map(|row| row as f32), "{site}");
    }
    // Position 1, head 0: channels 0 to 3 turn in the pairs (0, 2) and (1, 3), by 1 and by 10000^(-2/4); the others stay.
    let (plain, turned) = (at_site(&model, Site::Query), at_site(&model, Site::QueryRotated));
    let (plain, turned) = (&plain[36..48], &turned[36..48]);
    assert_eq!(plain[4..], turned[4..]);
    for (pair, angle) in [(0, 1.0_f32), (1, 0.01)] {
        let (a, b) = (plain[pair], plain[pair + 2]);
        let wanted = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()];
        assert!((turned[pair] - wanted[0]).abs() < 1e-5 && (turned[pair + 2] - wanted[1]).abs() < 1e-5, "pair {pair}: {turned:?}");
    }
}

#[test]
fn bl_26_scores_are_bent_before_the_mask_which_stays_minus_infinity() {
    let capped = at_site(&open("gemma2-gqa", Kernels::Fast), Site::Scores);
    let plain = at_site(&Edited::of("gemma2-gqa").set("attn_logit_softcapping", "null").open(), Site::Scores);
    let mut masked = 0;
    for (capped, plain) in capped.iter().zip(&plain) {
        if *plain == f32::NEG_INFINITY {
            assert_eq!(*capped, f32::NEG_INFINITY);
            masked += 1;
        } else {
            let wanted = 3.0 * (f64::from(*plain) / 3.0).tanh();
            assert!((f64::from(*capped) - wanted).abs() < 1e-6, "{plain} became {capped}");
        }
    }
    assert!(masked > 0);
}
