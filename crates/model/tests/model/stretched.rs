//! Phi-3's rotation: a part of each head, stretched by lists of the file, chosen by the size of the cache.

use glassbox_mechanisms::position::Scaling;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::blueprint::{Rotation, Window};
use glassbox_model::{Model, Rows};

use crate::edited::Edited;
use crate::planted::check;
use crate::tiny::{LIMIT, golden, logits, open};

fn with_settings(name: &str, settings: &str) -> Edited {
    let mut edited = Edited::of(name);
    edited.settings = serde_json::from_str(settings).expect("the test writes JSON");
    edited
}

fn rotation(model: &Model) -> (usize, Scaling) {
    match &model.blueprint().layers[0].rotation {
        Rotation::Rotary { width, scaling, .. } => (*width, scaling.clone()),
        Rotation::None => panic!("not rotated"),
    }
}

#[test]
fn phi_3_says_its_stretching_in_the_old_place_under_three_names() {
    let ids = golden("phi3-long").ids().to_vec();
    for name in ["su", "longrope", "yarn"] {
        let settings = r#"{
            "_name_or_path": "x", "architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
            "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"},
            "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 2, "full_attn_mod": 1, "hidden_act": "silu", "hidden_size": 48,
            "initializer_range": 0.02, "intermediate_size": 26, "interpolate_factor": 1, "lm_head_bias": false,
            "max_position_embeddings": 128, "mlp_bias": false, "model_type": "phi3", "num_attention_heads": 3, "num_hidden_layers": 2,
            "num_key_value_heads": 1, "original_max_position_embeddings": 16, "pad_token_id": 0, "partial_rotary_factor": 0.75,
            "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
            "rope_scaling": {"long_factor": [1.0, 1.5, 2.0, 4.5, 9.0, 21.0], "short_factor": [1.0, 1.05, 1.1, 1.3, 1.7, 2.5], "type": "NAME"},
            "rope_theta": 10000.0, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
            "transformers_version": "4.45.0", "use_cache": true, "vocab_size": 55
        }"#;
        let model = with_settings("phi3-long", &settings.replace("NAME", name)).open();
        assert_eq!(logits(&model, &ids), logits(&open("phi3-long", Kernels::Fast), &ids), "{name}");
    }
}

#[test]
fn a_part_of_each_head_turns_and_windows_are_used() {
    let (long, short) = (open("phi3-long", Kernels::Fast), open("phi3-short", Kernels::Fast));
    assert_eq!((rotation(&long).0, rotation(&short).0), (12, 12));
    assert_eq!(short.blueprint().layers[1].window, Window::Last(7));
    check("phi3-short", &Edited::of("phi3-short").set("sliding_window", "8"), "blocks.0.attn.scores");
    for (factor, found) in [("0.7", "0.7"), ("0.05", "0.05"), ("1.5", "1.5")] {
        let message = Edited::of("phi3-long").set("rope_parameters", "null").set("partial_rotary_factor", factor).refusal();
        assert!(message.contains("`partial_rotary_factor`") && message.contains(found), "{message}");
    }
    let message = Edited::of("phi3-long").set("partial_rotary_factor", "1.0").refusal();
    assert!(message.contains("`partial_rotary_factor`: wanted 0.75"), "{message}");
}

#[test]
fn the_long_list_is_used_where_the_cache_exceeds_the_original_context_from_the_first_token_on() {
    let model = open("phi3-long", Kernels::Fast);
    let golden = golden("phi3-long");
    let ids = &golden.ids()[..12];
    let run = |capacity: usize, piece: usize| {
        let mut cache = model.new_cache(capacity, LIMIT).expect("tiny");
        let pieces = ids.chunks(piece).map(|ids| model.forward(ids, &mut cache, Rows::All, &Workers::new(1)).expect("sound ids"));
        pieces.flatten().collect::<Vec<f32>>()
    };
    assert_eq!(run(12, 12), run(16, 1));
    assert_ne!(run(16, 12), run(17, 12));
    assert_eq!(run(17, 12), run(128, 1));
}

#[test]
fn lists_of_another_length_and_two_original_contexts_are_refused() {
    let with = |json: &str| Edited::of("phi3-long").set("rope_parameters", json).refusal();
    let lists = r#""short_factor": [1, 1, 1, 1, 1, 1], "long_factor": [2, 2, 2, 2, 2, 2]"#;
    let message = with(&format!(r#"{{"rope_type": "longrope", {lists}}}"#));
    assert!(message.contains("`short_factor` should hold 8 numbers (pair), found 6"), "{message}");
    let message =
        with(&format!(r#"{{"rope_type": "longrope", "original_max_position_embeddings": 32, "partial_rotary_factor": 0.75, {lists}}}"#));
    assert!(message.contains("`rope_parameters.original_max_position_embeddings`: wanted 16"), "{message}");
    let message = with(r#"{"rope_type": "longrope", "partial_rotary_factor": 0.75, "short_factor": [1, 1, 1, 1, 1, 1]}"#);
    assert!(message.contains("`rope_parameters.long_factor`: wanted a list of numbers"), "{message}");
}
