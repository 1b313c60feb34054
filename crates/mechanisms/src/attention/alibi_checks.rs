use super::*;
use crate::attention::lanes::Portable;
use crate::cache::{Cache, LayerShape};
use glassbox_testkit::Values;

const TOKENS: usize = 580;

struct Case {
    heads: Heads,
    cache: Cache,
    queries: Vec<f32>,
}

impl Case {
    fn new(heads: (usize, usize, usize), seed: u64) -> Self {
        let heads = Heads::new(heads.0, heads.1, heads.2).expect("heads that divide");
        let mut values = Values::seeded(seed);
        let mut numbers = |count: usize| -> Vec<f32> { std::iter::repeat_with(|| values.between(-2.0, 2.0)).take(count).collect() };
        let mut cache =
            Cache::new(&[LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() }], TOKENS, u64::MAX).expect("no limit");
        cache.append(0, &numbers(TOKENS * heads.kv_width()), &numbers(TOKENS * heads.kv_width())).expect("they fit");
        Self { heads, cache, queries: numbers(TOKENS * heads.query_width()) }
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

    fn attend(&self, kernels: Kernels, tokens: Range<usize>, rule: &Rule, threads: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; tokens.len() * self.heads.query_width()];
        let layer = self.cache.layer(0).expect("one layer");
        attend(kernels, &self.queries(tokens), &layer, rule, &mut out, None, &Workers::new(threads)).expect("shapes that fit");
        out
    }

    fn pattern(&self, kernels: Kernels, rule: &Rule, tokens: Range<usize>) -> Vec<f32> {
        let layer = self.cache.layer(0).expect("one layer");
        pattern(kernels, &self.queries(0..TOKENS), &layer, rule, tokens).expect("tokens that are there")
    }
}

fn rule(keys: KeyRange) -> Rule {
    Rule { keys, scale: 0.3, soft_cap: None, alibi: Some(Alibi::new(8.0).expect("the paper's")) }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn scores_fall_by_each_heads_slope_times_the_distance() {
    for heads in [(6, 2, 8), (4, 4, 16), (12, 1, 8)] {
        let case = Case::new(heads, 1);
        for keys in [KeyRange::causal(), KeyRange::causal_window(90), KeyRange::everything()] {
            let (with, without) = (rule(keys), Rule { alibi: None, ..rule(keys) });
            for kernels in [Kernels::Textbook, Kernels::Fast] {
                let layer = case.cache.layer(0).expect("one layer");
                let of = |rule: &Rule| scores(kernels, &case.queries(0..TOKENS), &layer, rule, 560..563).expect("three queries");
                for (index, (with, without)) in of(&with).iter().zip(of(&without)).enumerate() {
                    let (head, query, key) = (index / (3 * TOKENS), 560 + index / TOKENS % 3, index % TOKENS);
                    let slope = crate::position::textbook::alibi_slopes(heads.0, 8.0)[head];
                    let wanted = f64::from(without) - slope * query.abs_diff(key) as f64;
                    let near = (f64::from(*with) - wanted).abs() <= 1e-6 * wanted.abs().max(8.0);
                    assert!(near || *with == without, "head {head}, query {query}, key {key}: {with}, wanted {wanted}");
                    assert_eq!(with.is_finite(), keys.keys(query, TOKENS).contains(&key));
                }
            }
        }
    }
}

#[test]
fn fast_attention_with_distance_agrees_with_the_textbook() {
    for heads in [(6, 2, 8), (8, 8, 16), (3, 1, 20)] {
        let case = Case::new(heads, 2);
        for keys in [KeyRange::causal(), KeyRange::causal_window(90), KeyRange::everything()] {
            let tokens = 0..TOKENS;
            let truth = case.attend(Kernels::Textbook, tokens.clone(), &rule(keys), 1);
            // Scores reach 350 in the steepest head far away, where weights are nothing; near the query they are as small as without distance.
            assert!(furthest(&case.attend(Kernels::Fast, tokens, &rule(keys), 1), &truth) < 3e-6, "{heads:?}, {keys:?}");
        }
    }
}

#[test]
fn rows_with_distance_have_the_same_bits_in_any_company_on_any_threads_and_in_portable_code() {
    let case = Case::new((6, 3, 16), 3);
    for keys in [KeyRange::causal(), KeyRange::causal_window(70)] {
        let rule = rule(keys);
        let width = case.heads.query_width();
        let all = case.attend(Kernels::Fast, 0..TOKENS, &rule, 1);
        assert_eq!(bits(&case.attend(Kernels::Fast, 0..TOKENS, &rule, 3)), bits(&all));
        for chunk in [1, 7, 64] {
            for first in (0..TOKENS - chunk).step_by(53) {
                let part = case.attend(Kernels::Fast, first..first + chunk, &rule, 2);
                assert_eq!(bits(&part), bits(&all[first * width..(first + chunk) * width]), "{chunk} from {first}");
            }
        }
        let mut portable = vec![f32::NAN; all.len()];
        let layer = case.cache.layer(0).expect("one layer");
        let results = Results { asked: Asked::default(), out: &mut portable, log_sum_exp: None, statistics: None };
        fast::attend_with::<Portable, Nobody>(&case.queries(0..TOKENS), &layer, &rule, results, &Workers::new(1));
        assert_eq!(bits(&portable), bits(&all));
    }
}

#[test]
fn a_bias_that_counts_keys_from_the_start_gives_the_same_weights() {
    let case = Case::new((6, 6, 8), 4);
    let found = case.pattern(Kernels::Fast, &rule(KeyRange::causal()), 500..501);
    let layer = case.cache.layer(0).expect("one layer");
    let without = Rule { alibi: None, ..rule(KeyRange::causal()) };
    let mut scores = scores(Kernels::Textbook, &case.queries(0..TOKENS), &layer, &without, 500..501).expect("one query");
    for (head, row) in scores.chunks_exact_mut(TOKENS).enumerate() {
        let slope = crate::position::textbook::alibi_slopes(6, 8.0)[head];
        let biased: Vec<f64> = row.iter().enumerate().map(|(key, score)| f64::from(*score) + slope * key as f64).collect();
        let weights = crate::softmax::textbook::softmax(&biased);
        row.iter_mut().zip(weights).for_each(|(row, weight)| *row = weight as f32);
    }
    assert!(furthest(&found, &scores) < 2e-6, "{}", furthest(&found, &scores));
}

/// Planted bugs of others: slopes of the common formula for any number of heads, an exponent that begins at 0, the sign, no distance at all.
#[test]
fn wrong_slopes_show_in_the_weights() {
    let case = Case::new((6, 2, 8), 5);
    let right = case.pattern(Kernels::Fast, &rule(KeyRange::causal()), 300..301);
    let layer = case.cache.layer(0).expect("one layer");
    let without = Rule { alibi: None, ..rule(KeyRange::causal()) };
    let scores = scores(Kernels::Textbook, &case.queries(0..TOKENS), &layer, &without, 300..301).expect("one query");
    let wrong = |slope: &dyn Fn(usize) -> f64| {
        let row = |(head, row): (usize, &[f32])| {
            let biased: Vec<f64> =
                row.iter().zip(0..).map(|(score, key)| f64::from(*score) - slope(head) * (300.0 - f64::from(key))).collect();
            crate::softmax::textbook::softmax(&biased)
        };
        scores.chunks_exact(TOKENS).enumerate().flat_map(row).map(|weight| weight as f32).collect::<Vec<_>>()
    };
    let slopes = crate::position::textbook::alibi_slopes(6, 8.0);
    assert!(furthest(&right, &wrong(&|head| slopes[head])) < 2e-6, "the comparison itself");
    assert!(furthest(&right, &wrong(&|head| 0.5_f64.powf(8.0 * (head + 1) as f64 / 6.0))) > 1e-2, "naive slopes");
    assert!(furthest(&right, &wrong(&|head| if head < 4 { 0.25_f64.powi(head as i32) } else { slopes[head] })) > 1e-2, "from exponent 0");
    assert!(furthest(&right, &wrong(&|head| -slopes[head])) > 1e-2, "the sign");
    assert!(furthest(&right, &wrong(&|_| 0.0)) > 1e-2, "no distance");
}
