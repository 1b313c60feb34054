//! The only place that reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use glassbox_record::Timestamp;
use glassbox_text::CivilTime;

/// Now, for the record.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_ms(unix_ms())
}

/// Now in UTC, for templates that write the date.
pub(crate) fn civil_now() -> CivilTime {
    CivilTime::from_unix_seconds(unix_ms().div_euclid(1000))
}

fn unix_ms() -> i64 {
    // A clock before 1970 is a broken clock; the epoch then marks it as such.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
