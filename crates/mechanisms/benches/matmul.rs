//! Speed of `matmul::project`: `cargo bench -p glassbox-mechanisms --bench matmul [-- threads type tokens]`.
//!
//! Prints the median and the best of several runs. One thread is timed by the processor time that the system gave it (Linux), so that
//! neighbours count less; more threads by the clock. One-token runs walk over enough copies of the weight to leave the caches, as
//! decoding does. GB/s counts the stored bytes of the weight.
#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::time::Instant;

use glassbox_mechanisms::{Kernels, Workers, matmul::project};
use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

const OUTPUTS: usize = 4864;
const INPUTS: usize = 1024; // 896 in Qwen2.5-0.5B; the K types want a multiple of 256

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let threads = wanted.first().and_then(|argument| argument.parse().ok()).unwrap_or(1);
    let workers = Workers::new(threads);
    println!("{OUTPUTS} x {INPUTS}, {threads} thread(s); GMAC/s median (best), GB/s of weights median (best)");
    for storage in
        [StorageType::F32, StorageType::F16, StorageType::Bf16, StorageType::Q5_0, StorageType::Q8_0, StorageType::Q4K, StorageType::Q6K]
    {
        for tokens in [1, 2, 4, 8, 64, 512] {
            if wanted.get(1).is_some_and(|name| name != storage.name()) || wanted.get(2).is_some_and(|n| *n != tokens.to_string()) {
                continue;
            }
            let copies = if tokens == 1 { (64 << 20) / (OUTPUTS * storage.bytes_for(INPUTS).expect("whole blocks")) + 1 } else { 1 };
            let weights: Vec<Matrix> = (0..copies).map(|seed| weight(seed as u64, storage)).collect();
            let x = Values::seeded(1).normals(tokens * INPUTS, 1.0);
            let mut out = vec![0.0; tokens * OUTPUTS];
            let macs = (copies * tokens * OUTPUTS * INPUTS) as f64;
            let bytes: usize = weights.iter().map(|weight| weight.rows() * weight.row_bytes(0).len()).sum();
            let mut seconds: Vec<f64> = (0..if tokens > 64 { 5 } else { 9 })
                .map(|_| {
                    let (start, start_cpu) = (Instant::now(), processor_seconds());
                    for weight in &weights {
                        project(Kernels::Fast, weight, &x, None, &mut out, &workers);
                    }
                    match (start_cpu, processor_seconds()) {
                        (Some(start), Some(end)) if threads == 1 => end - start,
                        _ => start.elapsed().as_secs_f64(),
                    }
                })
                .collect();
            seconds.sort_by(f64::total_cmp);
            let (median, best) = (seconds[seconds.len() / 2], seconds[0]);
            println!(
                "{:>5} {tokens:>4} tokens  {:>6.1} ({:>5.1}) GMAC/s  {:>5.2} ({:>5.2}) GB/s",
                storage.name(),
                macs / median / 1e9,
                macs / best / 1e9,
                bytes as f64 / median / 1e9,
                bytes as f64 / best / 1e9
            );
        }
    }
}

/// Processor time of this thread so far. Yielding first makes the system bring its count up to date.
fn processor_seconds() -> Option<f64> {
    std::thread::yield_now();
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = statistics.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn weight(seed: u64, storage: StorageType) -> Matrix {
    let bytes = Values::seeded(seed).bytes(OUTPUTS * storage.bytes_for(INPUTS).expect("whole blocks"));
    Matrix::new(OUTPUTS, INPUTS, storage, Bytes::new(bytes)).expect("sizes fit")
}
