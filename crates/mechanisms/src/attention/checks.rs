mod stored;

use super::lanes::{Lanes, Portable};
use super::*;
use crate::cache::{Cache, LayerShape, TILE};
use glassbox_testkit::{Values, agree, sizes_across};
use ndarray::Array2;

/// One layer of random keys and values, and queries for all its positions.
struct Case {
    heads: Heads,
    cache: Cache,
    queries: Vec<f32>,
    values: Vec<f32>,
}

fn numbers(count: usize, size: f32, seed: u64) -> Vec<f32> {
    let mut values = Values::seeded(seed);
    std::iter::repeat_with(|| values.between(-size, size)).take(count).collect()
}

impl Case {
    /// `size` is the largest value of queries and keys; what the cache holds beyond the stored tokens is 1e4.
    fn new(heads: (usize, usize, usize), tokens: usize, size: f32) -> Self {
        let heads = Heads::new(heads.0, heads.1, heads.2).expect("heads that divide");
        let (keys, values) = (numbers(tokens * heads.kv_width(), size, 1), numbers(tokens * heads.kv_width(), 1.0, 2));
        Self { heads, cache: cache_of(heads, &keys, &values), queries: numbers(tokens * heads.query_width(), size, 3), values }
    }

    fn layer(&self) -> LayerView<'_> {
        self.cache.layer(0).expect("one layer")
    }

    fn queries(&self, tokens: Range<usize>) -> Queries<'_> {
        let width = self.heads.query_width();
        Queries {
            values: &self.queries[tokens.start * width..tokens.end * width],
            heads: self.heads,
            first_position: tokens.start,
            texts: None,
            hidden: None,
        }
    }

    fn run(&self, kernels: Kernels, tokens: Range<usize>, rule: &Rule, threads: usize) -> (Vec<f32>, Vec<f32>) {
        let queries = self.queries(tokens.clone());
        let (mut out, mut sums) = (vec![f32::NAN; queries.values.len()], vec![f32::NAN; tokens.len() * self.heads.heads()]);
        attend(kernels, &queries, &self.layer(), rule, &mut out, Some(&mut sums), &Workers::new(threads)).expect("shapes that fit");
        (out, sums)
    }

    /// The steps `L`, with all threads at work however small the work is.
    fn run_with<L: Lanes>(&self, tokens: Range<usize>, rule: &Rule, workers: &Workers) -> (Vec<f32>, Vec<f32>) {
        let queries = self.queries(tokens.clone());
        let (mut out, mut sums) = (vec![f32::NAN; queries.values.len()], vec![f32::NAN; tokens.len() * self.heads.heads()]);
        let results = Results { asked: Asked::default(), out: &mut out, log_sum_exp: Some(&mut sums), statistics: None };
        fast::attend_with::<L, Nobody>(&queries, &self.layer(), rule, results, workers);
        (out, sums)
    }

    fn tokens(&self) -> usize {
        self.layer().len()
    }
}

fn cache_of(heads: Heads, keys: &[f32], values: &[f32]) -> Cache {
    let shape = LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() };
    let mut cache = Cache::new(&[shape], 4096, u64::MAX).expect("no limit");
    cache.append(0, keys, values).expect("they fit");
    cache.poison();
    cache.append(0, keys, values).expect("they fit");
    cache
}

fn rule(keys: KeyRange, d_head: usize) -> Rule {
    Rule { keys, scale: 1.0 / (d_head as f32).sqrt(), soft_cap: None, alibi: None }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The textbook's formula with every number and operation in `f32`: the error that plain single precision makes.
fn textbook_in_f32(case: &Case, rule: &Rule) -> Vec<f32> {
    let (heads, layer) = (&case.heads, case.layer());
    let queries = case.queries(0..case.tokens());
    let mut out = vec![0.0; queries.values.len()];
    for head in 0..heads.heads() {
        let kv_head = heads.kv_head_of(head);
        for token in 0..case.tokens() {
            let keys = rule.keys.keys(token, layer.len());
            let score = |key: usize| -> f32 {
                let dot: f32 = queries.query(token, head).iter().zip(layer.key(kv_head, key)).map(|(q, k)| q * k).sum();
                let score = dot * rule.scale;
                rule.soft_cap.map_or(score, |cap| cap * (score / cap).tanh())
            };
            let scores: Vec<f32> = keys.clone().map(score).collect();
            let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = scores.iter().map(|score| (score - max).exp()).sum();
            let out = &mut out[(token * heads.heads() + head) * heads.d_head()..][..heads.d_head()];
            for (key, score) in keys.zip(scores) {
                let weight = (score - max).exp() / sum;
                out.iter_mut().zip(layer.value(kv_head, key)).for_each(|(out, v)| *out += weight * v);
            }
        }
    }
    out
}

/// The largest distance of `found` from the textbook, which stands for the truth.
fn error(found: &[f32], truth: &[f32]) -> f64 {
    found.iter().zip(truth).map(|(&a, &b)| (f64::from(a) - f64::from(b)).abs()).fold(0.0, f64::max)
}

/// Lengths on both sides of every border of a tile, and of a chunk.
fn lengths() -> Vec<usize> {
    [sizes_across(TILE), vec![9, 8 * TILE + 1]].concat()
}

#[test]
fn fast_attention_is_at_most_twice_as_far_from_the_truth_as_the_textbook_in_single_precision() {
    for tokens in lengths() {
        for heads in [(1, 1, 8), (4, 2, 20), (7, 1, 16)] {
            if tokens > 300 && heads.0 > 1 {
                continue;
            }
            for (keys, soft_cap, size) in [
                (KeyRange::causal(), None, 1.0),
                (KeyRange::causal_window(70), Some(5.0), 4.0),
                (KeyRange::everything(), None, 4.0),
                (KeyRange::causal(), None, 30.0), // saturating scores
            ] {
                let case = Case::new(heads, tokens, size);
                let rule = Rule { soft_cap, ..rule(keys, heads.2) };
                let (truth, truth_sums) = case.run(Kernels::Textbook, 0..tokens, &rule, 1);
                let (found, sums) = case.run(Kernels::Fast, 0..tokens, &rule, 1);
                let wide = crate::softmax::textbook::widen(&truth);
                if let Err(disagreement) = agree(&found, &textbook_in_f32(&case, &rule), &wide) {
                    panic!("{heads:?}, {tokens} tokens, {rule:?}: {disagreement}");
                }
                let largest = truth_sums.iter().fold(1.0_f32, |max, sum| max.max(sum.abs()));
                assert!(error(&sums, &truth_sums) <= f64::from(largest) * 1e-6);
            }
        }
    }
}

#[track_caller]
fn near(found: &[f32], wanted: &[f32], tolerance: f32) {
    assert_eq!(found.len(), wanted.len());
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= tolerance, "at {index}: {found}, wanted {wanted}");
    }
}

#[test]
fn the_example_of_the_book_has_the_right_weights_and_outputs() {
    let heads = Heads::new(1, 1, 2).expect("one head");
    let cache = cache_of(heads, &[1.0, 0.0, 1.0, 1.0, 0.0, 2.0], &[0.2, 0.1, 0.5, 0.3, 0.9, 0.8]);
    let queries = Queries { values: &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0], heads, first_position: 0, texts: None, hidden: None };
    let layer = cache.layer(0).expect("one layer");
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let unscaled = Rule { keys: KeyRange::everything(), scale: 1.0, soft_cap: None, alibi: None };
        let found = scores(kernels, &queries, &layer, &unscaled, 0..3).expect("three queries");
        assert_eq!(found, [1.0, 1.0, 0.0, 1.0, 2.0, 2.0, 1.0, 3.0, 4.0]);

        let rule = rule(KeyRange::causal(), 2);
        let weights = pattern(kernels, &queries, &layer, &rule, 0..3).expect("three queries");
        near(&weights, &[1.0, 0.0, 0.0, 0.3302, 0.6698, 0.0, 0.0743, 0.3057, 0.6200], 5e-5);
        let mut out = [0.0; 6];
        attend(kernels, &queries, &layer, &rule, &mut out, None, &Workers::new(1)).expect("shapes that fit");
        near(&out, &[0.2, 0.1, 0.4009, 0.2340, 0.7257, 0.5951], 5e-5);

        // What is often printed for the last row, [0.04, 0.26, 0.70], is the softmax without the scale.
        let last = pattern(kernels, &queries, &layer, &unscaled, 2..3).expect("the last query");
        near(&last, &[0.0351, 0.2595, 0.7054], 5e-5);
    }
}

#[cfg(target_arch = "x86_64")]
type Vector = super::simd::Avx2;
#[cfg(not(target_arch = "x86_64"))]
type Vector = Portable;

#[test]
fn one_row_has_the_same_bits_alone_in_company_and_on_any_number_of_threads() {
    if cfg!(target_arch = "x86_64") && !crate::elementary::avx2_fma() {
        return; // the vector steps cannot run here
    }
    let tokens = 1_150;
    let crews = [1, 2, 3, 8].map(Workers::new);
    for (heads, keys, soft_cap) in [
        ((4, 2, 16), KeyRange::causal(), None),
        ((2, 2, 24), KeyRange::causal_window(100), None),
        ((7, 1, 8), KeyRange::causal(), Some(3.0)),
        ((2, 1, 16), KeyRange::causal_window(700), None),
    ] {
        let case = Case::new(heads, tokens, 2.0);
        let rule = Rule { soft_cap, ..rule(keys, heads.2) };
        let (all, all_sums) = case.run(Kernels::Fast, 0..tokens, &rule, 1);
        let width = case.heads.query_width();
        for workers in &crews {
            let (again, sums) = case.run_with::<Vector>(0..tokens, &rule, workers);
            assert_eq!((bits(&again), bits(&sums)), (bits(&all), bits(&all_sums)), "{workers:?}");
        }
        for (chunk, stride) in [(1, 97), (7, 7 * 19), (64, 64)] {
            for first in (0..tokens).step_by(stride).chain([tokens - 1]) {
                let part = first..(first + chunk).min(tokens);
                for workers in [&crews[0], &crews[2]] {
                    let (found, _) = case.run_with::<Vector>(part.clone(), &rule, workers);
                    let wanted = &all[part.start * width..part.end * width];
                    assert_eq!(bits(&found), bits(wanted), "tokens {part:?}, {workers:?}, {heads:?}");
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_when_later_tokens_are_not_stored_yet() {
    let case = Case::new((4, 2, 16), 700, 2.0);
    let rule = rule(KeyRange::causal(), 16);
    let (all, _) = case.run(Kernels::Fast, 0..700, &rule, 1);
    let (keys, values) = (numbers(700 * 32, 2.0, 1), numbers(700 * 32, 1.0, 2));
    for stored in [1, 15, 64, 65, 511, 513] {
        let cache = cache_of(case.heads, &keys[..stored * 32], &values[..stored * 32]);
        let queries = Queries { first_position: stored - 1, ..case.queries(stored - 1..stored) };
        let mut out = vec![0.0; 64];
        let layer = cache.layer(0).expect("one layer");
        attend(Kernels::Fast, &queries, &layer, &rule, &mut out, None, &Workers::new(1)).expect("shapes that fit");
        assert_eq!(bits(&out), bits(&all[(stored - 1) * 64..stored * 64]), "{stored} stored");
    }
}

#[test]
fn vector_code_gives_the_bits_of_portable_code() {
    for (heads, tokens) in [((6, 2, 20), 150), ((1, 1, 8), 600), ((5, 1, 64), 70)] {
        for (keys, soft_cap) in [(KeyRange::causal(), None), (KeyRange::causal_window(33), Some(2.0)), (KeyRange::everything(), None)] {
            let case = Case::new(heads, tokens, 3.0);
            let rule = Rule { soft_cap, ..rule(keys, heads.2) };
            let (vector, vector_sums) = case.run(Kernels::Fast, 0..tokens, &rule, 1);
            let (portable, sums) = case.run_with::<Portable>(0..tokens, &rule, &Workers::new(2));
            assert_eq!((bits(&vector), bits(&vector_sums)), (bits(&portable), bits(&sums)), "{heads:?}, {rule:?}");
        }
    }
}

#[test]
fn changing_a_token_leaves_every_earlier_output_bit_identical() {
    let case = Case::new((4, 2, 16), 200, 2.0);
    let rule = rule(KeyRange::causal(), 16);
    let (before, _) = case.run(Kernels::Fast, 0..200, &rule, 1);
    for changed in [0, 1, 63, 64, 130, 199] {
        let (mut keys, mut values) = (numbers(200 * 32, 2.0, 1), numbers(200 * 32, 1.0, 2));
        keys[changed * 32..(changed + 1) * 32].fill(f32::NAN);
        values[changed * 32..(changed + 1) * 32].fill(f32::INFINITY);
        let other = Case { cache: cache_of(case.heads, &keys, &values), queries: case.queries.clone(), values, ..case };
        let (after, _) = other.run(Kernels::Fast, 0..200, &rule, 1);
        assert_eq!(bits(&before[..changed * 64]), bits(&after[..changed * 64]));
        assert!(after[changed * 64..].iter().all(|value| value.is_nan()), "a NaN in a visible key must show");
    }
}

#[test]
fn a_row_that_sees_nothing_gives_zeros_and_minus_infinity() {
    let case = Case::new((2, 1, 8), 10, 1.0);
    let queries = Queries { first_position: 500, ..case.queries(0..3) };
    let rule = rule(KeyRange::causal_window(4), 8);
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let (mut out, mut sums) = (vec![1.0; 3 * 16], vec![1.0; 6]);
        attend(kernels, &queries, &case.layer(), &rule, &mut out, Some(&mut sums), &Workers::new(1)).expect("shapes that fit");
        assert_eq!((out, sums), (vec![0.0; 3 * 16], vec![f32::NEG_INFINITY; 6]));
        let pattern = pattern(kernels, &queries, &case.layer(), &rule, 0..3).expect("three queries");
        assert_eq!(pattern, vec![0.0; 2 * 3 * 10]);
    }
    let empty = Cache::new(&[LayerShape { kv_heads: 1, d_head: 8 }], 10, u64::MAX).expect("no limit");
    let mut out = vec![1.0; 3 * 16];
    let layer = empty.layer(0).expect("one layer");
    attend(Kernels::Fast, &queries, &layer, &rule, &mut out, None, &Workers::new(2)).expect("shapes that fit");
    assert_eq!(out, vec![0.0; 3 * 16]);
}

#[test]
fn no_score_is_low_enough_to_be_taken_for_a_mask() {
    // Two tokens, one visible to the first: its score of -20000 must still get weight 1.
    let heads = Heads::new(1, 1, 1).expect("one head");
    let cache = cache_of(heads, &[1.0, 0.0], &[1.0, 100.0]);
    let queries = Queries { values: &[-20_000.0, 0.0], heads, first_position: 0, texts: None, hidden: None };
    let rule = Rule { keys: KeyRange::causal(), scale: 1.0, soft_cap: None, alibi: None };
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let mut out = [0.0; 2];
        attend(kernels, &queries, &cache.layer(0).expect("one layer"), &rule, &mut out, None, &Workers::new(1)).expect("shapes that fit");
        assert_eq!(out, [1.0, 50.5]);
    }
}

#[test]
fn large_dot_products_do_not_overflow_before_scaling() {
    let heads = Heads::new(1, 1, 128).expect("one head");
    let cache = cache_of(heads, &[32.0; 128], &[1.0; 128]);
    let queries = Queries { values: &[32.0; 128], heads, first_position: 0, texts: None, hidden: None };
    let rule = rule(KeyRange::causal(), 128);
    let layer = cache.layer(0).expect("one layer");
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let scores = scores(kernels, &queries, &layer, &rule, 0..1).expect("one query");
        assert!((scores[0] - 11_585.237).abs() < 1e-3, "{scores:?}");
        let (mut out, mut sums) = ([0.0; 128], [0.0]);
        attend(kernels, &queries, &layer, &rule, &mut out, Some(&mut sums), &Workers::new(1)).expect("shapes that fit");
        assert_eq!((out, sums[0]), ([1.0; 128], scores[0]));
    }
}

#[test]
fn query_heads_read_the_key_value_head_of_their_group() {
    // Values of key-value head 0 are 0, of head 1 are 1: query heads 0, 1 read zeros, heads 2, 3 ones.
    let heads = Heads::new(4, 2, 8).expect("two groups of two");
    let values: Vec<f32> = (0..5 * 16).map(|index| (index / 8 % 2) as f32).collect();
    let cache = cache_of(heads, &numbers(5 * 16, 1.0, 4), &values);
    let q = numbers(5 * 32, 1.0, 5);
    let queries = Queries { values: &q, heads, first_position: 0, texts: None, hidden: None };
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let mut out = vec![0.0; 5 * 32];
        let layer = cache.layer(0).expect("one layer");
        attend(kernels, &queries, &layer, &rule(KeyRange::causal(), 8), &mut out, None, &Workers::new(1)).expect("shapes that fit");
        for (index, value) in out.iter().enumerate() {
            let wanted = (index / 8 % 4 / 2) as f32;
            assert!((value - wanted).abs() < 1e-6, "head {} of token {}: {value}", index / 8 % 4, index / 32);
        }
    }
}

#[test]
fn shared_heads_equal_their_own_copies() {
    let (shared, tokens) = (Case::new((4, 2, 8), 70, 1.0), 70);
    let (keys, values) = (numbers(tokens * 16, 1.0, 1), &shared.values);
    let copy = |rows: &[f32]| rows.chunks(8).flat_map(|row| [row, row].concat()).collect::<Vec<f32>>();
    let heads = Heads::new(4, 4, 8).expect("one each");
    let own = Case { heads, cache: cache_of(heads, &copy(&keys), &copy(values)), queries: shared.queries.clone(), values: Vec::new() };
    let rule = rule(KeyRange::causal(), 8);
    assert_eq!(bits(&shared.run(Kernels::Fast, 0..70, &rule, 1).0), bits(&own.run(Kernels::Fast, 0..70, &rule, 1).0));
}

#[test]
fn the_recomputed_pattern_sums_to_one_and_mixes_to_the_same_output() {
    for (heads, keys, soft_cap, size) in [
        ((4, 2, 16), KeyRange::causal(), None, 2.0),
        ((2, 1, 20), KeyRange::causal_window(50), Some(4.0), 5.0),
        ((1, 1, 8), KeyRange::causal(), None, 40.0),
    ] {
        let case = Case::new(heads, 150, size);
        let rule = Rule { soft_cap, ..rule(keys, heads.2) };
        let layer = case.layer();
        let (out, sums) = case.run(Kernels::Fast, 0..150, &rule, 1);
        let queries = case.queries(0..150);
        let fast = pattern(Kernels::Fast, &queries, &layer, &rule, 0..150).expect("all queries");
        let truth = pattern(Kernels::Textbook, &queries, &layer, &rule, 0..150).expect("all queries");
        assert!(error(&fast, &truth) < 5e-6 * f64::from(size).max(1.0));
        for (row, weights) in fast.chunks(150).enumerate() {
            let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            assert!((sum - 1.0).abs() < 1e-6, "row {row} sums to {sum}");
            let visible = rule.keys.keys(row % 150, 150);
            assert!(weights.iter().enumerate().all(|(key, &weight)| visible.contains(&key) || weight == 0.0));
        }
        let mut mixed = vec![0.0; out.len()];
        mix(&fast, &case.heads, &layer, &mut mixed).expect("shapes that fit");
        assert!(error(&mixed, &out) < 2e-6, "{}", error(&mixed, &out));

        let part = scores(Kernels::Fast, &queries, &layer, &rule, 30..40).expect("ten queries");
        let all = scores(Kernels::Fast, &queries, &layer, &rule, 0..150).expect("all queries");
        for head in 0..heads.0 {
            assert_eq!(bits(&part[head * 1500..(head + 1) * 1500]), bits(&all[(head * 150 + 30) * 150..(head * 150 + 40) * 150]));
        }
        for (row, sum) in all.chunks(150).zip(&sums) {
            let again = crate::softmax::log_sum_exp(Kernels::Fast, row);
            assert!((again - sum).abs() <= 1e-5 + sum.abs() * 2e-7, "{again} and {sum}");
        }
    }
}

#[test]
fn recomputed_scores_are_the_kernels_own_bit_for_bit() {
    // With one visible key the log-sum-exp is that key's score: max + ln(1).
    let case = Case::new((4, 2, 20), 130, 3.0);
    let rule = Rule { soft_cap: Some(6.0), ..rule(KeyRange::causal_window(1), 20) };
    let (_, sums) = case.run(Kernels::Fast, 0..130, &rule, 1);
    let scores = scores(Kernels::Fast, &case.queries(0..130), &case.layer(), &rule, 0..130).expect("all queries");
    let own: Vec<f32> = scores.chunks(130).enumerate().map(|(row, scores)| scores[row % 130]).collect();
    assert_eq!(bits(&own), bits(&sums));
}

#[test]
fn wrong_shapes_are_refused_and_not_a_panic() {
    let case = Case::new((2, 1, 8), 10, 1.0);
    let rule = rule(KeyRange::causal(), 8);
    let (layer, workers) = (case.layer(), Workers::new(1));
    let queries = case.queries(0..3);
    assert!(attend(Kernels::Fast, &queries, &layer, &rule, &mut [0.0; 47], None, &workers).is_err());
    assert!(attend(Kernels::Fast, &queries, &layer, &rule, &mut [0.0; 48], Some(&mut [0.0; 5]), &workers).is_err());
    let other = Queries { heads: Heads::new(2, 2, 8).expect("one each"), ..queries };
    assert!(attend(Kernels::Fast, &other, &layer, &rule, &mut [0.0; 48], None, &workers).is_err());
    let other = Queries { heads: Heads::new(4, 2, 4).expect("two each"), ..queries };
    assert!(attend(Kernels::Fast, &other, &layer, &rule, &mut [0.0; 48], None, &workers).is_err());
    assert!(scores(Kernels::Fast, &queries, &layer, &rule, 2..4).is_err());
    assert!(mix(&[0.0; 3], &case.heads, &layer, &mut [0.0; 48]).is_err());
}

/// A wrong attention of one head; the measure that accepts the right one must reject it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    None,
    /// A new maximum does not rescale what was summed and mixed.
    NoRescale,
    /// A query sees the token after it.
    MaskOffByOne,
    /// Hidden keys get a score of -10000 instead of none.
    Sentinel,
}

fn online(q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, bug: Bug) -> Array2<f64> {
    let mut out = Array2::zeros((q.nrows(), v.ncols()));
    for query in 0..q.nrows() {
        let (mut m, mut l) = (f64::NEG_INFINITY, 0.0);
        let last = query + usize::from(bug == Bug::MaskOffByOne);
        for tile in 0..k.nrows().div_ceil(TILE) {
            let keys = tile * TILE..((tile + 1) * TILE).min(k.nrows());
            let score = |key: usize| match (key <= last, bug) {
                (true, _) => q.row(query).dot(&k.row(key)),
                (false, Bug::Sentinel) => -10_000.0,
                (false, _) => f64::NEG_INFINITY,
            };
            let scores: Vec<f64> = keys.clone().map(score).collect();
            let new = scores.iter().copied().fold(m, f64::max);
            let factor = if bug == Bug::NoRescale { 1.0 } else { (m - new).exp() };
            l *= factor;
            out.row_mut(query).mapv_inplace(|mixed: f64| mixed * factor);
            for (key, score) in keys.zip(scores) {
                l += (score - new).exp();
                out.row_mut(query).scaled_add((score - new).exp(), &v.row(key));
            }
            m = new;
        }
        out.row_mut(query).mapv_inplace(|mixed| mixed / l);
    }
    out
}

fn is_caught(q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, bug: Bug) -> bool {
    let rule = Rule { keys: KeyRange::causal(), scale: 1.0, soft_cap: None, alibi: None };
    let (truth, _) = textbook::attend(q, k, v, 0, &rule, None, 0.0);
    !online(q, k, v, bug).iter().zip(&truth).all(|(found, truth)| (found - truth).abs() <= 1e-5)
}

#[test]
fn planted_bugs_are_caught_by_the_grid_of_lengths() {
    let caught = |bug: Bug, tokens: usize| {
        let matrix = |size, seed| Array2::from_shape_vec((tokens, 8), crate::softmax::textbook::widen(&numbers(tokens * 8, size, seed)));
        let [q, k, v] = [(3.0, 1), (1.0, 2), (1.0, 3)].map(|(size, seed)| matrix(size, seed).expect("whole rows"));
        is_caught(&q, &k, &v, bug)
    };
    assert!(lengths().into_iter().all(|tokens| !caught(Bug::None, tokens)));
    assert!(caught(Bug::NoRescale, 8 * TILE));
    assert!(!caught(Bug::NoRescale, TILE), "inside one tile this bug cannot show");
    assert!(caught(Bug::MaskOffByOne, TILE - 1) && !caught(Bug::MaskOffByOne, 1));
    assert!(lengths().into_iter().all(|tokens| !caught(Bug::Sentinel, tokens)), "ordinary scores do not reach the sentinel");
    let [q, k, v] = [[-20_000.0, 0.0], [1.0, 0.0], [1.0, 100.0]].map(|column| Array2::from(vec![[column[0]], [column[1]]]));
    assert!(is_caught(&q, &k, &v, Bug::Sentinel) && !is_caught(&q, &k, &v, Bug::None));
}

/// A planted bug: `head % kv_heads` in place of `head / group`. With one head each, or one for all, it cannot show.
#[test]
fn tiled_head_sharing_is_caught_by_groups_of_two() {
    for (heads, shows) in [((4, 2, 8), true), ((4, 4, 8), false), ((4, 1, 8), false)] {
        let case = Case::new(heads, 20, 1.0);
        let rule = rule(KeyRange::causal(), 8);
        let right = scores(Kernels::Fast, &case.queries(0..20), &case.layer(), &rule, 0..20).expect("all queries");
        let wrong = |head: usize, query: usize, key: usize| {
            let (q, k) = (&case.queries[(query * 4 + head) * 8..][..8], case.layer().key(head % heads.1, key));
            q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>() * rule.scale
        };
        let differs = (0..4).any(|head| (right[(head * 20 + 19) * 20 + 3] - wrong(head, 19, 3)).abs() > 1e-4);
        assert_eq!(differs, shows, "{heads:?}");
    }
}
