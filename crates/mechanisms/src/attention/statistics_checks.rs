//! Statistics summed inside the tiles, against those of the whole matrix of weights.

use super::lanes::{Portable, RowState};
use super::watch::{Sums, Watch, Watched, Weighed};
use super::*;
use crate::cache::{Cache, CachePlan, KvType, LayerPlan, LayerShape, Pool};
use glassbox_testkit::Values;
use std::num::NonZeroUsize;

const SIZE: f64 = 2.0; // of queries and keys

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut values = Values::seeded(seed);
    std::iter::repeat_with(|| values.between(-2.0, 2.0)).take(count).collect()
}

/// A cache of `tokens` tokens; a ring where a window is given, filled by passes of 50.
fn cache(heads: Heads, tokens: usize, kv_type: KvType, window: Option<usize>) -> Cache {
    let shape = LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() };
    let layers = vec![LayerPlan { shape, window: window.and_then(NonZeroUsize::new) }];
    let plan = CachePlan { layers, kv_type, capacity: tokens, pass_tokens: 50 };
    let mut cache = Cache::planned(&plan, &Pool::new(1 << 28)).expect("small");
    let (keys, values) = (numbers(tokens * heads.kv_width(), 1), numbers(tokens * heads.kv_width(), 2));
    for first in (0..tokens).step_by(50) {
        let part = first * heads.kv_width()..(first + 50).min(tokens) * heads.kv_width();
        cache.append(0, &keys[part.clone()], &values[part.clone()]).expect("they fit");
        if first + 50 < tokens {
            cache.advance(50).expect("one layer");
        }
    }
    cache
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) heads: Heads,
    pub(super) tokens: usize,
    /// The queries that are asked, the last of all.
    pub(super) rows: usize,
    pub(super) rule: Rule,
    pub(super) kv_type: KvType,
    pub(super) window: Option<usize>,
    pub(super) texts: Option<Vec<Text>>,
    pub(super) hidden: Option<Hidden>,
}

impl Case {
    pub(super) fn new(heads: (usize, usize, usize), tokens: usize, keys: KeyRange) -> Self {
        let heads = Heads::new(heads.0, heads.1, heads.2).expect("heads that divide");
        let rule = Rule { keys, scale: 1.0 / (heads.d_head() as f32).sqrt(), soft_cap: None, alibi: None };
        Self { heads, tokens, rows: tokens, rule, kv_type: KvType::F32, window: None, texts: None, hidden: None }
    }

    fn spans(&self) -> Vec<Range<usize>> {
        let n = self.tokens;
        vec![0..n, 0..1, n / 3..n / 2, n / 2..n / 2, 60..70, n - 1..n, n..n + 5, 500..530, 64..512]
    }

    /// Numbers of every head and key: none negative, as norms are, and of either sign.
    fn measures(&self) -> [Vec<f32>; 2] {
        let count = self.heads.heads() * self.tokens;
        [numbers(count, 4).iter().map(|number| number.abs()).collect(), numbers(count, 5)]
    }

    /// Gives `ask` what there is to run.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&Queries<'_>, &LayerView<'_>, Asked<'_>) -> T) -> T {
        let cache = cache(self.heads, self.tokens, self.kv_type, self.window);
        let all = numbers(self.tokens * self.heads.query_width(), 3);
        let first_position = self.tokens - self.rows;
        let values = &all[first_position * self.heads.query_width()..];
        let queries = Queries { values, heads: self.heads, first_position, texts: self.texts.as_deref(), hidden: self.hidden.as_ref() };
        let (spans, [norms, signed]) = (self.spans(), self.measures());
        ask(&queries, &cache.layer(0).expect("one layer"), Asked { spans: &spans, top_keys: 5, measures: &[&norms, &signed] })
    }

    pub(super) fn run(&self, kernels: Kernels, threads: usize) -> (Statistics, Vec<f32>) {
        self.with(|queries, layer, asked| {
            let workers = Workers::new(threads);
            let (mut out, mut plain) = (vec![f32::NAN; queries.values.len()], vec![f32::NAN; queries.values.len()]);
            let statistics = attend_watched(kernels, queries, layer, &self.rule, asked, &mut out, &workers).expect("shapes that fit");
            attend(kernels, queries, layer, &self.rule, &mut plain, None, &workers).expect("shapes that fit");
            assert!(out.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()), "watched and unwatched have the same bits");
            (statistics, out)
        })
    }

    fn run_with<W: Watch>(&self) -> Statistics {
        self.with(|queries, layer, asked| {
            let mut statistics = Statistics::new(self.heads.heads(), self.rows, &asked);
            let mut out = vec![0.0; queries.values.len()];
            let results = Results { asked, out: &mut out, log_sum_exp: None, statistics: Some(&mut statistics) };
            fast::attend_with::<Portable, W>(queries, layer, &self.rule, results, &Workers::inline());
            statistics
        })
    }

    #[track_caller]
    pub(super) fn check(&self) {
        if let Err(disagreement) = self.agree(&self.run(Kernels::Fast, 2).0) {
            panic!("{disagreement}");
        }
    }

    /// A score is a sum of `d_head` products that are rounded, so it lies at most `(d_head + 3) ε Σ|q k| scale` off. Moving every score by δ moves
    /// a share by at most 2 δ of itself, and so the n-th largest weight, and a sum of weighted numbers by 2 δ times the largest; an entropy by
    /// 2 δ ln n, a support by 4 δ of itself, a distance by 2 δ n. The sums add some ε of themselves.
    fn agree(&self, found: &Statistics) -> Result<(), String> {
        let (d_head, n) = (self.heads.d_head() as f64, self.tokens as f64);
        let epsilon = f64::from(f32::EPSILON);
        let off = (d_head + 3.0) * epsilon / 2.0 * SIZE * SIZE * d_head.sqrt();
        let rounding = 64.0 * epsilon;
        let share = 2.0 * off + rounding;
        let (truth, _) = self.run(Kernels::Textbook, 1);
        let weights = self.with(|queries, layer, _| pattern(Kernels::Textbook, queries, layer, &self.rule, 0..self.rows)).expect("rows");
        for (head, token) in (0..self.heads.heads()).flat_map(|head| (0..self.rows).map(move |token| (head, token))) {
            let (found, truth) = (found.row(head, token), truth.row(head, token));
            let near = |name: &str, found: f32, truth: f32, bound: f64| {
                let equal = found.to_bits() == truth.to_bits();
                let far = (f64::from(found) - f64::from(truth)).abs();
                let wrong = || format!("{name} of head {head}, token {token}: {found}, wanted {truth} within {bound:e}");
                if equal || far <= bound { Ok(()) } else { Err(wrong()) }
            };
            let all_near = |name: &str, found: &[f32], truth: &[f32], bound: f64| {
                assert_eq!(found.len(), truth.len());
                found.iter().zip(truth).try_for_each(|(found, truth)| near(name, *found, *truth, bound))
            };
            if found.visible().len() != truth.visible().len() || !truth.visible().is_empty() && found.visible() != truth.visible() {
                return Err(format!("head {head}, token {token} sees {:?}, wanted {:?}", found.visible(), truth.visible()));
            }
            near("log-sum-exp", found.log_sum_exp, truth.log_sum_exp, off + rounding * (1.0 + SIZE * SIZE * d_head.sqrt()))?;
            near("entropy", found.entropy_nats, truth.entropy_nats, share * n.ln().max(1.0))?;
            let support = f64::from(truth.effective_support);
            near("support", found.effective_support, truth.effective_support, (4.0 * off + rounding) * support)?;
            near("distance", found.mean_distance_tokens, truth.mean_distance_tokens, share * n)?;
            near("sink", found.sink_mass, truth.sink_mass, share)?;
            all_near("share of a distance", found.distances, truth.distances, share)?;
            all_near("share of a span", found.spans, truth.spans, share)?;
            all_near("weight of a top key", found.top_weights, truth.top_weights, share)?;
            for measure in 0..2 {
                let (found, truth) = (found.measured(measure).expect("asked for"), truth.measured(measure).expect("asked for"));
                near("weighted sum", found.total, truth.total, share * SIZE)?;
                all_near("weighted sum of a span", found.spans, truth.spans, share * SIZE)?;
            }
            let row = &weights[(head * self.rows + token) * self.tokens..][..self.tokens];
            for (rank, key) in found.top_keys.iter().enumerate().filter(|(rank, _)| *rank < truth.visible().len()) {
                // Where keys are hidden, those seen do not lie side by side.
                let seen = self.hidden.as_ref().map_or(found.visible().contains(&(*key as usize)), |_| row[*key as usize] > 0.0);
                if found.top_keys[..rank].contains(key) || !seen {
                    return Err(format!("top keys of head {head}, token {token}: {:?}", found.top_keys));
                }
                near("weight of the key named", found.top_weights[rank], row[*key as usize], share)?;
                for (measure, numbers) in self.measures().iter().enumerate() {
                    let part = row[*key as usize] * numbers[head * self.tokens + *key as usize];
                    near("part of the key named", found.measured(measure).expect("asked for").top_keys[rank], part, share * SIZE)?;
                }
            }
            if found.log_sum_exp > f32::NEG_INFINITY {
                near("sum of the shares of all distances", found.distances.iter().sum(), 1.0, 1e-5)?;
            }
        }
        Ok(())
    }
}

#[test]
fn statistics_agree_with_those_of_the_matrix_across_tiles_and_chunks() {
    for tokens in [1, 2, 63, 64, 65, 130, 513, 700] {
        for keys in [KeyRange::causal(), KeyRange::causal_window(70), KeyRange::everything()] {
            Case::new((4, 2, 20), tokens, keys).check();
        }
    }
}

#[test]
fn statistics_agree_with_soft_caps_distances_and_shared_keys() {
    for (heads, soft_cap, alibi) in [((7, 1, 16), Some(1.5), false), ((4, 4, 8), None, true), ((6, 2, 8), Some(3.0), true)] {
        let mut case = Case::new(heads, 300, KeyRange::causal());
        case.rule.soft_cap = soft_cap;
        case.rule.alibi = alibi.then(|| Alibi::new(8.0).expect("the paper's"));
        case.check();
    }
}

#[test]
fn statistics_agree_for_every_cache_a_few_rows_and_packed_texts() {
    for kv_type in KvType::ALL {
        let whole = Case { kv_type, rows: 3, ..Case::new((4, 2, 32), 650, KeyRange::causal()) };
        whole.check();
        Case { rows: 1, window: Some(90), rule: Rule { keys: KeyRange::causal_window(90), ..whole.rule }, ..whole }.check();
    }
    let text = |positions: Range<usize>, prefix| Text { positions, prefix };
    let texts = vec![text(5..63, 0), text(64..130, 9), text(130..260, 80), text(270..300, 0)];
    Case { texts: Some(texts), ..Case::new((4, 2, 8), 300, KeyRange::causal()) }.check();
}

#[test]
fn statistics_have_the_same_bits_on_any_threads_and_in_portable_code() {
    let case = Case::new((4, 2, 20), 600, KeyRange::causal());
    let (one, _) = case.run(Kernels::Fast, 1);
    for (kernels, threads) in [(Kernels::Fast, 3), (Kernels::Portable, 1)] {
        assert_eq!(case.run(kernels, threads).0, one, "{kernels:?}, {threads} threads");
    }
    let last = Case { rows: 1, ..Case::new((4, 2, 20), 1200, KeyRange::causal()) }; // chunks go to different threads
    assert_eq!(last.run(Kernels::Fast, 3).0, last.run(Kernels::Fast, 1).0);
    let statistics = Case::new((4, 2, 20), 2, KeyRange::causal()).run_with::<Sums>();
    assert_eq!(statistics.row(0, 0).entropy_nats, 0.0, "one key leaves no choice");
    assert_eq!((statistics.row(0, 0).effective_support, statistics.row(0, 0).sink_mass), (1.0, 1.0));
}

#[test]
fn a_row_that_sees_nothing_has_no_attention_to_tell_of() {
    let padding = vec![Text { positions: 1..2, prefix: 0 }];
    let (found, out) = Case { texts: Some(padding), ..Case::new((1, 1, 8), 2, KeyRange::causal()) }.run(Kernels::Fast, 1);
    let row = found.row(0, 0);
    assert_eq!((row.log_sum_exp, row.entropy_nats, row.effective_support), (f32::NEG_INFINITY, 0.0, 0.0));
    assert_eq!(row.top_keys, [-1.0; 5]);
    assert!(
        row.distances.iter().chain(row.spans).chain(row.top_weights).all(|share| *share == 0.0)
            && out[..8].iter().all(|value| *value == 0.0)
    );
}

#[test]
fn distances_fall_into_classes_by_powers_of_two() {
    let wanted = [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (16383, 14), (16384, 15), (1 << 40, 15)];
    for (distance, class) in wanted {
        assert_eq!(distance_class(distance), class, "{distance}");
    }
}

/// Statistics with a fault.
struct Planted<const FAULT: usize>(Sums);

const FAULTS: usize = 7;

impl<const FAULT: usize> Watch for Planted<FAULT> {
    const ON: bool = true;

    fn new(asked: &Asked<'_>, rows: usize, heads: Range<usize>, keys: Range<usize>) -> Self {
        let moved: Vec<_> = asked.spans.iter().map(|span| span.start + 1..span.end + 1).collect();
        let spans = if FAULT == 0 { &moved } else { asked.spans }; // spans counted from 1
        Self(Sums::new(&Asked { spans, ..*asked }, rows, heads, keys))
    }

    fn enter(&mut self, asked: &Asked<'_>, first_key: usize, stored: usize) {
        self.0.enter(asked, first_key, stored);
    }

    fn add(&mut self, row: Watched, tile: &Weighed<'_>) {
        let tile = match FAULT {
            1 => Weighed { factor: 1.0, ..*tile }, // no rescale when a larger score comes
            2 => Weighed { before: RowState { lanes: [0.0; 8], ..tile.before }, ..*tile }, // entropy forgets that its maximum rose
            3 if tile.before.seen => Weighed { highest: f32::NEG_INFINITY, ..*tile }, // top keys of a chunk's first tile alone
            _ => Weighed { ..*tile },
        };
        let row = match FAULT {
            4 => Watched { position: row.position + 1, ..row }, // a key is one token away from itself
            5 => Watched { head: row.head / 2 * 2, ..row },     // numbers of the group's first head for all
            _ => row,
        };
        self.0.add(row, &tile);
    }

    fn finish(self) -> Option<Sums> {
        if FAULT == 6 { self.0.with_spans_counted_in_the_chunk() } else { self.0 }.finish()
    }
}

#[test]
fn statistics_with_a_fault_are_caught() {
    let case = Case { rows: 70, ..Case::new((4, 2, 20), 700, KeyRange::causal()) };
    assert_eq!(case.agree(&case.run_with::<Sums>()), Ok(()));
    let faulty = [
        case.run_with::<Planted<0>>(),
        case.run_with::<Planted<1>>(),
        case.run_with::<Planted<2>>(),
        case.run_with::<Planted<3>>(),
        case.run_with::<Planted<4>>(),
        case.run_with::<Planted<5>>(),
        case.run_with::<Planted<6>>(),
    ];
    assert_eq!(faulty.len(), FAULTS);
    for (fault, statistics) in faulty.iter().enumerate() {
        assert!(case.agree(statistics).is_err(), "fault {fault} was not caught");
    }
}
