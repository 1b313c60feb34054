//! Speed of `matmul::project` per core: `cargo bench -p glassbox-mechanisms --bench matmul [-- threads]`.
//!
//! Prints the median and the best of several runs. One-token runs walk over enough copies of the weight to leave the caches, as
//! decoding does; GB/s counts the stored bytes of the weight.
#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::time::Instant;

use glassbox_mechanisms::{Kernels, Workers, matmul::project};
use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

const OUTPUTS: usize = 4864;
const INPUTS: usize = 1024; // 896 in Qwen2.5-0.5B; the K types want a multiple of 256

fn main() {
    let threads = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(1);
    let workers = Workers::new(threads);
    println!("{OUTPUTS} x {INPUTS}, {threads} thread(s); GMAC/s median (best), GB/s of weights median (best)");
    for storage in
        [StorageType::F32, StorageType::F16, StorageType::Bf16, StorageType::Q5_0, StorageType::Q8_0, StorageType::Q4K, StorageType::Q6K]
    {
        for tokens in [1, 2, 4, 8, 64, 512] {
            let copies = if tokens == 1 { (64 << 20) / (OUTPUTS * storage.bytes_for(INPUTS).expect("whole blocks")) + 1 } else { 1 };
            let weights: Vec<Matrix> = (0..copies).map(|seed| weight(seed as u64, storage)).collect();
            let x = Values::seeded(1).normals(tokens * INPUTS, 1.0);
            let mut out = vec![0.0; tokens * OUTPUTS];
            let macs = (copies * tokens * OUTPUTS * INPUTS) as f64;
            let bytes: usize = weights.iter().map(|weight| weight.rows() * weight.row_bytes(0).len()).sum();
            let mut seconds: Vec<f64> = (0..if tokens > 64 { 5 } else { 9 })
                .map(|_| {
                    let start = Instant::now();
                    for weight in &weights {
                        project(Kernels::Fast, weight, &x, None, &mut out, &workers);
                    }
                    start.elapsed().as_secs_f64()
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

fn weight(seed: u64, storage: StorageType) -> Matrix {
    let bytes = Values::seeded(seed).bytes(OUTPUTS * storage.bytes_for(INPUTS).expect("whole blocks"));
    Matrix::new(OUTPUTS, INPUTS, storage, Bytes::new(bytes)).expect("sizes fit")
}
