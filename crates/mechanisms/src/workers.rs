//! The threads that kernels share their outputs among. No result ever depends on how many there are.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// A fixed number of threads, the caller's among them; one thread means: run inline, start none.
///
/// Kernels split *outputs* (rows, heads, columns) among the workers and never a sum, so the bits of a result
/// are the same for one worker and for sixteen.
///
/// A call hands out its pieces one by one to whoever is free, and ends when all are done: a thread that the system has put to sleep holds up
/// the piece that it has in hand, and no other. Threads wait some microseconds for the next call and then sleep, so that a busy machine has
/// its processors back. A call from inside a piece, or while another thread's call runs, runs inline.
pub struct Workers {
    pool: Option<Pool>,
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
        Self { pool: Pool::new(threads - 1) }
    }

    /// No threads of its own: all work runs on the caller's.
    #[must_use]
    pub fn inline() -> Self {
        Self { pool: None }
    }

    /// How many pieces of work run at the same time.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.helpers.len() + 1)
    }

    /// Calls `work` for ranges of at most `grain` that together cover `0..count`, each number once, in any order.
    ///
    /// `work` may run on several threads at once; what it writes must not overlap.
    pub fn split(&self, count: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        let grain = grain.max(1);
        self.run(count.div_ceil(grain), &|piece| work(piece * grain..((piece + 1) * grain).min(count)));
    }

    /// Hands out `values` in whole rows of `row_len`, at most `grain` rows a piece.
    ///
    /// `work` receives the index of its first row and the rows themselves, to be written.
    pub fn split_rows<T: Send>(&self, values: &mut [T], row_len: usize, grain: usize, work: impl Fn(usize, &mut [T]) + Sync) {
        assert!(row_len > 0 && values.len().is_multiple_of(row_len), "values are whole rows of {row_len}");
        let (rows, values) = (values.len() / row_len, Shared(values.as_mut_ptr()));
        self.split(rows, grain, |piece| {
            #[expect(unsafe_code, reason = "the pieces of one slice go to several threads")]
            // SAFETY: `piece` lies inside the rows of `values`, which nobody else uses during the call; each row is in one piece only.
            let part = unsafe { std::slice::from_raw_parts_mut(values.at(piece.start * row_len), piece.len() * row_len) };
            work(piece.start, part);
        });
    }

    /// Hands out `values`, rows of `row_len`, in vertical strips of at most `grain` columns.
    ///
    /// `work` receives the index of its first column and, for every row, that row's part of the strip.
    pub fn split_columns<T: Send>(&self, values: &mut [T], row_len: usize, grain: usize, work: impl Fn(usize, &mut [&mut [T]]) + Sync) {
        assert!(row_len > 0 && values.len().is_multiple_of(row_len), "values are whole rows of {row_len}");
        let (rows, values) = (values.len() / row_len, Shared(values.as_mut_ptr()));
        self.split(row_len, grain, |piece| {
            let part = |row: usize| {
                #[expect(unsafe_code, reason = "the pieces of one slice go to several threads")]
                // SAFETY: `piece` lies inside a row of `values`, which nobody else uses during the call; each column is in one piece only.
                unsafe {
                    std::slice::from_raw_parts_mut(values.at(row * row_len + piece.start), piece.len())
                }
            };
            let mut strip: Vec<&mut [T]> = (0..rows).map(part).collect();
            work(piece.start, &mut strip);
        });
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        match &self.pool {
            Some(pool) if pieces > 1 && u32::try_from(pieces).is_ok() && !IS_WORKING.get() => pool.run(pieces, work),
            _ => (0..pieces).for_each(work),
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers({} threads)", self.threads())
    }
}

thread_local! {
    /// Whether this thread is at a piece of some call.
    static IS_WORKING: Cell<bool> = const { Cell::new(false) };
}

/// Where a slice begins whose parts go to several threads.
struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn at(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}

#[expect(unsafe_code, reason = "the pieces of one slice go to several threads")]
// SAFETY: the pointer is only used for parts that do not overlap, of values that may go to another thread.
unsafe impl<T: Send> Sync for Shared<T> {}

/// Looks at the state this often before a thread sleeps: some 20 µs, longer than the work between two calls of a forward pass.
const LOOKS: usize = 2000;

/// Threads that wait for calls.
struct Pool {
    state: Arc<State>,
    helpers: Vec<JoinHandle<()>>,
    /// Held during a call.
    turn: Mutex<()>,
}

/// What the threads of a pool share. The two counters that all of them write are kept on cache lines of their own.
#[derive(Default)]
struct State {
    /// Upper half: number of the call. Lower half: pieces that nobody has taken yet. Who lowers it by one has taken one.
    ticket: Line<AtomicU64>,
    /// Pieces of this call that are done.
    done: Line<AtomicUsize>,
    /// The call. Read only by who has taken one of its pieces: until that is done, the caller waits and the call lives.
    call: AtomicPtr<Call<'static>>,
    /// Helpers that sleep.
    asleep: Vec<AtomicBool>,
    /// The caller, when it sleeps.
    caller: Mutex<Option<Thread>>,
    caller_sleeps: AtomicBool,
    /// What the first piece that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    ended: AtomicBool,
}

#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

struct Call<'a> {
    pieces: usize,
    work: &'a (dyn Fn(usize) + Sync),
}

impl Pool {
    /// `None` where the system starts no more threads.
    fn new(helpers: usize) -> Option<Self> {
        let asleep = (0..helpers).map(|_| AtomicBool::new(false)).collect();
        let mut pool = Self { state: Arc::new(State { asleep, ..State::default() }), helpers: Vec::new(), turn: Mutex::new(()) };
        for index in 0..helpers {
            let state = Arc::clone(&pool.state);
            let thread = thread::Builder::new().name(format!("worker-{index}")).spawn(move || state.help(index));
            pool.helpers.push(thread.ok()?);
        }
        Some(pool)
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        let Ok(_turn) = self.turn.try_lock() else { return (0..pieces).for_each(work) };
        let state = &*self.state;
        let mut call = Call { pieces, work };
        state.done.0.store(0, Ordering::Relaxed);
        state.call.store((&raw mut call).cast(), Ordering::Relaxed);
        let number = (state.ticket.0.load(Ordering::Relaxed) >> 32).wrapping_add(1) & 0xFFFF_FFFF;
        state.ticket.0.store(number << 32 | pieces as u64, Ordering::SeqCst);
        for (helper, asleep) in self.helpers.iter().zip(&state.asleep).take(pieces - 1) {
            if asleep.swap(false, Ordering::SeqCst) {
                helper.thread().unpark();
            }
        }
        state.take_pieces();
        state.wait_for_the_last(pieces);
        let panic = state.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl State {
    /// The life of a helper.
    fn help(&self, index: usize) {
        while !self.ended.load(Ordering::SeqCst) {
            if self.take_pieces()
                || (0..LOOKS).any(|_| {
                    std::hint::spin_loop();
                    self.has_pieces()
                })
            {
                continue;
            }
            self.asleep[index].store(true, Ordering::SeqCst);
            // Either this look sees the pieces of a new call, or its caller sees that this thread sleeps.
            if !self.has_pieces() && !self.ended.load(Ordering::SeqCst) {
                thread::park();
            }
            self.asleep[index].store(false, Ordering::SeqCst);
        }
    }

    fn has_pieces(&self) -> bool {
        self.ticket.0.load(Ordering::SeqCst) & 0xFFFF_FFFF > 0
    }

    /// Works while there are pieces; whether there was one.
    fn take_pieces(&self) -> bool {
        let mut worked = false;
        loop {
            let ticket = self.ticket.0.load(Ordering::Acquire);
            let left = (ticket & 0xFFFF_FFFF) as usize;
            if left == 0 {
                return worked;
            }
            if self.ticket.0.compare_exchange_weak(ticket, ticket - 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            worked = true;
            #[expect(unsafe_code, reason = "helpers outlive the calls that they help with")]
            // SAFETY: a piece of this call was taken above and is not done, so its caller still waits in `wait_for_the_last`.
            let call = unsafe { &*self.call.load(Ordering::Acquire) };
            let pieces = call.pieces;
            IS_WORKING.set(true);
            let result = catch_unwind(AssertUnwindSafe(|| (call.work)(pieces - left)));
            IS_WORKING.set(false);
            if let Err(panic) = result {
                self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            }
            if self.done.0.fetch_add(1, Ordering::SeqCst) + 1 == pieces && self.caller_sleeps.swap(false, Ordering::SeqCst) {
                let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
                caller.inspect(Thread::unpark);
            }
        }
    }

    fn wait_for_the_last(&self, pieces: usize) {
        let all_done = || self.done.0.load(Ordering::SeqCst) == pieces;
        if all_done()
            || (0..LOOKS).any(|_| {
                std::hint::spin_loop();
                all_done()
            })
        {
            return;
        }
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        while !all_done() {
            self.caller_sleeps.store(true, Ordering::SeqCst);
            // Either this look sees the last piece done, or who did it sees that the caller sleeps.
            if !all_done() {
                thread::park();
            }
        }
        self.caller_sleeps.store(false, Ordering::SeqCst);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            // A helper catches the panics of its pieces and has none of its own.
            let _ = helper.join();
        }
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
    fn thousands_of_calls_from_short_to_long_lose_no_piece() {
        for threads in [2, 3, 8] {
            let workers = Workers::new(threads);
            let sum = AtomicUsize::new(0);
            for call in 0..3000 {
                workers.split(call % 17, 1, |range| {
                    sum.fetch_add(range.start + 1, Ordering::Relaxed);
                });
                if call % 500 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1)); // the helpers fall asleep
                }
            }
            let wanted: usize = (0..3000).map(|call| (call % 17) * (call % 17 + 1) / 2).sum();
            assert_eq!(sum.load(Ordering::Relaxed), wanted, "{threads} threads");
        }
    }

    #[test]
    fn calls_inside_calls_and_from_several_threads_at_once_do_all_their_work() {
        let workers = Workers::new(3);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        workers.split(5, 1, |_| {
                            workers.split(3, 1, |_| {
                                sum.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(sum.load(Ordering::Relaxed), 4 * 200 * 15);
    }

    #[test]
    fn a_panic_in_a_piece_reaches_the_caller_and_leaves_the_workers_usable() {
        let workers = Workers::new(2);
        for _ in 0..20 {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                workers.split(8, 1, |range| assert_ne!(range.start, 5, "piece five"));
            }));
            let said = caught.expect_err("one piece panics");
            assert!(said.downcast_ref::<String>().is_some_and(|said| said.contains("piece five")));
            let count = AtomicUsize::new(0);
            workers.split(8, 1, |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.load(Ordering::Relaxed), 8);
        }
    }

    #[test]
    fn one_thread_runs_on_the_callers() {
        let here = std::thread::current().id();
        Workers::new(1).split(10, 1, |_| assert_eq!(std::thread::current().id(), here));
    }
}
