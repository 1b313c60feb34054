//! What models bring for turning text into tokens.

use glassbox_checkpoint::{ChatTemplateSource, GgufTokenizer, JsonTokenizer, TokenizerSource};

use crate::write::{array, f32s, gguf, kv, kv_bool, kv_text, kv_texts, kv_u32, open_folder, open_gguf, refused, safetensors};

fn json(files: &[(&str, &[u8])]) -> JsonTokenizer {
    let weights = safetensors("{}", b"");
    let files = [&[("model.safetensors", weights.as_slice()), ("tokenizer.json", b"{}".as_slice())], files].concat();
    match open_folder(&files).and_then(|checkpoint| checkpoint.tokenizer_source()).expect("a valid folder") {
        TokenizerSource::Json(tokenizer) => tokenizer,
        other => panic!("{other:?}"),
    }
}

fn names(templates: &[ChatTemplateSource]) -> Vec<(&str, &str)> {
    templates.iter().map(|template| (template.name.as_str(), template.text.as_str())).collect()
}

#[test]
fn ids_of_special_tokens_may_be_one_or_a_list_and_generation_keeps_its_own() {
    let tokenizer = json(&[
        ("config.json", br#"{"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": -1}"#),
        ("generation_config.json", br#"{"eos_token_id": [2, 7], "pad_token_id": null}"#),
    ]);
    assert_eq!((tokenizer.config_ids.bos, tokenizer.config_ids.eos, tokenizer.config_ids.pad), (vec![1], vec![2], vec![]));
    assert_eq!((tokenizer.generation_ids.bos, tokenizer.generation_ids.eos, tokenizer.generation_ids.pad), (vec![], vec![2, 7], vec![]));
}

#[test]
fn ids_of_the_text_part_are_found() {
    let tokenizer = json(&[("config.json", br#"{"text_config": {"bos_token_id": 2, "eos_token_id": [1, 106]}}"#)]);
    assert_eq!((tokenizer.config_ids.bos, tokenizer.config_ids.eos), (vec![2], vec![1, 106]));
}

#[test]
fn an_id_that_is_a_text_is_refused() {
    let weights = safetensors("{}", b"");
    let open = |config: &str, generation: &str| {
        let files: [(&str, &[u8]); 4] = [
            ("model.safetensors", &weights),
            ("tokenizer.json", b"{}"),
            ("config.json", config.as_bytes()),
            ("generation_config.json", generation.as_bytes()),
        ];
        open_folder(&files).and_then(|checkpoint| checkpoint.tokenizer_source())
    };
    refused(open(r#"{"eos_token_id": "2"}"#, "{}"), "setting", &["config.json", "key `eos_token_id`", "a token id"]);
    refused(open("{}", r#"{"eos_token_id": [2, "x"]}"#), "setting", &["generation_config.json", "key `eos_token_id`"]);
}

#[test]
fn a_template_file_goes_before_the_tokenizer_configuration() {
    let config: (&str, &[u8]) = ("config.json", b"{}");
    let in_json: (&str, &[u8]) = ("tokenizer_config.json", br#"{"chat_template": "old"}"#);
    assert_eq!(names(&json(&[config, in_json]).chat_templates), [("default", "old")]);
    let file: (&str, &[u8]) = ("chat_template.jinja", "新".as_bytes());
    let tool: (&str, &[u8]) = ("additional_chat_templates/tool_use.jinja", b"tools");
    let both = json(&[config, in_json, tool, file]);
    assert_eq!(names(&both.chat_templates), [("default", "新"), ("tool_use", "tools")]);
    assert_eq!(both.chat_templates[0].file, "folder/chat_template.jinja");
}

#[test]
fn a_list_of_named_templates_has_the_default_first() {
    let list = br#"{"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]}"#;
    assert_eq!(names(&json(&[("config.json", b"{}"), ("tokenizer_config.json", list)]).chat_templates), [("default", "d"), ("rag", "r")]);
}

#[test]
fn a_folder_without_tokenizer_says_what_is_there_instead() {
    let weights = safetensors("{}", b"");
    let checkpoint = open_folder(&[("config.json", b"{}"), ("model.safetensors", &weights), ("tokenizer.model", b"x")]).expect("opens");
    let TokenizerSource::None { found } = checkpoint.tokenizer_source().expect("no error") else { panic!("there is no tokenizer") };
    assert!(found.contains("folder/tokenizer.json") && found.contains("tokenizer.model"), "{found}");
}

fn keys() -> Vec<Vec<u8>> {
    vec![
        kv_text("tokenizer.ggml.model", "llama"),
        kv_texts("tokenizer.ggml.tokens", &["<unk>", "<s>", "▁中"]),
        kv("tokenizer.ggml.scores", 9, &array(6, 3, &f32s(&[0.0, 0.0, -0.1]))),
        kv("tokenizer.ggml.token_type", 9, &array(5, 3, &[2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0])),
        kv_u32("tokenizer.ggml.bos_token_id", 1),
        kv_u32("tokenizer.ggml.padding_token_id", u32::MAX),
        kv_bool("tokenizer.ggml.add_bos_token", true),
        kv_bool("tokenizer.ggml.add_sep_token", false),
        kv_text("tokenizer.chat_template", "t"),
        kv_text("tokenizer.chat_template.rag", "r"),
    ]
}

fn from_gguf(keys: &[Vec<u8>]) -> Result<TokenizerSource, glassbox_checkpoint::CheckpointError> {
    open_gguf(&gguf(keys, &[], 32, b"")).and_then(|checkpoint| checkpoint.tokenizer_source())
}

fn valid(keys: &[Vec<u8>]) -> GgufTokenizer {
    match from_gguf(keys).expect("a valid tokenizer") {
        TokenizerSource::Gguf(tokenizer) => tokenizer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gguf_tokenizer_is_read_from_the_metadata() {
    let tokenizer = valid(&keys());
    assert_eq!((tokenizer.model.as_str(), tokenizer.pre.as_deref()), ("llama", None));
    assert_eq!(tokenizer.tokens.iter().collect::<Vec<_>>(), ["<unk>", "<s>", "▁中"]);
    assert_eq!(tokenizer.scores, Some(vec![0.0, 0.0, -0.1]));
    assert_eq!(tokenizer.token_types, Some(vec![2, 3, 1]));
    assert_eq!((tokenizer.bos, tokenizer.eos, tokenizer.pad), (Some(1), None, None));
    assert_eq!((tokenizer.add_bos, tokenizer.add_eos, tokenizer.add_space_prefix), (Some(true), None, None));
    assert!(tokenizer.merges.is_none());
    assert_eq!(names(&tokenizer.chat_templates), [("default", "t"), ("rag", "r")]);
}

#[test]
fn merges_are_kept_in_their_order() {
    let keys = [
        kv_text("tokenizer.ggml.model", "gpt2"),
        kv_texts("tokenizer.ggml.tokens", &["a"]),
        kv_texts("tokenizer.ggml.merges", &["b c", "a b"]),
    ];
    let merges = valid(&keys).merges.expect("there");
    assert_eq!((merges.len(), merges.iter().collect::<Vec<_>>()), (2, vec!["b c", "a b"]));
}

#[test]
fn lists_that_do_not_fit_the_vocabulary_are_refused() {
    let mut short = keys();
    short[2] = kv("tokenizer.ggml.scores", 9, &array(6, 2, &f32s(&[0.0, 0.0])));
    refused(from_gguf(&short), "setting", &["tokenizer.ggml.scores", "3 numbers", "found 2"]);
    let mut outside = keys();
    outside[4] = kv_u32("tokenizer.ggml.bos_token_id", 3);
    refused(from_gguf(&outside), "setting", &["tokenizer.ggml.bos_token_id", "below 3", "found 3"]);
    let mut missing = keys();
    missing.remove(1);
    refused(from_gguf(&missing), "setting", &["tokenizer.ggml.tokens", "no such key"]);
    let mut broken = keys();
    broken[1] = kv("tokenizer.ggml.tokens", 9, &array(8, 1, b"\x01\0\0\0\0\0\0\0\xFF"));
    refused(from_gguf(&broken), "setting", &["tokenizer.ggml.tokens", "UTF-8"]);
}

#[test]
fn a_tokenizer_setting_that_nothing_reads_is_refused() {
    let mut more = keys();
    more.push(kv_bool("tokenizer.ggml.lower_case", true));
    refused(from_gguf(&more), "unread", &["`tokenizer.ggml.lower_case` = true"]);
}

#[test]
fn a_gguf_file_without_tokenizer_says_so() {
    for keys in [vec![], vec![kv_text("tokenizer.ggml.model", "no_vocab")]] {
        assert!(matches!(from_gguf(&keys).expect("no error"), TokenizerSource::None { .. }));
    }
}
