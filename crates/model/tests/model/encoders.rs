//! Models that turn a text into vectors.

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Encoded, Encoder, Model, explain};
use glassbox_tensor::View;
use glassbox_testkit::{Closeness, Divergence, Golden, GoldenWalk};

use crate::edited::Edited;
use crate::tiny::{Walker, fixtures, folder, golden};

fn encoders() -> Vec<String> {
    fixtures().into_iter().filter(|name| name.starts_with("bert")).collect()
}

fn open(name: &str, kernels: Kernels) -> Encoder {
    let checkpoint = Checkpoint::open(folder(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    Encoder::open(&checkpoint, kernels).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn open_twin(name: &str) -> Encoder {
    let checkpoint = Checkpoint::open(folder(name).join("model.gguf")).unwrap_or_else(|error| panic!("{name}: {error}"));
    Encoder::open(&checkpoint, Kernels::Fast).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The kind of the sentence of each token of the prompt.
fn types(golden: &Golden) -> Vec<u32> {
    golden.values("token_types").expect("the reference has them").iter().map(|kind| *kind as u32).collect()
}

fn encode(encoder: &Encoder, golden: &Golden, threads: usize) -> Encoded {
    encoder.encode(golden.ids(), Some(&types(golden)), &Workers::new(threads)).expect("sound ids")
}

fn walk(encoder: &Encoder, golden: &Golden) -> Result<Closeness, Divergence> {
    let types = types(golden);
    let mut walker = Walker(GoldenWalk::new(golden));
    let encoded = encoder.encode_observed(golden.ids(), Some(&types), &Workers::new(1), &mut walker).expect("sound ids");
    let pooled = encoded.pooled.as_deref().or(golden.values("pooled")).expect("one of the two"); // a GGUF file has none
    walker.0.see("pooled", 0, View::new(&["d_model"], &[pooled.len()], pooled).expect("sizes fit"));
    let types: Vec<f32> = types.iter().map(|kind| *kind as f32).collect();
    walker.0.see("token_types", 0, View::new(&["token"], &[types.len()], &types).expect("sizes fit"));
    walker.0.finish()
}

#[test]
fn every_encoder_agrees_with_transformers_at_every_site() {
    for name in encoders() {
        let golden = golden(&name);
        for kernels in [Kernels::Textbook, Kernels::Fast] {
            let closeness = walk(&open(&name, kernels), &golden).unwrap_or_else(|divergence| panic!("{name}, {kernels:?}: {divergence}"));
            assert_eq!(closeness.sites, golden.sites().count(), "{name}");
            assert!(closeness.distance["attn.pattern"] <= 1e-5 && closeness.distance["pooled"] <= 1e-5, "{:?}", closeness.distance);
        }
    }
}

#[test]
fn both_files_of_an_encoder_give_the_same_vectors() {
    let golden = golden("bert");
    walk(&open_twin("bert"), &golden).expect("the same weights");
    let (folder, twin) = (encode(&open("bert", Kernels::Fast), &golden, 1), encode(&open_twin("bert"), &golden, 1));
    assert_eq!(folder.vectors, twin.vectors);
    assert_eq!((folder.pooled.is_some(), twin.pooled), (true, None), "the converter leaves the pooler out");
}

#[test]
fn vectors_have_the_same_bits_for_any_number_of_threads_and_watched() {
    for name in encoders() {
        let (encoder, golden) = (open(&name, Kernels::Fast), golden(&name));
        let one = encode(&encoder, &golden, 1);
        for threads in [2, 3, 8] {
            assert_eq!(encode(&encoder, &golden, threads), one, "{name} with {threads} threads");
        }
        let mut walker = Walker(GoldenWalk::new(&golden));
        let watched = encoder.encode_observed(golden.ids(), Some(&types(&golden)), &Workers::new(1), &mut walker).expect("sound ids");
        assert_eq!(watched, one, "{name} watched");
    }
}

#[test]
fn a_text_of_one_sentence_needs_no_types() {
    let encoder = open("bert", Kernels::Fast);
    let workers = Workers::new(1);
    let none = encoder.encode(&[5, 6, 7], None, &workers).expect("sound ids");
    assert_eq!(none, encoder.encode(&[5, 6, 7], Some(&[0, 0, 0]), &workers).expect("sound ids"));
    assert_ne!(none, encoder.encode(&[5, 6, 7], Some(&[0, 1, 1]), &workers).expect("sound ids"));
}

#[test]
fn bl_24_types_default_to_0_whose_row_is_added_all_the_same() {
    let workers = Workers::new(1);
    let plain = open("bert", Kernels::Fast).encode(&[5, 6, 7], None, &workers).expect("sound ids");
    let without = Edited::of("bert").with("embeddings.token_type_embeddings.weight", &[3, 36], 0.0).try_open_encoder();
    let without = without.unwrap_or_else(|error| panic!("{error}")).encode(&[5, 6, 7], None, &workers).expect("sound ids");
    assert_ne!(plain.vectors, without.vectors);
}

#[test]
fn a_later_token_changes_the_vectors_of_earlier_ones() {
    let encoder = open("bert", Kernels::Fast);
    let first = |ids: &[u32]| encoder.encode(ids, None, &Workers::new(1)).expect("sound ids").vectors[..36].to_vec();
    assert_ne!(first(&[5, 6, 7]), first(&[5, 6, 8]));
}

#[test]
fn what_an_encoder_cannot_read_is_turned_away_at_its_door() {
    let encoder = open("bert", Kernels::Fast);
    let refusal =
        |ids: &[u32], types: Option<&[u32]>| encoder.encode(ids, types, &Workers::new(1)).expect_err("must be turned away").to_string();
    assert!(refusal(&[], None).contains("at least one token id"));
    assert!(refusal(&[1, 71], None).contains("token id 71 at position 1"));
    assert!(refusal(&[1; 41], None).contains("reach past the 40 learned positions"));
    assert!(refusal(&[1, 2], Some(&[0])).contains("wanted 2 numbers below 3"));
    assert!(refusal(&[1, 2], Some(&[0, 3])).contains("wanted 2 numbers below 3"));
}

#[test]
fn encoders_and_decoders_are_not_taken_for_one_another() {
    let checkpoint = |name: &str| Checkpoint::open(folder(name)).expect("the fixture is committed");
    let error = Model::open(&checkpoint("bert"), Kernels::Fast).expect_err("no logits").to_string();
    assert!(error.contains("a model of family bert is an encoder, which gives vectors and no logits"), "{error}");
    let error = Encoder::open(&checkpoint("gpt2"), Kernels::Fast).expect_err("no vectors").to_string();
    assert!(error.contains("a model of family gpt2 is a decoder"), "{error}");
}

#[test]
fn bert_is_read_as_published_with_older_names_and_heads_that_are_not_run() {
    let golden = golden("bert");
    let wanted = encode(&open("bert", Kernels::Fast), &golden, 1);
    let older = |name: &str| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        format!("bert.{name}")
    };
    let mut edited =
        Edited::of("bert").renamed(older).with("cls.predictions.bias", &[71], 1.0).with("bert.embeddings.position_ids", &[1, 40], 0.0);
    edited.settings = serde_json::from_str(
        r#"{
        "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": false, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 36, "initializer_range": 0.02, "intermediate_size": 52, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 40, "model_type": "bert", "num_attention_heads": 3, "num_hidden_layers": 2, "pad_token_id": 0,
        "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0", "type_vocab_size": 3, "use_cache": true,
        "vocab_size": 71
    }"#,
    )
    .expect("the test writes JSON");
    let encoder = edited.try_open_encoder().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(encode(&encoder, &golden, 1), wanted);
    for (key, value) in [("position_embedding_type", "\"relative_key\""), ("is_decoder", "true"), ("add_cross_attention", "true")] {
        let message = Edited::of("bert").set(key, value).try_open_encoder().expect_err("not implemented").to_string();
        assert!(message.contains(key), "{message}");
    }
    let without = Edited::of("bert").without("pooler.dense.weight").without("pooler.dense.bias");
    let encoder = without.try_open_encoder().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(encode(&encoder, &golden, 1), Encoded { pooled: None, ..wanted });
}

#[test]
fn no_value_of_any_setting_of_an_encoder_makes_it_panic() {
    let workers = Workers::new(1);
    for key in Edited::of("bert").settings.keys() {
        for value in ["null", "0", "-1", "1", "3", "1e308", "0.5", "18446744073709551615", "\"\"", "true", "[]", "{}"] {
            if let Ok(encoder) = Edited::of("bert").set(key, value).try_open_encoder() {
                let _ = encoder.encode(&[1, 2, 3], None, &workers);
            }
        }
        let _ = Edited::of("bert").unset(key).try_open_encoder();
    }
}

#[test]
fn a_wrong_setting_or_weight_of_an_encoder_is_found_where_it_acts_first() {
    let golden = golden("bert");
    let check = |edited: Edited, first_site: &str| {
        let encoder = edited.try_open_encoder().unwrap_or_else(|error| panic!("{error}"));
        match walk(&encoder, &golden).expect_err("the fault must be seen") {
            Divergence::TooFar { site, .. } => assert_eq!(site, first_site),
            other => panic!("{other}"),
        }
    };
    check(Edited::of("bert").set("hidden_act", "\"gelu_new\""), "blocks.0.ffn.hidden");
    check(Edited::of("bert").set("layer_norm_eps", "0.001"), "embed.out");
    check(Edited::of("bert").with("embeddings.token_type_embeddings.weight", &[3, 36], 0.0), "embed.out");
    check(Edited::of("bert").with("encoder.layer.0.attention.output.LayerNorm.bias", &[36], 0.0), "blocks.0.mid");
    check(Edited::of("bert").with("encoder.layer.1.output.LayerNorm.bias", &[36], 0.0), "blocks.1.out");
    check(Edited::of("bert").with("pooler.dense.bias", &[36], 0.0), "pooled");
}

#[test]
fn the_forward_pass_of_each_encoder_reads_as_before() {
    for name in encoders() {
        insta::assert_snapshot!(name.as_str(), explain(open(&name, Kernels::Fast).blueprint()));
    }
}
