use std::time::{Duration, Instant, SystemTime};

/// The time, and waiting; tests put one of their own in its place.
pub trait Clock: Send + Sync {
    /// Time since some fixed moment; it never goes back.
    fn now(&self) -> Duration;

    /// The time of day, which a `Retry-After` date is held against.
    fn time_of_day(&self) -> SystemTime;

    /// Waits, unless somebody wants to stop.
    fn wait(&self, length: Duration);

    /// Whether somebody wants to stop.
    fn interrupted(&self) -> bool;
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    interrupted: fn() -> bool,
}

impl SystemClock {
    /// A clock that begins now.
    ///
    /// - `interrupted`  whether somebody wants to stop; asked ten times a second while it waits
    #[must_use]
    pub fn new(interrupted: fn() -> bool) -> Self {
        Self { start: Instant::now(), interrupted }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn time_of_day(&self) -> SystemTime {
        SystemTime::now()
    }

    fn wait(&self, length: Duration) {
        const STEP: Duration = Duration::from_millis(100);
        let end = Instant::now() + length;
        while !self.interrupted() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}
