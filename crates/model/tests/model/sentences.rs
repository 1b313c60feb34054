//! How the vectors of a text become one, against sentence-transformers (`fixtures/sentence/make.py`).

use std::path::{Path, PathBuf};

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Encoder, ModelError, Pooling, SentenceRecipe};
use glassbox_tensor::Bytes;
use serde::Deserialize;

use crate::tiny::folder;

/// One text of a batch, as the library read it.
#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f32>,
}

fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sentence").join(name)
}

/// The weights of the tiny encoder with the files of `name` beside them, some of them replaced.
fn checkpoint(name: &str, replaced: &[(&str, &str)]) -> Checkpoint {
    let tiny = folder("bert");
    let mut files: Vec<(String, Bytes)> =
        replaced.iter().map(|(file, text)| ((*file).to_owned(), Bytes::new(text.as_bytes().to_vec()))).collect();
    let places = ["config.json", "model.safetensors"].map(|file| (tiny.join(file), file.to_owned())).into_iter();
    let subfolders = ["", "1_Pooling", "pool"]
        .into_iter()
        .filter_map(|inner| std::fs::read_dir(beside(name).join(inner)).ok().map(|list| (inner, list)));
    let others = subfolders.flat_map(|(inner, list)| {
        list.filter_map(Result::ok).filter(|entry| entry.path().is_file()).map(move |entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            (entry.path(), if inner.is_empty() { file } else { format!("{inner}/{file}") })
        })
    });
    for (path, file) in places.chain(others) {
        if !files.iter().any(|(known, _)| *known == file) {
            files.push((file, Bytes::new(std::fs::read(&path).expect("the fixture is committed"))));
        }
    }
    Checkpoint::from_parts(name, files).expect("a folder")
}

fn recipe(name: &str, replaced: &[(&str, &str)]) -> Result<SentenceRecipe, ModelError> {
    let checkpoint = checkpoint(name, replaced);
    let encoder = Encoder::open(&checkpoint, Kernels::Fast).expect("the tiny encoder");
    SentenceRecipe::of(&checkpoint, &encoder)
}

#[test]
fn one_vector_of_a_text_equals_that_of_sentence_transformers() {
    for name in ["mean", "joined", "silent"] {
        let checkpoint = checkpoint(name, &[]);
        let encoder = Encoder::open(&checkpoint, Kernels::Fast).expect("the tiny encoder");
        let recipe = SentenceRecipe::of(&checkpoint, &encoder).unwrap_or_else(|error| panic!("{name}: {error}"));
        let golden = std::fs::read(beside(name).join("golden.json")).expect("the fixture is committed");
        let cases: Vec<Case> = serde_json::from_slice(&golden).expect("the script writes JSON");
        assert_eq!(cases.len(), 13);
        for case in cases {
            let encoded = encoder.encode(&case.ids, None, &Workers::new(1)).expect("sound ids");
            let vector = recipe.vector(&encoded, encoder.blueprint().d_model);
            assert_eq!(vector.len(), case.embedding.len());
            for (found, wanted) in vector.iter().zip(&case.embedding) {
                // 1e-5 of numbers near one; both sides round each number of single precision.
                assert!((found - wanted).abs() <= 1e-5 * wanted.abs().max(1.0), "{name}, {:?}: {found} for {wanted}", case.text);
            }
        }
    }
}

#[test]
fn the_files_of_a_folder_say_how_its_vectors_become_one() {
    let mean = recipe("mean", &[]).expect("known steps");
    assert_eq!((mean.poolings, mean.unit_length, mean.most_tokens, mean.declared), (vec![Pooling::Mean], true, 24, true));
    let joined = recipe("joined", &[]).expect("known steps");
    let poolings = vec![Pooling::Largest, Pooling::First, Pooling::Last, Pooling::SumByRoot];
    assert_eq!((joined.poolings, joined.unit_length, joined.most_tokens), (poolings, false, 40));
    assert_eq!((joined.lower_case, joined.prompt.as_str()), (true, "The dog: "));
    let silent = recipe("silent", &[]).expect("nothing to read");
    assert_eq!((silent.poolings, silent.unit_length, silent.most_tokens, silent.declared), (vec![Pooling::Mean], false, 40, false));
    let no_limit = recipe("silent", &[("tokenizer_config.json", r#"{"model_max_length": 1000000000000000019884624838656}"#)]);
    assert_eq!(no_limit.expect("a number without meaning").most_tokens, 40);
    let older = r#"{"word_embedding_dimension": 36, "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}"#;
    let older = recipe("mean", &[("1_Pooling/config.json", older)]).expect("known steps");
    assert_eq!(older.poolings, [Pooling::First, Pooling::Mean], "in the library's order, not in that of the file");
}

#[test]
fn a_gguf_file_has_a_number_for_its_pooling() {
    let checkpoint = Checkpoint::open(folder("bert").join("model.gguf")).expect("the fixture is committed");
    let encoder = Encoder::open(&checkpoint, Kernels::Fast).expect("the tiny encoder");
    let recipe = SentenceRecipe::of(&checkpoint, &encoder).expect("a known number");
    assert_eq!((recipe.poolings, recipe.unit_length, recipe.most_tokens), (vec![Pooling::Mean], true, 40));
}

#[test]
fn a_step_that_is_not_done_here_is_refused_by_name() {
    let check = |file: &str, text: &str, words: &[&str]| {
        let error = recipe("mean", &[(file, text)]).expect_err("refused").to_string();
        for word in words {
            assert!(error.contains(word), "{file}: `{word}` is missing in {error}");
        }
    };
    let modules = |last: &str| {
        format!(
            r#"[{{"path": "", "type": "a.Transformer"}}, {{"path": "1_Pooling", "type": "a.Pooling"}}, {{"path": "2_{last}", "type": "a.{last}"}}]"#
        )
    };
    check("modules.json", &modules("Dense"), &["modules.json", "Normalize", "2_Dense"]);
    check("modules.json", "[]", &["modules.json", "Pooling"]);
    check("modules.json", "{}", &["modules.json", "Pooling"]);
    check("modules.json", &modules("Normalize").replace("1_Pooling", "../1_Pooling"), &["../1_Pooling"]);
    check("modules.json", &modules("Normalize").replace("1_Pooling", "2_Pooling"), &["2_Pooling/config.json", "null"]);
    check("1_Pooling/config.json", r#"{"word_embedding_dimension": 35}"#, &["word_embedding_dimension", "36", "35"]);
    check("1_Pooling/config.json", r#"{"pooling_mode_weightedmean_tokens": true}"#, &["pooling_mode_weightedmean_tokens", "`mean`"]);
    check("1_Pooling/config.json", r#"{"pooling_mode": "median"}"#, &["pooling_mode", "median"]);
    check("1_Pooling/config.json", r#"{"pooling_mode": []}"#, &["pooling_mode", "[]"]);
    check("1_Pooling/config.json", r#"{"colour": true}"#, &["colour"]);
    check("sentence_bert_config.json", r#"{"max_seq_length": 0}"#, &["max_seq_length"]);
    check("sentence_bert_config.json", r#"{"max_seq_length": "long"}"#, &["max_seq_length", "long"]);
    check("sentence_bert_config.json", r#"{"colour": 1}"#, &["colour"]);
    check("tokenizer_config.json", r#"{"truncation_side": "left"}"#, &["truncation_side", "left"]);
    check("config_sentence_transformers.json", r#"{"default_prompt_name": "x", "prompts": {}}"#, &["default_prompt_name"]);
    check("config_sentence_transformers.json", r#"{"truncate_dim": 8}"#, &["truncate_dim"]);
}
