use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, in milliseconds since 1970-01-01 00:00 UTC; written as `2026-11-30T20:54:12.345Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Milliseconds since the Unix epoch; negative before it.
    pub unix_ms: i64,
}

const MS_PER_DAY: i64 = 86_400_000;
/// Days from 0000-03-01 to 1970-01-01 in the Gregorian calendar run backwards.
const EPOCH_DAYS: i64 = 719_468;
const DAYS_PER_ERA: i64 = 146_097; // 400 Gregorian years

impl Timestamp {
    /// The moment so many milliseconds after 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        Self { unix_ms }
    }

    /// Milliseconds from `earlier` to this moment; 0 when the clock went backwards.
    #[must_use]
    pub fn ms_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.unix_ms.saturating_sub(earlier.unix_ms)).unwrap_or(0)
    }

    /// `20261130T205412Z`: sorts by time and is a valid file name everywhere.
    #[must_use]
    pub fn compact(self) -> String {
        let (year, month, day) = self.date();
        let (hour, minute, second, _) = self.time_of_day();
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    fn date(self) -> (i64, i64, i64) {
        // Years are taken to begin in March, so that the leap day is the last of its year; 400 years are one era.
        let shifted = self.unix_ms.div_euclid(MS_PER_DAY) + EPOCH_DAYS;
        let (era, day_of_era) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        (era * 400 + year_of_era + i64::from(month <= 2), month, day)
    }

    fn time_of_day(self) -> (i64, i64, i64, i64) {
        let ms = self.unix_ms.rem_euclid(MS_PER_DAY);
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000)
    }

    fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let (clock, ms) = time.split_once('.')?;
        let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
        let ms = ms.parse::<i64>().ok().filter(|_| ms.len() == 3)?;
        let in_range = (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        if !in_range || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return None;
        }
        let march_year = year - i64::from(month <= 2);
        let (era, year_of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let days = era * DAYS_PER_ERA + 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH_DAYS;
        Some(Self { unix_ms: days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1_000 + ms })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let (hour, minute, second, ms) = self.time_of_day();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no moment; wanted such as `2026-11-30T20:54:12.345Z`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_have_their_known_names() {
        for (unix_ms, name) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_796_072_052_345, "2026-11-30T20:54:12.345Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_unix_ms(unix_ms).to_string(), name);
        }
        assert_eq!(Timestamp::from_unix_ms(1_796_072_052_345).compact(), "20261130T205412Z");
    }

    #[test]
    fn a_moment_survives_being_written_and_read() {
        for step in 0..20_000 {
            let moment = Timestamp::from_unix_ms(step * 123_456_789_123);
            if moment.date().0 <= 9999 {
                assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment), "{moment}");
            }
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "2026-11-30", "2026-13-30T00:00:00.000Z", "2026-11-30T24:00:00.000Z", "2026-11-30T00:00:00Z", "x-1-1T0:0:0.000Z"] {
            assert_eq!(Timestamp::parse(text), None, "`{text}`");
        }
    }
}
