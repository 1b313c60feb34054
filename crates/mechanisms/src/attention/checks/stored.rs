//! Attention over every way to store: rings, forks and small storage types.

use super::*;
use crate::cache::{CachePlan, KvType, LayerPlan, Pool};
use std::num::NonZeroUsize;

const TOKENS: usize = 700;

/// A cache filled by passes of `pass` tokens; the keys and values are those of [`Case::new`].
fn filled(heads: Heads, window: Option<usize>, kv_type: KvType, tokens: Range<usize>, pass: usize, cache: Option<Cache>) -> Cache {
    let layers = vec![LayerPlan {
        shape: LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() },
        window: window.and_then(NonZeroUsize::new),
    }];
    let plan = CachePlan { layers, kv_type, capacity: TOKENS, pass_tokens: pass };
    let mut cache = cache.unwrap_or_else(|| Cache::planned(&plan, &Pool::new(1 << 28)).expect("small"));
    let width = heads.kv_width();
    let (keys, values) = (numbers(TOKENS * width, 2.0, 1), numbers(TOKENS * width, 1.0, 2));
    for first in tokens.clone().step_by(pass) {
        let part = first * width..(first + pass).min(tokens.end) * width;
        cache.append(0, &keys[part.clone()], &values[part.clone()]).expect("they fit");
        cache.advance(part.len() / width).expect("one layer");
    }
    cache
}

/// The last tokens' attention.
fn last(kernels: Kernels, case: &Case, cache: &Cache, tokens: usize, rule: &Rule, workers: &Workers) -> Result<Vec<f32>, MechanismError> {
    let queries = case.queries(cache.len() - tokens..cache.len());
    let mut out = vec![f32::NAN; queries.values.len()];
    attend(kernels, &queries, &cache.layer(0)?, rule, &mut out, None, workers)?;
    Ok(out)
}

#[test]
fn a_ring_gives_the_bits_of_a_cache_that_keeps_everything() {
    let heads = Heads::new(4, 2, 20).expect("groups of two");
    let case = Case::new((4, 2, 20), TOKENS, 2.0);
    let workers = Workers::new(2);
    for kv_type in KvType::ALL {
        for window in [1, 2, 63, 64, 65, 100, 600] {
            let rule = rule(KeyRange::causal_window(window), 20);
            for (len, pass) in [(700, 1), (699, 7), (640, 64), (641, 100)] {
                let whole = filled(heads, None, kv_type, 0..len, 700, None);
                // The last pass is appended and not counted in: what it sees is still there.
                let before = len - len % pass.max(2);
                let mut ring = filled(heads, Some(window), kv_type, 0..before.min(len - 1), pass, None);
                let width = heads.kv_width();
                let part = ring.len() * width..len * width;
                let (keys, values) = (numbers(TOKENS * width, 2.0, 1), numbers(TOKENS * width, 1.0, 2));
                ring.append(0, &keys[part.clone()], &values[part.clone()]).expect("they fit");
                let tokens = part.len() / width;
                let queries = case.queries(len - tokens..len);
                let mut found = vec![f32::NAN; queries.values.len()];
                attend(Kernels::Fast, &queries, &ring.layer(0).expect("one layer"), &rule, &mut found, None, &workers).expect("held");
                let wanted = last(Kernels::Fast, &case, &whole, tokens, &rule, &workers).expect("held");
                assert_eq!(bits(&found), bits(&wanted), "{kv_type}, window {window}, {len} tokens in passes of {pass}");
                let mut plain = vec![f32::NAN; queries.values.len()];
                attend(Kernels::Textbook, &queries, &ring.layer(0).expect("one layer"), &rule, &mut plain, None, &workers).expect("held");
                assert!(plain.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "the textbook sees no key that is gone");
            }
        }
    }
}

#[test]
fn a_mask_that_is_wider_than_the_ring_is_refused() {
    let heads = Heads::new(2, 1, 8).expect("one group");
    let case = Case::new((2, 1, 8), TOKENS, 2.0);
    let ring = filled(heads, Some(64), KvType::F32, 0..255, 255, None);
    // Position 255 sees 192 and later with a window of 64, and 191, which is gone, with one of 65.
    let queries = Queries { first_position: 255, ..case.queries(255..256) };
    let layer = ring.layer(0).expect("one layer");
    let of = |window| scores(Kernels::Fast, &queries, &layer, &rule(KeyRange::causal_window(window), 8), 0..1);
    assert!(of(64).is_ok());
    assert_eq!(of(65), Err(MechanismError::NotHeld { wanted: 191, held: 192 }));
    let mut out = vec![0.0; 16];
    let refused = attend(Kernels::Fast, &queries, &layer, &rule(KeyRange::causal(), 8), &mut out, None, &Workers::new(1));
    assert_eq!(refused, Err(MechanismError::NotHeld { wanted: 0, held: 192 }));
}

#[test]
fn small_storage_gives_the_bits_of_what_it_holds_stored_in_full() {
    for shape in [(4, 2, 20), (2, 1, 64), (3, 1, 33)] {
        let heads = Heads::new(shape.0, shape.1, shape.2).expect("they divide");
        let case = Case::new(shape, TOKENS, 2.0);
        let rule = rule(KeyRange::causal(), shape.2);
        for kv_type in [KvType::F16, KvType::Q8_0] {
            let small = filled(heads, None, kv_type, 0..600, 600, None);
            let view = small.layer(0).expect("one layer");
            let read = |of: &dyn Fn(usize, usize) -> Vec<f32>| -> Vec<f32> {
                (0..600).flat_map(|token| (0..shape.1).flat_map(move |kv_head| of(kv_head, token))).collect()
            };
            let (keys, values) = (read(&|head, token| view.key(head, token)), read(&|head, token| view.value(head, token)));
            let mut full = cache_of(heads, &keys, &values);
            full.advance(600).expect("one layer");
            let of = |cache: &Cache| last(Kernels::Fast, &case, cache, 600, &rule, &Workers::new(2)).expect("held");
            assert_eq!(bits(&of(&small)), bits(&of(&full)), "{kv_type}, {shape:?}");
        }
    }
}

#[test]
fn a_fork_gives_the_bits_of_a_cache_of_its_own() {
    let heads = Heads::new(4, 2, 20).expect("groups of two");
    let case = Case::new((4, 2, 20), TOKENS, 2.0);
    let rule = rule(KeyRange::causal(), 20);
    let of = |cache: &Cache| bits(&last(Kernels::Fast, &case, cache, 50, &rule, &Workers::new(1)).expect("held"));
    for at in [64, 100, 128, 511] {
        let mut first = filled(heads, None, KvType::F32, 0..at, at, None);
        let fork = first.fork();
        // Other tokens go into the first, and must not be seen by the fork.
        first.append(0, &vec![9.0; 100 * 40], &vec![9.0; 100 * 40]).expect("they fit");
        first.advance(100).expect("one layer");
        let fork = filled(heads, None, KvType::F32, at..at + 60, 7, Some(fork));
        assert_eq!(of(&fork), of(&filled(heads, None, KvType::F32, 0..at + 60, 700, None)), "forked at {at}");
    }
}
