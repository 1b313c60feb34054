//! A limit on the memory that is in use at any time, so that a file cannot ask for more than its own length justifies.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `body`, which may have `bytes` more in use at a time than now; more ends the process, which the fuzzer reports.
pub(crate) fn bounded(bytes: usize, body: impl FnOnce()) {
    LIMIT.store(LIVE.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    body();
    LIMIT.store(usize::MAX, Ordering::Relaxed);
}

fn count(more: usize) {
    let live = LIVE.fetch_add(more, Ordering::Relaxed).saturating_add(more);
    if live > LIMIT.load(Ordering::Relaxed) {
        LIMIT.store(usize::MAX, Ordering::Relaxed); // the report itself needs memory
        eprintln!("{live} bytes in use after asking for {more}: more than the input justifies");
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches nothing but two atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        LIVE.fetch_sub(layout.size().saturating_sub(size), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
