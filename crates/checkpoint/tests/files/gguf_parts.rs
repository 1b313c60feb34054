//! Models in several GGUF files.

use std::fs;
use std::path::Path;

use glassbox_checkpoint::{Checkpoint, models_in};

use crate::write::{f32s, gguf, info, kv, kv_text, kv_u32, refused};

fn split_keys(number: u16, count: u16, tensors: i32) -> [Vec<u8>; 3] {
    [
        kv("split.no", 2, &number.to_le_bytes()),
        kv("split.count", 2, &count.to_le_bytes()),
        kv("split.tensors.count", 5, &tensors.to_le_bytes()),
    ]
}

/// A part with one tensor of one number, and more keys of its own.
fn part(number: u16, count: u16, tensors: i32, tensor: &str, value: f32, keys: &[Vec<u8>]) -> Vec<u8> {
    let keys = [&split_keys(number, count, tensors)[..], keys].concat();
    gguf(&keys, &[info(tensor, &[1], 0, 0)], 32, &f32s(&[value]))
}

/// Three parts, the settings in the first.
fn three(folder: &Path) {
    fs::write(folder.join("m-00001-of-00003.gguf"), part(0, 3, 3, "a", 1.0, &[kv_text("general.architecture", "x")])).expect("written");
    fs::write(folder.join("m-00002-of-00003.gguf"), part(1, 3, 3, "b", 2.0, &[])).expect("written");
    fs::write(folder.join("m-00003-of-00003.gguf"), part(2, 3, 3, "c", 3.0, &[])).expect("written");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    three(folder.path());
    folder
}

#[test]
fn any_part_opens_all_of_them() {
    let folder = folder();
    for name in ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf", ""] {
        let checkpoint = Checkpoint::open(folder.path().join(name)).expect("a whole model");
        let value = |tensor| checkpoint.require_tensor(tensor).and_then(|tensor| tensor.values()).expect("there");
        assert_eq!(([value("a"), value("b"), value("c")]).concat(), [1.0, 2.0, 3.0], "{name}");
        assert_eq!(checkpoint.settings().str("general.architecture").expect("from the first part"), "x");
        assert_eq!(checkpoint.path(), Some(folder.path().join("m-00001-of-00003.gguf").as_path()));
        assert!(checkpoint.require_tensor("b").expect("there").file().ends_with("m-00002-of-00003.gguf"));
        assert_eq!(checkpoint.bytes_total(), 12);
    }
    assert_eq!(models_in(folder.path()).expect("listed").len(), 1, "one model, not three");
}

#[test]
fn missing_parts_are_named() {
    let folder = folder();
    fs::remove_file(folder.path().join("m-00001-of-00003.gguf")).expect("removed");
    fs::remove_file(folder.path().join("m-00003-of-00003.gguf")).expect("removed");
    let opened = Checkpoint::open(folder.path().join("m-00002-of-00003.gguf"));
    refused(opened, "not_found", &["2 missing", "m-00001-of-00003.gguf, m-00003-of-00003.gguf", "download"]);
}

#[test]
fn a_part_that_is_not_the_one_of_its_name_is_refused() {
    let check = |name: &str, bytes: Vec<u8>, parts: &[&str]| {
        let folder = folder();
        fs::write(folder.path().join(name), bytes).expect("written");
        refused(Checkpoint::open(folder.path().join("m-00001-of-00003.gguf")), "malformed", parts);
    };
    let second = "m-00002-of-00003.gguf";
    check(second, part(0, 3, 3, "a", 1.0, &[]), &[second, "split.no", "wanted 1", "part 2", "part 1 of 3"]); // the first part twice
    check(second, part(1, 4, 3, "b", 1.0, &[]), &[second, "split.count", "wanted 3", "found 4"]);
    check(second, part(1, 3, 9, "b", 1.0, &[]), &[second, "split.tensors.count", "3 tensors", "found 9"]);
    check(second, part(1, 3, 3, "c", 1.0, &[]), &["m-00003-of-00003.gguf", "tensor `c`", "in one part", second]);
    check(second, part(1, 3, 3, "a", 1.0, &[]), &[second, "tensor `a`", "m-00001-of-00003.gguf too"]);
    check(second, part(1, 3, 3, "b", 1.0, &[kv_text("general.architecture", "y")]), &[second, "general.architecture", "another value"]);
    check(second, part(1, 3, 3, "b", 1.0, &[kv_u32("x.block_count", 1)]), &[second, "x.block_count", "the first part lacks"]);
    check(second, gguf(&[], &[info("b", &[1], 0, 0)], 32, &f32s(&[2.0])), &[second, "split.count", "no such key"]);
    check(second, gguf(&[kv_text("split.count", "3")], &[], 32, b""), &[second, "split.count", "whole number", "the text"]);
}

#[test]
fn a_tensor_that_all_parts_announce_and_none_holds_is_missed() {
    let folder = folder();
    for (number, name) in [(0, "a"), (1, "b"), (2, "c")] {
        let path = folder.path().join(format!("m-{:05}-of-00003.gguf", number + 1));
        fs::write(path, part(number, 3, 4, name, 1.0, &[])).expect("written");
    }
    let opened = Checkpoint::open(folder.path());
    refused(opened, "malformed", &["split.tensors.count", "4 tensors in all parts", "found 3"]);
}

#[test]
fn a_part_under_another_name_is_refused_with_the_name_that_it_needs() {
    let folder = folder();
    for name in ["renamed.gguf", "m-2-of-3.gguf", "m-00004-of-00003.gguf", "m-00001-of-00009.gguf"] {
        let path = folder.path().join(name);
        fs::copy(folder.path().join("m-00002-of-00003.gguf"), &path).expect("copied");
        refused(Checkpoint::open(&path), "malformed", &[name, "-of-00003.gguf", "one part of 3"]);
        fs::remove_file(path).expect("removed");
    }
}

#[test]
fn a_part_of_ninety_nine_thousand_names_eight_of_those_that_are_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m-00002-of-99999.gguf");
    fs::write(&path, gguf(&[kv_u32("split.no", 1), kv_u32("split.count", 99_999)], &[], 32, b"")).expect("written");
    refused(Checkpoint::open(&path), "not_found", &["99998 missing", "m-00001-of-99999.gguf, m-00003-of-99999.gguf"]);
}

#[test]
fn forty_thousand_keys_of_two_parts_are_compared_in_no_time() {
    let keys: Vec<Vec<u8>> = (0..40_000).map(|key| kv_u32(&format!("general.{key}"), key)).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for number in [0, 1] {
        let name = format!("m-0000{}-of-00002.gguf", number + 1);
        fs::write(folder.path().join(name), part(number, 2, 2, ["a", "b"][usize::from(number)], 1.0, &keys)).expect("written");
    }
    let begin = std::time::Instant::now();
    let checkpoint = Checkpoint::open(folder.path().join("m-00001-of-00002.gguf")).expect("a whole model");
    assert_eq!(checkpoint.bytes_total(), 8);
    assert!(begin.elapsed().as_secs() < 5, "each key was held against all others: {:?}", begin.elapsed());
}

#[test]
fn a_file_split_into_one_part_is_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.gguf");
    fs::write(&path, part(0, 1, 1, "a", 1.0, &[])).expect("written");
    assert_eq!(Checkpoint::open(&path).expect("a whole model").tensor_names().count(), 1);
}
