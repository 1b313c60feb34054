//! The threads that kernels share their outputs among. No result ever depends on how many there are.

use std::fmt;
use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// A fixed number of threads; one thread means: run inline, start none.
///
/// Kernels split *outputs* (rows, heads, columns) among the workers and never a sum, so the bits of a result
/// are the same for one worker and for sixteen.
pub struct Workers {
    threads: usize,
    pool: Option<rayon::ThreadPool>,
}

impl Workers {
    /// Workers on `threads` threads; 0 counts as 1.
    ///
    /// Where the system refuses to start that many threads, everything runs inline and [`Workers::threads`] says 1.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        if threads <= 1 {
            return Self::inline();
        }
        match rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("worker-{index}")).build() {
            Ok(pool) => Self { threads, pool: Some(pool) },
            Err(_) => Self::inline(),
        }
    }

    /// No threads of its own: all work runs on the caller's.
    #[must_use]
    pub fn inline() -> Self {
        Self { threads: 1, pool: None }
    }

    /// How many pieces of work run at the same time.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` for ranges of at most `grain` that together cover `0..count`, each number once, in any order.
    ///
    /// `work` may run on several threads at once; what it writes must not overlap.
    pub fn split(&self, count: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        let grain = grain.max(1);
        let pieces = (0..count.div_ceil(grain)).map(|piece| piece * grain..((piece + 1) * grain).min(count));
        self.run(pieces.collect(), work);
    }

    /// Hands out `values` in whole rows of `row_len`, at most `grain` rows a piece.
    ///
    /// `work` receives the index of its first row and the rows themselves, to be written.
    pub fn split_rows<T: Send>(&self, values: &mut [T], row_len: usize, grain: usize, work: impl Fn(usize, &mut [T]) + Sync) {
        assert!(row_len > 0 && values.len().is_multiple_of(row_len), "values are whole rows of {row_len}");
        let grain = grain.max(1);
        let pieces = values.chunks_mut(grain * row_len).enumerate().map(|(piece, rows)| (piece * grain, rows));
        self.run(pieces.collect(), |(first, rows)| work(first, rows));
    }

    /// Hands out `values`, rows of `row_len`, in vertical strips of at most `grain` columns.
    ///
    /// `work` receives the index of its first column and, for every row, that row's part of the strip.
    pub fn split_columns<T: Send>(&self, values: &mut [T], row_len: usize, grain: usize, work: impl Fn(usize, &mut [&mut [T]]) + Sync) {
        assert!(row_len > 0 && values.len().is_multiple_of(row_len), "values are whole rows of {row_len}");
        let grain = grain.max(1);
        let rows = values.len() / row_len;
        let mut strips: Vec<(usize, Vec<&mut [T]>)> =
            (0..row_len.div_ceil(grain)).map(|strip| (strip * grain, Vec::with_capacity(rows))).collect();
        for row in values.chunks_mut(row_len) {
            for ((_, strip), part) in strips.iter_mut().zip(row.chunks_mut(grain)) {
                strip.push(part);
            }
        }
        self.run(strips, |(first, mut strip)| work(first, &mut strip));
    }

    fn run<P: Send>(&self, pieces: Vec<P>, work: impl Fn(P) + Sync) {
        match &self.pool {
            Some(pool) if pieces.len() > 1 => pool.install(|| pieces.into_par_iter().for_each(&work)),
            _ => pieces.into_iter().for_each(work),
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers({} threads)", self.threads)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Workers;

    #[test]
    fn every_index_is_handed_out_once_whatever_the_threads() {
        for threads in [0, 1, 2, 3, 8] {
            let workers = Workers::new(threads);
            for (count, grain) in [(0, 4), (1, 4), (7, 1), (100, 7), (100, 0), (5, 100)] {
                let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                workers.split(count, grain, |range| {
                    for index in range {
                        seen[index].fetch_add(1, Ordering::Relaxed);
                    }
                });
                assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1), "count {count}, grain {grain}, threads {threads}");
            }
        }
    }

    #[test]
    fn rows_and_strips_arrive_with_their_index() {
        for threads in [1, 2, 3] {
            let workers = Workers::new(threads);
            let mut by_rows = vec![0; 5 * 7];
            workers.split_rows(&mut by_rows, 7, 2, |first, rows| {
                for (index, value) in rows.iter_mut().enumerate() {
                    *value = first * 7 + index;
                }
            });
            assert_eq!(by_rows, (0..35).collect::<Vec<_>>());
            let mut by_columns = vec![0; 5 * 7];
            workers.split_columns(&mut by_columns, 7, 3, |first, strip| {
                for (row, part) in strip.iter_mut().enumerate() {
                    for (index, value) in part.iter_mut().enumerate() {
                        *value = row * 7 + first + index;
                    }
                }
            });
            assert_eq!(by_columns, (0..35).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_thread_runs_on_the_callers() {
        let here = std::thread::current().id();
        Workers::new(1).split(10, 1, |_| assert_eq!(std::thread::current().id(), here));
    }
}
