//! Hugging Face folders: one weight file or several with an index, and everything that does not fit together.

use glassbox_checkpoint::{Checkpoint, CheckpointKind};
use glassbox_tensor::StorageType;

use crate::write::{f32s, open_folder, refused, safetensors};

/// A shard with one vector of two f32.
fn shard(name: &str) -> Vec<u8> {
    safetensors(&format!(r#"{{"{name}":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}}"#), &f32s(&[1.0, 2.0]))
}

const CONFIG: (&str, &[u8]) = ("config.json", b"{}");
const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";
const INDEX: &str = "model.safetensors.index.json";

fn index() -> Vec<u8> {
    format!(r#"{{"metadata":{{"total_size":16}},"weight_map":{{"a":"{FIRST}","b":"{SECOND}"}}}}"#).into_bytes()
}

#[test]
fn a_single_file_is_read_in_every_float_type() {
    let header = r#"{"f":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"h":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[12,16]}}"#;
    let data = [f32s(&[1.0, -2.0]), vec![0x00, 0x3C, 0x00, 0xC0], vec![0x80, 0x3F, 0x00, 0xC0]].concat();
    let checkpoint = open_folder(&[CONFIG, ("model.safetensors", &safetensors(header, &data))]).expect("a valid folder");
    for (name, storage, shape) in
        [("f", StorageType::F32, vec![1, 2]), ("h", StorageType::F16, vec![2]), ("b", StorageType::Bf16, vec![2, 1])]
    {
        let tensor = checkpoint.require_tensor(name).expect("there");
        assert_eq!((tensor.storage, &tensor.shape), (storage, &shape));
        assert_eq!(tensor.values().expect("decodes"), [1.0, -2.0], "{name}");
    }
    assert_eq!(checkpoint.kind(), CheckpointKind::HuggingFace);
    assert_eq!(checkpoint.label(), "folder");
}

#[test]
fn a_tensor_of_another_type_is_refused_by_name_when_it_is_asked_for() {
    for dtype in ["F64", "I64", "F8_E4M3"] {
        let len = if dtype == "F8_E4M3" { 1 } else { 8 };
        let header = format!(r#"{{"position_ids":{{"dtype":"{dtype}","shape":[1],"data_offsets":[0,{len}]}}}}"#);
        let checkpoint = open_folder(&[CONFIG, ("model.safetensors", &safetensors(&header, &vec![0; len]))]).expect("a valid folder");
        refused(checkpoint.tensor("position_ids"), "unsupported", &["folder/model.safetensors", "`position_ids`", dtype, "F32, F16, BF16"]);
        assert_eq!(checkpoint.storage_name("position_ids"), Some(dtype));
    }
}

#[test]
fn shards_are_read_as_one_model() {
    let checkpoint = open_folder(&[CONFIG, (INDEX, &index()), (FIRST, &shard("a")), (SECOND, &shard("b"))]).expect("a valid folder");
    assert_eq!(checkpoint.tensor_names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(checkpoint.require_tensor("b").expect("there").file(), format!("folder/{SECOND}"));
    let joined = [shard("a"), shard("b")].concat();
    assert_eq!(checkpoint.content_hash(), blake3::hash(&joined).to_hex().to_string());
}

#[test]
fn a_shard_that_is_missing_is_named() {
    let result = open_folder(&[CONFIG, (INDEX, &index()), (FIRST, &shard("a"))]);
    refused(result, "not_found", &[SECOND, "no such file", "download the missing file"]);
}

#[test]
fn a_tensor_that_its_shard_lacks_is_named() {
    let empty = safetensors("{}", b"");
    let result = open_folder(&[CONFIG, (INDEX, &index()), (FIRST, &shard("a")), (SECOND, &empty)]);
    refused(result, "malformed", &[INDEX, "tensor `b`", SECOND, "different saves"]);
}

#[test]
fn a_tensor_that_the_index_does_not_list_is_named() {
    let index = format!(r#"{{"weight_map":{{"a":"{FIRST}"}}}}"#);
    let two = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    let result = open_folder(&[CONFIG, (INDEX, index.as_bytes()), (FIRST, &safetensors(two, &[0; 8]))]);
    refused(result, "malformed", &[FIRST, "tensor `b`", "does not list"]);
}

#[test]
fn a_tensor_in_another_shard_than_the_index_says_is_named() {
    let result = open_folder(&[CONFIG, (INDEX, &index()), (FIRST, &shard("b")), (SECOND, &shard("a"))]);
    refused(result, "malformed", &[INDEX, "tensor `b`", FIRST, SECOND]);
}

#[test]
fn a_tensor_in_two_shards_is_named() {
    let both = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    let result = open_folder(&[CONFIG, (INDEX, &index()), (FIRST, &shard("a")), (SECOND, &safetensors(both, &[0; 8]))]);
    refused(result, "malformed", &["tensor `a`", FIRST, SECOND]);
}

#[test]
fn a_single_file_beside_an_index_is_refused() {
    let result = open_folder(&[CONFIG, (INDEX, &index()), ("model.safetensors", &shard("a"))]);
    refused(result, "malformed", &["both", "remove the one"]);
}

#[test]
fn an_index_that_leads_out_of_its_folder_is_refused() {
    for shard in ["../x.safetensors", "/etc/passwd", "a\\b", "", ".."] {
        let index = serde_json::json!({"weight_map": {"a": shard}}).to_string();
        refused(open_folder(&[CONFIG, (INDEX, index.as_bytes())]), "malformed", &["weight_map.a", "same folder"]);
    }
    for index in ["{}", "[]", r#"{"weight_map":3}"#] {
        refused(open_folder(&[CONFIG, (INDEX, index.as_bytes())]), "malformed", &["key `weight_map`"]);
    }
}

#[test]
fn an_index_that_gives_a_tensor_twice_is_refused() {
    let index = format!(r#"{{"weight_map":{{"a":"{FIRST}","a":"{SECOND}"}}}}"#);
    refused(open_folder(&[CONFIG, (INDEX, index.as_bytes())]), "malformed", &[INDEX, "`a` twice"]);
}

#[test]
fn a_folder_of_pickles_is_refused_with_the_way_to_convert_it() {
    refused(open_folder(&[CONFIG, ("pytorch_model.bin", b"PK")]), "unsupported", &["pytorch_model.bin", "pickle", "save_pretrained"]);
}

#[test]
fn a_folder_without_weights_or_without_settings_says_so() {
    refused(open_folder(&[CONFIG]), "not_found", &["model.safetensors", "neither"]);
    refused(open_folder(&[("model.safetensors", &shard("a"))]), "not_found", &["folder/config.json", "no such file"]);
}

#[test]
fn settings_that_are_no_json_are_refused_with_line_and_column() {
    refused(open_folder(&[("config.json", b"{\n \"a\": ,}")]), "malformed", &["folder/config.json", "line 2 column 7"]);
    refused(open_folder(&[("config.json", b"[]")]), "malformed", &["a JSON object"]);
    refused(open_folder(&[("config.json", b"")]), "other_format", &["an empty file"]);
    refused(open_folder(&[("config.json", b"<html>")]), "other_format", &["HTML"]);
    refused(open_folder(&[("config.json", "[".repeat(100_000).as_bytes())]), "malformed", &["recursion"]);
    refused(open_folder(&[("config.json", br#"{"a":1,"b":{"c":1,"c":2}}"#)]), "malformed", &["`c` twice"]);
    refused(open_folder(&[("config.json", br#"{"a.b":1,"a":{"b":2}}"#)]), "malformed", &["key `a.b`", "same path twice"]);
}

#[test]
fn an_embedded_model_opens_like_the_folder_it_was_made_from() {
    const CONFIG_JSON: &[u8] = br#"{"vocab_size": 3}"#;
    const WEIGHTS: &[u8] = b"\x02\0\0\0\0\0\0\0{}";
    let embedded =
        Checkpoint::from_embedded("specimen", &[("config.json", CONFIG_JSON), ("model.safetensors", WEIGHTS)]).expect("a valid model");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("config.json"), CONFIG_JSON).expect("written");
    std::fs::write(folder.path().join("model.safetensors"), WEIGHTS).expect("written");
    let on_disk = Checkpoint::open(folder.path()).expect("a valid folder");
    assert_eq!(embedded.content_hash(), on_disk.content_hash());
    assert_eq!(embedded.settings_hash().expect("readable"), on_disk.settings_hash().expect("readable"));
    assert_eq!((embedded.path(), on_disk.path()), (None, Some(folder.path())));
    let by_file = Checkpoint::open(folder.path().join("model.safetensors")).expect("the folder around the file");
    assert_eq!(by_file.settings().usize("vocab_size").expect("there"), 3);
    std::fs::write(folder.path().join("config.json"), b"{\"vocab_size\": 4}").expect("written");
    let changed = Checkpoint::open(folder.path()).expect("a valid folder");
    assert_eq!(changed.content_hash(), on_disk.content_hash());
    assert_ne!(changed.settings_hash().expect("readable"), embedded.settings_hash().expect("readable"));
}
