//! JSON's numbers as doubles, and doubles as JSON writes them; whole numbers.

use serde_json::{Number, Value};

use crate::platform;

/// A number as the nearest double; none beyond a double's range.
pub fn double(number: &Number) -> Option<f64> {
    platform::parse_double(number.as_str()).filter(|double| double.is_finite())
}

/// A value that is a number, as the nearest double.
pub fn as_double(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => double(number),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A double without a fraction; one beyond an integer's range is the integer nearest to it.
pub fn whole(double: f64) -> Option<i64> {
    (double.fract() == 0.0).then_some(double as i64)
}

/// As short as a double can be written: `3`, `0.1`, `1e+30`.
pub fn text(double: f64) -> String {
    let text = Number::from_f64(double).map_or_else(String::new, |number| number.as_str().to_owned());
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A whole number from 0. To read one of fewer bits is code of its own: the build refuses it (`scripts/build.mjs`).
pub fn unsigned(text: &str) -> Option<u64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_the_nearest_double() {
        let read = |text: &str| as_double(&serde_json::from_str(text).unwrap());
        let table = [
            ("1.50", Some(1.5)),
            ("-2e1", Some(-20.0)),
            ("100000000000000000000", Some(1e20)),
            ("1e999", None),
            ("\"1\"", None),
            ("null", None),
            ("[1]", None),
        ];
        for (json, double) in table {
            assert_eq!(read(json), double, "{json}");
        }
    }

    #[test]
    fn whole_doubles_are_integers() {
        let table = [
            (2.0, Some(2)),
            (-0.0, Some(0)),
            (-20.0, Some(-20)),
            (1.5, None),
            (1e30, Some(i64::MAX)),
        ];
        for (double, integer) in table {
            assert_eq!(whole(double), integer, "{double}");
        }
    }

    #[test]
    fn doubles_are_written_short() {
        let texts = [3.0, -0.5, 0.1, 1e15, 1e30].map(text);
        assert_eq!(texts, ["3", "-0.5", "0.1", "1000000000000000", "1e+30"]);
    }
}
