//! Attention on one thread, textbook beside fast: milliseconds and GFLOP/s for prefill, and how many times as long it takes with statistics of
//! every row; GB/s of keys and values for decoding.
//!
//! `cargo bench -p glassbox-mechanisms --bench attention`; a multiplication and an addition count as two operations, and of a causal
//! matrix only the visible half is counted.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::time::Instant;

use glassbox_mechanisms::attention::{Asked, Queries, Rule, attend, attend_watched};
use glassbox_mechanisms::cache::{Cache, LayerShape};
use glassbox_mechanisms::heads::Heads;
use glassbox_mechanisms::mask::KeyRange;
use glassbox_mechanisms::softmax::softmax_in_place;
use glassbox_mechanisms::{Kernels, Workers};

fn main() {
    let threads = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(1);
    let workers = Workers::new(threads);
    println!("{} threads", workers.threads());
    println!("{:<34} {:>10} {:>10} {:>10}", "prefill, causal", "ms", "GFLOP/s", "watched");
    for (heads, kv_heads) in [(4, 4), (14, 2)] {
        for d_head in [64, 128, 256] {
            for tokens in [1024, 4096] {
                let heads = Heads::new(heads, kv_heads, d_head).expect("heads that divide");
                let seconds = measure(Kernels::Fast, heads, 0, tokens, &workers);
                let flops = 4.0 * (heads.heads() * d_head) as f64 * (tokens * (tokens + 1) / 2) as f64;
                let name = format!("{heads:?} n={tokens}", heads = (heads.heads(), heads.kv_heads(), d_head));
                let watched = measure_watched(heads, tokens, &workers);
                println!("{name:<34} {:>10.2} {:>10.1} {watched:>10.3}", seconds * 1e3, flops / seconds / 1e9);
            }
        }
    }
    let heads = Heads::new(4, 4, 64).expect("heads that divide");
    let seconds = measure(Kernels::Textbook, heads, 0, 1024, &workers);
    println!("{:<34} {:>10.2} {:>10.1}", "textbook (4, 4, 64) n=1024", seconds * 1e3, 4.0 * 256.0 * 1024.0 * 1025.0 / 2.0 / seconds / 1e9);

    println!("{:<34} {:>10} {:>10}", "one token", "us", "GB/s");
    for (heads, kv_heads, d_head, keys) in [(14, 2, 64, 512), (14, 2, 64, 2048), (4, 1, 256, 2048), (32, 8, 128, 4096), (8, 8, 64, 1024)] {
        let heads = Heads::new(heads, kv_heads, d_head).expect("heads that divide");
        let seconds = measure(Kernels::Fast, heads, keys - 1, 1, &workers);
        let bytes = (2 * heads.kv_width() * keys * 4) as f64;
        let name = format!("{heads:?} n={keys}", heads = (heads.heads(), heads.kv_heads(), d_head));
        println!("{name:<34} {:>10.1} {:>10.1}", seconds * 1e6, bytes / seconds / 1e9);
    }

    println!("{:<34} {:>10}", "softmax of 4096 scores", "ns each");
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        println!("{:<34} {:>10.2}", format!("{kernels:?}"), softmax_nanoseconds(kernels));
    }
}

/// Nanoseconds a number of softmax over a row of 4096, the best of many.
fn softmax_nanoseconds(kernels: Kernels) -> f64 {
    let row: Vec<f32> = (0..4096).map(|key| (key % 97) as f32 * 0.1).collect();
    let seconds = (0..200).map(|_| {
        let mut row = row.clone();
        let start = Instant::now();
        softmax_in_place(kernels, &mut row);
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::MAX, f64::min) / 4096.0 * 1e9
}

/// How many times as long prefill takes with statistics of every row and eight spans: median of pairs.
fn measure_watched(heads: Heads, tokens: usize, workers: &Workers) -> f64 {
    let spans: Vec<_> = (0..8).map(|span| span * tokens / 8..(span + 1) * tokens / 8).collect();
    let case = Case::new(heads, 0, tokens);
    let mut ratios: Vec<f64> = (0..7)
        .map(|_| {
            let time = |spans: Option<&[std::ops::Range<usize>]>| {
                let mut out = vec![0.0; case.values.len()];
                let (layer, queries) = (case.cache.layer(0).expect("one layer"), case.queries());
                let start = Instant::now();
                match spans {
                    None => attend(Kernels::Fast, &queries, &layer, &case.rule, &mut out, None, workers).expect("shapes that fit"),
                    Some(spans) => drop(
                        attend_watched(Kernels::Fast, &queries, &layer, &case.rule, Asked { spans, ..Asked::default() }, &mut out, workers)
                            .expect("shapes that fit"),
                    ),
                }
                start.elapsed().as_secs_f64()
            };
            let plain = time(None);
            time(Some(&spans)) / plain
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[3]
}

struct Case {
    heads: Heads,
    before: usize,
    cache: Cache,
    values: Vec<f32>,
    rule: Rule,
}

impl Case {
    fn new(heads: Heads, before: usize, tokens: usize) -> Self {
        let mut state = 1_u64;
        let mut numbers = |count: usize| -> Vec<f32> {
            let next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
            };
            std::iter::repeat_with(next).take(count).collect()
        };
        let shape = LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() };
        let stored = before + tokens;
        let mut cache = Cache::new(&[shape], stored, u64::MAX).expect("no limit");
        let (k, v) = (numbers(stored * heads.kv_width()), numbers(stored * heads.kv_width()));
        cache.append(0, &k, &v).expect("they fit");
        let rule = Rule { keys: KeyRange::causal(), scale: 1.0 / (heads.d_head() as f32).sqrt(), soft_cap: None, alibi: None };
        Self { heads, before, cache, values: numbers(tokens * heads.query_width()), rule }
    }

    fn queries(&self) -> Queries<'_> {
        Queries { values: &self.values, heads: self.heads, first_position: self.before, texts: None, hidden: None }
    }
}

/// Best seconds of attention of `tokens` queries after `before` tokens: what the machine can do when nobody else uses it.
fn measure(kernels: Kernels, heads: Heads, before: usize, tokens: usize, workers: &Workers) -> f64 {
    let case = Case::new(heads, before, tokens);
    let (layer, queries) = (case.cache.layer(0).expect("one layer"), case.queries());
    let mut out = vec![0.0; case.values.len()];
    let repeats = if tokens == 1 { 200 } else { (32_768 / tokens).clamp(3, 20) };
    let seconds = (0..repeats).map(|_| {
        let start = Instant::now();
        attend(kernels, &queries, &layer, &case.rule, &mut out, None, workers).expect("shapes that fit");
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::MAX, f64::min)
}
