//! Wall time and processor time of a piece of work.

use std::time::Instant;

/// Runs from its start.
#[derive(Debug)]
pub struct Stopwatch {
    wall: Instant,
    processor_seconds: Option<f64>,
}

/// Time that a piece of work took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// By the clock.
    pub seconds: f64,
    /// What the system gave all threads of the process together; nothing where it does not say.
    pub processor_seconds: Option<f64>,
}

impl Stopwatch {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        let processor_seconds = processor_seconds();
        Self { wall: Instant::now(), processor_seconds }
    }

    /// What was spent since the start.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let seconds = self.wall.elapsed().as_secs_f64();
        let processor_seconds = self.processor_seconds.zip(processor_seconds()).map(|(start, end)| end - start);
        Spent { seconds, processor_seconds }
    }
}

/// Processor time of all living threads of this process, in seconds (Linux, `proc_pid_schedstat`).
///
/// Work that ends a thread takes the thread's time away with it; workers of a model live as long as the model.
fn processor_seconds() -> Option<f64> {
    // The system brings the count of a running thread up to date when the thread meets the scheduler.
    std::thread::yield_now();
    let of_thread = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    let nanoseconds: Vec<f64> = std::fs::read_dir("/proc/self/task").ok()?.flatten().filter_map(of_thread).collect();
    (!nanoseconds.is_empty()).then(|| nanoseconds.iter().sum::<f64>() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn work_costs_processor_time_and_sleep_does_not() {
        let sleeping = Stopwatch::start();
        std::thread::sleep(std::time::Duration::from_millis(60));
        let slept = sleeping.spent();
        assert!(slept.seconds >= 0.06);
        // Other tests of this process may run meanwhile; what is certain is that nothing went backwards.
        assert!(slept.processor_seconds.is_some_and(|seconds| seconds >= 0.0), "{slept:?}");

        let working = Stopwatch::start();
        let mut x = 1.0_f64;
        while working.spent().seconds < 0.03 {
            x = std::hint::black_box(x * 1.000_001);
        }
        let worked = working.spent();
        assert!(worked.processor_seconds.is_some_and(|seconds| seconds > 0.0), "{worked:?}");
    }
}
