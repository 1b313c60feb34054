//! Families whose scores fall with distance: their published settings, and faults that others shipped.

use glassbox_mechanisms::Kernels;
use glassbox_model::blueprint::{Clamp, Distance};

use crate::edited::Edited;
use crate::planted::check;
use crate::tiny::{golden, logits, open, open_twin, walk};

/// The tensors of a fixture under other settings.
fn with_settings(name: &str, settings: &str) -> Edited {
    let mut edited = Edited::of(name);
    edited.settings = serde_json::from_str(settings).expect("the test writes JSON");
    edited
}

#[test]
fn bloom_has_older_names_for_its_sizes_and_settings_of_its_training_program() {
    let settings = r#"{
        "apply_residual_connection_post_layernorm": false, "attention_dropout": 0.0, "architectures": ["BloomForCausalLM"],
        "attention_softmax_in_fp32": true, "bias_dropout_fusion": true, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3,
        "unk_token_id": 0, "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": true,
        "model_type": "bloom", "n_embed": 36, "n_inner": null, "n_layer": 2, "num_attention_heads": 6, "offset_alibi": 100,
        "pretraining_tp": 1, "seq_length": 2048, "skip_bias_add": true, "skip_bias_add_qkv": false, "slow_but_exact": false,
        "transformers_version": "4.20.0", "use_cache": true, "vocab_size": 59
    }"#;
    let ids = golden("bloom").ids().to_vec();
    assert_eq!(logits(&with_settings("bloom", settings).open(), &ids), logits(&open("bloom", Kernels::Fast), &ids));
    let message = Edited::of("bloom").set("apply_residual_connection_post_layernorm", "true").refusal();
    assert!(message.contains("`apply_residual_connection_post_layernorm`"), "{message}");
}

#[test]
fn mpt_keeps_its_attention_in_a_part_of_its_own() {
    let settings = r#"{
        "architectures": ["MPTForCausalLM"],
        "attn_config": {"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention",
            "attn_uses_sequence_id": false, "clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null},
        "d_model": 24, "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4,
        "init_config": {"emb_init_std": null, "fan_mode": "fan_in", "name": "kaiming_normal_"}, "init_device": "cpu",
        "learned_pos_emb": true, "logit_scale": null, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 3, "n_layers": 2,
        "no_bias": true, "norm_type": "low_precision_layernorm", "resid_pdrop": 0, "tokenizer_name": "EleutherAI/gpt-neox-20b",
        "torch_dtype": "bfloat16", "transformers_version": "4.28.1", "use_cache": false, "verbose": 0, "vocab_size": 57
    }"#;
    let ids = golden("mpt").ids().to_vec();
    assert_eq!(logits(&with_settings("mpt", settings).open(), &ids), logits(&open("mpt", Kernels::Fast), &ids));
}

#[test]
fn bl_20_distance_reaches_the_scores_from_either_file() {
    for name in ["bloom", "mpt"] {
        for model in [open(name, Kernels::Fast), open_twin(name, Kernels::Fast)] {
            assert_eq!(model.blueprint().attention.distance, Distance::Alibi { max_bias: 8.0 });
            walk(&model, &golden(name), usize::MAX).expect("every site agrees");
        }
    }
    // What `transformers` does not read there is refused, because other programs do.
    let message = Edited::of("mpt").set("attn_config", r#"{"alibi_bias_max": 4}"#).refusal();
    assert!(message.contains("`attn_config.alibi_bias_max`: wanted 8, found 4"), "{message}");
    let message = Edited::of("mpt").set("attn_config", r#"{"alibi": false}"#).refusal();
    assert!(message.contains("learned positions of this family"), "{message}");
}

#[test]
fn bounds_and_scales_of_mpt_are_used() {
    assert_eq!(open("mpt-clip", Kernels::Fast).blueprint().attention.clamp, Clamp::At(1.5));
    let with = |json: &str| Edited::of("mpt-clip").set("attn_config", json);
    check("mpt-clip", &with(r#"{"softmax_scale": 0.9}"#), "blocks.0.attn.q");
    check("mpt-clip", &with(r#"{"softmax_scale": 0.9, "clip_qkv": 1.6}"#), "blocks.0.attn.q");
    check("mpt-clip", &with(r#"{"clip_qkv": 1.5}"#), "blocks.0.attn.scores");
    for wrong in ["-1.5", "\"1.5\""] {
        let message = with(&format!(r#"{{"clip_qkv": {wrong}}}"#)).refusal();
        assert!(message.contains("`attn_config.clip_qkv`"), "{message}");
    }
}

#[test]
fn a_norm_of_the_embedding_is_used() {
    let edited = Edited::of("bloom");
    let shape = edited.tensors["transformer.word_embeddings_layernorm.bias"].0.clone();
    check("bloom", &edited.with("transformer.word_embeddings_layernorm.bias", &shape, 0.0), "embed.out");
}
