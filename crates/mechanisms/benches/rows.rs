//! Speed of norms, activations and of handing out work: `cargo bench -p glassbox-mechanisms --bench rows`.
//!
//! 64 rows of 896 (norms) or 4864 (activations), one thread; the best of several runs by the clock.
#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::hint::black_box;
use std::time::Instant;

use glassbox_mechanisms::feed_forward::{Activation, gate_in_place};
use glassbox_mechanisms::norm::{layer_norm, rms_norm};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_testkit::Values;

fn main() {
    let mut values = Values::seeded(1);
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let (x, gain, mut out) = (values.normals(64 * 896, 1.0), values.normals(896, 1.0), vec![0.0; 64 * 896]);
        report("rms_norm", kernels, x.len(), || rms_norm(kernels, &x, &gain, 1e-6, &mut out));
        report("layer_norm", kernels, x.len(), || layer_norm(kernels, &x, &gain, Some(&gain), 1e-5, &mut out));
        let (gate, up) = (values.normals(64 * 4864, 1.0), values.normals(64 * 4864, 1.0));
        for activation in Activation::ALL {
            let mut gated = up.clone();
            report(&format!("gate {activation:?}"), kernels, gate.len(), || gate_in_place(kernels, activation, &gate, &mut gated));
        }
    }
    for threads in [2, 4] {
        let workers = Workers::new(threads);
        let seconds = best(200, || {
            workers.split(threads, 1, |range| {
                black_box(range);
            });
        });
        println!("handing {threads} empty pieces to {threads} threads: {:.1} us", seconds * 1e6);
    }
}

fn report(name: &str, kernels: Kernels, numbers: usize, run: impl FnMut()) {
    println!("{name:>14} {kernels:?}: {:.2} ns a number", best(9, run) / numbers as f64 * 1e9);
}

fn best(times: usize, mut run: impl FnMut()) -> f64 {
    let seconds = (0..times).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}
