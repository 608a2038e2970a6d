//! The object's own SQLite as the port the core knows.

use worker::{SqlStorage, SqlStorageValue, State};

use super::stream::describe;
use crate::run::ports::{ObjectStorage, SqlValue, StorageFault};

/// The storage of one object.
#[derive(Debug, Clone)]
pub struct ObjectSql(SqlStorage);

impl ObjectSql {
    /// The storage of the object with this state.
    pub fn new(state: &State) -> Self {
        Self(state.storage().sql())
    }
}

impl ObjectStorage for ObjectSql {
    fn exec(&self, sql: &'static str, parameters: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, StorageFault> {
        let parameters: Vec<SqlStorageValue> = parameters.into_iter().map(parameter).collect();
        let rows = self.0.exec(sql, parameters).map_err(fault)?.raw();
        rows.map(|row| row.map_err(fault)?.into_iter().map(value).collect())
            .collect()
    }
}

fn parameter(value: SqlValue) -> SqlStorageValue {
    match value {
        SqlValue::Null => SqlStorageValue::Null,
        SqlValue::Integer(number) => SqlStorageValue::Integer(number),
        SqlValue::Text(text) => SqlStorageValue::String(text),
        SqlValue::Bytes(bytes) => SqlStorageValue::Blob(bytes),
    }
}

fn value(value: SqlStorageValue) -> Result<SqlValue, StorageFault> {
    match value {
        SqlStorageValue::Null => Ok(SqlValue::Null),
        SqlStorageValue::Integer(number) => Ok(SqlValue::Integer(number)),
        SqlStorageValue::String(text) => Ok(SqlValue::Text(text)),
        SqlStorageValue::Blob(bytes) => Ok(SqlValue::Bytes(bytes)),
        SqlStorageValue::Boolean(_) | SqlStorageValue::Float(_) => {
            Err(StorageFault("a value of no kind of ours".to_owned()))
        }
    }
}

fn fault(error: worker::Error) -> StorageFault {
    StorageFault(describe(&error.into()))
}
