//! Dates as the wire writes them.

use super::number;
use super::parts;
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

/// Unix milliseconds of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_http_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let rest = parts::split_once(text.trim(), ", ")?.1.strip_suffix(" GMT")?;
    let mut words = rest.split(' ');
    let day = number::unsigned(words.next()?)?;
    let name = words.next()?;
    let month = (1..=12).find(|month| MONTHS.get(month * 3 - 3..month * 3) == Some(name))?;
    let year = number::unsigned(words.next()?)?;
    unix_ms([year, u64::try_from(month).ok()?, day], words.next()?)
}

/// Unix milliseconds of a date as JavaScript and most databases write it: `2026-11-29T20:37:00.000Z`, with or without
/// parts of a second, in UTC.
pub fn parse_iso_8601(text: &str) -> Option<u64> {
    let (date, clock) = text.trim().strip_suffix('Z')?.split_once(['T', ' '])?;
    let mut date = date.split('-').map(number::unsigned);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, parts) = clock.split_once('.').unwrap_or((clock, ""));
    let ms = number::unsigned(format!("{parts:0<3}").get(..3)?)?;
    Some(unix_ms([year, month, day], clock)? + ms)
}

/// Unix milliseconds of a day (year, month, day) and `hours:minutes:seconds`; `None` = a calendar and a clock show no such
/// thing.
fn unix_ms([year, month, day]: [u64; 3], clock: &str) -> Option<u64> {
    let mut clock = clock.split(':').map(number::unsigned);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // 60 is a leap second.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let days = (is_date && is_time).then(|| unix_day(year, month, day))?;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

/// Days from 1970-01-01 to a date.
fn unix_day(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March here, so that the leap day is the last of one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - DAYS_BEFORE_1970
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
    fn iso_dates_are_read_as_they_are_written() {
        for unix_ms in [
            0,
            951_782_400_000,
            1_709_164_800_001,
            1_767_225_599_999,
            4_107_542_400_000,
        ] {
            assert_eq!(parse_iso_8601(&iso_8601(unix_ms)), Some(unix_ms));
        }
        for (text, expected) in [
            ("2025-11-29T20:37:00Z", Some(1_764_448_620_000)),
            ("2025-11-29 20:37:00.5Z", Some(1_764_448_620_500)),
            ("2025-11-29T20:37:00.123456Z", Some(1_764_448_620_123)),
            ("2025-11-29T20:37:00+01:00", None),
            ("2025-13-29T20:37:00Z", None),
            ("2025-11-32T20:37:00Z", None),
            ("2025-11-29T24:00:00Z", None),
            ("2025-11-29T20:60:00Z", None),
            ("2025-11-29T20:37:61Z", None),
            ("2025-11-29T0888888888888888883:37:00Z", None),
            ("2025-11-29", None),
            ("", None),
        ] {
            assert_eq!(parse_iso_8601(text), expected, "{text}");
        }
    }

    #[test]
    fn http_dates_are_read_and_nothing_else() {
        assert_eq!(
            parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT")
                .map(iso_8601)
                .as_deref(),
            Some("1994-11-06T08:49:37.000Z")
        );
        assert_eq!(
            parse_http_date("Thu, 29 Feb 2024 23:59:59 GMT")
                .map(iso_8601)
                .as_deref(),
            Some("2024-02-29T23:59:59.000Z")
        );
        for other in [
            "",
            "7",
            "Sun, 06 Nov 1994",
            "Sun, 0 Nov 1994 08:49:37 GMT",
            "Sun, 06 anF 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 18446744073709551615 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 1994 888888888888888883:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(other), None, "{other}");
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
