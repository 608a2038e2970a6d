//! Reading rows: typed access that names the column it could not read.

use std::sync::Arc;

use serde_json::Value;

use super::{Row, StoreError};
use crate::protocol::number;

/// A row being read.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub &'a Row);

impl<'a> Fields<'a> {
    /// A text that may be null.
    pub fn optional_text(self, column: &'static str) -> Result<Option<&'a str>, StoreError> {
        match self.0.get(column) {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(StoreError::Corrupt(column)),
        }
    }

    /// A text.
    pub fn text(self, column: &'static str) -> Result<&'a str, StoreError> {
        self.optional_text(column)?.ok_or(StoreError::Corrupt(column))
    }

    /// A text that becomes an id.
    pub fn id<T>(self, column: &'static str, make: impl FnOnce(Arc<str>) -> T) -> Result<T, StoreError> {
        self.text(column).map(|text| make(text.into()))
    }

    /// An integer that may be null.
    pub fn optional_integer(self, column: &'static str) -> Result<Option<u64>, StoreError> {
        match self.0.get(column) {
            Some(Value::Number(number)) => match number.as_u64() {
                Some(number) => Ok(Some(number)),
                None => number::double(number)
                    .and_then(whole)
                    .map(Some)
                    .ok_or(StoreError::Corrupt(column)),
            },
            Some(Value::Null) => Ok(None),
            _ => Err(StoreError::Corrupt(column)),
        }
    }

    /// An integer.
    pub fn integer(self, column: &'static str) -> Result<u64, StoreError> {
        self.optional_integer(column)?.ok_or(StoreError::Corrupt(column))
    }

    /// An integer used as a truth value.
    pub fn truth(self, column: &'static str) -> Result<bool, StoreError> {
        self.integer(column).map(|number| number != 0)
    }
}

/// D1 hands every number over as a double.
fn whole(number: f64) -> Option<u64> {
    let is_exact = number < 9_007_199_254_740_992.0;
    number::whole(number)
        .filter(|_| is_exact)
        .and_then(|number| u64::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_may_come_as_doubles() {
        let row: Row =
            serde_json::from_str(r#"{"a":1764450000123,"b":1764450000123.0,"c":1.5,"d":"x","e":null}"#)
                .unwrap();
        let fields = Fields(&row);
        assert_eq!(fields.integer("a"), Ok(1_764_450_000_123));
        assert_eq!(fields.integer("b"), Ok(1_764_450_000_123));
        assert_eq!(fields.integer("c"), Err(StoreError::Corrupt("c")));
        assert_eq!(fields.integer("d"), Err(StoreError::Corrupt("d")));
        assert_eq!(fields.integer("e"), Err(StoreError::Corrupt("e")));
        assert_eq!(fields.optional_integer("e"), Ok(None));
    }
}
