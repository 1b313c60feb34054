//! Watching costs nothing when nobody watches: a pass with `Off` allocates exactly what a pass allocates whose observer wants nothing,
//! and that is less than one that is shown anything computed on the side.
//!
//! This is the part of the claim that can be counted on any machine. The rest follows from the source: every tap begins with
//! `is_on()`, which for `Off` is `false`, a constant, inlined.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use glassbox_anatomy::{At, Interest, Observer, Off, Site};
use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};

thread_local! {
    /// Of this thread alone: the thread that runs the tests allocates too, and when is its own affair.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[expect(unsafe_code, reason = "an allocator can only be replaced by an unsafe trait; this one hands everything on")]
// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more, and nothing to be counted.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Wants nothing, or only the scores.
struct Idle {
    wants_scores: bool,
}

impl Observer for Idle {
    fn interest(&self, at: At) -> Interest {
        if self.wants_scores && at.site == Site::Scores { Interest::See } else { Interest::Nothing }
    }
}

/// Allocations of a pass of `tokens` tokens, and of one more token after it.
fn allocations(model: &Model, tokens: usize, observer: Option<&mut dyn Observer>) -> [usize; 2] {
    let mut cache = model.new_cache(64, 1 << 28).expect("tiny");
    let workers = Workers::new(1);
    let ids = vec![3; tokens];
    let mut none = Off;
    let watched = observer.is_some();
    let observer = observer.unwrap_or(&mut none);
    let mut pass = |ids: &[u32]| {
        let before = ALLOCATIONS.get();
        let logits = if watched {
            model.forward_observed(ids, &mut cache, Rows::Last, &workers, observer)
        } else {
            model.forward(ids, &mut cache, Rows::Last, &workers)
        };
        logits.expect("sound ids");
        ALLOCATIONS.get() - before
    };
    [pass(&ids), pass(&[5])]
}

#[test]
fn a_pass_that_nobody_watches_allocates_nothing_for_the_taps() {
    for name in ["llama-gqa", "qwen2-gqa", "gemma3-gqa", "gpt2"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny").join(name);
        let checkpoint = Checkpoint::open(folder).expect("the fixture is committed");
        let model = Model::open(&checkpoint, Kernels::Fast).expect("the fixture is sound");
        let off = allocations(&model, 20, None);
        assert_eq!(off, allocations(&model, 20, None), "{name}: a count that can be repeated");
        assert_eq!(off, allocations(&model, 20, Some(&mut Idle { wants_scores: false })), "{name}");
        let [prompt, step] = allocations(&model, 20, Some(&mut Idle { wants_scores: true }));
        assert!(prompt > off[0] && step > off[1], "{name}: scores are computed only where somebody wants them");
        assert_eq!(off[1], allocations(&model, 40, None)[1], "{name}: a step allocates the same after 20 tokens as after 40");
    }
}
