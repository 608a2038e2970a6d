//! The database port over D1.
//!
//! Parameters go in, and rows come out, as one JSON text each: a call of the platform per value costs more than all of
//! its text.

use js_sys::{Array, JSON, Promise, Reflect};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use super::bindings::settled;
use super::stream::describe;
use crate::list::all;
use crate::protocol::json;
use crate::store::{Database, DatabaseError, Parameter, Row, Statement};

#[wasm_bindgen]
extern "C" {
    /// A D1 binding.
    #[derive(Debug, Clone)]
    pub type D1;

    #[wasm_bindgen(method, catch)]
    fn prepare(this: &D1, sql: &str) -> Result<Prepared, JsValue>;

    #[wasm_bindgen(method, catch, js_name = batch)]
    fn run(this: &D1, statements: &Array) -> Result<Promise, JsValue>;

    type Prepared;

    #[wasm_bindgen(method, catch, variadic)]
    fn bind(this: &Prepared, parameters: &JsValue) -> Result<Prepared, JsValue>;
}

impl Database for D1 {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        run(self, &statements)
            .await
            .map_err(|thrown| DatabaseError::from_text(&describe(&thrown)))
    }
}

async fn run(database: &D1, statements: &[Statement]) -> Result<Vec<Vec<Row>>, JsValue> {
    let parameters: Array = JSON::parse(&parameters(statements))?.unchecked_into();
    let prepared = Array::new();
    for (statement, parameters) in statements.iter().zip(parameters.iter()) {
        let statement = database.prepare(&statement.sql)?.bind(&parameters)?;
        prepared.push(&statement.into());
    }
    let results: Array = settled(database.run(&prepared)).await?.dyn_into()?;
    all(results.iter().map(|result| rows(&result)))
}

/// The parameters of each statement. D1 takes no BigInt: an integer goes in as a double, exact within 2^53, and lands as
/// INTEGER in a STRICT table.
fn parameters(statements: &[Statement]) -> String {
    let value = |parameter: &Parameter| match parameter {
        Parameter::Text(text) => Value::from(text.as_str()),
        Parameter::Integer(number) => Value::from(*number),
        Parameter::Null => Value::Null,
    };
    let of_one = |statement: &Statement| statement.parameters.iter().map(value).collect::<Value>();
    json::text(&statements.iter().map(of_one).collect::<Value>())
}

fn rows(result: &JsValue) -> Result<Vec<Row>, JsValue> {
    let rows: Array = Reflect::get(result, &"results".into())?.dyn_into()?;
    if rows.length() == 0 {
        return Ok(Vec::new());
    }
    let text = String::from(JSON::stringify(&rows)?);
    let no_objects = || JsValue::from("the rows are no objects");
    let Some(Value::Array(rows)) = json::tree(&text) else {
        return Err(no_objects());
    };
    all(rows.into_iter().map(|row| match row {
        Value::Object(members) => Ok(members),
        _ => Err(no_objects()),
    }))
}
