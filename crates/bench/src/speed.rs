//! One test: warm-up, repetitions, tokens a second, memory.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use glassbox_mechanisms::Workers;
use glassbox_mechanisms::cache::{Cache, KvType, Pool};
use glassbox_model::{Keeping, Model, ModelError, Rows, Windows};

use crate::capture::Reduced;
use crate::{BenchError, Capture, Machine, Spent, Stopwatch, Summary, Test, Work, machine};

/// A model, and how it is measured.
#[derive(Debug)]
pub struct Bench<'a> {
    model: &'a Model,
    tests: &'a [Test],
    repetitions: usize,
    limit_bytes: u64,
    stop: &'a AtomicBool,
    capture: Capture,
    filled: Option<Filled>,
    ids: RandomIds,
}

/// A cache that holds the tokens before a test; every repetition goes on from a fork of it.
#[derive(Debug)]
struct Filled {
    kv_type: KvType,
    depth: usize,
    cache: Cache,
}

impl Filled {
    fn serves(&self, test: &Test) -> bool {
        (self.kv_type, self.depth) == (test.kv_type, test.depth) && self.cache.capacity() >= test.tokens()
    }
}

/// What one test gave.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One entry for each repetition.
    pub runs: Vec<Spent>,
    /// Peak of the resident memory of the process, from the warm-up on.
    pub peak_resident_bytes: Option<u64>,
    /// Bytes that a cache takes for the tokens of the test.
    pub cache_bytes: Option<u64>,
    /// Bytes of statistics that went past the observer in one repetition.
    pub statistics_bytes: u64,
}

impl Measured {
    /// Tokens a second of every repetition.
    #[must_use]
    pub fn tokens_per_second(&self, test: &Test) -> Vec<f64> {
        self.runs.iter().map(|run| test.work.tokens() as f64 / run.seconds).collect()
    }

    /// Which part of the time that the threads could have had on their processors they got, in the median of the repetitions; never more
    /// than the machine has processors.
    #[must_use]
    pub fn processor_share(&self, test: &Test, machine: &Machine) -> Option<f64> {
        let processors = test.threads.min(machine.processors) as f64;
        let share = |run: &Spent| run.processor_seconds.map(|seconds| seconds / (run.seconds * processors));
        let shares: Option<Vec<f64>> = self.runs.iter().map(share).collect();
        Summary::of(&shares?).map(|summary| summary.median)
    }
}

impl<'a> Bench<'a> {
    /// Measures `model` by `tests`, each so many times after its warm-up, with caches of at most `limit_bytes`. Where `stop` becomes true,
    /// the current test ends before the next token, or the next piece of a prompt.
    ///
    /// # Errors
    ///
    /// Where the cache of a test would be larger, with both numbers; nothing was allocated.
    pub fn new(
        model: &'a Model,
        tests: &'a [Test],
        repetitions: usize,
        limit_bytes: u64,
        stop: &'a AtomicBool,
    ) -> Result<Self, BenchError> {
        let ids = RandomIds::new(model.blueprint().vocab);
        let bench = Self { model, tests, repetitions, limit_bytes, stop, capture: Capture::None, filled: None, ids };
        tests.iter().try_for_each(|test| bench.empty_cache(test).map(drop))?;
        Ok(bench)
    }

    /// What the tests that follow watch.
    pub fn watch(&mut self, capture: Capture) {
        self.capture = capture;
    }

    /// Runs one test; `tick` is called after every repetition.
    ///
    /// # Errors
    ///
    /// As [`Bench::prepare`].
    pub fn measure(&mut self, test: &Test, workers: &Workers, tick: &mut dyn FnMut()) -> Result<Measured, BenchError> {
        self.prepare(test, workers)?;
        let mut runs = Vec::with_capacity(self.repetitions);
        let mut statistics_bytes = 0;
        for _ in 0..self.repetitions {
            let (spent, bytes) = self.repeat_watched(test, workers)?;
            runs.push(spent);
            statistics_bytes = bytes;
            tick();
        }
        let cache_bytes = self.model.cache_plan(test.tokens(), keeping(test)).bytes();
        Ok(Measured { runs, peak_resident_bytes: machine::peak_resident_bytes(), cache_bytes, statistics_bytes })
    }

    /// Computes the tokens before the test, unless the last test began with the same ones, and warms up: the whole prompt, or one token.
    ///
    /// # Errors
    ///
    /// Where the model refuses the tokens, the cache would be too large, or the work was to stop.
    pub fn prepare(&mut self, test: &Test, workers: &Workers) -> Result<(), BenchError> {
        let filled = match self.filled.take() {
            Some(filled) if filled.serves(test) => filled,
            _ => {
                let mut cache = self.empty_cache(test)?;
                let ids = self.ids.take(test.depth);
                self.read(&ids, Rows::None, &mut cache, workers, None)?;
                Filled { kv_type: test.kv_type, depth: test.depth, cache }
            }
        };
        machine::reset_peak();
        self.filled = Some(filled);
        let warm_up = match test.work {
            Work::Prompt(_) => test.work,
            Work::Generate(_) => Work::Generate(1),
        };
        self.repeat(&Test { work: warm_up, ..*test }, workers).map(drop)
    }

    /// One repetition of a test that was prepared. Only the work itself is timed.
    ///
    /// # Errors
    ///
    /// As [`Bench::prepare`].
    pub fn repeat(&mut self, test: &Test, workers: &Workers) -> Result<Spent, BenchError> {
        self.repeat_watched(test, workers).map(|(spent, _)| spent)
    }

    /// The same, and the bytes of statistics that were seen.
    fn repeat_watched(&mut self, test: &Test, workers: &Workers) -> Result<(Spent, u64), BenchError> {
        let mut cache = match &self.filled {
            Some(filled) if filled.serves(test) => filled.cache.fork(),
            _ => return Err(BenchError::NotPrepared { test: test.to_string() }),
        };
        self.run(test, &mut cache, workers)
    }

    /// The work, timed.
    fn run(&mut self, test: &Test, cache: &mut Cache, workers: &Workers) -> Result<(Spent, u64), BenchError> {
        let ids = self.ids.take(test.work.tokens());
        let mut watching = (self.capture != Capture::None).then(|| Reduced::new(self.capture, test.tokens()));
        let watch = Stopwatch::start();
        match test.work {
            Work::Prompt(_) => self.read(&ids, Rows::Last, cache, workers, watching.as_mut())?,
            Work::Generate(_) => {
                for id in ids.chunks(1) {
                    self.read(id, Rows::Last, cache, workers, watching.as_mut())?;
                }
            }
        }
        Ok((watch.spent(), watching.map_or(0, |watching| watching.bytes())))
    }

    /// Tokens go through, in the pieces in which the forward pass takes them through the layers anyway; the logits of `rows` of the last
    /// piece are computed.
    fn read(
        &self,
        ids: &[u32],
        rows: Rows,
        cache: &mut Cache,
        workers: &Workers,
        mut watching: Option<&mut Reduced>,
    ) -> Result<(), BenchError> {
        let pass_tokens = self.model.cache_plan(cache.capacity(), Keeping::default()).pass_tokens;
        let pieces = ids.chunks(pass_tokens.max(1));
        let last = pieces.len();
        for (index, piece) in pieces.enumerate() {
            if self.stop.load(Ordering::SeqCst) {
                return Err(BenchError::Interrupted);
            }
            let rows = if index + 1 == last { rows } else { Rows::None };
            black_box(match &mut watching {
                None => self.model.forward(piece, cache, rows, workers)?,
                Some(watching) => self.model.forward_observed(piece, cache, rows, workers, *watching)?,
            });
        }
        Ok(())
    }

    /// With room for every test that begins with the same tokens.
    fn empty_cache(&self, test: &Test) -> Result<Cache, BenchError> {
        let alike = |other: &&Test| (other.kv_type, other.depth) == (test.kv_type, test.depth);
        let capacity = self.tests.iter().filter(alike).map(Test::tokens).max().unwrap_or(test.tokens());
        let plan = self.model.cache_plan(capacity, keeping(test));
        Ok(Cache::planned(&plan, &Pool::new(self.limit_bytes)).map_err(ModelError::from)?)
    }
}

/// Peak of the resident memory of this process since the last test was prepared; nothing where the system does not say.
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    machine::peak_resident_bytes()
}

/// As `generate` keeps.
fn keeping(test: &Test) -> Keeping {
    Keeping { kv_type: test.kv_type, windows: Windows::Ring }
}

/// Ids that follow no text, the same in every process: what they are takes no part in how long they take.
#[derive(Debug)]
struct RandomIds {
    vocab: u32,
    state: u64,
}

impl RandomIds {
    fn new(vocab: usize) -> Self {
        Self { vocab: u32::try_from(vocab).unwrap_or(u32::MAX).max(1), state: 1 }
    }

    fn take(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.next()).collect()
    }

    /// A linear congruential generator with the multiplier of Knuth's MMIX; its high bits pick the id.
    fn next(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.state >> 32) * u64::from(self.vocab)) >> 32) as u32
    }
}
