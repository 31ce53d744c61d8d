//! Today, in UTC, without a calendar library.
//!
//! Source: Hinnant 2014, "chrono-compatible low-level date algorithms": days are counted in eras of
//! 400 years that start in March.

use std::time::{SystemTime, UNIX_EPOCH};

/// `2026-11-21`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    day(seconds / 86_400)
}

/// The day that is `days` after 1 January 1970.
pub fn day(days: u64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_days() {
        for (days, date) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_778, "2026-11-21")]
        {
            assert_eq!(super::day(days), date);
        }
    }
}
