//! Models of folders, written as GGUF and read again.

use glassbox_checkpoint::{Checkpoint, GgufValue, GgufWriter};
use glassbox_mechanisms::Kernels;
use glassbox_model::{GgufModel, Model, ModelError};

use crate::edited::Edited;
use crate::tiny::{all, folder, golden, logits, open};

/// Writes a model as it is, and opens what was written.
fn written(checkpoint: &Checkpoint) -> Result<Model, ModelError> {
    let gguf = GgufModel::of(checkpoint)?;
    let settings = gguf.settings.clone();
    file(&gguf, &settings, |written| gguf.check(written))
}

/// Writes the tensors of a model behind `settings`, and opens what was written.
fn file(
    gguf: &GgufModel,
    settings: &[(String, GgufValue)],
    check: impl FnOnce(&Checkpoint) -> Result<(), ModelError>,
) -> Result<Model, ModelError> {
    let mut writer = GgufWriter::new();
    settings.iter().for_each(|(key, value)| writer.set(key, value));
    for tensor in &gguf.tensors {
        writer.tensor(&tensor.name, &tensor.shape, tensor.matrix.storage()).expect("fits");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.gguf");
    let rows = |index: usize| -> Vec<u8> {
        let matrix = &gguf.tensors[index].matrix;
        (0..matrix.rows()).flat_map(|row| matrix.row_bytes(row)).copied().collect()
    };
    writer.write(&path, |index| Ok::<_, ModelError>(rows(index)), |unfinished| check(&Checkpoint::open(unfinished)?))?;
    Model::open(&Checkpoint::open(&path)?, Kernels::Fast)
}

fn distance(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

/// Decoders among the fixtures that are refused, each with a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("gemma-mha", "wanted `activation: Relu,`"),
    ("gemma2-mha", "wanted `scale: 0.2085144,`"),
    ("gemma3-gqa", "wanted `scale: 0.2236068,`"),
    ("gpt_neox-serial", "attention without biases, without which llama.cpp does not load this family"),
    ("llama-dynamic", "dynamic NTK, of which llama.cpp knows nothing"),
    ("minimal", "wanted `added_positions: Sinusoidal,`"),
    ("mistral-gqa", "a sliding window of 5 tokens, which llama.cpp does not have for this family"),
    ("mistral-whole", "wanted `activation: ReluSquared,`"),
    ("mpt-clip", "wanted `scale: 0.9,`"),
    ("olmo2-mha", "`attn.b_q`, for which its GGUF files have no name"),
    ("qwen2-window", "a sliding window of 6 tokens"),
    ("qwen3-window", "a sliding window of 6 tokens"),
];

#[test]
fn a_model_of_a_folder_written_as_gguf_gives_the_same_logits_or_is_refused_with_the_reason() {
    for name in all() {
        let reason = REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, reason)| reason);
        match (written(&Checkpoint::open(folder(&name)).expect("the fixture is committed")), reason) {
            (Ok(again), None) => {
                let ids = golden(&name);
                let distance = distance(&logits(&open(&name, Kernels::Fast), ids.ids()), &logits(&again, ids.ids()));
                // Some models are not written number for number: Llama 3's divisors are rounded to f32, and so are rotary bases.
                assert!(distance < 1e-5, "{name}: {distance:e}");
                if name.contains("gqa") || ["gpt2", "mpt", "gpt_neox-parallel", "phi3-short"].contains(&name.as_str()) {
                    assert!(distance == 0.0, "{name}: {distance:e}");
                }
            }
            (Err(ModelError::NotWritable { what, .. }), Some(reason)) => assert!(what.contains(reason), "{name}: {what}"),
            (Ok(_), Some(_)) => panic!("{name} is written now; take it off the list"),
            (Err(error), _) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn settings_that_no_written_fixture_has_are_written_too() {
    let serial = Edited::of("gpt_neox-parallel").set("use_parallel_residual", "false");
    let tied = Edited::of("gpt_neox-parallel").set("tie_word_embeddings", "true").without("embed_out.weight");
    let clipped = Edited::of("mpt").set("attn_config", r#"{"alibi": true, "clip_qkv": 0.25}"#);
    for (name, edited) in [("gpt_neox-parallel", serial), ("gpt_neox-parallel", tied), ("mpt", clipped)] {
        let ids = golden(name);
        let again = written(&edited.checkpoint()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(logits(&again, ids.ids()), logits(&edited.open(), ids.ids()), "{name}");
    }
}

#[test]
fn a_gguf_file_is_not_written_again() {
    let twin = Checkpoint::open(folder("llama-gqa").join("model.gguf")).expect("a valid file");
    assert!(matches!(GgufModel::of(&twin), Err(ModelError::NotWritable { .. })), "a GGUF file is one already");
}

#[test]
fn a_window_as_long_as_the_context_is_written_as_none_and_a_difference_in_llama_cpp_is_said() {
    let wide = Edited::of("mistral-gqa").set("sliding_window", "2048").set("max_position_embeddings", "2048");
    let again = written(&wide.checkpoint()).unwrap_or_else(|error| panic!("{error}"));
    let ids = golden("mistral-gqa");
    assert_eq!(logits(&again, ids.ids()), logits(&wide.open(), ids.ids()));
    let differences = |name: &str| {
        let gguf = GgufModel::of(&Checkpoint::open(folder(name)).expect("the fixture is committed"));
        gguf.unwrap_or_else(|error| panic!("{error}")).otherwise_in_llama_cpp.join("; ")
    };
    assert!(differences("phi3-short").contains("more than 7 tokens"), "{}", differences("phi3-short"));
    assert!(differences("mpt").contains("GELU"), "{}", differences("mpt"));
    assert_eq!(differences("qwen2-yarn"), "");
}

const YARN: &str = r#"{"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64, MORE}"#;

#[test]
fn yarn_with_other_betas_is_written_for_the_one_architecture_of_llama_cpp_that_reads_them() {
    let more = r#""beta_fast": 8, "beta_slow": 2, "attention_factor": 1.3"#;
    let llama = Edited::of("llama-gqa").set("rope_parameters", &YARN.replace("MORE", more));
    assert_eq!(GgufModel::of(&llama.checkpoint()).unwrap_or_else(|error| panic!("{error}")).architecture, "mistral3");
    let again = written(&llama.checkpoint()).unwrap_or_else(|error| panic!("{error}"));
    let ids = golden("llama-gqa");
    let distance = distance(&logits(&again, ids.ids()), &logits(&llama.open(), ids.ids()));
    assert!(distance < 1e-5, "{distance:e}: the factor of sines is rounded to f32 as part of a product");
    let refused = |more: &str| {
        let qwen = Edited::of("qwen2-yarn").set("rope_parameters", &YARN.replace("MORE", more));
        written(&qwen.checkpoint()).expect_err("llama.cpp cannot run it").to_string()
    };
    assert!(refused(more).contains("`beta_fast` 32 and `beta_slow` 1, which llama.cpp does not read for this family"));
    assert!(refused(r#""truncate": false"#).contains("`truncate` false"));
}

/// Logits of `qwen2-yarn` from a folder with `more` in its section of the rotation.
fn folder_with(more: &str) -> Vec<f32> {
    let edited = Edited::of("qwen2-yarn").set("rope_parameters", &YARN.replace("MORE", more));
    logits(&edited.open(), golden("qwen2-yarn").ids())
}

/// Logits of `qwen2-yarn` from a GGUF file with `more` among its keys, or the message with which it is refused.
fn gguf_with(more: &[(&str, f32)]) -> Result<Vec<f32>, String> {
    let gguf =
        GgufModel::of(&Checkpoint::open(folder("qwen2-yarn")).expect("the fixture is committed")).map_err(|error| error.to_string())?;
    let yarn = |key: &str| format!("qwen2.rope.scaling.{key}");
    let optional = ["attn_factor", "yarn_beta_fast", "yarn_beta_slow"].map(yarn);
    let mut settings: Vec<_> = gguf.settings.iter().filter(|(key, _)| !optional.contains(key)).cloned().collect();
    settings.extend(more.iter().map(|(key, value)| (yarn(key), GgufValue::F32(*value))));
    let model = file(&gguf, &settings, |_| Ok(())).map_err(|error| error.to_string())?;
    Ok(logits(&model, golden("qwen2-yarn").ids()))
}

#[test]
fn every_key_of_yarn_in_a_gguf_file_means_what_config_json_says() {
    let check = |keys: &[(&str, f32)], more: &str| {
        let found = gguf_with(keys).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        let distance = distance(&found, &folder_with(more));
        assert!(distance == 0.0, "{keys:?}: {distance:e}");
    };
    let plain = folder_with(r#""beta_fast": 32"#);
    check(&[], r#""beta_fast": 32"#);
    for (keys, more) in [
        (&[("yarn_beta_fast", 8.0), ("yarn_beta_slow", 2.0)][..], r#""beta_fast": 8, "beta_slow": 2"#),
        (&[("yarn_log_multiplier", 0.75)], r#""mscale": 1, "mscale_all_dim": 0.75"#),
        (&[("attn_factor", 1.25)], r#""attention_factor": 1.423286795139986"#), // 1.25 · (0.1 · ln 4 + 1)
    ] {
        check(keys, more);
        assert!(distance(&plain, &folder_with(more)) > 1e-4, "{more} would be missed by no one");
    }
    check(&[("yarn_ext_factor", 1.0), ("yarn_attn_factor", 1.138_629_4), ("yarn_log_multiplier", 0.0)], r#""beta_fast": 32"#);
    check(&[("yarn_ext_factor", -1.0)], r#""beta_fast": 32"#);
    let refused = |key: &str, value: f32| gguf_with(&[(key, value)]).expect_err("refused");
    let message = refused("yarn_ext_factor", 0.5);
    assert!(message.contains("`qwen2.rope.scaling.yarn_ext_factor`: wanted 1, or less than 0 for none, found 0.5"), "{message}");
    let message = refused("yarn_attn_factor", 1.0);
    assert!(message.contains("`qwen2.rope.scaling.yarn_attn_factor`: wanted 1.138629"), "{message}");
    let message = refused("yarn_beta_fest", 1.0);
    assert!(message.contains("yarn_beta_fest"), "{message}");
}

#[test]
fn numbers_of_a_stretching_that_llama_cpp_may_leave_out_may_be_left_out() {
    let gguf = GgufModel::of(&Checkpoint::open(folder("qwen2-yarn")).expect("the fixture is committed"));
    let gguf = gguf.unwrap_or_else(|error| panic!("{error}"));
    let ids = golden("qwen2-yarn");
    let with = |kind: &str, without: &[&str]| {
        let key = |name: &str| format!("qwen2.rope.scaling.{name}");
        let names: Vec<String> = without.iter().map(|name| key(name)).chain([key("type")]).collect();
        let mut settings: Vec<_> = gguf.settings.iter().filter(|(key, _)| !names.contains(key)).cloned().collect();
        settings.push((key("type"), GgufValue::Text(kind.to_owned())));
        file(&gguf, &settings, |_| Ok(())).map(|model| logits(&model, ids.ids())).map_err(|error| error.to_string())
    };
    let optional = ["attn_factor", "yarn_beta_fast", "yarn_beta_slow"];
    let original_is_the_context = Edited::of("qwen2-yarn").set("rope_parameters", &YARN.replace(", MORE", "").replace("64", "256")).open();
    let found = with("yarn", &["original_context_length"]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found, logits(&original_is_the_context, ids.ids()));
    let plain = Edited::of("qwen2-yarn").set("rope_parameters", r#"{"rope_type": "default", "rope_theta": 10000.0}"#).open();
    assert_eq!(with("none", &optional).unwrap_or_else(|error| panic!("{error}")), logits(&plain, ids.ids()));
    let message = with("dynamic", &optional).expect_err("no such stretching in GGUF");
    assert!(message.contains("wanted `none`, `linear`, `yarn`, or `longrope` with its tensors, found `dynamic`"), "{message}");
    let message = with("linear", &[]).expect_err("YaRN's numbers are read for YaRN alone");
    assert!(message.contains("yarn_beta_fast"), "{message}");
}
