//! `current_time`: the example of a native tool.

use serde_json::Value;

use super::NativeTool;
use crate::protocol::json;
use crate::protocol::number;
use crate::protocol::time::iso_8601;
use crate::protocol::tool::{Tool, ToolResult};
use crate::protocol::tree::json;

const MS_PER_MINUTE: u64 = 60 * 1000;
const MS_PER_DAY: u64 = 24 * 60 * MS_PER_MINUTE;

/// Furthest a place on earth may be from UTC, rounded up to a whole day, in minutes.
const OFFSET_MAX_MINUTES: i64 = 24 * 60;

/// 1970-01-01 was a Thursday.
const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// Says what time it is, in UTC or at an offset from it.
///
/// Result: `{"iso":"2026-11-29T20:24:39.000Z","unixMs":1795983879000,"weekday":"Sunday"}`; with `utcOffsetMinutes`,
/// `iso` and `weekday` are local and `iso` ends in the offset (`+01:00`).
#[derive(Debug, Clone, Copy)]
pub struct CurrentTime;

impl NativeTool for CurrentTime {
    fn declaration(&self) -> Tool {
        let offset = json!({
            "type": "integer",
            "minimum": -OFFSET_MAX_MINUTES,
            "maximum": OFFSET_MAX_MINUTES,
            "description": "Minutes east of UTC, 60 for UTC+1. Default: UTC.",
        });
        Tool {
            name: "current_time".to_owned(),
            description: "The current date, time and weekday, in UTC or at an offset from it.".to_owned(),
            parameters: Some(json!({
                "type": "object",
                "properties": { "utcOffsetMinutes": offset },
                "additionalProperties": false,
            })),
        }
    }

    fn call(&self, arguments: &Value, now_ms: u64) -> ToolResult {
        let Some(offset_minutes) = offset_minutes(arguments) else {
            return ToolResult::failure("`utcOffsetMinutes` must be an integer from -1440 to 1440.");
        };
        let distance_ms = offset_minutes.unsigned_abs() * MS_PER_MINUTE;
        let (local_ms, sign) = if offset_minutes < 0 {
            (now_ms.saturating_sub(distance_ms), '-')
        } else {
            (now_ms.saturating_add(distance_ms), '+')
        };
        let mut iso = iso_8601(local_ms);
        if offset_minutes != 0 {
            let distance = offset_minutes.unsigned_abs();
            iso.truncate(iso.len() - 1);
            iso.push_str(&format!("{sign}{:02}:{:02}", distance / 60, distance % 60));
        }
        let day = usize::try_from(local_ms / MS_PER_DAY % 7).unwrap_or(0);
        let weekday = WEEKDAYS.get(day).copied().unwrap_or_default();
        ToolResult {
            content: json::text(&json!({ "iso": iso, "unixMs": now_ms, "weekday": weekday })),
            is_error: false,
        }
    }
}

/// 0 when absent; an agent may have switched the check of arguments off, so they are read with care.
fn offset_minutes(arguments: &Value) -> Option<i64> {
    match arguments.get("utcOffsetMinutes") {
        None => Some(0),
        Some(Value::Number(number)) => {
            let offsets = -OFFSET_MAX_MINUTES..=OFFSET_MAX_MINUTES;
            // `60.0` is an integer too.
            number::double(number)
                .and_then(number::whole)
                .filter(|minutes| offsets.contains(minutes))
        }
        Some(Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::schema::Schema;

    const NOW_MS: u64 = 1_795_983_879_000;

    fn content(arguments: &Value) -> String {
        CurrentTime.call(arguments, NOW_MS).content
    }

    #[test]
    fn the_time_is_told_in_utc() {
        assert_eq!(
            content(&json!({})),
            r#"{"iso":"2026-11-29T20:24:39.000Z","unixMs":1795983879000,"weekday":"Sunday"}"#
        );
    }

    #[test]
    fn the_time_is_told_at_an_offset() {
        assert_eq!(
            content(&json!({ "utcOffsetMinutes": 345 })),
            r#"{"iso":"2026-11-30T02:09:39.000+05:45","unixMs":1795983879000,"weekday":"Monday"}"#
        );
        assert_eq!(
            content(&json!({ "utcOffsetMinutes": -1260.0 })),
            r#"{"iso":"2026-11-28T23:24:39.000-21:00","unixMs":1795983879000,"weekday":"Saturday"}"#
        );
    }

    #[test]
    fn other_offsets_are_an_error_result() {
        let schema = Schema::compile(&CurrentTime.declaration().parameters.unwrap()).unwrap();
        for offset in [json!(1441), json!(-1441), json!(0.5), json!("60"), json!(1e300)] {
            let arguments = json!({ "utcOffsetMinutes": offset });
            let failure = ToolResult::failure("`utcOffsetMinutes` must be an integer from -1440 to 1440.");
            assert_eq!(CurrentTime.call(&arguments, NOW_MS), failure);
            assert!(schema.check(&arguments).is_err(), "{arguments}");
        }
        assert_eq!(schema.check(&json!({ "utcOffsetMinutes": 60.0 })), Ok(()));
    }
}
