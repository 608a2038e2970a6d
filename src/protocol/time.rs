//! Dates as the wire writes them.

const MS_PER_DAY: u64 = 24 * 60 * 60 * 1000;
const DAYS_PER_400_YEARS: u64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01: counting years from March puts the leap day at a year's end.
const DAYS_BEFORE_1970: u64 = 719_468;

/// `2026-11-29T20:37:00.000Z` from Unix milliseconds: ISO-8601, UTC, always with milliseconds.
///
/// Source: contract 4.
pub fn iso_8601(unix_ms: u64) -> String {
    let (year, month, day) = civil_date(unix_ms / MS_PER_DAY);
    let ms = unix_ms % MS_PER_DAY;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z",
        ms % 1000
    )
}

/// Proleptic Gregorian (year, month, day) of a day counted from 1970-01-01.
fn civil_date(unix_day: u64) -> (u64, u64, u64) {
    let day = unix_day + DAYS_BEFORE_1970;
    let (era, day_of_era) = (day / DAYS_PER_400_YEARS, day % DAYS_PER_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (
        era * 400 + year_of_era + u64::from(month <= 2),
        month,
        day_of_month,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_exact_at_the_edges_of_the_calendar() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (86_399_999, "1970-01-01T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso_8601(unix_ms), text);
        }
    }

    #[test]
    fn days_follow_each_other_for_four_centuries() {
        let mut before = civil_date(0);
        for day in 1..=DAYS_PER_400_YEARS {
            let (year, month, day_of_month) = civil_date(day);
            let follows = match (day_of_month, month) {
                (1, 1) => before == (year - 1, 12, 31),
                (1, _) => before.0 == year && before.1 == month - 1 && before.2 >= 28,
                (_, _) => before == (year, month, day_of_month - 1),
            };
            assert!(follows, "{before:?} then {year}-{month}-{day_of_month}");
            before = (year, month, day_of_month);
        }
        assert_eq!(before, (2370, 1, 1));
    }

    #[test]
    fn the_largest_number_has_a_date() {
        assert_eq!(iso_8601(u64::MAX), "584556019-04-03T14:25:51.615Z");
    }
}
