//! Dates for templates: nothing here reads a clock; the time is an argument.

/// A date and a time of day, without time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilTime {
    /// Year, for example 2026.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, 1 to 31.
    pub day: u32,
    /// Hour, 0 to 23.
    pub hour: u32,
    /// Minute, 0 to 59.
    pub minute: u32,
    /// Second, 0 to 59.
    pub second: u32,
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAY_SECONDS: i64 = 86_400;

impl CivilTime {
    /// The UTC time of a number of seconds since 1970-01-01 00:00:00.
    ///
    /// Years beyond ±200 000 are cut to that range.
    ///
    /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        const MOST: i64 = 200_000 * 366 * DAY_SECONDS;
        let seconds = seconds.clamp(-MOST, MOST);
        let days = seconds.div_euclid(DAY_SECONDS);
        let in_day = seconds.rem_euclid(DAY_SECONDS);
        let shifted = days + 719_468; // days since 0000-03-01
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let small = |value: i64| u32::try_from(value).expect("parts of a date are small and not negative");
        Self {
            year: i32::try_from(year_of_era + era * 400 + i64::from(month <= 2)).expect("the year was clamped"),
            month: small(month),
            day: small(day_of_year - (153 * march_month + 2) / 5 + 1),
            hour: small(in_day / 3_600),
            minute: small(in_day / 60 % 60),
            second: small(in_day % 60),
        }
    }

    /// Days since 1970-01-01.
    fn days(self) -> i64 {
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let march_month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * march_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// Writes the time as C's `strftime` does in the C locale.
    ///
    /// # Errors
    /// The directive that is not known, for example `%E`.
    pub fn format(self, format: &str) -> Result<String, String> {
        let weekday = usize::try_from((self.days() + 4).rem_euclid(7)).expect("a remainder of 7");
        let month = MONTHS[(self.month.clamp(1, 12) - 1) as usize];
        let first = Self { month: 1, day: 1, ..self };
        let day_of_year = self.days() - first.days() + 1;
        let hour12 = match self.hour % 12 {
            0 => 12,
            hour => hour,
        };
        let mut text = String::new();
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                text.push(character);
                continue;
            }
            let mut directive = characters.next();
            let unpadded = directive == Some('-');
            if unpadded {
                directive = characters.next();
            }
            let padded = |value: i64, width: usize| {
                if unpadded { value.to_string() } else { format!("{value:0width$}") }
            };
            text.push_str(&match directive {
                Some('Y') => self.year.to_string(),
                Some('y') => padded(i64::from(self.year.rem_euclid(100)), 2),
                Some('C') => padded(i64::from(self.year.div_euclid(100)), 2),
                Some('m') => padded(i64::from(self.month), 2),
                Some('d') => padded(i64::from(self.day), 2),
                Some('e') => format!("{:2}", self.day),
                Some('H') => padded(i64::from(self.hour), 2),
                Some('I') => padded(i64::from(hour12), 2),
                Some('M') => padded(i64::from(self.minute), 2),
                Some('S') => padded(i64::from(self.second), 2),
                Some('f') => "000000".to_owned(),
                Some('j') => padded(day_of_year, 3),
                Some('p') => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
                Some('A') => WEEKDAYS[weekday].to_owned(),
                Some('a') => WEEKDAYS[weekday][..3].to_owned(),
                Some('w') => weekday.to_string(),
                Some('u') => if weekday == 0 { 7 } else { weekday }.to_string(),
                Some('B') => month.to_owned(),
                Some('b' | 'h') => month[..3].to_owned(),
                Some('s') => {
                    (self.days() * DAY_SECONDS + i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second))
                        .to_string()
                }
                Some('D' | 'x') => self.format("%m/%d/%y")?,
                Some('F') => self.format("%Y-%m-%d")?,
                Some('T' | 'X') => self.format("%H:%M:%S")?,
                Some('R') => self.format("%H:%M")?,
                Some('r') => self.format("%I:%M:%S %p")?,
                Some('c') => self.format("%a %b %e %H:%M:%S %Y")?,
                Some('Z' | 'z') => String::new(),
                Some('n') => "\n".to_owned(),
                Some('t') => "\t".to_owned(),
                Some('%') => "%".to_owned(),
                Some(other) => return Err(format!("%{other}")),
                None => return Err("%".to_owned()),
            });
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_have_their_known_dates() {
        let check = |seconds: i64, expected: &str| {
            let time = CivilTime::from_unix_seconds(seconds);
            assert_eq!(time.format("%a %F %T").expect("known directives"), expected, "{seconds}");
        };
        check(0, "Thu 1970-01-01 00:00:00");
        check(951_782_399, "Mon 2000-02-28 23:59:59");
        check(951_868_800, "Wed 2000-03-01 00:00:00");
        check(1_709_164_800, "Thu 2024-02-29 00:00:00");
        check(-1, "Wed 1969-12-31 23:59:59");
        check(4_102_444_800, "Fri 2100-01-01 00:00:00");
    }

    #[test]
    fn directives_write_what_strftime_writes() {
        let time = CivilTime { year: 2024, month: 7, day: 4, hour: 15, minute: 5, second: 9 };
        let check = |format: &str, expected: &str| {
            assert_eq!(time.format(format).as_deref(), Ok(expected), "{format}");
        };
        check("%d %b %Y", "04 Jul 2024");
        check("%H:%M:%S", "15:05:09");
        check("%B %-d, %Y", "July 4, 2024");
        check("%A %I:%M %p", "Thursday 03:05 PM");
        check("%j %y %% %e", "186 24 %  4");
        assert_eq!(time.format("%Q"), Err("%Q".to_owned()));
        assert_eq!(time.format("%"), Err("%".to_owned()));
    }
}
