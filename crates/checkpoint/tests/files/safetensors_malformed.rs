//! safetensors files that lie: accepted and refused exactly as the reference library does, and each refusal names what is wrong.

use glassbox_checkpoint::{Checkpoint, CheckpointError};

use crate::write::{open_folder, refused, safetensors};

fn open(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    open_folder(&[("config.json", b"{}"), ("model.safetensors", bytes)])
}

fn reject(bytes: &[u8], parts: &[&str]) {
    refused(open(bytes), "malformed", &[&["folder/model.safetensors"], parts].concat());
}

const K: &str = r#"{"k":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;

#[test]
fn s1_a_header_length_of_all_ones_is_refused() {
    reject(&[&[0xFF; 8][..], b"{}"].concat(), &["byte 0", "18446744073709551615", "10 bytes"]);
}

#[test]
fn s2_a_shape_that_lies_is_refused() {
    reject(&safetensors(r#"{"t":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}}"#, &[0; 4]), &["tensor `t`", "shape"]);
}

#[test]
fn s3_a_shape_whose_product_wraps_to_zero_is_refused() {
    let header =
        format!(r#"{{"t":{{"dtype":"F32","shape":[{},4],"data_offsets":[{},{}]}}}}"#, 1_u64 << 62, 1_u64 << 40, (1_u64 << 40) + 64);
    reject(&safetensors(&header, &[0; 4]), &["tensor `t`"]);
}

#[test]
fn s4_ranges_that_alias_are_refused() {
    let header = r#"{"k":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    reject(&safetensors(header, &[0; 8]), &["overlap"]);
}

#[test]
fn s5_a_hole_is_refused() {
    let header = r#"{"k":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"v":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}"#;
    reject(&safetensors(header, &[0; 12]), &["tensor `v`", "without a gap"]);
}

#[test]
fn s6_trailing_bytes_are_refused() {
    reject(&safetensors(K, &[0; 12]), &["ends where its last tensor ends"]);
}

#[test]
fn s7_an_unknown_dtype_is_refused() {
    reject(&safetensors(r#"{"k":{"dtype":"F37","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]), &["F37"]);
}

#[test]
fn s8_an_empty_tensor_is_accepted() {
    let header = r#"{"k":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let checkpoint = open(&safetensors(header, &[0; 4])).expect("accepted");
    assert!(checkpoint.require_tensor("k").and_then(|tensor| tensor.values()).expect("decodes").is_empty());
}

#[test]
fn s9_a_name_that_is_given_twice_is_refused() {
    let header = r#"{"k":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"k":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    reject(&safetensors(header, &[0; 8]), &["`k` twice"]);
}

#[test]
fn s9_a_name_that_is_given_twice_is_refused_also_where_no_hole_is_left() {
    let header = r#"{"k":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"k":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    reject(&safetensors(header, &[0; 4]), &["`k` twice"]);
}

#[test]
fn s10_empty_metadata_are_accepted() {
    let header = r#"{"__metadata__":{},"k":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    assert_eq!(open(&safetensors(header, &[0; 4])).expect("accepted").tensor_names().collect::<Vec<_>>(), ["k"]);
}

#[test]
fn s11_a_number_in_metadata_is_refused() {
    let header = r#"{"__metadata__":{"a":0},"k":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    reject(&safetensors(header, &[0; 4]), &["byte 8", "string"]);
}

#[test]
fn s12_a_header_padded_with_nul_is_refused() {
    let padding = "\0".repeat(K.len().next_multiple_of(8) - K.len());
    assert!(!padding.is_empty());
    reject(&safetensors(&format!("{K}{padding}"), &[0; 4]), &["byte 8"]);
}

#[test]
fn s13_a_header_padded_with_spaces_is_accepted() {
    let padding = " ".repeat(K.len().next_multiple_of(8) - K.len());
    open(&safetensors(&format!("{K}{padding}"), &[0; 4])).expect("accepted");
}

#[test]
fn s14_a_git_lfs_pointer_is_recognised() {
    let zeros = "0".repeat(64);
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{zeros}\nsize 4976698672\n");
    refused(open(pointer.as_bytes()), "other_format", &["model.safetensors", "LFS pointer", "git lfs pull"]);
}

#[test]
fn s15_offsets_that_run_backwards_are_refused() {
    reject(&safetensors(r#"{"k":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#, &[0; 12]), &["tensor `k`"]);
}

#[test]
fn s16_a_scalar_is_accepted() {
    let checkpoint =
        open(&safetensors(r#"{"k":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#, &2.5_f32.to_le_bytes())).expect("accepted");
    assert_eq!(checkpoint.require_tensor("k").and_then(|tensor| tensor.values()).expect("decodes"), [2.5]);
}

#[test]
fn s17_a_negative_offset_is_refused() {
    reject(&safetensors(r#"{"k":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}"#, &[0; 4]), &["byte 8", "-4"]);
}

#[test]
fn an_empty_file_and_an_html_page_are_recognised() {
    refused(open(b""), "other_format", &["an empty file"]);
    refused(open(b"<!doctype html><html><head>"), "other_format", &["HTML"]);
    refused(open(b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0"), "other_format", &["GGUF"]);
}

#[test]
fn a_header_that_is_no_utf_8_is_refused_at_its_byte() {
    let mut bytes = safetensors(K, &[0; 4]);
    bytes[10] = 0xFF;
    reject(&bytes, &["byte 10", "UTF-8"]);
}

#[test]
fn a_header_that_nests_without_end_is_refused() {
    let deep = format!(r#"{{"k":{}"#, "[".repeat(100_000));
    reject(&safetensors(&deep, b""), &["byte 8"]);
}

#[test]
fn every_cut_of_a_valid_file_is_refused() {
    let whole = safetensors(K, &[0; 4]);
    for len in 0..whole.len() {
        assert!(open(&whole[..len]).is_err(), "accepted when cut to {len} bytes");
    }
}

#[test]
fn no_flipped_bit_makes_the_reader_panic() {
    let whole = safetensors(K, &[0; 4]);
    for bit in 0..(whole.len() - 4) * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(checkpoint) = open(&flipped) {
            let names: Vec<String> = checkpoint.tensor_names().map(str::to_owned).collect();
            for name in names {
                let _ = checkpoint.tensor(&name).map(|tensor| tensor.map(|tensor| tensor.values()));
            }
        }
    }
}
