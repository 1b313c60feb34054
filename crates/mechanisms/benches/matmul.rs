//! Speed of `matmul::project`, rows and panels: `cargo bench -p glassbox-mechanisms --bench matmul [-- threads type tokens]`.
//!
//! Prints the median and the best of several runs. One thread is timed by the processor time that the system gave it (Linux), so that
//! neighbours count less; more threads by the clock. One-token runs walk over enough copies of the weight to leave the caches, as
//! decoding does. GB/s counts the stored bytes of the weight.
#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::time::Instant;

use glassbox_mechanisms::matmul::{Panels, Weight, project};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_tensor::{Bytes, Matrix, StorageType};
use glassbox_testkit::Values;

const SHAPES: [(usize, usize); 2] = [(4864, 1024), (1024, 4864)]; // outputs, inputs: up and down of a small model; the K types want 256s

const STORED: [StorageType; 7] =
    [StorageType::F32, StorageType::F16, StorageType::Bf16, StorageType::Q5_0, StorageType::Q8_0, StorageType::Q4K, StorageType::Q6K];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let workers = Workers::new(wanted.first().and_then(|argument| argument.parse().ok()).unwrap_or(1));
    println!("{} thread(s); GMAC/s median (best), GB/s of weights median (best)", workers.threads());
    for (shape, storage) in SHAPES.iter().flat_map(|shape| STORED.map(|storage| (*shape, storage))) {
        let ways = |tokens| [(Kernels::Fast, true, tokens), (Kernels::Fast, false, tokens)];
        for (kernels, in_panels, tokens) in [1, 2, 4, 8, 64, 512].into_iter().flat_map(ways).chain([(Kernels::Textbook, false, 8)]) {
            if in_panels && !Panels::exist_for(storage) {
                continue;
            }
            let chosen = wanted.get(1).is_none_or(|name| name == storage.name()) && wanted.get(2).is_none_or(|n| *n == tokens.to_string());
            if chosen {
                let speed = measure(kernels, in_panels, storage, shape, tokens, &workers);
                let what = if in_panels { "panels" } else { "rows" };
                println!("{:>5} {} x {} x {tokens:>3} tokens  {speed}  {kernels:?}, {what}", storage.name(), shape.0, shape.1);
            }
        }
    }
}

fn measure(
    kernels: Kernels,
    in_panels: bool,
    storage: StorageType,
    (outputs, inputs): (usize, usize),
    tokens: usize,
    workers: &Workers,
) -> String {
    let copies = if tokens == 1 { (64 << 20) / (outputs * storage.bytes_for(inputs).expect("whole blocks")) + 1 } else { 1 };
    let weights: Vec<Matrix> = (0..copies).map(|seed| weight(seed as u64, storage, outputs, inputs)).collect();
    let bytes = weights.iter().map(|weight| weight.rows() * weight.row_bytes(0).len()).sum::<usize>() as f64;
    let weights: Vec<Weight> = if in_panels {
        Panels::of(&weights, workers, |_| ()).expect("there is memory").into_iter().map(Weight::Panels).collect()
    } else {
        weights.into_iter().map(Weight::Rows).collect()
    };
    let x = Values::seeded(1).normals(tokens * inputs, 1.0);
    let mut out = vec![0.0; tokens * outputs];
    let macs = (copies * tokens * outputs * inputs) as f64;
    let mut seconds: Vec<f64> = (0..if tokens > 64 { 5 } else { 9 })
        .map(|_| {
            let (start, start_cpu) = (Instant::now(), processor_seconds());
            for weight in &weights {
                project(kernels, weight, &x, None, &mut out, workers);
            }
            match (start_cpu, processor_seconds()) {
                (Some(start), Some(end)) if workers.threads() == 1 => end - start,
                _ => start.elapsed().as_secs_f64(),
            }
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let rates = |what: f64| [what / seconds[seconds.len() / 2] / 1e9, what / seconds[0] / 1e9];
    let ([macs, most_macs], [bytes, most_bytes]) = (rates(macs), rates(bytes));
    format!("{macs:>6.1} ({most_macs:>5.1}) GMAC/s  {bytes:>5.2} ({most_bytes:>5.2}) GB/s")
}

/// Processor time of this thread so far. Yielding first makes the system bring its count up to date.
fn processor_seconds() -> Option<f64> {
    std::thread::yield_now();
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = statistics.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn weight(seed: u64, storage: StorageType, outputs: usize, inputs: usize) -> Matrix {
    let bytes = Values::seeded(seed).bytes(outputs * storage.bytes_for(inputs).expect("whole blocks"));
    Matrix::new(outputs, inputs, storage, Bytes::new(bytes)).expect("sizes fit")
}
