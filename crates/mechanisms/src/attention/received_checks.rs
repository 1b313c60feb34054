//! Sums over columns and diagonals in a second sweep, against those of the whole matrix of weights.

use super::received::{Attended, Received, receive, rollout};
use super::statistics_checks::Case;
use super::*;
use crate::cache::KvType;
use ndarray::Array2;

const SIZE: f64 = 2.0; // of queries and keys

fn run(case: &Case, kernels: Kernels, threads: usize, weights: Option<&[f32]>, wrong: f32) -> Received {
    case.with(|queries, layer, _| {
        let mut sums = vec![0.0; queries.tokens() * queries.heads.heads()];
        let (mut out, workers) = (vec![0.0; queries.values.len()], Workers::new(threads));
        attend(kernels, queries, layer, &case.rule, &mut out, Some(&mut sums), &workers).expect("shapes that fit");
        sums.iter_mut().for_each(|sum| *sum += wrong);
        let mut received = Received::new(queries.heads.heads(), layer.len());
        receive(kernels, queries, layer, &case.rule, &sums, weights, &mut received, &workers).expect("shapes that fit");
        received
    })
}

/// A score lies at most δ = `(d_head + 3) ε Σ|q k| scale` off, and so does a log-sum-exp: a weight moves by 2 δ of itself, and a sum of weights too; `exp`
/// and the rounding of both add some ε.
fn agree(case: &Case, found: &Received, truth: &Received) -> Result<(), String> {
    let d_head = case.heads.d_head() as f64;
    let epsilon = f64::from(f32::EPSILON);
    let off = 2.0 * (d_head + 3.0) * epsilon / 2.0 * SIZE * SIZE * d_head.sqrt() + 64.0 * epsilon;
    for head in 0..case.heads.heads() {
        let sums = [(found.key_sums(head), truth.key_sums(head)), (found.distance_sums(head), truth.distance_sums(head))];
        for (index, (found, truth)) in sums.iter().flat_map(|(found, truth)| found.iter().zip(*truth)).enumerate() {
            if (found - truth).abs() > off * truth.abs() + 1e-30 {
                return Err(format!("head {head}, {index}: {found}, wanted {truth}"));
            }
        }
    }
    Ok(())
}

#[test]
fn columns_and_diagonals_agree_with_those_of_the_matrix() {
    let mut cases = Vec::new();
    for tokens in [1, 63, 64, 65, 513] {
        for keys in [KeyRange::causal(), KeyRange::causal_window(70), KeyRange::everything()] {
            cases.push(Case::new((4, 2, 20), tokens, keys));
        }
    }
    for (soft_cap, alibi) in [(Some(1.5), None), (None, Some(Alibi::new(8.0).expect("the paper's")))] {
        let case = Case::new((7, 1, 16), 300, KeyRange::causal());
        cases.push(Case { rule: Rule { soft_cap, alibi, ..case.rule }, ..case });
    }
    for kv_type in KvType::ALL {
        let whole = Case { kv_type, rows: 33, ..Case::new((4, 2, 32), 650, KeyRange::causal()) };
        cases.push(Case { rows: 1, window: Some(90), rule: Rule { keys: KeyRange::causal_window(90), ..whole.rule }, ..whole.clone() });
        cases.push(whole);
    }
    let texts = vec![Text { positions: 5..63, prefix: 0 }, Text { positions: 64..260, prefix: 80 }];
    cases.push(Case { texts: Some(texts), ..Case::new((4, 2, 8), 300, KeyRange::causal()) });
    for case in &cases {
        let weights: Vec<f32> = (0..case.rows).map(|row| (row % 5) as f32 / 4.0).collect();
        for weights in [None, Some(weights.as_slice())] {
            let (truth, found) = (run(case, Kernels::Textbook, 1, weights, 0.0), run(case, Kernels::Fast, 2, weights, 0.0));
            assert_eq!(agree(case, &found, &truth), Ok(()), "{case:?}");
            assert_eq!(found, run(case, Kernels::Fast, 1, weights, 0.0), "no bit depends on the threads");
            assert_eq!(found, run(case, Kernels::Portable, 1, weights, 0.0), "nor on the machine");
        }
    }
    let faulty = run(&cases[4], Kernels::Fast, 1, None, 1e-3); // a log-sum-exp of somebody else
    assert!(agree(&cases[4], &faulty, &run(&cases[4], Kernels::Textbook, 1, None, 0.0)).is_err());
}

#[test]
fn mass_is_a_mean_over_the_queries_that_see_the_key() {
    let received = run(&Case::new((1, 1, 8), 3, KeyRange::causal_window(2)), Kernels::Fast, 1, None, 0.0);
    // Query 0 has but itself; queries 1 and 2 share 1 each between two keys.
    let (keys, distances) = (received.key_sums(0), received.distance_sums(0));
    assert!((keys.iter().sum::<f64>() - 3.0).abs() < 1e-6 && (distances.iter().sum::<f64>() - 3.0).abs() < 1e-6);
    assert_eq!(received.column_mass(0, 0), Some(keys[0] / 2.0));
    assert_eq!(received.column_mass(0, 2), Some(keys[2]));
    assert_eq!(received.diagonal_mass(0, 0), Some(distances[0] / 3.0));
    assert_eq!((received.diagonal_mass(0, 2), received.column_mass(0, 3), received.column_mass(1, 0)), (None, None, None));
}

#[test]
fn rollout_to_one_token_is_its_row_of_the_product_of_the_matrices() {
    let cases = [130, 130, 130].map(|tokens| Case::new((4, 2, 20), tokens, KeyRange::causal()));
    let (target, tokens, heads) = (100, 130, 4);
    let mut product = Array2::<f64>::eye(tokens);
    let rows: Vec<f64> = cases[0].with(|queries, layer, _| {
        let weights = pattern(Kernels::Textbook, queries, layer, &cases[0].rule, 0..tokens).expect("shapes that fit");
        for _ in &cases {
            let mixed = Array2::from_shape_fn((tokens, tokens), |(query, key)| {
                let mean = (0..heads).map(|head| f64::from(weights[(head * tokens + query) * tokens + key])).sum::<f64>() / heads as f64;
                (mean + f64::from(u8::from(query == key))) / 2.0
            });
            product = product.dot(&mixed);
        }
        let mut sums = vec![0.0; tokens * heads];
        let (mut out, workers) = (vec![0.0; queries.values.len()], Workers::new(2));
        attend(Kernels::Fast, queries, layer, &cases[0].rule, &mut out, Some(&mut sums), &workers).expect("shapes that fit");
        let attended = Attended { queries: *queries, layer: *layer, rule: cases[0].rule, log_sum_exp: &sums };
        rollout(Kernels::Fast, &[attended; 3], target, &workers).expect("shapes that fit")
    });
    assert!((rows.iter().sum::<f64>() - 1.0).abs() < 1e-5);
    for (found, wanted) in rows.iter().zip(product.row(target)) {
        assert!((found - wanted).abs() <= 1e-5 * wanted.max(1e-3), "{found}, wanted {wanted}");
    }
    assert!(rows[target + 1..].iter().all(|later| *later == 0.0));
}
