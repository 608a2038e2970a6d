//! A [`Database`] over native SQLite with the real migrations, as strict as D1 and stricter.
//!
//! One batch = one transaction. Integers are bound as doubles, as the D1 binding does. Every statement is checked
//! against D1's limits and against its query plan: a scan of a whole table fails the test.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use io_bridge::store::{Database, DatabaseError, Parameter, Row, Statement};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, StatementStatus, params_from_iter};
use serde_json::Value;

/// The database and what was asked of it.
pub struct Sqlite {
    connection: RefCell<Connection>,
    batch_count: Cell<usize>,
    statement_count: Cell<usize>,
    row_count: Cell<usize>,
    step_count: Cell<u64>,
    fault: RefCell<Option<DatabaseError>>,
    lose_answers: Cell<usize>,
    plan: RefCell<Option<Vec<String>>>,
}

thread_local! {
    /// Plans by SQL text: the schema is one, and no statistics change them.
    static PLANS: RefCell<HashMap<String, Rc<[String]>>> = RefCell::default();
}

impl Sqlite {
    /// An empty database with every migration applied in order.
    pub fn new() -> Self {
        Self::migrated(&migrations("migrations"))
    }

    /// An empty database with these migrations, as SQL.
    pub fn migrated(migrations: &[String]) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.set_prepared_statement_cache_capacity(100);
        for migration in migrations {
            connection.execute_batch(migration).unwrap();
        }
        Self {
            connection: RefCell::new(connection),
            batch_count: Cell::new(0),
            statement_count: Cell::new(0),
            row_count: Cell::new(0),
            step_count: Cell::new(0),
            fault: RefCell::new(None),
            lose_answers: Cell::new(0),
            plan: RefCell::new(None),
        }
    }

    /// Runs SQL of the test's own: a later migration, or what an earlier version wrote.
    pub fn execute(&self, sql: &str) {
        self.connection.borrow().execute_batch(sql).unwrap();
    }

    /// Batches, statements and result rows since the last call.
    pub fn take_counts(&self) -> (usize, usize, usize) {
        (
            self.batch_count.take(),
            self.statement_count.take(),
            self.row_count.take(),
        )
    }

    /// Batches since the last [`Self::take_counts`].
    pub fn batch_count(&self) -> usize {
        self.batch_count.get()
    }

    /// Steps of SQLite's machine since the last call.
    pub fn take_steps(&self) -> u64 {
        self.step_count.take()
    }

    /// Steps of the query plans of all statements since the last call; the first call only starts to keep them.
    pub fn take_plan(&self) -> Vec<String> {
        self.plan.replace(Some(Vec::new())).unwrap_or_default()
    }

    /// Every later batch fails with this, until `None`.
    pub fn set_fault(&self, fault: Option<DatabaseError>) {
        *self.fault.borrow_mut() = fault;
    }

    /// The next batch is applied, but its caller hears that the database is not available.
    pub fn lose_next_answer(&self) {
        self.lose_answers.set(1);
    }

    /// Rows of a query of the test's own, each as a JSON array's text.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let connection = self.connection.borrow();
        query(&connection, &Statement::new(sql.to_owned(), Vec::new()))
            .unwrap()
            .0
            .into_iter()
            .map(|row| Value::Array(row.into_iter().map(|(_, value)| value).collect()).to_string())
            .collect()
    }
}

/// The migrations of a folder as SQL, in order.
pub fn migrations(folder: &str) -> Vec<String> {
    // The crate of `fuzz/` reads them too.
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = from.ancestors().map(|above| above.join(folder));
    let folder = folders.find(|folder| folder.is_dir()).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect()
}

impl Database for Sqlite {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        if let Some(fault) = self.fault.borrow().clone() {
            return Err(fault);
        }
        self.batch_count.set(self.batch_count.get() + 1);
        self.statement_count
            .set(self.statement_count.get() + statements.len());
        let mut connection = self.connection.borrow_mut();
        let transaction = connection.transaction().unwrap();
        let mut results = Vec::new();
        for statement in &statements {
            assert_within_limits(statement);
            let plan = known_plan(&transaction, statement);
            if let Some(kept) = &mut *self.plan.borrow_mut() {
                kept.extend(plan.iter().cloned());
            }
            // Dropping the transaction rolls back.
            let (rows, steps, prepared_anew) = query(&transaction, statement).map_err(|error| {
                let text = error.to_string();
                match DatabaseError::from_text(&text) {
                    DatabaseError::Unavailable(text) | DatabaseError::Refused(text) => {
                        panic!("{text}\n{}", statement.sql)
                    }
                    constraint @ DatabaseError::Constraint(_) => constraint,
                }
            })?;
            // A parameter in a join's equation, or in LIMIT, has SQLite prepare the statement anew for each value, which
            // takes longer than to run it; `= +?1` does not.
            assert_eq!(prepared_anew, 0, "prepared anew:\n{}", statement.sql);
            self.row_count.set(self.row_count.get() + rows.len());
            self.step_count.set(self.step_count.get() + steps);
            results.push(rows);
        }
        transaction.commit().unwrap();
        if self.lose_answers.take() > 0 {
            return Err(DatabaseError::Unavailable("the answer was lost".to_owned()));
        }
        Ok(results)
    }
}

/// The rows, the steps SQLite's machine took, and how often it prepared the statement anew.
fn query(connection: &Connection, statement: &Statement) -> rusqlite::Result<(Vec<Row>, u64, i32)> {
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    let names: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let mut rows = prepared.query(params_from_iter(statement.parameters.iter().map(bound)))?;
    let mut result = Vec::new();
    while let Some(row) = rows.next()? {
        let mut columns = Row::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let value = match row.get_ref(index).unwrap() {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(text) => std::str::from_utf8(text).unwrap().into(),
                ValueRef::Blob(_) => panic!("no column holds a blob"),
            };
            columns.insert(name.clone(), value);
        }
        result.push(columns);
    }
    drop(rows);
    let prepared_anew = prepared.reset_status(StatementStatus::RePrepare);
    let steps = prepared.reset_status(StatementStatus::VmStep);
    Ok((result, u64::try_from(steps).unwrap(), prepared_anew))
}

#[expect(clippy::cast_precision_loss, reason = "what the D1 binding does")]
fn bound(parameter: &Parameter) -> SqlValue {
    match parameter {
        Parameter::Text(text) => SqlValue::Text(text.clone()),
        Parameter::Integer(number) => SqlValue::Real(*number as f64),
        Parameter::Null => SqlValue::Null,
    }
}

fn assert_within_limits(statement: &Statement) {
    assert!(statement.parameters.len() <= 100, "{}", statement.sql);
    assert!(
        statement.sql.len() <= 100_000,
        "{} bytes of SQL",
        statement.sql.len()
    );
    // D1: too many terms in compound SELECT.
    assert!(statement.sql.matches("UNION").count() < 5, "{}", statement.sql);
    for parameter in &statement.parameters {
        if let Parameter::Text(text) = parameter {
            assert!(text.len() <= 2_000_000, "a parameter of {} bytes", text.len());
        }
    }
}

fn known_plan(connection: &Connection, statement: &Statement) -> Rc<[String]> {
    PLANS.with_borrow_mut(|plans| match plans.get(&*statement.sql) {
        Some(plan) => Rc::clone(plan),
        None => {
            let plan: Rc<[String]> = plan_without_scan(connection, statement).into();
            plans.insert(statement.sql.to_string(), Rc::clone(&plan));
            plan
        }
    })
}

fn plan_without_scan(connection: &Connection, statement: &Statement) -> Vec<String> {
    let explained = Statement::new(
        format!("EXPLAIN QUERY PLAN {}", statement.sql),
        statement.parameters.clone(),
    );
    let (rows, ..) = query(connection, &explained).unwrap();
    let plan: Vec<String> = rows
        .iter()
        .map(|row| row.get("detail").and_then(Value::as_str).unwrap().to_owned())
        .collect();
    for step in &plan {
        for table in [
            "threads",
            "deleted_threads",
            "runs",
            "messages",
            "message_pieces",
            "dropped_attachments",
            "m",
            "r",
            "t",
        ] {
            let scan = format!("SCAN {table}");
            let is_scan = *step == scan || step.starts_with(&format!("{scan} "));
            assert!(!is_scan, "{step}:\n{}", statement.sql);
        }
        // All runs there ever were of an owner are many, those that live are few. An erasure takes the oldest of all.
        let is_all =
            step.contains(" runs_") && !step.contains(" runs_live ") && step.ends_with("(resource_id=?)");
        let is_erasure = statement.sql.contains("ORDER BY started_at_ms LIMIT ");
        assert!(!is_all || is_erasure, "{step}:\n{}", statement.sql);
    }
    plan
}
