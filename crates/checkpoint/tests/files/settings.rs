//! The strict reader: nothing unread, nothing guessed.

use glassbox_checkpoint::{Allowance, Expected};

use crate::write::{gguf, kv_text, kv_u32, open_config, open_gguf, refused};

#[test]
fn numbers_may_be_written_with_an_exponent_but_not_as_texts() {
    for written in ["1e6", "1000000", "1000000.0", "1.0E+6"] {
        let settings = open_config(&format!(r#"{{"rope_theta": {written}}}"#)).expect("opens").settings();
        assert_eq!(settings.f64("rope_theta").expect("a number"), 1e6);
        assert_eq!(settings.usize("rope_theta").expect("a whole number"), 1_000_000);
    }
    let settings = open_config(r#"{"rope_theta": "1000000"}"#).expect("opens").settings();
    let parts = ["folder/config.json", "key `rope_theta`", "a finite number", "the text \"1000000\""];
    refused(settings.f64("rope_theta"), "setting", &parts);
    refused(settings.usize("rope_theta"), "setting", &["a whole number", "the text \"1000000\""]);
}

#[test]
fn null_is_absent() {
    let settings = open_config(r#"{"head_dim": null, "rope_scaling": null}"#).expect("opens").settings();
    assert_eq!(settings.optional_usize("head_dim").expect("absent"), None);
    assert!(settings.section("rope_scaling").expect("absent").is_none());
    assert!(!settings.contains("head_dim"));
    refused(settings.usize("head_dim"), "setting", &["key `head_dim`", "no such key"]);
    open_config(r#"{"unheard_of": null}"#).expect("opens").settings().finish().expect("null needs no reader");
}

#[test]
fn a_nested_object_is_read_as_a_section_and_as_a_path() {
    let config = r#"{"rope_scaling": {"type": "linear", "factor": 2, "deep": {"er": true}}}"#;
    let settings = open_config(config).expect("opens").settings();
    let scaling = settings.section("rope_scaling").expect("an object").expect("there");
    assert_eq!(scaling.str("type").expect("a text"), "linear");
    assert_eq!(settings.f64("rope_scaling.factor").expect("a number"), 2.0);
    refused(settings.finish(), "unread", &["`rope_scaling.deep.er` = true"]);
    let deep = scaling.section("deep").expect("an object").expect("there");
    assert!(deep.bool("er").expect("a truth value"));
    assert!(scaling.finish().expect("all was read").is_empty());
    refused(scaling.usize("factors"), "setting", &["key `rope_scaling.factors`"]);
    refused(scaling.usize("deep"), "setting", &["key `rope_scaling.deep`", "found an object"]);
    refused(settings.section("rope_scaling.factor"), "setting", &["an object", "found 2"]);
}

#[test]
fn an_empty_object_is_a_section_without_keys() {
    let settings = open_config(r#"{"rope_parameters": {}}"#).expect("opens").settings();
    refused(settings.finish(), "unread", &["`rope_parameters` = {}"]);
    assert_eq!(settings.section("rope_parameters").expect("an object").expect("there").keys().count(), 0);
    settings.finish().expect("the section was asked for");
}

#[test]
fn a_setting_that_nothing_reads_is_refused_with_its_value_and_the_way_to_allow_it() {
    let settings = open_config(r#"{"hidden_size": 8, "residual_multiplier": 0.22, "mup": {"scale": 3}}"#).expect("opens").settings();
    settings.usize("hidden_size").expect("there");
    let parts = [
        "folder/config.json",
        "2 settings that nothing here reads",
        "`residual_multiplier` = 0.22",
        "`mup.scale` = 3",
        "--allow-unread mup.scale=REASON",
    ];
    refused(settings.finish(), "unread", &parts);
}

#[test]
fn a_misspelt_key_is_reported_beside_the_one_that_was_asked_for() {
    let settings = open_config(r#"{"rope_thta": 10000.0}"#).expect("opens").settings();
    assert_eq!(settings.optional_f64("rope_theta").expect("absent"), None);
    refused(settings.finish(), "unread", &["`rope_thta` = 10000.0 (did you mean `rope_theta`?)"]);
    refused(settings.f64("rope_theta"), "setting", &["`rope_theta`", "the file has `rope_thta`"]);
}

#[test]
fn an_ignored_key_covers_what_is_below_it_and_keeps_its_reason() {
    let settings = open_config(r#"{"vision": {"a": 1, "b": {"c": 2}}, "visionary": 1, "aux_x": 1, "aux_y": 2}"#).expect("opens").settings();
    settings.ignore("vision", "pictures are not read");
    settings.ignore_prefix("aux_", "auxiliary losses");
    refused(settings.finish(), "unread", &["`visionary` = 1"]);
    settings.usize("visionary").expect("there");
    let ignored = settings.finish().expect("all else is ignored");
    let pairs: Vec<(&str, &str)> = ignored.iter().map(|setting| (setting.key.as_str(), setting.reason.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("aux_x", "auxiliary losses"),
            ("aux_y", "auxiliary losses"),
            ("vision.a", "pictures are not read"),
            ("vision.b.c", "pictures are not read")
        ]
    );
    assert!(ignored.iter().all(|setting| !setting.allowed_by_user));
}

#[test]
fn a_key_that_the_user_allows_is_recorded_with_the_reason() {
    let allowance = Allowance { key: "mup".to_owned(), reason: "scales are folded into the weights".to_owned() };
    let settings = open_config(r#"{"mup": {"scale": 3}}"#).expect("opens").allow_unread(vec![allowance]).settings();
    let ignored = settings.finish().expect("allowed");
    assert_eq!((ignored[0].key.as_str(), ignored[0].value.as_str()), ("mup.scale", "3"));
    assert!(ignored[0].allowed_by_user && ignored[0].reason.contains("folded"));
}

#[test]
fn a_value_that_is_not_implemented_is_refused_with_the_reason() {
    let why = "running it with another activation would give wrong numbers";
    let check = |config: &str| open_config(config).expect("opens").settings().must_be("hidden_act", &[Expected::Text("silu")], why);
    check(r#"{"hidden_act": "silu"}"#).expect("allowed");
    check(r#"{"hidden_act": null}"#).expect("absent");
    check("{}").expect("absent");
    refused(check(r#"{"hidden_act": "gelu"}"#), "unsupported", &["key `hidden_act`", "wanted \"silu\"", "the text \"gelu\"", why]);
    refused(check(r#"{"hidden_act": {"name": "silu"}}"#), "unsupported", &["an object"]);
}

#[test]
fn allowed_values_are_compared_by_value_and_not_by_spelling() {
    let settings = open_config(r#"{"a": 1.0, "b": 2, "c": false, "d": [], "e": {}, "f": 0.5}"#).expect("opens").settings();
    settings.must_be("a", &[Expected::Integer(1)], "").expect("equal");
    settings.must_be("b", &[Expected::Float(2.0)], "").expect("equal");
    settings.must_be("c", &[Expected::Integer(0), Expected::Bool(false)], "").expect("equal");
    settings.must_be("d", &[Expected::Empty], "").expect("equal");
    settings.must_be("e", &[Expected::Empty], "").expect("equal");
    refused(settings.must_be("f", &[Expected::Absent], "cannot"), "unsupported", &["no such key", "found 0.5", "cannot"]);
    refused(settings.must_be("c", &[Expected::Integer(0)], ""), "unsupported", &["found false"]);
}

#[test]
fn types_are_not_mixed_up() {
    let settings = open_config(r#"{"n": 1, "x": 0.5, "t": "a", "b": true, "l": [1, "a"], "big": 1e300}"#).expect("opens").settings();
    refused(settings.bool("n"), "setting", &["true or false", "found 1"]);
    refused(settings.usize("x"), "setting", &["found 0.5"]);
    refused(settings.usize("b"), "setting", &["found true"]);
    refused(settings.usize("big"), "setting", &["found 1e300"]);
    refused(settings.f64("t"), "setting", &["the text \"a\""]);
    refused(settings.str("n"), "setting", &["a text", "found 1"]);
    refused(settings.optional_usize_list("l"), "setting", &["[1, the text \"a\"]"]);
    refused(settings.optional_str_list("n"), "setting", &["a list of texts", "found 1"]);
}

#[test]
fn what_transformers_writes_into_every_configuration_is_ignored_with_reasons() {
    let config = r#"{"architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "dtype": "bfloat16", "use_cache": true,
        "transformers_version": "5.24.0", "_name_or_path": "x", "bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": null,
        "attention_dropout": 0.0, "initializer_range": 0.02, "id2label": {"0": "LABEL_0"}, "pruned_heads": {}, "top_k": 50,
        "is_encoder_decoder": false, "add_cross_attention": false, "chunk_size_feed_forward": 0, "quantization_config": null,
        "text_config": {"use_cache": true, "dtype": "bfloat16"}}"#;
    let ignored = open_config(config).expect("opens").settings().finish().expect("all harmless");
    assert!(ignored.len() >= 14 && ignored.iter().all(|setting| !setting.reason.is_empty()), "{ignored:?}");
}

#[test]
fn packed_weights_and_code_in_the_model_are_refused() {
    let finish = |config: &str| open_config(config).expect("opens").settings().finish();
    refused(
        finish(r#"{"quantization_config": {"quant_method": "gptq", "bits": 4}}"#),
        "unsupported",
        &["quantization_config", "unquantised"],
    );
    refused(finish(r#"{"auto_map": {"AutoModel": "modeling_x.X"}}"#), "unsupported", &["auto_map", "Python code"]);
    refused(finish(r#"{"is_encoder_decoder": true}"#), "unsupported", &["is_encoder_decoder"]);
    refused(finish(r#"{"pruned_heads": {"0": [1]}}"#), "unsupported", &["pruned_heads"]);
}

#[test]
fn metadata_for_people_are_ignored_and_the_architecture_is_not() {
    let keys = [
        kv_text("general.architecture", "llama"),
        kv_text("general.name", "x"),
        kv_u32("llama.block_count", 2),
        kv_u32("general.file_type", 15),
    ];
    let settings = open_gguf(&gguf(&keys, &[], 32, b"")).expect("opens").settings();
    refused(settings.finish(), "unread", &["`general.architecture`", "`llama.block_count` = 2"]);
    let llama = settings.section(settings.str("general.architecture").expect("there")).expect("keys").expect("there");
    assert_eq!(llama.usize("block_count").expect("there"), 2);
    assert_eq!(settings.finish().expect("all read or harmless").len(), 2);
}

#[test]
fn two_readers_of_one_checkpoint_do_not_share_their_marks() {
    let checkpoint = open_config(r#"{"a": 1}"#).expect("opens");
    checkpoint.settings().usize("a").expect("there");
    refused(checkpoint.settings().finish(), "unread", &["`a` = 1"]);
}

#[test]
fn a_message_about_a_monstrous_key_stays_short() {
    let key = "k".repeat(1_000_000);
    let error = open_config(&format!(r#"{{"{key}": "{key}"}}"#)).expect("opens").settings().finish().expect_err("unread");
    assert!(error.to_string().len() < 1_000);
}

#[test]
fn a_message_about_a_thousand_keys_says_how_many_it_leaves_out() {
    let keys: Vec<String> = (0..1_000).map(|key| format!(r#""k{key}": 1"#)).collect();
    let settings = open_config(&format!("{{{}}}", keys.join(","))).expect("opens").settings();
    refused(settings.finish(), "unread", &["1000 settings", "and 970 more"]);
}

#[test]
fn keys_whose_paths_would_take_the_square_of_the_file_are_refused() {
    let leaves: Vec<String> = (0..100_000).map(|leaf| format!(r#""{leaf}":0"#)).collect();
    let config = format!(r#"{{"{}": {{{}}}}}"#, "k".repeat(1_000_000), leaves.join(","));
    refused(open_config(&config), "malformed", &["folder/config.json", "more than 4 MiB"]);
}
