use glassbox_tensor::StorageType;
use glassbox_testkit::{Values, agree_over};

use super::super::checks::{bits, weight};
use super::super::{Weight, project, textbook};
use super::*;
use crate::Kernels;

const STORED: [StorageType; 8] = [
    StorageType::Q4_0,
    StorageType::Q4_1,
    StorageType::Q5_0,
    StorageType::Q5_1,
    StorageType::Q8_0,
    StorageType::Q4K,
    StorageType::Q5K,
    StorageType::Q6K,
];

fn panels(weight: &Matrix) -> Panels {
    let workers = Workers::inline();
    Panels::of(std::slice::from_ref(weight), &workers, |_| ()).expect("there is memory").remove(0)
}

fn columns_of(storage: StorageType, columns: usize) -> usize {
    columns.next_multiple_of(storage.block_len())
}

fn fast(panels: &Panels, instructions: Instructions, x: &[f32], workers: &Workers) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() / panels.columns() * panels.rows()];
    panels.project(instructions, x, None, &mut out, workers);
    out
}

#[test]
fn every_type_of_the_list_and_no_other_has_panels() {
    for storage in StorageType::ALL {
        assert_eq!(Panels::exist_for(storage), STORED.contains(&storage), "{storage}");
    }
}

#[test]
fn every_row_reads_back_byte_for_byte() {
    let mut values = Values::seeded(1);
    for storage in STORED {
        for rows in [1, 7, 8, 9, 20] {
            let weight = weight(&mut values, storage, rows, columns_of(storage, 500));
            let panels = panels(&weight);
            for row in 0..rows {
                assert_eq!(panels.row(row).row_bytes(0), weight.row_bytes(row), "{storage}, row {row} of {rows}");
            }
        }
    }
}

#[test]
fn several_weights_share_memory_without_touching_one_another() {
    let mut values = Values::seeded(2);
    let weights: Vec<Matrix> = STORED.iter().map(|storage| weight(&mut values, *storage, 13, columns_of(*storage, 300))).collect();
    let all = Panels::of(&weights, &Workers::new(2), |_| ()).expect("there is memory");
    for (weight, panels) in weights.iter().zip(&all) {
        assert!((0..13).all(|row| panels.row(row).row_bytes(0) == weight.row_bytes(row)), "{}", weight.storage());
    }
}

#[test]
fn the_product_agrees_with_the_textbook_of_the_rounded_tokens() {
    let mut values = Values::seeded(3);
    let workers = Workers::inline();
    for storage in STORED {
        let shapes =
            [32, 64, 500, 2048, 2100, 4900].iter().flat_map(|columns| [1, 2, 3, 4, 5, 6, 7, 9, 70].map(|tokens| (*columns, tokens)));
        agree_over(shapes, |(columns, tokens)| {
            let rows = 11;
            let panels = panels(&weight(&mut values, storage, rows, columns_of(storage, *columns)));
            let (x, bias) = (values.normals(tokens * panels.columns(), 1.0), values.normals(rows, 1.0));
            let mut out = vec![f32::NAN; rows * tokens];
            let (mut single, mut truth) = (vec![0.0_f32; rows * tokens], vec![0.0_f64; rows * tokens]);
            project(Kernels::Fast, &Weight::Panels(panels.clone()), &x, Some(&bias), &mut out, &workers);
            textbook::project_rounded(&panels, &x, Some(&bias), &mut single);
            textbook::project_rounded(&panels, &x, Some(&bias), &mut truth);
            (out, single, truth)
        });
    }
}

#[test]
fn portable_and_vector_code_give_the_same_bits_at_the_ends_of_every_code_too() {
    let mut values = Values::seeded(4);
    let workers = Workers::inline();
    for storage in STORED {
        for (rows, columns, tokens) in [(1, 32, 1), (9, 300, 1), (20, 2300, 1), (9, 300, 2), (17, 2300, 7), (8, 64, 67)] {
            let plain = weight(&mut values, storage, rows, columns_of(storage, columns));
            let mut extreme: Vec<u8> = (0..rows).flat_map(|row| plain.row_bytes(row).to_vec()).collect();
            // All codes 0 in one row, all bits set in another; the scales stay.
            for (row, byte) in [(0, 0x00), (rows - 1, 0xFF)] {
                let len = plain.row_bytes(0).len();
                for block in extreme[row * len..(row + 1) * len].chunks_exact_mut(storage.block_bytes()) {
                    let codes = if storage == StorageType::Q6K { 0..208 } else { 4..block.len() };
                    block[codes].fill(byte);
                }
            }
            let extreme = Matrix::new(rows, plain.columns(), storage, Bytes::new(extreme)).expect("the same sizes");
            for weight in [plain, extreme] {
                let panels = panels(&weight);
                let mut x = values.normals(tokens * weight.columns(), 1.0);
                x[..32].fill(3.0); // all codes 127
                x[weight.columns() - 32..weight.columns()].fill(-3.0);
                let portable = fast(&panels, Instructions::Portable, &x, &workers);
                assert_eq!(
                    bits(&fast(&panels, Instructions::best(), &x, &workers)),
                    bits(&portable),
                    "{storage}, {rows} x {columns}, {tokens}"
                );
            }
        }
    }
}

#[test]
fn an_output_has_the_same_bits_in_any_company_and_on_any_number_of_threads() {
    let mut values = Values::seeded(5);
    let workers: Vec<Workers> = [1, 2, 3, 8].map(Workers::new).into();
    for storage in STORED {
        for (rows, columns) in [(1, 32), (33, 200), (150, 2304)] {
            let panels = panels(&weight(&mut values, storage, rows, columns_of(storage, columns)));
            let columns = panels.columns();
            let x = values.normals(70 * columns, 1.0);
            let alone: Vec<f32> =
                x.chunks_exact(columns).take(9).flat_map(|x| fast(&panels, Instructions::best(), x, &workers[0])).collect();
            for tokens in [1, 2, 3, 4, 5, 6, 7, 8, 9] {
                for workers in &workers {
                    let together = fast(&panels, Instructions::best(), &x[..tokens * columns], workers);
                    assert_eq!(
                        bits(&together),
                        bits(&alone[..tokens * rows]),
                        "{storage}, {rows} x {columns}, {tokens} tokens, {workers:?}"
                    );
                }
            }
            let many = fast(&panels, Instructions::best(), &x, &workers[2]);
            assert_eq!(bits(&many[..9 * rows]), bits(&alone), "{storage}, more than one block of tokens");
        }
    }
}

#[test]
fn codes_are_nearest_and_the_largest_is_127() {
    let mut x = [0.0_f32; 64];
    x[0] = 127.0;
    x[1] = -127.0;
    x[2] = 2.5; // between two codes: the even one
    x[3] = -3.5;
    x[4] = 0.4;
    let runs = rounding::round(&x, &Workers::inline());
    assert_eq!(runs[0].codes[..5], [127, -127, 2, -4, 0]);
    assert_eq!((runs[0].scale, runs[0].sum, runs[0].sums, runs[0].scaled_sum), (1.0, -2, [-2, 0], -2.0));
    assert_eq!(runs[1].codes, [0; 32]);
    assert_eq!(runs[1].scale, 0.0, "a run of zeros is exact");
}

#[test]
fn a_number_that_is_not_finite_poisons_its_token_and_no_other() {
    let mut values = Values::seeded(6);
    for storage in STORED {
        let panels = panels(&weight(&mut values, storage, 9, 256));
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = values.normals(3 * 256, 1.0);
            let before = fast(&panels, Instructions::best(), &x, &Workers::inline());
            x[256 + 77] = poison;
            for instructions in [Instructions::best(), Instructions::Portable] {
                let out = fast(&panels, instructions, &x, &Workers::inline());
                assert!(out[9..18].iter().all(|value| value.is_nan()), "{storage}: {poison}");
                assert_eq!(bits(&out[..9]), bits(&before[..9]));
                assert_eq!(bits(&out[18..]), bits(&before[18..]));
            }
        }
    }
}
