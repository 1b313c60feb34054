//! What is turned away, and with which words.

use std::collections::BTreeSet;

use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, ModelError, Rows};

use crate::edited::{Edited, twin_with};
use crate::tiny::{LIMIT, open};

#[track_caller]
fn check(edited: &Edited, message: &str) {
    assert_eq!(edited.refusal(), message);
}

#[test]
fn an_unknown_family_is_refused_with_the_list_of_the_known() {
    let refused = |message: String, file: &str, key: &str| {
        let start = format!("{file}: no family reads {key} `mamba`; known: llama, ");
        assert!(message.starts_with(&start) && message.contains(", gpt2"), "{message}");
    };
    refused(Edited::of("llama-gqa").set("model_type", "\"mamba\"").refusal(), "tiny/config.json", "model_type");
    let message = twin_with("llama-gqa", &[("llama", "mamba")]).expect_err("no such family").to_string();
    refused(message, "tiny.gguf", "general.architecture");
}

#[test]
fn an_unknown_rope_type_is_refused() {
    let unknown = r#"{"rope_type": "ntk", "factor": 4.0}"#;
    let message = "tiny/config.json, key `rope_scaling.rope_type`: wanted `default`, `linear`, `dynamic`, `yarn`, `longrope` or `llama3`, found `ntk`; other stretchings are not implemented";
    check(&Edited::of("llama-gqa").unset("rope_parameters").set("rope_scaling", unknown), message);
    let message = message.replace("rope_scaling.rope_type", "rope_scaling.type").replace("`ntk`", "`mrope`");
    check(&Edited::of("qwen2-gqa").unset("rope_parameters").set("rope_scaling", r#"{"type": "mrope"}"#), &message);
    let error = twin_with("llama-biased", &[("linear", "wobbly")]).expect_err("no such type").to_string();
    assert_eq!(
        error,
        "tiny.gguf, key `llama.rope.scaling.type`: wanted `none`, `linear`, `yarn`, or `longrope` with its tensors, found `wobbly`; other stretchings are not implemented"
    );
}

#[test]
fn a_setting_that_nothing_reads_is_refused() {
    let message = Edited::of("llama-gqa").set("attention_temperature", "2.0").refusal();
    assert!(message.contains("`attention_temperature` = 2.0"), "{message}");
    let message = twin_with("llama-gqa", &[("llama.rope.freq_base", "llama.rope.freq_bose")]).expect_err("no such key").to_string();
    assert!(message.contains("`llama.rope.freq_bose` = 10000.0 (did you mean `llama.rope.freq_base`?)"), "{message}");
}

#[test]
fn a_setting_of_a_stretching_that_does_not_use_it_is_refused() {
    let message = Edited::of("llama-gqa").set("rope_parameters", r#"{"rope_type": "default", "rope_theta": 1e4, "factor": 8}"#).refusal();
    assert!(message.contains("`rope_parameters.factor` = 8"), "{message}");
}

#[test]
fn a_setting_with_a_value_that_is_not_implemented_is_refused_with_the_reason() {
    for (name, key) in [("llama-gqa", "hidden_act"), ("gemma3-gqa", "hidden_activation"), ("gpt2", "activation_function")] {
        let wanted = "wanted `silu`, `swish`, `gelu`, `gelu_new`, `gelu_fast`, `gelu_pytorch_tanh`, `relu`, `relu2` or `sigmoid`";
        let remedy = "other activations are not implemented, and running it otherwise would give wrong numbers";
        check(
            &Edited::of(name).set(key, "\"quick_gelu\""),
            &format!("tiny/config.json, key `{key}`: {wanted}, found `quick_gelu`; {remedy}"),
        );
    }
    check(
        &Edited::of("gemma3-gqa").set("attn_logit_softcapping", "50.0"),
        "tiny/config.json, key `attn_logit_softcapping`: wanted no such key, found 50.0; the definition of Gemma 3 does not say where such a cap belongs",
    );
}

#[test]
fn a_tensor_of_other_sizes_is_refused_with_both_and_the_names_of_the_axes() {
    check(
        &Edited::of("llama-gqa").with("model.layers.1.self_attn.k_proj.weight", &[60, 36], 0.0),
        "tiny/model.safetensors: tensor `model.layers.1.self_attn.k_proj.weight` does not fit slot `attn.w_k`: wanted kv_head*d_head=20 x d_model=36, found [60, 36]; use the weights that belong to these settings",
    );
    check(
        &Edited::of("gpt2").with("transformer.h.0.attn.c_attn.weight", &[96, 32], 0.0),
        "tiny/model.safetensors: tensor `transformer.h.0.attn.c_attn.weight` does not fit slot `attn.w_q`: wanted d_model=32 x head*d_head+kv_head*d_head+kv_head*d_head=96, found [96, 32]; use the weights that belong to these settings",
    );
    // The right number of numbers is not enough.
    assert!(Edited::of("llama-gqa").with("model.norm.weight", &[6, 6], 1.0).refusal().contains("wanted d_model=36, found [6, 6]"));
}

#[test]
fn a_missing_tensor_is_named_with_its_nearest() {
    let message = Edited::of("qwen2-gqa").without("model.layers.1.mlp.up_proj.weight").refusal();
    assert!(message.contains("tensor `model.layers.1.mlp.up_proj.weight`: wanted a tensor of this name"), "{message}");
    assert!(message.contains("the nearest name is `model.layers.0.mlp.up_proj.weight`"), "{message}");
}

#[test]
fn a_tensor_without_a_slot_is_refused() {
    check(
        &Edited::of("llama-gqa").with("model.layers.0.self_attn.q_norm.weight", &[10], 5.0),
        "tiny: 1 of the file's tensors fit no slot of family llama: `model.layers.0.self_attn.q_norm.weight`; refusing, because an unread weight may change the numbers",
    );
}

#[test]
fn more_layers_than_tensors_are_refused_before_anything_is_allocated() {
    check(
        &Edited::of("gpt2").set("n_layer", "1000000000000"),
        "tiny/config.json, key `n_layer`: wanted a number from 1 to 28, the number of tensors in the file, found 1000000000000; use the weights that belong to these settings",
    );
}

#[test]
fn heads_that_cannot_share_are_refused() {
    let message = Edited::of("llama-gqa").set("num_key_value_heads", "4").refusal();
    assert!(message.contains("6 heads over 4 kv heads of width 10"), "{message}");
    let message = Edited::of("llama-gqa").set("head_dim", "0").refusal();
    assert!(message.contains("of width 0"), "{message}");
}

#[test]
fn a_tied_head_that_differs_from_the_embedding_is_refused() {
    let tied = Edited::of("qwen2-gqa").copied("model.embed_tokens.weight", "lm_head.weight");
    tied.open();
    check(
        &tied.with("lm_head.weight", &[59, 36], 0.25),
        "tiny/model.safetensors: the settings tie the output matrix to the embedding, but `lm_head.weight` differs from it; set `tie_word_embeddings` to false, or remove the tensor",
    );
}

/// Opens the model with every tensor in the sizes that the settings ask for, and reads three tokens. Whatever the outcome, it is an outcome.
fn run_as_the_settings_say(mut edited: Edited, workers: &Workers) -> Result<(), ModelError> {
    const MOST_NUMBERS: usize = 1 << 16;
    loop {
        let error = match edited.try_open() {
            Ok(model) => {
                let mut cache = model.new_cache(3, LIMIT)?;
                return model.forward(&[0, 1, 2], &mut cache, Rows::All, workers).map(drop);
            }
            Err(ModelError::NoDecoder { .. }) => match edited.try_open_encoder() {
                Ok(encoder) => return encoder.encode(&[0, 1, 2], None, workers).map(drop),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let ModelError::TensorShape { tensor, wanted, found, .. } = &error else { return Err(error) };
        let size = |axis: &str| axis.rsplit_once('=').and_then(|(_, size)| size.parse().ok()).expect("an axis has a size");
        let sizes: Vec<usize> = wanted.split(" x ").map(size).collect();
        let numbers = sizes.iter().try_fold(1_usize, |numbers, size| numbers.checked_mul(*size));
        if sizes == *found || numbers.is_none_or(|numbers| numbers == 0 || numbers > MOST_NUMBERS) {
            return Err(error);
        }
        edited = edited.with(&tensor.clone(), &sizes, 0.01);
    }
}

/// Settings that a reader may ask for, beside those of the fixture.
const ASKED_FOR: [&str; 9] = [
    "head_dim",
    "num_key_value_heads",
    "n_head_kv",
    "attn_config",
    "partial_rotary_factor",
    "rotary_pct",
    "rope_scaling",
    "sliding_window",
    "layer_types",
];

#[test]
fn no_value_of_any_setting_makes_it_panic_with_tensors_of_the_sizes_that_it_asks_for() {
    let workers = Workers::new(1);
    for (family, proof) in glassbox_model::proofs() {
        let name = proof.fixtures[0];
        let keys: BTreeSet<String> = Edited::of(name).settings.keys().cloned().chain(ASKED_FOR.map(str::to_owned)).collect();
        let mut ran = 0;
        for key in keys {
            for value in [
                "null",
                "0",
                "-1",
                "1",
                "2",
                "3",
                "1e308",
                "0.5",
                "18446744073709551615",
                "\"\"",
                "true",
                "[]",
                "{}",
                "[1, \"x\"]",
                "{\"rope_type\": \"llama3\"}",
                "{\"rope_type\": \"yarn\", \"factor\": 1e300}",
                "{\"kv_n_heads\": 1}",
            ] {
                ran += usize::from(run_as_the_settings_say(Edited::of(name).set(&key, value), &workers).is_ok());
            }
            let _ = run_as_the_settings_say(Edited::of(name).unset(&key), &workers);
        }
        assert!(ran > 20, "{family}: {ran} of the changed models ran");
    }
}

fn pass(model: &Model, before: &[u32], ids: &[u32], capacity: usize) -> String {
    let mut cache = model.new_cache(capacity, LIMIT).expect("tiny");
    let workers = Workers::new(1);
    if !before.is_empty() {
        model.forward(before, &mut cache, Rows::None, &workers).expect("sound ids");
    }
    let error = model.forward(ids, &mut cache, Rows::Last, &workers).expect_err("must be turned away").to_string();
    assert_eq!(cache.len(), before.len(), "a refused pass leaves the cache as it was");
    error
}

#[test]
fn ids_are_checked_at_the_door() {
    let model = open("llama-gqa", Kernels::Fast);
    assert_eq!(pass(&model, &[1, 2], &[3, 61], 8), "token id 61 at position 3 is outside the vocabulary of 61 ids (0 to 60)");
    assert_eq!(pass(&model, &[], &[u32::MAX], 8), "token id 4294967295 at position 0 is outside the vocabulary of 61 ids (0 to 60)");
    assert_eq!(pass(&model, &[1], &[], 8), "a forward pass needs at least one token id; none was given");
}

#[test]
fn a_full_cache_turns_a_pass_away_before_it_starts() {
    let model = open("llama-gqa", Kernels::Fast);
    let message = pass(&model, &[1, 2, 3], &[4, 5], 4);
    assert_eq!(message, "the cache is full: it holds 3 of 4 tokens, and 2 more were to be added; make it larger or shorten the text");
}

#[test]
fn learned_positions_end() {
    let model = open("gpt2", Kernels::Fast);
    let message = pass(&model, &[1; 60], &[2; 5], 100);
    assert_eq!(message, "5 tokens from position 60 on reach past the 64 learned positions of this model; shorten the text");
}

#[test]
fn a_cache_of_another_model_is_turned_away() {
    let mut cache = open("llama-mha", Kernels::Fast).new_cache(8, LIMIT).expect("tiny");
    let error = open("llama-gqa", Kernels::Fast).forward(&[1], &mut cache, Rows::Last, &Workers::new(1)).expect_err("other sizes");
    assert_eq!(
        error.to_string(),
        "the cache was made for another model: it has 2 layers of 4 kv heads of width 8, this model needs 2 layers of 2 kv heads of width 10; make it with `new_cache`"
    );
}

#[test]
fn a_cache_over_the_limit_is_refused() {
    let error = open("llama-gqa", Kernels::Fast).new_cache(usize::MAX, LIMIT).expect_err("no such memory");
    assert!(error.to_string().contains("are allowed"), "{error}");
}
