//! Settings as the published folders of each family write them, with the sizes of a tiny model.

use glassbox_mechanisms::Kernels;
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_model::blueprint::{FeedForward, HeadMatrix, SoftCap, Window};

use crate::edited::{Edited, twin_with_bytes};
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
fn llama_1_has_an_older_name_for_its_context_or_none() {
    assert_eq!(Edited::of("llama-mha").unset("max_position_embeddings").open().blueprint().context, 2048);
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

#[test]
fn gpt_2_may_name_any_activation_that_is_known() {
    let wanted = logits(&open("gpt2", Kernels::Fast), &IDS);
    for (name, activation) in [
        ("gelu_new", Activation::GeluTanh),
        ("gelu_fast", Activation::GeluTanh),
        ("gelu_pytorch_tanh", Activation::GeluTanh),
        ("gelu", Activation::GeluErf),
        ("relu", Activation::Relu),
        ("relu2", Activation::ReluSquared),
        ("swish", Activation::Silu),
    ] {
        let model = Edited::of("gpt2").set("activation_function", &format!("\"{name}\"")).open();
        assert!(matches!(model.blueprint().feed_forward, FeedForward::Plain { activation: found, .. } if found == activation), "{name}");
        assert_eq!(logits(&model, &IDS) == wanted, activation == Activation::GeluTanh, "{name}");
    }
    let absent = Edited::of("gpt2").unset("activation_function").open();
    assert_eq!(logits(&absent, &IDS), wanted, "the documented default");
}

#[test]
fn a_window_of_null_is_none_and_one_that_is_absent_is_the_documented_one() {
    let window = |edited: Edited| edited.open().blueprint().layers[0].window;
    assert_eq!(window(Edited::of("mistral-gqa")), Window::Last(5));
    assert_eq!(window(Edited::of("mistral-gqa").set("sliding_window", "null")), Window::Whole);
    assert_eq!(window(Edited::of("mistral-gqa").unset("sliding_window")), Window::Last(4096));
    for name in ["gemma3-gqa", "gemma2-gqa"] {
        assert_eq!(window(Edited::of(name).unset("sliding_window")), Window::Last(4096), "{name}");
        let message = Edited::of(name).set("sliding_window", "null").refusal();
        let wanted = "key `sliding_window`: wanted a number of tokens, because some layers see a window only, found null";
        assert!(message.contains(wanted), "{message}");
        let whole = r#"["full_attention", "full_attention", "full_attention"]"#;
        assert_eq!(window(Edited::of(name).set("sliding_window", "null").set("layer_types", whole)), Window::Whole, "{name}");
    }
}

#[test]
fn a_bound_of_null_is_none_and_one_that_is_absent_is_the_documented_one() {
    let caps = |edited: Edited| {
        let model = edited.open();
        (model.blueprint().attention.soft_cap, model.blueprint().unembedding.soft_cap)
    };
    let edited = || Edited::of("gemma2-gqa");
    assert_eq!(caps(edited()), (SoftCap::At(3.0), SoftCap::At(7.0)));
    let absent = edited().unset("attn_logit_softcapping").unset("final_logit_softcapping");
    assert_eq!(caps(absent), (SoftCap::At(50.0), SoftCap::At(30.0)));
    let null = edited().set("attn_logit_softcapping", "null").set("final_logit_softcapping", "null");
    assert_eq!(caps(null), (SoftCap::None, SoftCap::None));
}

#[test]
fn a_gemma_3_with_pictures_may_have_a_head_of_its_own_and_newer_names_of_ids() {
    let text = Edited::of("gemma3-gqa");
    let settings = serde_json::to_string(&text.settings).expect("JSON of JSON");
    let parts = |prefix: &str, head: &str| {
        let mut whole = Edited::of("gemma3-gqa").renamed(|name| format!("{prefix}{}", name.trim_start_matches("model.")));
        whole.settings.clear();
        whole
            .with(head, &[67, 32], 0.25)
            .set("model_type", "\"gemma3\"")
            .set("text_config", &settings)
            .set("vision_config", "{}")
            .set("image_token_id", "60")
            .set("boi_token_id", "61")
            .set("eoi_token_id", "62")
    };
    for (prefix, head) in [("language_model.model.", "language_model.lm_head.weight"), ("model.language_model.", "lm_head.weight")] {
        let mut edited = parts(prefix, head).set("tie_word_embeddings", "false");
        let inside = edited.settings["text_config"].as_object_mut().expect("an object");
        inside.remove("tie_word_embeddings");
        let model = edited.open();
        assert_eq!(model.blueprint().unembedding.head, HeadMatrix::Own, "{head}");
        assert_ne!(logits(&model, &IDS), logits(&open("gemma3-gqa", Kernels::Fast), &IDS), "{head}");
        let message = parts(prefix, head).refusal();
        assert!(message.contains(&format!("`{head}` differs from it")), "{message}");
    }
}

#[test]
fn the_oldest_gguf_files_stretch_their_rotation_under_another_key() {
    // The fixture says `linear` and a factor; here its type becomes a remark, and its factor goes under the older key.
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let kind = [text("llama.rope.scaling.type"), 8_u32.to_le_bytes().to_vec(), text("linear")].concat();
    let remark = [text("general.a_remark_that_is_as_long_as"), 6_u32.to_le_bytes().to_vec(), 1_f32.to_le_bytes().to_vec()].concat();
    let grown = remark.len() - kind.len();
    assert_eq!(grown, "llama.rope.scaling.factor".len() - "llama.rope.scale_linear".len());
    let old = twin_with_bytes("llama-biased", &[(kind, remark), (text("llama.rope.scaling.factor"), text("llama.rope.scale_linear"))]);
    let old = old.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(logits(&old, &IDS), logits(&open("llama-biased", Kernels::Fast), &IDS));
}

#[test]
fn mistral_and_qwen3_are_read_as_published() {
    let settings = r#"{
        "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "head_dim": 10, "hidden_act": "silu", "hidden_size": 36,
        "initializer_range": 0.02, "intermediate_size": 44, "max_position_embeddings": 32768, "model_type": "mistral",
        "num_attention_heads": 6, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "sliding_window": 5, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.34.0.dev0",
        "use_cache": true, "vocab_size": 61
    }"#;
    assert_eq!(logits(&with_settings("mistral-gqa", settings).open(), &IDS), logits(&open("mistral-gqa", Kernels::Fast), &IDS));
    let settings = r#"{
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
        "head_dim": 10, "hidden_act": "silu", "hidden_size": 28, "initializer_range": 0.02, "intermediate_size": 44,
        "max_position_embeddings": 40960, "max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 6, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
        "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
        "use_sliding_window": false, "vocab_size": 59
    }"#;
    assert_eq!(logits(&with_settings("qwen3-gqa", settings).open(), &IDS), logits(&open("qwen3-gqa", Kernels::Fast), &IDS));
    let message = with_settings("qwen3-gqa", settings).unset("head_dim").refusal();
    assert!(message.contains("head*d_head=768"), "without a width it is 128, whatever d_model / heads is: {message}");
}

#[test]
fn the_first_and_second_gemma_are_read_as_published() {
    let settings = r#"{
        "architectures": ["GemmaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 1,
        "head_dim": 10, "hidden_act": "gelu", "hidden_activation": null, "hidden_size": 28, "initializer_range": 0.02,
        "intermediate_size": 36, "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 1, "pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0,
        "torch_dtype": "bfloat16", "transformers_version": "4.38.0.dev0", "use_cache": true, "vocab_size": 67
    }"#;
    assert_eq!(logits(&with_settings("gemma-mqa", settings).open(), &IDS), logits(&open("gemma-mqa", Kernels::Fast), &IDS));
    let settings = r#"{
        "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "attn_logit_softcapping": 3.0,
        "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": [1, 107], "final_logit_softcapping": 7.0, "head_dim": 10,
        "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 28, "initializer_range": 0.02,
        "intermediate_size": 36, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 4, "num_hidden_layers": 3,
        "num_key_value_heads": 2, "pad_token_id": 0, "query_pre_attn_scalar": 10, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
        "sliding_window": 5, "sliding_window_size": 5, "torch_dtype": "float32", "transformers_version": "4.42.4", "use_cache": true,
        "vocab_size": 67
    }"#;
    assert_eq!(logits(&with_settings("gemma2-gqa", settings).open(), &IDS), logits(&open("gemma2-gqa", Kernels::Fast), &IDS));
}

#[test]
fn olmo_2_and_pythia_are_read_as_published() {
    let settings = r#"{
        "architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": 36, "initializer_range": 0.02, "intermediate_size": 44, "max_position_embeddings": 4096, "model_type": "olmo2",
        "num_attention_heads": 6, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 0, "rms_norm_eps": 1e-06,
        "rope_scaling": null, "rope_theta": 500000, "tie_word_embeddings": false, "torch_dtype": "float32",
        "transformers_version": "4.47.0.dev0", "use_cache": false, "vocab_size": 59
    }"#;
    assert_eq!(logits(&with_settings("olmo2-gqa", settings).open(), &IDS), logits(&open("olmo2-gqa", Kernels::Fast), &IDS));
    let settings = r#"{
        "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "classifier_dropout": 0.1, "eos_token_id": 0, "hidden_act": "gelu",
        "hidden_size": 36, "initializer_range": 0.02, "intermediate_size": 52, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
        "model_type": "gpt_neox", "num_attention_heads": 3, "num_hidden_layers": 2, "rotary_emb_base": 10000, "rotary_pct": 0.34,
        "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.24.0", "use_cache": true,
        "use_parallel_residual": true, "vocab_size": 63
    }"#;
    let edited = with_settings("gpt_neox-parallel", settings)
        .with("gpt_neox.layers.0.attention.bias", &[1, 1, 8, 8], 1.0)
        .with("gpt_neox.layers.1.attention.masked_bias", &[], -1e9)
        .with("gpt_neox.layers.1.attention.rotary_emb.inv_freq", &[2], 1.0);
    let wanted = logits(&open("gpt_neox-parallel", Kernels::Fast), &IDS);
    assert_eq!(logits(&edited.open(), &IDS), wanted);
    let message = edited.unset("rotary_pct").unset("rotary_emb_base").refusal();
    assert!(
        message.contains("wanted a part of the 12 channels of a head that makes pairs, found 0.25"),
        "the documented default: {message}"
    );
}

#[test]
fn the_minimal_decoder_has_the_logits_of_its_hundred_lines() {
    let model = open("minimal", Kernels::Fast);
    let logits = logits(&model, &[10, 42, 7, 128, 200]);
    let last = &logits[logits.len() - 256..];
    let mut order: Vec<usize> = (0..256).collect();
    order.sort_by(|a, b| last[*b].total_cmp(&last[*a]));
    let best = [(13, 0.443_411), (205, 0.413_536), (45, 0.345_047), (168, 0.342_848), (222, 0.297_676)];
    for ((id, wanted), found) in best.into_iter().zip(order) {
        assert_eq!(found, id);
        assert!((last[id] - wanted).abs() < 1e-5, "{id}: {}", last[id]);
    }
}
