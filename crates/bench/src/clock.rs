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

/// Processor time of all threads that this process has and had, in seconds.
#[cfg(unix)]
fn processor_seconds() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// Nothing: the system's count is not read here.
#[cfg(not(unix))]
fn processor_seconds() -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn work_costs_processor_time_also_of_a_thread_that_has_ended() {
        let stopwatch = Stopwatch::start();
        let work = || {
            let working = Instant::now();
            let mut x = 1.0_f64;
            while working.elapsed().as_secs_f64() < 0.03 {
                x = std::hint::black_box(x * 1.000_001);
            }
        };
        let before = stopwatch.spent().processor_seconds.expect("Unix says");
        std::thread::spawn(work).join().expect("multiplying does not panic");
        let after = stopwatch.spent();
        assert!(after.seconds >= 0.03);
        assert!(after.processor_seconds.expect("Unix says") > before, "{after:?}, {before} s before");
    }
}
