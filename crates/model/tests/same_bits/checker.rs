//! Whether an engine keeps contract 1: the logits of a position are the same bits however they are come by.

use std::process::Command;

use glassbox_anatomy::{At, Interest, Observer};
use glassbox_mechanisms::Workers;
use glassbox_mechanisms::cache::{Cache, KvType, Pool};
use glassbox_model::{Keeping, Model, Rows, Sequence, Windows};
use glassbox_testkit::Values;

/// Longer than two pieces of a pass, two chunks of attention, and many pages.
pub(crate) const PROMPT: usize = 1100;
/// Tokens decoded after it.
pub(crate) const DECODED: usize = 64;

/// What is checked: the model, or one with a planted fault.
pub(crate) trait Engine {
    fn model(&self) -> &Model;

    fn read(&self, sequences: &mut [Sequence<'_>], workers: &Workers) -> Vec<Vec<f32>> {
        self.model().forward_together(sequences, workers).expect("sound ids")
    }

    fn read_watched(&self, ids: &[u32], cache: &mut Cache, workers: &Workers) -> Vec<f32> {
        self.model().forward_observed(ids, cache, Rows::All, workers, &mut Everything).expect("sound ids")
    }
}

impl Engine for Model {
    fn model(&self) -> &Model {
        self
    }
}

/// Sees every site, scores and weights included.
pub(crate) struct Everything;

impl Observer for Everything {
    fn interest(&self, _: At) -> Interest {
        Interest::See
    }
}

/// The rows of logits, each as a fingerprint of its bits.
pub(crate) type Fingerprints = Vec<u64>;

fn fingerprints(logits: &[f32], vocab: usize) -> Fingerprints {
    let row = |row: &[f32]| {
        // FNV-1a, a word at a time.
        row.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, logit| (hash ^ u64::from(logit.to_bits())).wrapping_mul(0x0000_0100_0000_01b3))
    };
    logits.chunks_exact(vocab).map(row).collect()
}

/// Ids that look random.
pub(crate) fn prompt(vocab: usize) -> Vec<u32> {
    let mut values = Values::seeded(3);
    (0..PROMPT).map(|_| u32::try_from(values.below(vocab)).expect("ids are 32 bits")).collect()
}

/// Runs the test `name` of this program in a process of its own, up to the same call: there `found` is written down, and nothing returned.
/// Here: what was found there.
pub(crate) fn in_another_process(name: &str, found: &str) -> Option<String> {
    const FILE: &str = "GLASSBOX_SAME_BITS_FILE";
    if let Some(file) = std::env::var_os(FILE) {
        std::fs::write(file, found).expect("the parent made the folder");
        return None;
    }
    let folder = tempfile::tempdir().expect("there is room for a file");
    let file = folder.path().join("found");
    let program = std::env::current_exe().expect("a running program has a path");
    let child = Command::new(program).args([name, "--exact"]).env(FILE, &file).output().expect("the program starts again");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    Some(std::fs::read_to_string(file).expect("the other process wrote it"))
}

/// One engine, one storage type of keys and values, and the rows to which everything is held.
pub(crate) struct Checker<'e, E> {
    engine: &'e E,
    kv_type: KvType,
    crews: [Workers; 4],
    pub(crate) ids: Vec<u32>,
    pub(crate) wanted: Fingerprints,
}

impl<'e, E: Engine> Checker<'e, E> {
    /// Reads the prompt at once on one thread and decodes greedily, token by token: the reference.
    pub(crate) fn new(engine: &'e E, kv_type: KvType) -> Self {
        let vocab = engine.model().blueprint().vocab;
        let mut this = Self { engine, kv_type, crews: [1, 2, 3, 8].map(Workers::new), ids: prompt(vocab), wanted: Vec::new() };
        let mut cache = this.cache(Windows::Whole);
        let mut logits = this.read(&this.ids, &mut cache, 1);
        assert!(logits.iter().all(|logit| logit.is_finite()), "the logits are numbers");
        this.wanted = fingerprints(&logits, vocab);
        for _ in 0..DECODED {
            let last = &logits[logits.len() - vocab..];
            let greatest = (0..vocab).max_by(|a, b| last[*a].total_cmp(&last[*b])).expect("a vocabulary is not empty");
            this.ids.push(u32::try_from(greatest).expect("ids are 32 bits"));
            logits = this.read(&this.ids[this.ids.len() - 1..], &mut cache, 1);
            this.wanted.extend(fingerprints(&logits, vocab));
        }
        this
    }

    fn vocab(&self) -> usize {
        self.engine.model().blueprint().vocab
    }

    pub(crate) fn cache(&self, windows: Windows) -> Cache {
        let plan = self.engine.model().cache_plan(PROMPT + DECODED, Keeping { kv_type: self.kv_type, windows });
        Cache::planned(&plan, &Pool::new(8 << 30)).expect("there is memory")
    }

    fn workers(&self, threads: usize) -> &Workers {
        self.crews.iter().find(|crew| crew.threads() == threads).expect("one of the crews")
    }

    fn read(&self, ids: &[u32], cache: &mut Cache, threads: usize) -> Vec<f32> {
        self.engine.read(&mut [Sequence { ids, cache, rows: Rows::All }], self.workers(threads)).remove(0)
    }

    /// Reads all ids from `cache.len()` on, in pieces, and holds every row to the reference.
    fn goes_on(&self, what: &str, cache: &mut Cache, piece: usize, threads: usize) -> Result<(), String> {
        let first = cache.len();
        for (index, ids) in self.ids[first..].chunks(piece).enumerate() {
            let logits = self.read(ids, cache, threads);
            self.same(what, first + index * piece, &logits)?;
        }
        Ok(())
    }

    fn same(&self, what: &str, first: usize, logits: &[f32]) -> Result<(), String> {
        let found = fingerprints(logits, self.vocab());
        let differs = found.iter().zip(&self.wanted[first..]).position(|(found, wanted)| found != wanted);
        differs.map_or(Ok(()), |row| Err(format!("{what}: other bits at token {}, cache {}", first + row, self.kv_type)))
    }

    pub(crate) fn whole(&self, threads: usize) -> Result<(), String> {
        self.goes_on(&format!("recomputed at once on {threads} threads"), &mut self.cache(Windows::Whole), usize::MAX, threads)
    }

    pub(crate) fn in_pieces(&self, piece: usize, threads: usize) -> Result<(), String> {
        self.in_pieces_after(0, piece, threads)
    }

    /// The first `prefix` tokens at once, and the others in pieces.
    pub(crate) fn in_pieces_after(&self, prefix: usize, piece: usize, threads: usize) -> Result<(), String> {
        let mut cache = self.cache(Windows::Whole);
        let ids = &self.ids[..prefix];
        if !ids.is_empty() {
            self.engine.read(&mut [Sequence { ids, cache: &mut cache, rows: Rows::None }], self.workers(threads));
        }
        self.goes_on(&format!("pieces of {piece} on {threads} threads"), &mut cache, piece, threads)
    }

    pub(crate) fn in_a_ring(&self, piece: usize, threads: usize) -> Result<(), String> {
        self.goes_on(&format!("a ring, pieces of {piece}"), &mut self.cache(Windows::Ring), piece, threads)
    }

    /// Beside two other sequences, which come and go.
    pub(crate) fn in_company(&self, threads: usize) -> Result<(), String> {
        let other: Vec<u32> = self.ids.iter().rev().copied().collect();
        let (mut a, mut own, mut b) = (self.cache(Windows::Whole), self.cache(Windows::Whole), self.cache(Windows::Ring));
        let mut at = 0_usize;
        for (others, tokens) in [([300, 90], 700), ([1, 1], 1), ([0, 40], 1), ([200, 0], 3), ([1, 600], usize::MAX)] {
            let end = at.saturating_add(tokens).min(self.ids.len());
            let mut sequences = Vec::new();
            if others[0] > 0 {
                let first = a.len();
                sequences.push(Sequence { ids: &other[first..first + others[0]], cache: &mut a, rows: Rows::Last });
            }
            let index = sequences.len();
            sequences.push(Sequence { ids: &self.ids[at..end], cache: &mut own, rows: Rows::All });
            if others[1] > 0 {
                let first = b.len();
                sequences.push(Sequence { ids: &other[first..first + others[1]], cache: &mut b, rows: Rows::All });
            }
            let logits = self.engine.read(&mut sequences, self.workers(threads)).swap_remove(index);
            self.same(&format!("in a batch on {threads} threads"), at, &logits)?;
            at = end;
        }
        Ok(())
    }

    /// Forked in the middle of a page; the fork reads other tokens first, and then both go on.
    pub(crate) fn forked(&self, threads: usize) -> Result<(), String> {
        let mut cache = self.cache(Windows::Whole);
        self.read(&self.ids[..700], &mut cache, threads);
        let mut other = cache.fork();
        let ids: Vec<u32> = self.ids[..150].iter().rev().copied().collect();
        self.read(&ids, &mut other, threads);
        let mut fork = cache.fork();
        self.goes_on("forked", &mut fork, 100, threads)?;
        drop(fork);
        self.goes_on("what was forked from", &mut cache, usize::MAX, threads)?;
        other.truncate(650).expect("everything is kept");
        self.goes_on("a fork that was cut back", &mut other, usize::MAX, threads)
    }

    pub(crate) fn watched(&self, threads: usize) -> Result<(), String> {
        let mut cache = self.cache(Windows::Whole);
        for first in [0, 600] {
            let ids = if first == 0 { &self.ids[..600] } else { &self.ids[600..] };
            let logits = self.engine.read_watched(ids, &mut cache, self.workers(threads));
            self.same("watched", first, &logits)?;
        }
        Ok(())
    }

    /// As [`Checker::in_pieces`], of each piece only its last row: what a large vocabulary leaves time for.
    pub(crate) fn ends_of_pieces(&self, piece: usize, threads: usize) -> Result<(), String> {
        let mut cache = self.cache(Windows::Whole);
        for (index, ids) in self.ids.chunks(piece).enumerate() {
            let logits = self.engine.read(&mut [Sequence { ids, cache: &mut cache, rows: Rows::Last }], self.workers(threads)).remove(0);
            self.same(
                &format!("ends of pieces of {piece} on {threads} threads"),
                (index * piece.min(self.ids.len())) + ids.len() - 1,
                &logits,
            )?;
        }
        Ok(())
    }

    /// The ways in which kernels and caches differ most.
    pub(crate) fn brief(&self) -> Result<(), String> {
        self.whole(3)?;
        self.in_company(1)?;
        self.in_pieces(64, 2)?;
        self.in_a_ring(64, 1)?;
        self.forked(1)
    }

    /// Every way once.
    pub(crate) fn all(&self) -> Result<(), String> {
        self.whole(1)?;
        self.whole(2)?;
        self.whole(8)?;
        self.brief()?;
        self.in_pieces(7, 2)?;
        self.in_pieces(1, 3)?; // on one thread the reference was decoded
        self.ends_of_pieces(100, 2)?;
        self.watched(1)
    }
}
