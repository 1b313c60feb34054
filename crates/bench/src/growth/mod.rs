//! How time and memory grow with the length `n` of a text: curves, and the exponents of the powers of `n` that fit them.
//!
//! Curves of time count the processor time of one thread where the system tells it. The smallest lengths are large enough for the leading power
//! to be seen; what grows more slowly still bends a curve down, so the exponent of the last step stands beside the fitted one.

mod attention;
mod fit;
mod generation;

use glassbox_mechanisms::Workers;
use glassbox_model::Model;
use serde::{Deserialize, Serialize};

pub use fit::Exponent;

use crate::{BenchError, Stopwatch};

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Processor time.
    Seconds,
    /// Peak of the resident memory of the process beyond what it took before, or bytes of a cache.
    Bytes,
}

/// One curve that can be measured.
#[derive(Debug)]
pub struct Curve {
    /// Its name.
    pub name: &'static str,
    /// Of what it is.
    of: Of,
    /// What is measured, in words.
    pub what: &'static str,
    /// The powers of `n` between which the theory puts it; the larger is that of the leading term.
    pub theory: (u32, u32),
    /// What grows.
    pub unit: Unit,
    /// Lengths in tokens, rising.
    lengths: &'static [usize],
    measure: Measure,
}

/// Of what a curve is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Attention or a cache alone, at any length.
    Attention,
    /// The whole model, within its context.
    Model,
}

/// How a point comes about.
enum Measure {
    /// The processor time of this.
    Time(fn(&Model, usize, &Workers) -> Result<(), BenchError>),
    /// The peak of resident memory while this runs; a process of its own makes it exact.
    Resident(fn(&Model, usize, &Workers) -> Result<(), BenchError>),
    /// This number of bytes.
    Exact(fn(&Model, usize) -> Result<u64, BenchError>),
}

impl std::fmt::Debug for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Time(_) => "Time",
            Self::Resident(_) => "Resident",
            Self::Exact(_) => "Exact",
        })
    }
}

/// A curve that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// Name of the curve.
    pub name: String,
    /// What was measured.
    pub what: String,
    /// The powers of `n` between which the theory puts it.
    pub theory: (u32, u32),
    /// What grew.
    pub unit: Unit,
    /// Lengths and values, in the order in which they were measured.
    pub points: Vec<(usize, f64)>,
    /// Of the power of `n` that fits best; nothing where memory cannot be told.
    pub exponent: Option<Exponent>,
}

/// Times that each length of a curve of time is measured: all lengths in turn, so that a machine that grows slower meets all alike.
const ROUNDS: usize = 3;

/// Every curve.
pub const CURVES: &[Curve] = &[
    Curve {
        name: "attention-uncached",
        of: Of::Attention,
        what: "attention of all steps that generate n tokens, everything computed again at every step",
        theory: (3, 3),
        unit: Unit::Seconds,
        lengths: &[256, 384, 512, 768, 1024],
        measure: Measure::Time(|_, n, workers| attention::of_all_steps_again(n, workers)),
    },
    Curve {
        name: "attention-cached",
        of: Of::Attention,
        what: "attention of all steps that generate n tokens, keys and values kept",
        theory: (2, 2),
        unit: Unit::Seconds,
        lengths: &[1024, 1536, 2048, 3072, 4096],
        measure: Measure::Time(|_, n, workers| attention::of_all_steps(n, workers)),
    },
    Curve {
        name: "generation-uncached",
        of: Of::Model,
        what: "the whole model, n tokens generated, everything computed again at every step; 2 for matrices, 3 for attention",
        theory: (2, 3),
        unit: Unit::Seconds,
        lengths: &[32, 48, 64, 96, 128, 192],
        measure: Measure::Time(generation::uncached),
    },
    Curve {
        name: "generation-cached",
        of: Of::Model,
        what: "the whole model, n tokens generated, keys and values kept; 1 for matrices, 2 for attention",
        theory: (1, 2),
        unit: Unit::Seconds,
        lengths: &[32, 64, 128, 256, 512],
        measure: Measure::Time(generation::cached),
    },
    Curve {
        name: "textbook-time",
        of: Of::Attention,
        what: "attention of n tokens with the whole matrix of scores",
        theory: (2, 2),
        unit: Unit::Seconds,
        lengths: &[256, 384, 512, 768, 1024],
        measure: Measure::Time(|_, n, _| attention::textbook(n)),
    },
    Curve {
        name: "tiled-time",
        of: Of::Attention,
        what: "attention of n tokens in tiles",
        theory: (2, 2),
        unit: Unit::Seconds,
        lengths: &[1024, 1536, 2048, 3072, 4096],
        measure: Measure::Time(|_, n, workers| attention::tiled(n, workers)),
    },
    Curve {
        name: "textbook-memory",
        of: Of::Attention,
        what: "memory of attention of n tokens with the whole matrix of scores",
        theory: (2, 2),
        unit: Unit::Bytes,
        lengths: &[512, 768, 1024, 1536, 2048],
        measure: Measure::Resident(|_, n, _| attention::textbook(n)),
    },
    Curve {
        name: "tiled-memory",
        of: Of::Attention,
        what: "memory of attention of n tokens in tiles, with their queries, keys and values",
        theory: (1, 1),
        unit: Unit::Bytes,
        lengths: &[2048, 3072, 4096, 6144, 8192, 12288],
        measure: Measure::Resident(|_, n, workers| attention::tiled(n, workers)),
    },
    Curve {
        name: "uncached-memory",
        of: Of::Model,
        what: "memory of the whole model's last step that generates token n, everything computed again",
        theory: (1, 1),
        unit: Unit::Bytes,
        lengths: &[128, 192, 256, 384, 512],
        measure: Measure::Resident(generation::uncached_step),
    },
    Curve {
        name: "cached-memory",
        of: Of::Model,
        what: "cache of the whole model after n tokens, f32",
        theory: (1, 1),
        unit: Unit::Bytes,
        lengths: &[64, 128, 192, 256, 512],
        measure: Measure::Exact(generation::cache_bytes),
    },
    Curve {
        name: "cache-mha",
        of: Of::Attention,
        what: "cache of n tokens, 32 key-value heads of 128 for 32 query heads, one layer, f16",
        theory: (1, 1),
        unit: Unit::Bytes,
        lengths: CACHE_LENGTHS,
        measure: Measure::Exact(|_, n| attention::cache_bytes(32, n)),
    },
    Curve {
        name: "cache-gqa",
        of: Of::Attention,
        what: "the same with 8 key-value heads, a quarter of them",
        theory: (1, 1),
        unit: Unit::Bytes,
        lengths: CACHE_LENGTHS,
        measure: Measure::Exact(|_, n| attention::cache_bytes(8, n)),
    },
    Curve {
        name: "cache-mqa",
        of: Of::Attention,
        what: "the same with 1 key-value head, one of 32",
        theory: (1, 1),
        unit: Unit::Bytes,
        lengths: CACHE_LENGTHS,
        measure: Measure::Exact(|_, n| attention::cache_bytes(1, n)),
    },
];

/// Whole pages of the cache.
const CACHE_LENGTHS: &[usize] = &[512, 1024, 2048, 4096];

impl Curve {
    /// The curve of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CURVES.iter().find(|curve| curve.name == name)
    }

    /// Whether it wants a process of its own, because memory that an earlier curve gave back may still be resident.
    #[must_use]
    pub const fn wants_own_process(&self) -> bool {
        matches!(self.measure, Measure::Resident(_))
    }

    /// Measures it on one thread; `tick` is called after every point. Where the curve is the model's, lengths beyond its context are left out.
    ///
    /// # Errors
    ///
    /// Where the model refuses, or memory is missing.
    pub fn measure(&self, model: &Model, tick: &mut dyn FnMut()) -> Result<Grown, BenchError> {
        let workers = Workers::inline();
        if let Measure::Resident(work) = self.measure {
            // Weights and code are read from their files once; that does not grow.
            work(model, 1, &workers)?;
        }
        let before = crate::machine::resident_bytes();
        let lengths = || self.lengths.iter().copied().filter(|n| self.of == Of::Attention || *n <= model.blueprint().context);
        let mut points = Vec::new();
        let rounds = if matches!(self.measure, Measure::Time(_)) { ROUNDS } else { 1 };
        for n in (0..rounds).flat_map(|_| lengths()) {
            let value = match self.measure {
                Measure::Time(work) => {
                    let watch = Stopwatch::start();
                    work(model, n, &workers)?;
                    let spent = watch.spent();
                    Some(spent.processor_seconds.unwrap_or(spent.seconds))
                }
                Measure::Resident(work) => {
                    crate::machine::reset_peak();
                    work(model, n, &workers)?;
                    before.zip(crate::peak_resident_bytes()).map(|(before, peak)| peak.saturating_sub(before) as f64)
                }
                Measure::Exact(bytes) => Some(bytes(model, n)? as f64),
            };
            points.extend(value.map(|value| (n, value)));
            tick();
        }
        let exponent = fit::exponent(&points);
        Ok(Grown { name: self.name.to_owned(), what: self.what.to_owned(), theory: self.theory, unit: self.unit, points, exponent })
    }

    /// Points that [`Curve::measure`] measures at most.
    #[must_use]
    pub const fn points(&self) -> usize {
        if matches!(self.measure, Measure::Time(_)) { ROUNDS * self.lengths.len() } else { self.lengths.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_grow_by_the_token_and_by_the_head() {
        for n in CACHE_LENGTHS {
            let [mha, gqa, mqa] = [32, 8, 1].map(|kv_heads| attention::cache_bytes(kv_heads, *n).expect("they fit"));
            // Keys and values, 128 channels, two bytes each.
            assert_eq!(mqa, 2 * 128 * 2 * *n as u64);
            assert_eq!((mha, gqa), (32 * mqa, 8 * mqa));
        }
    }

    #[test]
    fn every_curve_has_a_name_of_its_own_and_rising_lengths() {
        for curve in CURVES {
            assert_eq!(Curve::named(curve.name).map(|found| found.what), Some(curve.what));
            assert!(curve.lengths.len() >= 4 && curve.lengths.is_sorted(), "{}", curve.name);
        }
    }
}
