//! GGUF files as converters write them.

use glassbox_checkpoint::{Checkpoint, CheckpointKind};
use glassbox_tensor::StorageType;

use crate::write::{array, f32s, gguf, gguf_header, info, kv, kv_bool, kv_f32, kv_text, kv_texts, kv_u32, open_gguf, refused};

fn six() -> Vec<u8> {
    f32s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

#[test]
fn dimensions_are_turned_to_slowest_first() {
    let checkpoint = open_gguf(&gguf(&[], &[info("w", &[3, 2], 0, 0)], 32, &six())).expect("a valid file");
    let tensor = checkpoint.require_tensor("w").expect("there");
    assert_eq!((tensor.storage, tensor.shape.as_slice()), (StorageType::F32, &[2, 3][..]));
    let matrix = tensor.matrix().expect("fits");
    let mut row = [0.0; 3];
    matrix.decode_row(1, &mut row);
    assert_eq!((matrix.rows(), matrix.columns(), row), (2, 3, [4.0, 5.0, 6.0]));
    assert_eq!(checkpoint.kind(), CheckpointKind::Gguf);
    assert_eq!(checkpoint.bytes_total(), 24);
}

#[test]
fn the_data_section_starts_at_the_alignment_that_the_file_gives() {
    for alignment in [1, 8, 32, 64, 4096] {
        let key = kv_u32("general.alignment", u32::try_from(alignment).expect("small"));
        let checkpoint = open_gguf(&gguf(&[key], &[info("w", &[3, 2], 0, 0)], alignment, &six())).expect("a valid file");
        let values = checkpoint.require_tensor("w").and_then(|tensor| tensor.values()).expect("decodes");
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "alignment {alignment}");
    }
}

#[test]
fn version_two_is_read_like_version_three() {
    let mut bytes = gguf(&[kv_u32("k", 7)], &[info("w", &[3, 2], 0, 0)], 32, &six());
    bytes[4] = 2;
    let checkpoint = open_gguf(&bytes).expect("a valid file");
    assert_eq!(checkpoint.settings().usize("k").expect("there"), 7);
}

#[test]
fn every_kind_of_scalar_and_array_is_read() {
    let keys = [
        kv("u8", 0, &[200]),
        kv("i8", 1, &[0xFF]),
        kv("u16", 2, &65_535_u16.to_le_bytes()),
        kv("i16", 3, &(-2_i16).to_le_bytes()),
        kv_u32("u32", u32::MAX),
        kv("i32", 5, &(-3_i32).to_le_bytes()),
        kv_f32("f32", 0.1),
        kv_bool("bool", true),
        kv_text("text", "中文"),
        kv("u64", 10, &(1_u64 << 60).to_le_bytes()),
        kv("i64", 11, &(-4_i64).to_le_bytes()),
        kv("f64", 12, &0.1_f64.to_le_bytes()),
        kv("u16s", 9, &array(2, 2, &[1, 0, 2, 0])),
        kv("bools", 9, &array(7, 2, &[1, 0])),
        kv("f32s", 9, &array(6, 2, &f32s(&[0.5, -1.0]))),
        kv_texts("texts", &["a", "", "中"]),
        kv("empty", 9, &array(8, 0, b"")),
        kv("nested", 9, &array(9, 2, &[array(0, 1, &[1]), array(0, 1, &[2])].concat())),
    ];
    let checkpoint = open_gguf(&gguf(&keys, &[], 32, b"")).expect("a valid file");
    let settings = checkpoint.settings();
    assert_eq!(settings.usize("u8").expect("a number"), 200);
    assert_eq!(settings.f64("i8").expect("a number"), -1.0);
    assert_eq!(settings.usize("u16").expect("a number"), 65_535);
    assert_eq!(settings.f64("i16").expect("a number"), -2.0);
    assert_eq!(settings.usize("u32").expect("a number"), 4_294_967_295);
    assert_eq!(settings.f64("i32").expect("a number"), -3.0);
    assert_eq!(settings.f64("f32").expect("a number"), f64::from(0.1_f32));
    assert!(settings.bool("bool").expect("a truth value"));
    assert_eq!(settings.str("text").expect("a text"), "中文");
    assert_eq!(settings.usize("u64").expect("a number"), 1 << 60);
    assert_eq!(settings.f64("i64").expect("a number"), -4.0);
    assert_eq!(settings.f64("f64").expect("a number"), 0.1);
    assert_eq!(settings.optional_usize_list("u16s").expect("numbers"), Some(vec![1, 2]));
    assert_eq!(settings.optional_bool_list("bools").expect("truth values"), Some(vec![true, false]));
    assert_eq!(settings.optional_f64_list("f32s").expect("numbers"), Some(vec![0.5, -1.0]));
    assert_eq!(settings.optional_str_list("texts").expect("texts"), Some(vec!["a".into(), String::new(), "中".into()]));
    assert_eq!(settings.optional_str_list("empty").expect("texts"), Some(vec![]));
    refused(settings.optional_usize_list("nested"), "setting", &["key `nested`", "a list of 2"]);
    settings.finish().expect("every key was read");
    refused(settings.usize("i8"), "setting", &["key `i8`", "0 or more", "found -1"]);
}

#[test]
fn a_number_for_all_layers_and_a_list_of_them_read_the_same() {
    let list: Vec<u8> = [2_u32, 2, 2].into_iter().flat_map(u32::to_le_bytes).collect();
    let checkpoint = open_gguf(&gguf(&[kv_u32("one", 2), kv("each", 9, &array(4, 3, &list))], &[], 32, b"")).expect("a valid file");
    let settings = checkpoint.settings();
    assert_eq!(settings.optional_usize_per_layer("one", 3).expect("a number"), Some(vec![2, 2, 2]));
    assert_eq!(settings.optional_usize_per_layer("each", 3).expect("numbers"), Some(vec![2, 2, 2]));
    refused(settings.optional_usize_per_layer("each", 4), "setting", &["key `each`", "4 numbers", "found 3"]);
}

#[test]
fn a_known_type_that_is_not_decoded_is_named_when_the_tensor_is_asked_for() {
    let checkpoint = open_gguf(&gguf(&[], &[info("w", &[256], 23, 0), info("i", &[4], 27, 160)], 32, &[0; 192])).expect("a valid file");
    refused(checkpoint.tensor("w"), "unsupported", &["model.gguf", "tensor `w`", "IQ4_XS", "Q4_K"]);
    refused(checkpoint.tensor("i"), "unsupported", &["tensor `i`", "I64"]);
    let shares = checkpoint.storage_shares();
    assert!(shares.iter().all(|share| !share.readable));
    assert_eq!((shares[0].storage.as_str(), shares[0].bytes, shares[0].numbers), ("IQ4_XS", 136, 256));
}

#[test]
fn every_storage_type_takes_the_bytes_that_ggml_gives_it() {
    let numbers = [0_u32, 1, 30, 2, 3, 6, 7, 8, 12, 13, 14, 10, 11, 20, 39];
    for (storage, number) in StorageType::ALL.into_iter().zip(numbers) {
        let bytes = storage.bytes_for(512).expect("512 is a whole number of blocks");
        let whole = gguf(&[], &[info("w", &[256, 2], number, 0)], 32, &vec![0; bytes]);
        let tensor = open_gguf(&whole).and_then(|checkpoint| checkpoint.require_tensor("w")).expect("a valid file");
        assert_eq!((tensor.storage, tensor.bytes.len(), tensor.matrix().expect("fits").rows()), (storage, bytes, 2));
        assert!(open_gguf(&whole[..whole.len() - 1]).is_err(), "{storage} accepted one byte short");
    }
}

#[test]
fn a_gap_between_tensors_and_bytes_after_the_last_are_padding() {
    let bytes = gguf(&[], &[info("b", &[8], 0, 128), info("a", &[8], 0, 0)], 32, &[0; 200]);
    let checkpoint = open_gguf(&bytes).expect("a valid file");
    assert_eq!(checkpoint.tensor_names().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_vocabulary_without_tensors_is_a_valid_file() {
    assert_eq!(open_gguf(&gguf_header(3, 0, 0)).expect("a valid file").tensor_names().count(), 0);
}

#[test]
fn a_missing_tensor_is_reported_with_the_nearest_name() {
    let checkpoint = open_gguf(&gguf(&[], &[info("blk.0.attn_q.weight", &[6], 0, 0)], 32, &six())).expect("a valid file");
    assert!(checkpoint.tensor("blk.0.attn_q.weigth").expect("no error").is_none());
    refused(checkpoint.require_tensor("blk.0.attn_q.weigth"), "not_found", &["`blk.0.attn_q.weigth`", "`blk.0.attn_q.weight`"]);
}

#[test]
fn a_file_on_disk_is_mapped_and_hashed_like_b3sum() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, gguf(&[], &[info("w", &[3, 2], 0, 0)], 32, &six())).expect("written");
    let by_file = Checkpoint::open(&path).expect("a valid file");
    let by_folder = Checkpoint::open(folder.path()).expect("a folder with one GGUF file");
    let expected = blake3::hash(&std::fs::read(&path).expect("read")).to_hex().to_string();
    assert_eq!(by_file.content_hash(), expected);
    assert_eq!(by_folder.content_hash(), expected);
    assert_eq!(by_folder.path(), Some(path.as_path()));
    std::fs::copy(&path, folder.path().join("other.gguf")).expect("copied");
    refused(Checkpoint::open(folder.path()), "not_found", &["2 GGUF files: other.gguf, tiny.gguf", "path of one"]);
}

#[test]
fn a_path_that_does_not_exist_and_an_empty_file_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    refused(Checkpoint::open(folder.path().join("no.gguf")), "not_found", &["no.gguf", "nothing at this path"]);
    let path = folder.path().join("empty.gguf");
    std::fs::write(&path, b"").expect("written");
    refused(Checkpoint::open(&path), "other_format", &["empty.gguf", "an empty file", "download it again"]);
    #[cfg(unix)]
    refused(Checkpoint::open("/dev/null"), "not_found", &["/dev/null", "neither a file nor a folder"]);
}
