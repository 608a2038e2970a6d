//! The object's own SQLite as the port the core knows.

use js_sys::{Array, ArrayBuffer, Number, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use super::bindings::{Sql, State};
use super::stream::describe;
use crate::list::all;
use crate::run::ports::{ObjectStorage, SqlValue, StorageFault};

/// The storage of one object.
#[derive(Debug, Clone)]
pub struct ObjectSql(Sql);

impl ObjectSql {
    /// The storage of the object with this state.
    pub fn new(state: &State) -> Self {
        Self(state.storage().sql())
    }
}

impl ObjectStorage for ObjectSql {
    fn exec(&self, sql: &'static str, parameters: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, StorageFault> {
        let parameters: Array = parameters.into_iter().map(parameter).collect();
        let cursor = self.0.exec(sql, &parameters).map_err(fault)?;
        let rows = cursor.raw().to_array().map_err(fault)?;
        all(rows.iter().map(|row| all(Array::from(&row).iter().map(value))))
    }
}

fn parameter(value: SqlValue) -> JsValue {
    match value {
        SqlValue::Null => JsValue::NULL,
        SqlValue::Integer(number) => JsValue::from_f64(number as f64),
        SqlValue::Text(text) => text.into(),
        SqlValue::Bytes(bytes) => Uint8Array::from(bytes.as_slice()).into(),
    }
}

fn value(value: JsValue) -> Result<SqlValue, StorageFault> {
    if value.is_null() {
        Ok(SqlValue::Null)
    } else if let Some(text) = value.as_string() {
        Ok(SqlValue::Text(text))
    } else if let Some(number) = value.as_f64().filter(|_| Number::is_safe_integer(&value)) {
        Ok(SqlValue::Integer(number as i64))
    } else if let Some(buffer) = value.dyn_ref::<ArrayBuffer>() {
        Ok(SqlValue::Bytes(Uint8Array::new(buffer).to_vec()))
    } else {
        Err(StorageFault("a value of no kind of ours".to_owned()))
    }
}

fn fault(thrown: JsValue) -> StorageFault {
    StorageFault(describe(&thrown))
}
