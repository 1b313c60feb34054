//! Attention: project, norm and rotate, remember, attend, project back.

use std::ops::Range;
use std::sync::OnceLock;

use glassbox_anatomy::{Asks, Observer, Site, Tap};
use glassbox_mechanisms::attention::measures::{Triangles, value_norms, value_products};
use glassbox_mechanisms::attention::{Asked, Queries, Rule, Statistics, attend_watched, mix, pattern, scores, statistics_of};
use glassbox_mechanisms::cache::{Cache, LayerView};
use glassbox_mechanisms::heads::Heads;
use glassbox_mechanisms::mask::{Hidden, Text};
use glassbox_mechanisms::softmax::{log_sum_exp, softmax_in_place};
use glassbox_mechanisms::{Kernels, MechanismError};

use crate::attend;
use crate::decoder::{Part, Run};
use crate::linear::Linear;
use crate::norm::NormWeights;

/// Scores, or weights, that are shown at once: 64 MiB of them. More rows come in several parts.
const NUMBERS_SHOWN: usize = 1 << 24;

#[derive(Debug)]
pub(crate) struct Attention {
    pub(crate) layer: usize,
    pub(crate) d_model: usize,
    pub(crate) heads: Heads,
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) out: Linear,
    /// Bound on queries, keys and values as they are projected.
    pub(crate) clamp: Option<f32>,
    pub(crate) query_key_norm: Option<(NormWeights, NormWeights)>,
    /// Which of the pass's rotations turns queries and keys.
    pub(crate) rotary: Option<usize>,
    pub(crate) rule: Rule,
    /// Made when value-weighted mass is first asked for.
    pub(crate) triangles: OnceLock<Triangles>,
}

impl Attention {
    /// - `x`      [token, d_model], normed; the result has the same sizes
    /// - `after`  the norm that is put on the result, which counts where a logit is divided among keys
    pub(crate) fn forward<O: Observer + ?Sized>(
        &self,
        x: &[f32],
        after: Option<&NormWeights>,
        caches: &mut [&mut Cache],
        run: &Run<'_>,
        tap: &mut Tap<'_, O>,
    ) -> Result<Vec<f32>, MechanismError> {
        let (heads, kv_heads, d_head) = (self.heads.heads(), self.heads.kv_heads(), self.heads.d_head());
        let (query, key) = ([run.tokens, heads, d_head], [run.tokens, kv_heads, d_head]);

        let mut q = self.project(&self.query, x, run);
        tap.at(Site::Query, &query, &mut q);
        let mut k = self.project(&self.key, x, run);
        tap.at(Site::Key, &key, &mut k);
        let mut v = self.project(&self.value, x, run);
        tap.at(Site::Value, &key, &mut v);

        if let Some((query_norm, key_norm)) = &self.query_key_norm {
            (q, k) = (query_norm.apply(&q, run), key_norm.apply(&k, run));
        }
        if let Some(rotary) = self.rotary {
            for Part { rows, turns, .. } in &run.parts {
                turns[rotary].rotate_in_place(&mut q[rows.start * heads * d_head..rows.end * heads * d_head], heads)?;
                turns[rotary].rotate_in_place(&mut k[rows.start * kv_heads * d_head..rows.end * kv_heads * d_head], kv_heads)?;
            }
        }
        tap.at(Site::QueryRotated, &query, &mut q);
        tap.at(Site::KeyRotated, &key, &mut k);

        let text = [Text { positions: 0..usize::MAX, prefix: run.prefix }];
        let texts = (run.prefix > 0).then_some(&text[..]);
        let hidden = tap.hides().map(|hides| Hidden { queries: hides.queries, keys: hides.keys });
        let mut z = vec![0.0; q.len()];
        for part in &run.parts {
            let queried = part.rows.start * heads * d_head..part.rows.end * heads * d_head;
            let stored = part.rows.start * kv_heads * d_head..part.rows.end * kv_heads * d_head;
            let cache = &mut *caches[part.sequence];
            cache.append(self.layer, &k[stored.clone()], &v[stored])?;
            let seen = cache.layer(self.layer)?;
            let queries =
                Queries { values: &q[queried.clone()], heads: self.heads, first_position: part.first, texts, hidden: hidden.as_ref() };
            let z = &mut z[queried];
            if run.edited.contains(&self.layer) {
                self.attend_by_edited_weights(&queries, &seen, z, after, run, tap)?;
            } else {
                self.show_weights(&queries, &seen, run, tap)?;
                if tap.wanted_rows(Site::Statistics, part.first..part.first + part.rows.len()).is_some() {
                    let measures = self.measures(tap.asks(), &seen, after, run)?;
                    let measures: Vec<&[f32]> = measures.iter().map(Vec::as_slice).collect();
                    let asked = asked(tap.asks(), &measures);
                    let statistics = attend_watched(run.kernels, &queries, &seen, &self.rule, asked, z, run.workers)?;
                    self.show_statistics(statistics, &mut tap.from_row(part.first));
                } else {
                    attend(run.kernels, &queries, &seen, &self.rule, z, None, run.workers)?;
                }
            }
        }
        tap.at(Site::Mixed, &query, &mut z);

        let mut out = self.out.apply(&z, run);
        tap.at(Site::AttnOut, &[run.tokens, self.d_model], &mut out);
        Ok(out)
    }

    fn project(&self, linear: &Linear, x: &[f32], run: &Run<'_>) -> Vec<f32> {
        let mut out = linear.apply(x, run);
        if let Some(bound) = self.clamp {
            out.iter_mut().for_each(|value| *value = value.clamp(-bound, bound));
        }
        out
    }

    /// The kernel never holds scores or weights. Where somebody wants to see them, they are computed again beside it, by the same dot products.
    fn show_weights<O: Observer + ?Sized>(
        &self,
        queries: &Queries<'_>,
        seen: &LayerView<'_>,
        run: &Run<'_>,
        tap: &mut Tap<'_, O>,
    ) -> Result<(), MechanismError> {
        for (site, compute) in [(Site::Scores, scores as Compute), (Site::Pattern, pattern as Compute)] {
            let first = queries.first_position;
            let Some(rows) = tap.wanted_rows(site, first..first + queries.tokens()) else { continue };
            let together = (NUMBERS_SHOWN / (self.heads.heads() * seen.len())).max(1);
            for start in rows.clone().step_by(together) {
                let rows = start..(start + together).min(rows.end);
                let mut values = compute(run.kernels, queries, seen, &self.rule, rows.start - first..rows.end - first)?;
                tap.from_row(rows.start).at(site, &[self.heads.heads(), rows.len(), seen.len()], &mut values);
            }
        }
        Ok(())
    }

    /// The numbers of all stored keys by which attention is to be weighted, each [head, key]: norms first, then parts in a logit.
    fn measures(
        &self,
        asks: Asks<'_>,
        seen: &LayerView<'_>,
        after: Option<&NormWeights>,
        run: &Run<'_>,
    ) -> Result<Vec<Vec<f32>>, MechanismError> {
        let mut measures = Vec::new();
        if asks.value_weighted {
            let triangles = self.triangles.get_or_init(|| self.triangles());
            measures.push(value_norms(seen, &self.heads, triangles, run.workers)?);
        }
        if let Some(toward) = run.toward {
            let toward = after.map_or_else(|| toward.to_vec(), |after| after.toward(toward));
            let mut directions = vec![0.0_f64; self.heads.query_width()];
            self.out.each_row(|out, weights| {
                let of_row = f64::from(toward[out]);
                directions.iter_mut().zip(weights).for_each(|(direction, weight)| *direction += of_row * f64::from(*weight));
            });
            let directions: Vec<f32> = directions.iter().map(|direction| *direction as f32).collect();
            measures.push(value_products(seen, &self.heads, &directions, run.workers)?);
        }
        Ok(measures)
    }

    /// The output projection as norms of values see it.
    fn triangles(&self) -> Triangles {
        let d_head = self.heads.d_head();
        let mut grams = vec![0.0_f64; self.heads.query_width() * d_head];
        self.out.each_row(|_, weights| {
            for (row, weight) in weights.iter().enumerate() {
                let of_head = &weights[row / d_head * d_head..][..d_head];
                let gram = &mut grams[row * d_head..][..d_head];
                gram.iter_mut().zip(of_head).for_each(|(sum, other)| *sum += f64::from(*weight) * f64::from(*other));
            }
        });
        Triangles::new(&self.heads, &grams)
    }

    fn show_statistics<O: Observer + ?Sized>(&self, statistics: Statistics, tap: &mut Tap<'_, O>) {
        let (heads, width) = (self.heads.heads(), statistics.width());
        let mut values = statistics.into_values();
        tap.at(Site::Statistics, &[values.len() / (heads * width), heads, width], &mut values);
    }

    /// Where somebody changes scores or weights, the values are mixed by the plain definition instead.
    fn attend_by_edited_weights<O: Observer + ?Sized>(
        &self,
        queries: &Queries<'_>,
        seen: &LayerView<'_>,
        z: &mut [f32],
        after: Option<&NormWeights>,
        run: &Run<'_>,
        tap: &mut Tap<'_, O>,
    ) -> Result<(), MechanismError> {
        let tokens = queries.tokens();
        let sizes = [self.heads.heads(), tokens, seen.len()];
        let mut weights = scores(run.kernels, queries, seen, &self.rule, 0..tokens)?;
        tap.at(Site::Scores, &sizes, &mut weights);
        let sums: Vec<f32> = weights.chunks_exact(seen.len()).map(|row| log_sum_exp(run.kernels, row)).collect();
        weights.chunks_exact_mut(seen.len()).for_each(|row| softmax_in_place(run.kernels, row));
        tap.at(Site::Pattern, &sizes, &mut weights);
        if tap.wanted_rows(Site::Statistics, queries.first_position..queries.first_position + tokens).is_some() {
            let measures = self.measures(tap.asks(), seen, after, run)?;
            let measures: Vec<&[f32]> = measures.iter().map(Vec::as_slice).collect();
            let asked = asked(tap.asks(), &measures);
            self.show_statistics(statistics_of(&weights, &sums, queries, &self.rule, asked), &mut tap.from_row(queries.first_position));
        }
        mix(&weights, &self.heads, seen, z)
    }
}

fn asked<'a>(asks: Asks<'a>, measures: &'a [&'a [f32]]) -> Asked<'a> {
    Asked { spans: asks.spans, top_keys: asks.top_keys, measures }
}

type Compute = fn(Kernels, &Queries<'_>, &LayerView<'_>, &Rule, Range<usize>) -> Result<Vec<f32>, MechanismError>;
