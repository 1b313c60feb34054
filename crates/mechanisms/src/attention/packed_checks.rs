//! Several texts in one layer, padding and prefixes; and what attention is without positions and without a mask.

use super::*;
use crate::cache::{Cache, LayerShape};
use glassbox_testkit::Values;

const TOKENS: usize = 600;

fn heads() -> Heads {
    Heads::new(4, 2, 8).expect("two groups of two")
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut values = Values::seeded(seed);
    std::iter::repeat_with(|| values.between(-2.0, 2.0)).take(count).collect()
}

fn cache_of(keys: &[f32], values: &[f32]) -> Cache {
    let shape = LayerShape { kv_heads: heads().kv_heads(), d_head: heads().d_head() };
    let mut cache = Cache::new(&[shape], keys.len() / heads().kv_width(), u64::MAX).expect("no limit");
    cache.append(0, keys, values).expect("they fit");
    cache
}

fn rule(keys: KeyRange, alibi: Option<Alibi>) -> Rule {
    Rule { keys, scale: 0.4, soft_cap: None, alibi }
}

fn run(kernels: Kernels, q: &[f32], first_position: usize, cache: &Cache, rule: &Rule, texts: Option<&[Text]>) -> (Vec<f32>, Vec<f32>) {
    let queries = Queries { values: q, heads: heads(), first_position, texts, hidden: None };
    let (mut out, mut sums) = (vec![f32::NAN; q.len()], vec![f32::NAN; q.len() / heads().d_head()]);
    let layer = cache.layer(0).expect("one layer");
    attend(kernels, &queries, &layer, rule, &mut out, Some(&mut sums), &Workers::new(1)).expect("shapes that fit");
    (out, sums)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() }).fold(0.0, f32::max)
}

fn text(positions: Range<usize>, prefix: usize) -> Text {
    Text { positions, prefix }
}

#[test]
fn fast_attention_agrees_with_the_textbook_under_every_combination_of_masks() {
    let (q, k, v) = (numbers(TOKENS * 32, 1), numbers(TOKENS * 16, 2), numbers(TOKENS * 16, 3));
    let cache = cache_of(&k, &v);
    let alibi = Alibi::new(8.0).expect("the paper's");
    let packed = [text(5..63, 0), text(64..130, 9), text(130..520, 200), text(550..TOKENS, 0)];
    for keys in
        [KeyRange::causal(), KeyRange::causal_window(40), KeyRange::everything(), KeyRange { causal: false, ..KeyRange::causal_window(9) }]
    {
        for alibi in [None, Some(alibi)] {
            let rule = rule(keys, alibi);
            let (truth, truth_sums) = run(Kernels::Textbook, &q, 0, &cache, &rule, Some(&packed));
            let (found, sums) = run(Kernels::Fast, &q, 0, &cache, &rule, Some(&packed));
            assert!(furthest(&found, &truth) < 3e-6 && furthest(&sums, &truth_sums) < 3e-5, "{rule:?}");
            assert!(found.iter().all(|value| !value.is_nan()));
            // Padding: before, between, after the texts.
            for token in [0, 4, 63, 520, 549] {
                assert!(found[token * 32..(token + 1) * 32].iter().all(|value| value.to_bits() == 0), "token {token}");
            }
            let queries = Queries { values: &q, heads: heads(), first_position: 0, texts: Some(&packed), hidden: None };
            let layer = cache.layer(0).expect("one layer");
            let weights = pattern(Kernels::Fast, &queries, &layer, &rule, 100..101).expect("one query");
            for (key, weight) in weights[..TOKENS].iter().enumerate() {
                assert!(*weight == 0.0 || keys.keys_among(&packed, 100, TOKENS).contains(&key), "key {key}");
            }
            let empty = pattern(Kernels::Fast, &queries, &layer, &rule, 63..64).expect("one query");
            assert_eq!(empty, vec![0.0; 4 * TOKENS]);
        }
    }
}

#[test]
fn a_packed_text_gives_what_it_gives_alone() {
    let (q, k, v) = (numbers(TOKENS * 32, 4), numbers(TOKENS * 16, 5), numbers(TOKENS * 16, 6));
    let whole = cache_of(&k, &v);
    let alibi = Alibi::new(8.0).expect("the paper's");
    for (positions, same_bits) in [(0..70, true), (70..300, false), (512..TOKENS, true)] {
        for (keys, alibi) in [(KeyRange::causal(), None), (KeyRange::causal_window(17), Some(alibi)), (KeyRange::everything(), None)] {
            let rule = rule(keys, alibi);
            let of = |values: &[f32], width: usize| values[positions.start * width..positions.end * width].to_vec();
            let alone = run(Kernels::Fast, &of(&q, 32), 0, &cache_of(&of(&k, 16), &of(&v, 16)), &rule, None).0;
            let texts = [text(0..70, 0), text(70..300, 0), text(512..TOKENS, 0)];
            let packed = run(Kernels::Fast, &of(&q, 32), positions.start, &whole, &rule, Some(&texts)).0;
            assert!(furthest(&packed, &alone) < 2e-6, "{positions:?}, {rule:?}");
            // Sums are taken in chunks of 512 keys: a text that begins with one has the same chunks as alone.
            assert!(!same_bits || bits(&packed) == bits(&alone), "{positions:?}, {rule:?}");
        }
    }
}

#[test]
fn what_padding_holds_changes_no_bit() {
    let (q, mut k, mut v) = (numbers(200 * 32, 7), numbers(200 * 16, 8), numbers(200 * 16, 9));
    let texts = [text(20..90, 0), text(100..180, 5)];
    let before = run(Kernels::Fast, &q, 0, &cache_of(&k, &v), &rule(KeyRange::causal(), None), Some(&texts)).0;
    for padding in [0..20, 90..100, 180..200] {
        k[padding.start * 16..padding.end * 16].fill(f32::NAN);
        v[padding.start * 16..padding.end * 16].fill(f32::INFINITY);
    }
    let after = run(Kernels::Fast, &q, 0, &cache_of(&k, &v), &rule(KeyRange::causal(), None), Some(&texts)).0;
    assert_eq!(bits(&before), bits(&after));
}

/// Tokens in another order: row `t` of the result is row `order(t)`.
fn permuted(rows: &[f32], width: usize, order: impl Fn(usize) -> usize) -> Vec<f32> {
    (0..rows.len() / width).flat_map(|token| rows[order(token) * width..(order(token) + 1) * width].to_vec()).collect()
}

#[test]
fn without_positions_and_without_a_mask_permuting_the_tokens_permutes_the_output() {
    let tokens = 97;
    let order = |token: usize| token * 31 % tokens; // 31 and 97 have no common divisor
    let (q, k, v) = (numbers(tokens * 32, 10), numbers(tokens * 16, 11), numbers(tokens * 16, 12));
    let moved = cache_of(&permuted(&k, 16, order), &permuted(&v, 16, order));
    let distance = |kernels: Kernels, rule: &Rule| {
        let before = run(kernels, &q, 0, &cache_of(&k, &v), rule, None).0;
        let after = run(kernels, &permuted(&q, 32, order), 0, &moved, rule, None).0;
        furthest(&after, &permuted(&before, 32, order))
    };
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        assert!(distance(kernels, &rule(KeyRange::everything(), None)) < 2e-6, "only the order of sums differs");
        assert!(distance(kernels, &rule(KeyRange::causal(), None)) > 0.1, "a causal mask is a position");
        assert!(distance(kernels, &rule(KeyRange::everything(), Some(Alibi::new(8.0).expect("the paper's")))) > 0.1, "so is a distance");
    }
}
