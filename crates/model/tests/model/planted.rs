//! Faults planted on purpose: the golden walk must name the first site that each of them reaches.

use glassbox_testkit::Divergence;

use crate::edited::Edited;
use crate::tiny::{golden, walk};

#[track_caller]
pub(crate) fn check(name: &str, edited: &Edited, first_site: &str) {
    let divergence = walk(&edited.open(), &golden(name), usize::MAX).expect_err("the fault must be seen");
    match &divergence {
        Divergence::TooFar { site, .. } => assert_eq!(site, first_site, "{divergence}"),
        other => panic!("{name}: {other}"),
    }
}

#[test]
fn a_wrong_setting_is_found_where_it_acts_first() {
    let theta = r#"{"rope_type": "default", "rope_theta": 9000.0}"#;
    check("llama-gqa", &Edited::of("llama-gqa").set("rope_parameters", theta), "blocks.0.attn.q_rot");
    check("llama-gqa", &Edited::of("llama-gqa").set("rms_norm_eps", "0.001"), "blocks.0.norm_1.out");
    check("llama-biased", &Edited::of("llama-biased").set("rope_parameters", theta), "blocks.0.attn.q_rot");
    check("qwen2-window", &Edited::of("qwen2-window").set("sliding_window", "7"), "blocks.1.attn.scores");
    check("gemma3-gqa", &Edited::of("gemma3-gqa").set("query_pre_attn_scalar", "12"), "blocks.0.attn.scores");
    let all_local = r#"["sliding_attention", "sliding_attention", "sliding_attention"]"#;
    check("gemma3-gqa", &Edited::of("gemma3-gqa").set("layer_types", all_local), "blocks.2.attn.q_rot");
    check("gemma3-gqa", &Edited::of("gemma3-gqa").set("final_logit_softcapping", "30.0"), "logits");
    check("mistral-gqa", &Edited::of("mistral-gqa").set("sliding_window", "6"), "blocks.0.attn.scores");
    check("mistral-whole", &Edited::of("mistral-whole").set("hidden_act", "\"relu\""), "blocks.0.ffn.hidden");
    check("gemma2-gqa", &Edited::of("gemma2-gqa").set("attn_logit_softcapping", "3.1"), "blocks.0.attn.scores");
    let turning = r#"{"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}"#;
    check("gpt_neox-parallel", &Edited::of("gpt_neox-parallel").set("rope_parameters", turning), "blocks.0.attn.q_rot");
    check("gpt_neox-parallel", &Edited::of("gpt_neox-parallel").set("use_parallel_residual", "false"), "blocks.0.norm_2.out");
    check("gpt_neox-serial", &Edited::of("gpt_neox-serial").set("hidden_act", "\"gelu\""), "blocks.0.ffn.hidden");
    check("gemma2-gqa", &Edited::of("gemma2-gqa").set("final_logit_softcapping", "null"), "logits");
}

#[test]
fn a_wrong_weight_is_found_where_it_acts_first() {
    let zeroed = |name: &str, tensor: &str| {
        let edited = Edited::of(name);
        let shape = edited.tensors[tensor].0.clone();
        edited.with(tensor, &shape, 0.0)
    };
    check("qwen2-gqa", &zeroed("qwen2-gqa", "model.layers.1.self_attn.k_proj.bias"), "blocks.1.attn.k");
    check("gemma3-gqa", &zeroed("gemma3-gqa", "model.layers.0.self_attn.q_norm.weight"), "blocks.0.attn.q_rot");
    check("gemma3-gqa", &zeroed("gemma3-gqa", "model.layers.0.post_attention_layernorm.weight"), "blocks.0.attn.added");
    check("gpt2", &zeroed("gpt2", "transformer.wpe.weight"), "embed.out");
    check("gpt2", &zeroed("gpt2", "transformer.h.1.mlp.c_proj.bias"), "blocks.1.ffn.out");
    check("gpt2", &zeroed("gpt2", "transformer.ln_f.bias"), "norm.out");
    let exchanged = Edited::of("llama-gqa")
        .copied("model.layers.0.mlp.gate_proj.weight", "kept")
        .copied("model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight")
        .copied("kept", "model.layers.0.mlp.up_proj.weight")
        .without("kept");
    check("llama-gqa", &exchanged, "blocks.0.ffn.hidden");
}
