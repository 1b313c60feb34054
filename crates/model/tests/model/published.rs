//! Settings as the published folders of each family write them, with the sizes of a tiny model.

use glassbox_mechanisms::Kernels;
use glassbox_model::blueprint::{HeadMatrix, Window};

use crate::edited::Edited;
use crate::tiny::{logits, open};

const IDS: [u32; 12] = [1, 5, 9, 33, 2, 40, 17, 8, 56, 3, 21, 30];

/// The tensors of a fixture under other settings.
fn with_settings(name: &str, settings: &str) -> Edited {
    let mut edited = Edited::of(name);
    edited.settings = serde_json::from_str(settings).expect("the test writes JSON");
    edited
}

#[test]
fn llama_2_says_neither_a_rotary_base_nor_a_width_of_heads() {
    let settings = r#"{
        "_name_or_path": "x", "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 44, "max_position_embeddings": 4096, "model_type": "llama",
        "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "pad_token_id": 0, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16",
        "transformers_version": "4.31.0.dev0", "use_cache": true, "vocab_size": 61
    }"#;
    assert_eq!(logits(&with_settings("llama-mha", settings).open(), &IDS), logits(&open("llama-mha", Kernels::Fast), &IDS));
}

#[test]
fn llama_3_2_stretches_its_rotation_in_the_old_place() {
    let settings = r#"{
        "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1,
        "eos_token_id": [2, 3], "head_dim": 16, "hidden_act": "silu", "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 44,
        "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 64, "rope_type": "llama3"},
        "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0",
        "use_cache": true, "vocab_size": 61
    }"#;
    assert_eq!(logits(&with_settings("llama-scaled", settings).open(), &IDS), logits(&open("llama-scaled", Kernels::Fast), &IDS));
}

#[test]
fn llama_1_has_an_older_name_for_its_context() {
    let edited = Edited::of("llama-mha").set("max_sequence_length", "2048");
    assert_eq!(logits(&edited.open(), &IDS), logits(&open("llama-mha", Kernels::Fast), &IDS));
}

#[test]
fn a_program_for_training_says_what_it_repaired() {
    for name in ["llama-mha", "qwen2-gqa", "gemma3-gqa"] {
        let edited = Edited::of(name).set("unsloth_fixed", "true").set("unsloth_version", "\"2025.3.19\"");
        assert_eq!(logits(&edited.open(), &IDS), logits(&open(name, Kernels::Fast), &IDS));
    }
}

#[test]
fn smollm2_says_that_it_is_a_llama_and_does_not_interleave() {
    let settings = r#"{
        "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0,
        "hidden_act": "silu", "hidden_size": 32, "initializer_range": 0.041666666666666664, "intermediate_size": 44, "is_llama_config": true,
        "max_position_embeddings": 8192, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 4, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
        "rope_theta": 10000, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "transformers_version": "4.40.1", "use_cache": true, "vocab_size": 61
    }"#;
    assert_eq!(logits(&with_settings("llama-mha", settings).open(), &IDS), logits(&open("llama-mha", Kernels::Fast), &IDS));
}

#[test]
fn qwen2_5_names_a_window_that_it_does_not_use() {
    let settings = r#"{
        "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": 36, "initializer_range": 0.02, "intermediate_size": 44, "max_position_embeddings": 32768, "max_window_layers": 1,
        "model_type": "qwen2", "num_attention_heads": 6, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0, "sliding_window": 4, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.43.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 59
    }"#;
    assert_eq!(logits(&with_settings("qwen2-gqa", settings).open(), &IDS), logits(&open("qwen2-gqa", Kernels::Fast), &IDS));
}

#[test]
fn gemma_3_says_its_pattern_as_a_number_or_layer_by_layer() {
    let settings = r#"{
        "architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "attn_logit_softcapping": null,
        "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": [1, 6], "final_logit_softcapping": null, "head_dim": 12,
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 40,
        "max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 3,
        "num_key_value_heads": 2, "pad_token_id": 0, "query_pre_attn_scalar": 20, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1000000, "sliding_window": 5, "sliding_window_pattern": 3,
        "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "use_cache": true, "vocab_size": 67
    }"#;
    let wanted = logits(&open("gemma3-gqa", Kernels::Fast), &IDS);
    assert_eq!(logits(&with_settings("gemma3-gqa", settings).open(), &IDS), wanted);
    let by_layer = with_settings("gemma3-gqa", settings)
        .unset("sliding_window_pattern")
        .set("_sliding_window_pattern", "6")
        .set("use_bidirectional_attention", "false")
        .set("layer_types", r#"["sliding_attention", "sliding_attention", "full_attention"]"#);
    assert_eq!(logits(&by_layer.open(), &IDS), wanted);
}

#[test]
fn gemma_3_leaves_out_what_equals_the_defaults_of_its_definition() {
    let settings = r#"{"model_type": "gemma3_text", "hidden_size": 24, "intermediate_size": 28, "num_hidden_layers": 6, "num_attention_heads": 3,
        "num_key_value_heads": 1, "head_dim": 8, "query_pre_attn_scalar": 8, "vocab_size": 67, "sliding_window": 5}"#;
    let blueprint = with_settings("gemma3-mqa", settings).open().blueprint().clone();
    let windows: Vec<Window> = blueprint.layers.iter().map(|layer| layer.window).collect();
    let local = Window::Last(5);
    assert_eq!(windows, [local, local, local, local, local, Window::Whole]);
    assert_eq!(blueprint.unembedding.head, HeadMatrix::TiedToEmbedding);
    assert_eq!(blueprint.context, 131_072);
}

#[test]
fn gpt_2_names_heads_that_are_not_run() {
    let settings = r#"{
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
        "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 64, "n_embd": 32,
        "n_head": 4, "n_inner": 52, "n_layer": 2, "n_positions": 64, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
        "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
        "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 63
    }"#;
    assert_eq!(logits(&with_settings("gpt2", settings).open(), &IDS), logits(&open("gpt2", Kernels::Fast), &IDS));
}

#[test]
fn distilgpt2_and_the_larger_gpt_2_keep_keys_of_older_programs() {
    let wanted = logits(&open("gpt2", Kernels::Fast), &IDS);
    let edited = Edited::of("gpt2").set("_num_labels", "1").set("output_past", "true");
    assert_eq!(logits(&edited.open(), &IDS), wanted);
    let edited = Edited::of("gpt2").set("n_special", "0").set("predict_special_tokens", "true");
    assert_eq!(logits(&edited.open(), &IDS), wanted);
    let message = Edited::of("gpt2").set("n_special", "3").refusal();
    assert!(message.contains("`n_special`: wanted 0, found 3"), "{message}");
}
