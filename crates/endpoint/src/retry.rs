//! How long to wait before a request is sent again.

use std::time::{Duration, SystemTime};

use glassbox_record::Digest;

use crate::settings::Patience;

/// The wait before the next request for the same answer.
///
/// ```text
/// nominal = min(longest_wait, first_wait · 2^(failures - 1))
/// wait    = nominal · (1 + u) / 2,   0 ≤ u < 1
/// ```
///
/// - `request`   hash of the request: `u` is made of it and of `failures`, so that different requests spread out and the same one waits alike
/// - `failures`  failures so far, from 1 on
#[must_use]
pub fn wait_before(patience: &Patience, request: &Digest, failures: u32) -> Duration {
    let nominal = patience.first_wait.saturating_mul(1 << (failures.max(1) - 1).min(16)).min(patience.longest_wait);
    let digest = Digest::of_bytes(format!("{request} {failures}").as_bytes());
    let digits = digest.as_hex().get(..13).expect("a hash has 64 digits");
    // 13 hexadecimal digits are 52 bits: every value is exact in f64.
    let unit = u64::from_str_radix(digits, 16).expect("a hash has hexadecimal digits") as f64 / (1_u64 << 52) as f64;
    nominal.mul_f64(0.5 + 0.5 * unit)
}

/// What `Retry-After` asks for: seconds, or an HTTP date. A date that has passed asks for no wait; what is neither asks for nothing.
///
/// Source: RFC 9110, 10.2.3.
#[must_use]
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    // Whole seconds by the standard; fractions are sent all the same.
    let seconds = value.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    if let Some(seconds) = seconds {
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        // 1994-11-06 08:49:37 UTC, the example of RFC 9110.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let check =
            |value: &str, seconds: Option<f64>| assert_eq!(retry_after(value, now).map(|wait| wait.as_secs_f64()), seconds, "{value}");
        check("120", Some(120.0));
        check(" 0 ", Some(0.0));
        check("1.5", Some(1.5));
        check("Sun, 06 Nov 1994 08:50:07 GMT", Some(30.0));
        check("Sunday, 06-Nov-94 08:50:07 GMT", Some(30.0));
        check("Sun Nov  6 08:50:07 1994", Some(30.0));
        check("Sun, 06 Nov 1994 08:49:00 GMT", Some(0.0));
        for nothing in ["", "-1", "soon", "inf", "NaN", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            check(nothing, None);
        }
        assert_eq!(retry_after("1e30", now), Some(Duration::MAX));
    }

    #[test]
    fn waits_double_stay_within_half_and_whole_and_are_the_same_for_the_same_request() {
        let seconds = Duration::from_secs;
        let patience =
            Patience { attempts: 9, first_wait: seconds(1), longest_wait: seconds(20), failures_to_open: 8, open_for: seconds(30) };
        let mut factors = Vec::new();
        for request in 0..200_u32 {
            let request = Digest::of_bytes(&request.to_le_bytes());
            for (failures, nominal) in [(1, 1.0), (2, 2.0), (3, 4.0), (5, 16.0), (6, 20.0), (60, 20.0)] {
                let wait = wait_before(&patience, &request, failures);
                assert_eq!(wait, wait_before(&patience, &request, failures));
                factors.push(wait.as_secs_f64() / nominal);
            }
        }
        assert!(factors.iter().all(|factor| (0.5..1.0).contains(factor)));
        // The mean of 1200 uniform draws has a standard error of 0.5 / sqrt(12 · 1200) = 0.0042; four of them.
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        assert!((mean - 0.75).abs() < 0.0167, "{mean}");
    }
}
