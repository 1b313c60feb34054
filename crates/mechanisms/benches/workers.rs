//! What a call of `Workers::split` costs: `cargo bench -p glassbox-mechanisms --bench workers [-- threads]`.
//!
//! As many pieces as threads, each of which waits until all have begun: the time is that of waking everybody, handing out and waiting for the
//! last. With pauses between the calls the helpers have gone to sleep and must be woken by the system.
#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use glassbox_mechanisms::Workers;

fn main() {
    let threads = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(2);
    let workers = Workers::new(threads);
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let call = || {
        let begun = AtomicUsize::new(0);
        workers.split(threads, 1, |_| {
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < threads {
                std::hint::spin_loop();
            }
        });
    };
    let close: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            (0..100).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e6 / 100.0
        })
        .collect();
    let apart: Vec<f64> = (0..100)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            let start = Instant::now();
            call();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    println!("{threads} threads: {:.2} µs a call one after the other, {:.1} µs after a pause", median(close), median(apart));
}
