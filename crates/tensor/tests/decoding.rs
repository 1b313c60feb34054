//! What the block types decode to: worked examples, pattern sums, and gguf-py's own numbers.

use glassbox_tensor::{Bytes, Matrix, StorageType};

/// The numbers of one row made of `bytes`.
fn decoded(storage: StorageType, bytes: &[u8]) -> Vec<f32> {
    let columns = bytes.len() / storage.block_bytes() * storage.block_len();
    let row = Matrix::new(1, columns, storage, Bytes::new(bytes.to_vec())).expect("whole blocks");
    let mut out = vec![f32::NAN; columns];
    row.decode_row(0, &mut out);
    out
}

/// `parts` one after the other, filled up with zeros to one block.
fn block(storage: StorageType, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = parts.concat();
    assert!(bytes.len() <= storage.block_bytes());
    bytes.resize(storage.block_bytes(), 0);
    bytes
}

fn check(storage: StorageType, bytes: &[u8], expected: &[(usize, f32)]) {
    let out = decoded(storage, bytes);
    for (index, wanted) in expected {
        assert_eq!(out[*index], *wanted, "{storage}, number {index}");
    }
}

const ONE: [u8; 2] = [0x00, 0x3C]; // f16 1.0
const HALF: [u8; 2] = [0x00, 0x38]; // f16 0.5
const MINUS_EIGHTH: [u8; 2] = [0x00, 0xB0]; // f16 -0.125

#[test]
fn low_nibbles_are_the_first_half_of_a_block_and_high_nibbles_the_second() {
    let mut bytes = [&ONE[..], &[0xF0], &[0x88; 15]].concat();
    check(StorageType::Q4_0, &bytes, &[(0, -8.0), (1, 0.0), (15, 0.0), (16, 7.0), (17, 0.0), (31, 0.0)]);
    bytes.splice(0..2, MINUS_EIGHTH);
    check(StorageType::Q4_0, &bytes, &[(0, 1.0), (16, -0.875)]);
    check(StorageType::Q4_1, &block(StorageType::Q4_1, &[&ONE, &HALF, &[0xF2]]), &[(0, 2.5), (16, 15.5), (1, 0.5), (31, 0.5)]);
}

#[test]
fn fifth_bit_j_belongs_to_number_j() {
    let q5_0 = block(StorageType::Q5_0, &[&ONE, &[1, 0, 1, 0], &[0x0F]]);
    check(StorageType::Q5_0, &q5_0, &[(0, 15.0), (1, -16.0), (16, 0.0), (17, -16.0)]);
    let q5_1 = block(StorageType::Q5_1, &[&ONE, &HALF, &[1, 0, 1, 0], &[0x0F]]);
    check(StorageType::Q5_1, &q5_1, &[(0, 31.5), (1, 0.5), (16, 16.5), (17, 0.5)]);
}

#[test]
fn codes_of_8_bits_are_signed() {
    check(StorageType::Q8_0, &block(StorageType::Q8_0, &[&HALF, &[0x7F, 0x80, 0xFF]]), &[(0, 63.5), (1, -64.0), (2, -0.5), (3, 0.0)]);
}

#[test]
fn q4_k_reads_64_numbers_from_32_bytes() {
    let scales = [[1_u8; 4], [0; 4], [1; 4]].concat();
    let bytes = block(StorageType::Q4K, &[&ONE, &HALF, &scales, &[0x52]]);
    check(StorageType::Q4K, &bytes, &[(0, 2.0), (1, 0.0), (32, 5.0), (33, 0.0)]);
}

#[test]
fn six_bit_scales_of_sub_blocks_4_to_7_are_put_together_from_two_bytes() {
    let scales = [0xC1, 0, 0, 0, 0x82, 0, 0, 0, 0x21, 0, 0, 0]; // sub-block 0: (1, 2), sub-block 4: (1 + 48, 2 + 32)
    let bytes = block(StorageType::Q4K, &[&ONE, &ONE, &scales, &[0x01]]);
    check(StorageType::Q4K, &bytes, &[(0, 1.0 - 2.0), (1, -2.0), (32, 0.0), (128, -34.0)]);
    let ones = block(StorageType::Q4K, &[&ONE, &ONE, &scales, &[0; 64], &[0x01]]);
    check(StorageType::Q4K, &ones, &[(128, 49.0 - 34.0), (129, -34.0)]);
}

#[test]
fn fifth_bit_i_of_byte_j_belongs_to_number_j_of_sub_block_i() {
    let scales = [[1_u8; 4], [0; 4], [1; 4]].concat();
    let fifth = [&[0x03_u8][..], &[0; 31]].concat();
    let bytes = block(StorageType::Q5K, &[&ONE, &HALF, &scales, &fifth, &[0x52]]);
    check(StorageType::Q5K, &bytes, &[(0, 18.0), (1, 0.0), (32, 21.0)]);
}

#[test]
fn q6_k_puts_four_rows_of_32_into_each_half() {
    let low = [&[0x52_u8][..], &[0; 127]].concat();
    let high = [&[0xE4_u8][..], &[0; 63]].concat();
    let bytes = block(StorageType::Q6K, &[&low, &high, &[1; 16], &ONE]);
    let expected = [(0, -30.0), (1, -32.0), (32, -16.0), (64, 5.0), (96, 16.0)];
    check(StorageType::Q6K, &bytes, &expected);
    let flipped = block(StorageType::Q6K, &[&low, &high, &[0xFF; 16], &ONE]);
    check(StorageType::Q6K, &flipped, &expected.map(|(index, value)| (index, -value)));
}

#[test]
fn bit_pairs_of_q2_k_are_four_rows_of_32_in_each_half() {
    let codes = [&[0xE4_u8][..], &[0; 63]].concat();
    let bytes = block(StorageType::Q2K, &[&[0x21; 16], &codes, &ONE, &HALF]); // s = 1, m = 2: code - 1
    check(StorageType::Q2K, &bytes, &[(0, -1.0), (32, 0.0), (64, 1.0), (96, 2.0), (1, -1.0), (128, -1.0)]);
}

#[test]
fn a_third_bit_of_q3_k_that_is_clear_takes_four_away() {
    let third = [&[0x05_u8][..], &[0; 31]].concat(); // of number 0 and of number 64
    let codes = [&[0x03_u8][..], &[0; 63]].concat();
    let scales = [0x11_u8, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0]; // sub-block 0: 1 + 32, sub-block 8: 1, all others 0
    let bytes = block(StorageType::Q3K, &[&third, &codes, &scales, &ONE]);
    check(StorageType::Q3K, &bytes, &[(0, 3.0), (1, -4.0), (16, 128.0), (64, 0.0), (65, 128.0), (128, 124.0)]);
}

#[test]
fn codes_of_iq4_nl_and_mxfp4_name_steps() {
    check(StorageType::Iq4Nl, &block(StorageType::Iq4Nl, &[&HALF, &[0xF0]]), &[(0, -63.5), (16, 56.5), (1, -63.5)]);
    // e = 127 is a power of one half here, because the steps are doubled; 0 and 1 are below the smallest normal number
    check(StorageType::Mxfp4, &block(StorageType::Mxfp4, &[&[127], &[0x71]]), &[(0, 0.5), (16, 6.0), (1, 0.0)]);
    check(
        StorageType::Mxfp4,
        &block(StorageType::Mxfp4, &[&[0], &[0x9F]]),
        &[(0, -12.0 * 2.0_f32.powi(-128)), (16, -(2.0_f32.powi(-128)))],
    );
    check(StorageType::Mxfp4, &block(StorageType::Mxfp4, &[&[1], &[0x01]]), &[(0, 2.0_f32.powi(-127))]);
}

#[test]
fn every_block_of_a_row_is_decoded() {
    for storage in StorageType::ALL {
        let one: Vec<u8> = (0..storage.block_bytes()).map(|i| (29 * i + 5) as u8 & 0x3F).collect();
        let once = decoded(storage, &one);
        assert_eq!(decoded(storage, &[&one[..], &one].concat()), [&once[..], &once].concat(), "{storage}");
        assert!(once.iter().any(|value| *value != 0.0), "{storage}: an example of zeros would show nothing");
    }
}

#[test]
fn sums_over_the_pattern_block_are_those_of_gguf_py() {
    const HUNDREDTH: [u8; 2] = [0x1F, 0x21]; // f16 0.01
    let expected = [
        (StorageType::Q4_0, &[0][..], -0.2100, -4.971),
        (StorageType::Q5_0, &[0], 0.1500, 0.970),
        (StorageType::Q8_0, &[0], -1.7604, -79.057),
        (StorageType::Q4K, &[0, 2], 502.2673, 70_484.174),
        (StorageType::Q5K, &[0, 2], 1120.1592, 154_430.423),
        (StorageType::Q6K, &[208], 46.1299, 7799.746),
    ];
    for (storage, scales, sum, weighted) in expected {
        let mut bytes: Vec<u8> = (0..storage.block_bytes()).map(|i| ((37 * i + 11) % 256) as u8).collect();
        for at in scales {
            bytes[*at..at + 2].copy_from_slice(&HUNDREDTH);
        }
        let out = decoded(storage, &bytes);
        let found: f64 = out.iter().map(|value| f64::from(*value)).sum();
        let found_weighted: f64 = out.iter().enumerate().map(|(i, value)| i as f64 * f64::from(*value)).sum();
        assert!((found - sum).abs() < 6e-5, "{storage}: sum {found}, wanted {sum}");
        assert!((found_weighted - weighted).abs() < 6e-4, "{storage}: weighted sum {found_weighted}, wanted {weighted}");
    }
}

#[test]
fn random_blocks_decode_to_the_bits_of_gguf_py() {
    const BLOCKS: usize = 4;
    let mut rest: &[u8] = include_bytes!("fixtures/decoded.bin"); // made by fixtures/make.py
    for storage in &StorageType::ALL[1..] {
        let (bytes, after) = rest.split_at(BLOCKS * storage.block_bytes());
        let (wanted, after) = after.split_at(BLOCKS * storage.block_len() * 4);
        rest = after;
        let found: Vec<u32> = decoded(*storage, bytes).iter().map(|value| value.to_bits()).collect();
        let wanted: Vec<u32> = wanted.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert_eq!(found, wanted, "{storage}");
    }
    assert!(rest.is_empty(), "the fixture holds nothing else");
}

#[test]
fn half_precision_keeps_subnormals_infinities_and_nans() {
    let bits = [0x0001_u16, 0x8001, 0x03FF, 0x7C00, 0xFC00, 0x7E00, 0x8000];
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let out = decoded(StorageType::F16, &bytes);
    assert_eq!(out[..5], [2.0_f32.powi(-24), -(2.0_f32.powi(-24)), 1023.0 * 2.0_f32.powi(-24), f32::INFINITY, f32::NEG_INFINITY]);
    assert!(out[5].is_nan());
    assert_eq!(out[6].to_bits(), (-0.0_f32).to_bits());
    assert_eq!(decoded(StorageType::Bf16, &[0x80, 0x3F, 0x49, 0x40, 0x01, 0x00]), [1.0, 3.140_625, f32::from_bits(0x0001_0000)]);
}
