//! The database port over D1.

use std::rc::Rc;

use serde_json::{Map, Value};
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement};

use super::stream::describe;
use crate::store::{Database, DatabaseError, Parameter, Row, Statement};

/// A D1 binding.
#[derive(Debug, Clone)]
pub struct D1 {
    database: Rc<D1Database>,
}

impl D1 {
    /// Takes a binding.
    pub fn new(database: D1Database) -> Self {
        Self {
            database: Rc::new(database),
        }
    }

    fn prepare(&self, statement: &Statement) -> worker::Result<D1PreparedStatement> {
        let parameters: Vec<JsValue> = statement.parameters.iter().map(parameter).collect();
        self.database.prepare(&*statement.sql).bind(&parameters)
    }

    async fn run(&self, statements: &[Statement]) -> worker::Result<Vec<Vec<Row>>> {
        let prepared = statements
            .iter()
            .map(|statement| self.prepare(statement))
            .collect::<Result<_, _>>()?;
        let results = self.database.batch(prepared).await?;
        results
            .iter()
            .map(|result| result.results::<Map<String, Value>>())
            .collect()
    }
}

impl Database for D1 {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        // The crate's own Display prints a debug dump with a stack: only the message is wanted.
        self.run(&statements)
            .await
            .map_err(|error| DatabaseError::from_text(&describe(&error.into())))
    }
}

/// D1 takes no BigInt: an integer goes in as a double, exact within 2^53, and lands as INTEGER in a STRICT table.
fn parameter(parameter: &Parameter) -> JsValue {
    match parameter {
        Parameter::Text(text) => JsValue::from_str(text),
        Parameter::Integer(number) => JsValue::from_f64(*number as f64),
        Parameter::Null => JsValue::NULL,
    }
}
