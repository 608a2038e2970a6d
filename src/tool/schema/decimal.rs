//! JSON numbers by value: exact at any size and precision, as `arbitrary_precision` keeps them.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Number;

use crate::platform::parse_double;

/// Largest divisor taken exactly: ten times it still fits a `u128`.
const DIVISOR_MAX: u128 = u128::MAX / 16;

/// Most zeros appended to a dividend; beyond it the quotient is judged as a float.
const ZEROS_MAX_COUNT: i64 = 4096;

/// `± digits × 10^exponent` in its one normal form: no zeros at either end, zero is `+ "" × 10^0`.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
    /// As it was written, for messages.
    text: String,
}

impl Decimal {
    pub(super) fn of(number: &Number) -> Self {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let is_negative = mantissa.starts_with('-');
        let mantissa = mantissa.trim_start_matches('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        if digits.is_empty() {
            return Self {
                is_negative: false,
                digits: String::new(),
                exponent: 0,
                text,
            };
        }
        let moved = signed(all.len() - digits.len()) - signed(fraction.len());
        Self {
            is_negative,
            digits: digits.trim_start_matches('0').to_owned(),
            exponent: parse_exponent(exponent).saturating_add(moved),
            text,
        }
    }

    pub(super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    pub(super) fn is_positive(&self) -> bool {
        !self.is_negative && !self.digits.is_empty()
    }

    /// `divisor` is positive.
    pub(super) fn is_multiple_of(&self, divisor: &Self) -> bool {
        let common = self.exponent.min(divisor.exponent);
        let zeros = self.exponent.saturating_sub(common);
        let divisor_zeros = divisor.exponent.saturating_sub(common);
        match divisor.scaled(divisor_zeros) {
            Some(divisor) if zeros <= ZEROS_MAX_COUNT => {
                let digits = self
                    .digits
                    .chars()
                    .filter_map(|digit| digit.to_digit(10))
                    .map(u128::from);
                let zeros = (0..zeros).map(|_| 0);
                let rest = digits
                    .chain(zeros)
                    .fold(0, |rest, digit| remainder(rest * 10 + digit, divisor));
                rest == 0
            }
            Some(_) | None => {
                let quotient = self.approximate() / divisor.approximate();
                self.digits.is_empty() || (quotient >= 1.0 && quotient.fract() == 0.0)
            }
        }
    }

    /// `digits × 10^zeros`, unless it is too large.
    fn scaled(&self, zeros: i64) -> Option<u128> {
        let power = 10u128.checked_pow(u32::try_from(zeros).ok()?)?;
        let scaled = self.digits.parse::<u128>().ok()?.checked_mul(power)?;
        (scaled <= DIVISOR_MAX).then_some(scaled)
    }

    fn approximate(&self) -> f64 {
        let text = format!("{}e{}", self.digits, self.exponent);
        parse_double(&text).unwrap_or(0.0)
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let size = |decimal: &Self| decimal.exponent.saturating_add(signed(decimal.digits.len()));
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Of equal size, digits without zeros at the end compare like text.
            (false, false) => size(self)
                .cmp(&size(other))
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An exponent beyond every sum we make of it is as good as the largest.
fn parse_exponent(text: &str) -> i64 {
    const LARGEST: i64 = i64::MAX / 4;
    let is_negative = text.starts_with('-');
    match text.trim_start_matches('+').parse::<i64>() {
        Ok(exponent) => exponent.clamp(-LARGEST, LARGEST),
        Err(_) if is_negative => -LARGEST,
        Err(_) => LARGEST,
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX / 4)
}

/// Of a number below ten times the divisor: division of such numbers would be a library function.
fn remainder(mut number: u128, divisor: u128) -> u128 {
    while number >= divisor {
        number -= divisor;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn numbers_compare_by_value() {
        let ascending = [
            "-1e999999999999999999999",
            "-1e400",
            "-12.5",
            "-12",
            "-0.001",
            "0",
            "1e-999999999999999999999",
            "0.1",
            "0.10000000000000000000000001",
            "1",
            "9",
            "10",
            "12345678901234567890123",
            "12345678901234567890124",
            "1e400",
        ];
        for (index, low) in ascending.iter().enumerate() {
            for (other_index, high) in ascending.iter().enumerate() {
                assert_eq!(
                    decimal(low).cmp(&decimal(high)),
                    index.cmp(&other_index),
                    "{low} {high}"
                );
            }
        }
        for (one, other) in [
            ("1", "1.0"),
            ("1", "100e-2"),
            ("-0", "0.0e5"),
            ("1E+2", "100"),
            ("0.50", "5e-1"),
        ] {
            assert_eq!(decimal(one), decimal(other), "{one} {other}");
        }
    }

    #[test]
    fn integers_are_numbers_without_a_fraction() {
        for text in ["0", "-0.0", "1.0", "1e3", "12345678901234567890123", "2.50e1"] {
            assert!(decimal(text).is_integer(), "{text}");
        }
        for text in ["0.5", "1e-1", "12.34e1"] {
            assert!(!decimal(text).is_integer(), "{text}");
        }
    }

    #[test]
    fn multiples_are_exact() {
        for (number, divisor, is_multiple) in [
            ("0.3", "0.1", true),
            ("19.99", "0.01", true),
            ("19.995", "0.01", false),
            ("-9", "3", true),
            ("0", "7", true),
            ("7", "2.5", false),
            ("7.5", "2.5", true),
            ("12345678901234567890123456789012345678901234567890", "10", true),
            ("12345678901234567890123456789012345678901234567891", "10", false),
            ("1e30", "1e-10", true),
            ("1e300000", "3", false),
            ("5", "1e30", false),
            ("1", "1e400", false),
        ] {
            assert_eq!(
                decimal(number).is_multiple_of(&decimal(divisor)),
                is_multiple,
                "{number} of {divisor}"
            );
        }
    }
}
