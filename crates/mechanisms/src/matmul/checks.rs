use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::{Values, agree, agree_over, sizes_across};

use super::fast::{Instructions, decode_row};
use super::*;

/// A weight with random codes and small finite scales, in any storage type.
pub(super) fn weight(values: &mut Values, storage: StorageType, rows: usize, columns: usize) -> Matrix {
    if storage == StorageType::F32 {
        return Matrix::from_f32(rows, columns, &values.normals(rows * columns, 1.0)).expect("sizes fit");
    }
    let mut bytes = values.bytes(storage.bytes_for(columns).expect("whole blocks") * rows);
    let halves: &[usize] = match storage {
        StorageType::Bf16 | StorageType::F16 | StorageType::Q4_0 | StorageType::Q5_0 | StorageType::Q8_0 => &[0],
        StorageType::Iq4Nl => &[0],
        StorageType::Q2K => &[80, 82],
        StorageType::Q3K => &[108],
        StorageType::Q6K => &[208],
        StorageType::Mxfp4 => &[],
        _ => &[0, 2],
    };
    for block in bytes.chunks_exact_mut(storage.block_bytes()) {
        if storage == StorageType::Mxfp4 {
            block[0] = 120 + block[0] % 8; // powers from 2^-8 to 2^-1
        }
        for at in halves {
            block[at + 1] = block[at + 1] & 0x83 | 0x28; // 0.03 to 0.06, in bf16 1e-14: either sign
        }
    }
    Matrix::new(rows, columns, storage, Bytes::new(bytes)).expect("sizes fit")
}

/// A width near `columns` that the storage type allows.
fn allowed(storage: StorageType, columns: usize) -> usize {
    columns.next_multiple_of(storage.block_len())
}

pub(super) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn fast(instructions: Instructions, weight: &Matrix, x: &[f32], workers: &Workers) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() / weight.columns() * weight.rows()];
    fast::project(instructions, weight, x, None, &mut out, workers);
    out
}

#[test]
fn the_fast_projection_agrees_with_the_textbook() {
    let mut values = Values::seeded(1);
    let workers = Workers::new(1);
    let columns: Vec<usize> = sizes_across(8).into_iter().chain([1025]).collect();
    for storage in StorageType::ALL {
        let shapes = columns.iter().flat_map(|columns| [1, 2, 3, 4, 5, 7].map(|tokens| (storage, allowed(storage, *columns), tokens)));
        agree_over(shapes, |(storage, columns, tokens)| {
            let weight = weight(&mut values, *storage, 5, *columns);
            let (x, bias) = (values.normals(tokens * columns, 1.0), values.normals(5, 1.0));
            let (mut out, mut single, mut truth) = (vec![f32::NAN; 5 * tokens], vec![0.0_f32; 5 * tokens], vec![0.0_f64; 5 * tokens]);
            project(Kernels::Fast, &weight.clone().into(), &x, Some(&bias), &mut out, &workers);
            textbook::project(&weight, &x, Some(&bias), &mut single);
            textbook::project(&weight, &x, Some(&bias), &mut truth);
            (out, single, truth)
        });
    }
}

#[test]
fn every_fast_decoder_gives_the_bits_of_decode_row() {
    let mut values = Values::seeded(2);
    for storage in StorageType::ALL {
        for columns in [1, 7, 31, 32, 33, 255, 256, 300, 1024] {
            let weight = weight(&mut values, storage, 3, allowed(storage, columns));
            let (mut wanted, mut found) = (vec![0.0; weight.columns()], vec![f32::NAN; weight.columns()]);
            for row in 0..3 {
                weight.decode_row(row, &mut wanted);
                decode_row(Instructions::best(), &weight, row, &mut found);
                assert_eq!(bits(&found), bits(&wanted), "{storage}, {columns} columns, row {row}");
            }
        }
    }
}

#[test]
fn every_f16_and_bf16_number_decodes_to_the_bits_of_decode_row() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for storage in [StorageType::F16, StorageType::Bf16] {
        let all = Matrix::new(1, 1 << 16, storage, Bytes::new(bytes.clone())).expect("sizes fit");
        let (mut wanted, mut found) = (vec![0.0; 1 << 16], vec![0.0; 1 << 16]);
        all.decode_row(0, &mut wanted);
        decode_row(Instructions::best(), &all, 0, &mut found);
        assert_eq!(bits(&found), bits(&wanted), "{storage}");
    }
}

#[test]
fn portable_and_vector_code_give_the_same_bits() {
    let mut values = Values::seeded(3);
    let workers = Workers::new(1);
    for storage in StorageType::ALL {
        for (rows, columns, tokens) in [(1, 1, 1), (4, 9, 1), (5, 63, 1), (7, 250, 1), (5, 129, 2), (9, 1031, 7), (3, 2050, 5)] {
            let weight = weight(&mut values, storage, rows, allowed(storage, columns));
            let x = values.normals(tokens * weight.columns(), 1.0);
            let portable = fast(Instructions::Portable, &weight, &x, &workers);
            let best = fast(Instructions::best(), &weight, &x, &workers);
            assert_eq!(bits(&best), bits(&portable), "{storage}, {rows} x {columns}, {tokens} tokens");
        }
    }
}

#[test]
fn an_output_has_the_same_bits_in_any_company_and_on_any_number_of_threads() {
    let mut values = Values::seeded(4);
    let workers: Vec<Workers> = [1, 2, 3, 8].map(Workers::new).into();
    for storage in StorageType::ALL {
        for (rows, columns) in [(1, 32), (33, 200), (70, 1100)] {
            let weight = weight(&mut values, storage, rows, allowed(storage, columns));
            let columns = weight.columns();
            let x = values.normals(70 * columns, 1.0);
            let alone: Vec<f32> =
                x.chunks_exact(columns).take(9).flat_map(|x| fast(Instructions::best(), &weight, x, &workers[0])).collect();
            for tokens in 1..=9 {
                for workers in &workers {
                    let together = fast(Instructions::best(), &weight, &x[..tokens * columns], workers);
                    assert_eq!(
                        bits(&together),
                        bits(&alone[..tokens * rows]),
                        "{storage}, {rows} x {columns}, {tokens} tokens, {workers:?}"
                    );
                }
            }
            let many = fast(Instructions::best(), &weight, &x, &workers[2]); // more than one block of tokens
            assert_eq!(bits(&many[..9 * rows]), bits(&alone), "{storage}");
            for row in [0, rows / 2, rows - 1] {
                let single = weight.slice_rows(row..row + 1).expect("a row of it");
                let lone = fast(Instructions::best(), &single, &x[..columns], &workers[0]);
                assert_eq!(lone[0].to_bits(), alone[row].to_bits(), "{storage}, row {row} alone");
            }
        }
    }
}

#[test]
fn unaligned_f32_weights_are_read_all_the_same() {
    let mut values = Values::seeded(5);
    let aligned = weight(&mut values, StorageType::F32, 6, 40);
    let bytes: Vec<u8> = [0].into_iter().chain((0..6).flat_map(|row| aligned.row_bytes(row).to_vec())).collect();
    let bytes = Bytes::new(bytes).slice(1..6 * 40 * 4 + 1).expect("one byte was put before");
    let shifted = Matrix::new(6, 40, StorageType::F32, bytes).expect("sizes fit");
    let x = values.normals(3 * 40, 1.0);
    let workers = Workers::new(1);
    for x in [&x[..], &x[..40]] {
        assert_eq!(bits(&fast(Instructions::best(), &shifted, x, &workers)), bits(&fast(Instructions::best(), &aligned, x, &workers)));
    }
}

#[test]
fn lanes_of_a_short_rest_keep_their_sign_of_zero() {
    // Products too small for f32 round to -0; lanes without a product hold +0, and (-0) + (+0) is +0 however wide the registers are.
    let weight = Matrix::from_f32(4, 9, &[-1e-30; 36]).expect("sizes fit");
    let x = [1e-30; 18];
    let workers = Workers::new(1);
    for x in [&x[..9], &x[..]] {
        let portable = fast(Instructions::Portable, &weight, x, &workers);
        assert_eq!(bits(&fast(Instructions::best(), &weight, x, &workers)), bits(&portable));
    }
}

/// The sum of a run of inputs is 96 000, beyond the largest f16: no part of a product, with rounded inputs or without, may be kept in one.
#[test]
fn bl_46_large_inputs_do_not_overflow_beside_quantised_weights() {
    let mut values = Values::seeded(11);
    let workers = Workers::inline();
    for storage in StorageType::ALL {
        for kernels in [Kernels::Fast, Kernels::Portable] {
            agree_over([64, 500, 2048], |columns| {
                let rows = weight(&mut values, storage, 5, allowed(storage, *columns));
                let x = vec![3000.0; rows.columns()];
                let (mut out, mut single, mut truth) = (vec![f32::NAN; 5], vec![0.0_f32; 5], vec![0.0_f64; 5]);
                let stored = if Panels::exist_for(storage) {
                    let panels = Panels::of(std::slice::from_ref(&rows), &workers, |_| ()).expect("there is memory").remove(0);
                    textbook::project_rounded(&panels, &x, None, &mut single);
                    textbook::project_rounded(&panels, &x, None, &mut truth);
                    Weight::Panels(panels)
                } else {
                    textbook::project(&rows, &x, None, &mut single);
                    textbook::project(&rows, &x, None, &mut truth);
                    Weight::Rows(rows)
                };
                project(kernels, &stored, &x, None, &mut out, &workers);
                (out, single, truth)
            });
        }
    }
}

#[test]
fn an_infinite_weight_touches_its_own_output_only() {
    let mut numbers = vec![1.0; 5 * 9];
    numbers[2 * 9 + 8] = f32::INFINITY;
    let weight = Matrix::from_f32(5, 9, &numbers).expect("sizes fit");
    for tokens in [1, 2] {
        let out = fast(Instructions::best(), &weight, &vec![1.0; tokens * 9], &Workers::new(1));
        for (at, value) in out.iter().enumerate() {
            assert_eq!(*value, if at % 5 == 2 { f32::INFINITY } else { 9.0 });
        }
    }
}

/// The contract's dot product with one thing wrong.
fn planted(wrong: &str, row: &[f32], x: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    let end = if wrong == "the rest of a row is forgotten" { row.len() / 8 * 8 } else { row.len() };
    for k in 0..end {
        lanes[k % 8] = if wrong == "not fused" { lanes[k % 8] + row[k] * x[k] } else { row[k].mul_add(x[k], lanes[k % 8]) };
    }
    if wrong == "another final tree" { lanes.iter().sum() } else { fast::sum_lanes(lanes) }
}

#[test]
fn planted_bugs_are_caught_by_bits_or_by_the_tolerance() {
    let mut values = Values::seeded(6);
    let weight = weight(&mut values, StorageType::F32, 20, 129);
    let x = values.normals(129, 1.0);
    let right = fast(Instructions::best(), &weight, &x, &Workers::new(1));
    let (mut single, mut truth) = (vec![0.0_f32; 20], vec![0.0_f64; 20]);
    textbook::project(&weight, &x, None, &mut single);
    textbook::project(&weight, &x, None, &mut truth);
    let with = |wrong| -> Vec<f32> {
        let rows = weight.as_f32().expect("made of f32");
        rows.chunks_exact(129).map(|row| planted(wrong, row, &x)).collect()
    };
    assert_eq!(bits(&with("nothing")), bits(&right));
    for wrong in ["not fused", "another final tree"] {
        assert!(agree(&with(wrong), &single, &truth).is_ok(), "{wrong}: no tolerance can see it");
        assert_ne!(bits(&with(wrong)), bits(&right), "{wrong}: the comparison of bits must");
    }
    assert!(agree(&with("the rest of a row is forgotten"), &single, &truth).is_err());
}
