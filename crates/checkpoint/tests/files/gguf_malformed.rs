//! GGUF files that lie, as met in the field: each must be refused with a typed error that names the place.

use std::time::{Duration, Instant};

use crate::write::{array, gguf, gguf_header, info, kv, kv_text, kv_u32, open_gguf, refused, text};

/// The file is `len` bytes long, as recorded with the report, and refused within 50 ms.
fn check(bytes: &[u8], len: usize, kind: &str, parts: &[&str]) {
    assert_eq!(bytes.len(), len, "the file is not the one of the report");
    let start = Instant::now();
    refused(open_gguf(bytes), kind, parts);
    assert!(start.elapsed() < Duration::from_millis(50), "took {:?}", start.elapsed());
}

fn one(info: Vec<u8>) -> Vec<u8> {
    [gguf_header(3, 1, 0), info].concat()
}

#[test]
fn g2_a_key_that_claims_to_be_longer_than_the_file_is_refused() {
    let bytes = [gguf_header(3, 0, 1), 0xFFFF_FFFF_FFFF_u64.to_le_bytes().to_vec()].concat();
    check(&bytes, 32, "malformed", &["model.gguf", "byte 16", "found 1"]);
}

#[test]
fn g2_a_key_that_claims_to_be_longer_than_the_rest_of_the_file_is_refused() {
    let bytes = [gguf_header(3, 0, 1), 0xFFFF_FFFF_FFFF_u64.to_le_bytes().to_vec(), vec![b'k'; 100]].concat();
    check(&bytes, 132, "malformed", &["byte 24", "281474976710655", "100 bytes"]);
}

#[test]
fn g3_a_dimension_of_zero_is_refused() {
    check(&one(info("t", &[1, 0], 0, 0)), 65, "malformed", &["tensor `t`", "a dimension of 0"]);
}

#[test]
fn g4_a_shape_whose_product_wraps_to_zero_is_refused() {
    check(&one(info("t", &[1 << 63, 2], 0, 0)), 65, "malformed", &["tensor `t`", "can be addressed"]);
}

#[test]
fn g5_five_dimensions_are_refused() {
    check(&one(info("t", &[1; 5], 0, 0)), 89, "malformed", &["tensor `t`", "1 to 4 dimensions", "found 5"]);
}

#[test]
fn g7_a_tensor_count_of_all_ones_is_refused() {
    check(&gguf_header(3, u64::MAX, 0), 24, "malformed", &["byte 8", "tensors", "18446744073709551615"]);
}

#[test]
fn g8_an_array_of_2_to_the_62_strings_is_refused() {
    let key = kv("tokenizer.ggml.tokens", 9, &array(8, 1 << 62, b""));
    check(&[gguf_header(3, 0, 1), key].concat(), 69, "malformed", &["byte 61", "tokenizer.ggml.tokens", "4611686018427387904"]);
}

#[test]
fn g9_an_unknown_tensor_type_is_named() {
    check(&one(info("t", &[32], 999, 0)), 57, "unsupported", &["tensor `t`", "tensor type 999"]);
}

#[test]
fn g10_an_offset_past_the_end_of_the_file_is_refused() {
    check(&one(info("t", &[32], 0, 1 << 40)), 57, "malformed", &["tensor `t`", "1099511627776", "57 bytes"]);
}

#[test]
fn g12_a_key_that_is_given_twice_is_refused() {
    let bytes = [gguf_header(3, 0, 2), kv_u32("general.alignment", 32), kv_u32("general.alignment", 64)].concat();
    check(&bytes, 24 + 2 * 33, "malformed", &["key `general.alignment`", "second time at byte 57"]);
}

#[test]
fn a_file_that_ends_between_its_counts_is_refused() {
    check(b"GGUF\x03\0\0\0\0", 9, "malformed", &["byte 8", "cut off"]);
}

#[test]
fn a_tensor_name_that_is_given_twice_is_refused() {
    let bytes = gguf(&[], &[info("t", &[8], 0, 0), info("t", &[8], 0, 32)], 32, &[0; 64]);
    refused(open_gguf(&bytes), "malformed", &["tensor `t`", "twice"]);
}

#[test]
fn tensors_that_overlap_are_refused() {
    let bytes = gguf(&[], &[info("a", &[16], 0, 0), info("b", &[8], 0, 32)], 32, &[0; 64]);
    refused(open_gguf(&bytes), "malformed", &["tensor `b`", "before the end of `a`"]);
}

#[test]
fn an_offset_off_the_alignment_is_refused() {
    let bytes = gguf(&[], &[info("t", &[8], 0, 16)], 32, &[0; 64]);
    refused(open_gguf(&bytes), "malformed", &["tensor `t`", "alignment 32", "offset 16"]);
}

#[test]
fn an_offset_that_wraps_around_is_refused() {
    let bytes = gguf(&[], &[info("t", &[8], 0, u64::MAX - 31)], 32, &[0; 64]);
    refused(open_gguf(&bytes), "malformed", &["tensor `t`"]);
}

#[test]
fn a_size_that_overflows_only_in_bytes_is_refused() {
    let bytes = gguf(&[], &[info("t", &[1 << 62], 0, 0)], 32, &[0; 64]);
    refused(open_gguf(&bytes), "malformed", &["tensor `t`", "can be addressed"]);
}

#[test]
fn a_row_of_partial_blocks_is_refused() {
    let bytes = gguf(&[], &[info("t", &[33], 8, 0)], 32, &[0; 64]);
    refused(open_gguf(&bytes), "malformed", &["tensor `t`", "whole Q8_0 blocks (32 numbers)", "rows of 33"]);
}

#[test]
fn no_dimension_at_all_is_refused() {
    refused(open_gguf(&one(info("t", &[], 0, 0))), "malformed", &["tensor `t`", "found 0"]);
}

#[test]
fn an_alignment_of_zero_or_of_three_or_as_a_text_is_refused() {
    for key in [kv_u32("general.alignment", 0), kv_u32("general.alignment", 3), kv_text("general.alignment", "32")] {
        refused(open_gguf(&gguf(&[key], &[], 32, b"")), "malformed", &["key `general.alignment`", "power of two"]);
    }
}

#[test]
fn a_value_of_an_unknown_type_is_refused() {
    refused(open_gguf(&gguf(&[kv("k", 13, b"")], &[], 32, b"")), "malformed", &["type 13", "0 to 12"]);
}

#[test]
fn a_truth_value_of_two_is_refused() {
    refused(open_gguf(&gguf(&[kv("k", 7, &[2])], &[], 32, b"")), "malformed", &["0 or 1", "the byte 2"]);
}

#[test]
fn a_key_that_is_no_utf_8_is_refused() {
    let mut key = kv_u32("key", 1);
    key[8] = 0xFF;
    refused(open_gguf(&gguf(&[key], &[], 32, b"")), "malformed", &["byte 24", "UTF-8"]);
}

#[test]
fn arrays_nested_without_end_are_refused() {
    let mut value = array(0, 1, &[7]);
    for _ in 0..2_000 {
        value = array(9, 1, &value);
    }
    refused(open_gguf(&gguf(&[kv("k", 9, &value)], &[], 32, b"")), "malformed", &["nested at most 4 deep"]);
}

#[test]
fn an_array_whose_byte_length_would_wrap_is_refused() {
    for element in 0..13 {
        let key = kv("k", 9, &array(element, u64::MAX, b""));
        refused(open_gguf(&gguf(&[key], &[], 32, b"")), "malformed", &["18446744073709551615"]);
    }
}

#[test]
fn versions_and_byte_orders_that_are_not_read_are_named() {
    refused(open_gguf(&gguf_header(1, 0, 0)), "unsupported", &["byte 4", "version 1", "convert"]);
    refused(open_gguf(&gguf_header(4, 0, 0)), "unsupported", &["version 4", "newer"]);
    refused(open_gguf(&gguf_header(3_u32.swap_bytes(), 0, 0)), "unsupported", &["big-endian", "version 3"]);
}

#[test]
fn one_part_of_a_split_model_is_refused_with_the_way_to_join_it() {
    let bytes = gguf(&[kv("split.count", 2, &3_u16.to_le_bytes())], &[], 32, b"");
    refused(open_gguf(&bytes), "unsupported", &["split.count", "one part of 3", "by its path"]);
}

#[test]
fn files_that_are_something_else_are_recognised() {
    let cases: [(&[u8], &str); 10] = [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (b"\n<!DOCTYPE html><html>", "HTML"),
        (b"<?xml version='1.0'?><Error>", "XML"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x80\x02}q\0", "pickle"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"tjgg\x03\0\0\0", "before GGUF"),
        (b"\x02\0\0\0\0\0\0\0{}", "safetensors"),
        (b"{\"error\": \"not found\"}", "JSON"),
    ];
    for (bytes, what) in cases {
        refused(open_gguf(bytes), "other_format", &["model.gguf", "starts with `GGUF`", what]);
    }
    refused(open_gguf(b"GGXX"), "other_format", &["`GGXX`"]);
}

#[test]
fn every_cut_of_a_valid_file_is_refused() {
    let keys = [kv_text("general.architecture", "llama"), kv("k", 9, &array(8, 1, &text("x"))), kv_u32("general.alignment", 64)];
    let whole = gguf(&keys, &[info("a", &[4, 2], 0, 0), info("b", &[32], 8, 64)], 64, &[1; 98]);
    assert!(open_gguf(&whole).is_ok());
    for len in 0..whole.len() {
        assert!(open_gguf(&whole[..len]).is_err(), "accepted when cut to {len} bytes");
    }
}

#[test]
fn no_flipped_bit_makes_the_reader_panic() {
    let keys = [kv_text("general.architecture", "llama"), kv("k", 9, &array(8, 1, &text("x"))), kv_u32("general.alignment", 64)];
    let whole = gguf(&keys, &[info("a", &[4, 2], 0, 0), info("b", &[32], 8, 64)], 64, &[1; 98]);
    let header = whole.len() - 98;
    for bit in 0..header * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(checkpoint) = open_gguf(&flipped) {
            let names: Vec<String> = checkpoint.tensor_names().map(str::to_owned).collect();
            for name in names {
                if let Ok(Some(tensor)) = checkpoint.tensor(&name) {
                    tensor.values().expect("an opened tensor decodes");
                }
            }
            let _ = (checkpoint.tokenizer_source(), checkpoint.settings().finish());
        }
    }
}
