//! An object's own storage over native SQLite.

use std::cell::Cell;
use std::rc::Rc;

use io_bridge::run::ports::{ObjectStorage, SqlValue, StorageFault};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

/// The storage of one object; what is kept survives the object.
#[derive(Debug, Clone)]
pub struct ObjectSqlite {
    connection: Rc<Connection>,
    /// Rows written so far.
    pub written: Rc<Cell<u64>>,
    /// Every statement fails.
    pub is_broken: Rc<Cell<bool>>,
}

impl ObjectSqlite {
    /// An object that has stored nothing.
    pub fn new() -> Self {
        Self {
            connection: Rc::new(Connection::open_in_memory().unwrap()),
            written: Rc::default(),
            is_broken: Rc::default(),
        }
    }
}

impl ObjectStorage for ObjectSqlite {
    fn exec(&self, sql: &'static str, parameters: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, StorageFault> {
        if self.is_broken.get() {
            return Err(StorageFault("no space left".to_owned()));
        }
        let fault = |error: rusqlite::Error| StorageFault(error.to_string());
        let mut statement = self.connection.prepare(sql).map_err(fault)?;
        let column_count = statement.column_count();
        let parameters = parameters.into_iter().map(|parameter| match parameter {
            SqlValue::Null => Value::Null,
            SqlValue::Integer(number) => Value::Integer(number),
            SqlValue::Text(text) => Value::Text(text),
            SqlValue::Bytes(bytes) => Value::Blob(bytes),
        });
        let mut rows = statement.query(params_from_iter(parameters)).map_err(fault)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let values = (0..column_count).map(|column| match row.get_ref(column).unwrap() {
                ValueRef::Null => SqlValue::Null,
                ValueRef::Integer(number) => SqlValue::Integer(number),
                ValueRef::Real(number) => panic!("a real number: {number}"),
                ValueRef::Text(text) => SqlValue::Text(String::from_utf8(text.to_vec()).unwrap()),
                ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
            });
            found.push(values.collect());
        }
        drop(rows);
        self.written
            .set(self.written.get() + u64::from(sql.starts_with("INSERT")));
        Ok(found)
    }
}
