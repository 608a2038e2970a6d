//! The platform's objects, as far as they are used here.
//!
//! The `worker` crate wraps each in a type of its own, and each answer of theirs in an error of its own: code that
//! nothing here needs.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use web_sys::RequestInit;

use super::clock::PlatformClock;
use crate::run::ports::Clock;

#[wasm_bindgen]
extern "C" {
    /// The deployment: variables, secrets and bindings by name.
    #[derive(Debug, Clone)]
    pub type Env;

    /// What a task of ours may outlive, unless the platform is told of it.
    #[derive(Debug, Clone)]
    pub type Context;

    #[wasm_bindgen(method, catch, js_name = waitUntil)]
    fn hold(this: &Context, task: &Promise) -> Result<(), JsValue>;

    /// The state of a Durable Object.
    #[wasm_bindgen(extends = Context)]
    #[derive(Debug, Clone)]
    pub type State;

    /// The object's id.
    #[wasm_bindgen(method, getter)]
    pub fn id(this: &State) -> ObjectId;

    /// What the object stores.
    #[wasm_bindgen(method, getter)]
    pub fn storage(this: &State) -> Storage;

    /// The storage of a Durable Object.
    #[derive(Debug, Clone)]
    pub type Storage;

    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    fn alarm_at(this: &Storage, at_ms: f64) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = deleteAlarm)]
    fn no_alarm(this: &Storage) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = deleteAll)]
    fn nothing(this: &Storage) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = sync)]
    fn written(this: &Storage) -> Result<Promise, JsValue>;

    /// Its SQLite.
    #[wasm_bindgen(method, getter)]
    pub fn sql(this: &Storage) -> Sql;

    /// The SQLite of a Durable Object.
    #[derive(Debug, Clone)]
    pub type Sql;

    /// Begins a statement.
    #[wasm_bindgen(method, catch, variadic)]
    pub fn exec(this: &Sql, sql: &str, parameters: &Array) -> Result<Cursor, JsValue>;

    /// The rows of a statement.
    pub type Cursor;

    /// Each as a list of values.
    #[wasm_bindgen(method)]
    pub fn raw(this: &Cursor) -> RawRows;

    /// The rows of a statement, as lists.
    pub type RawRows;

    /// All of them.
    #[wasm_bindgen(method, catch, js_name = toArray)]
    pub fn to_array(this: &RawRows) -> Result<Array, JsValue>;

    /// The id of a Durable Object.
    pub type ObjectId;

    /// As 64 hexadecimal digits.
    #[wasm_bindgen(method, js_name = toString)]
    pub fn to_hex(this: &ObjectId) -> String;

    /// A class of Durable Objects.
    #[derive(Debug, Clone)]
    pub type Namespace;

    /// An id nobody has: `{jurisdiction}` says where in the world its object may be.
    #[wasm_bindgen(method, catch, js_name = newUniqueId)]
    pub fn unique_id(this: &Namespace, options: &JsValue) -> Result<ObjectId, JsValue>;

    /// The id again.
    #[wasm_bindgen(method, catch, js_name = idFromString)]
    pub fn id_from_hex(this: &Namespace, hex: &str) -> Result<ObjectId, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn get(this: &Namespace, id: &ObjectId) -> Result<Stub, JsValue>;

    type Stub;

    #[wasm_bindgen(method, catch)]
    fn fetch(this: &Stub, url: &str, init: &RequestInit) -> Result<Promise, JsValue>;
}

impl Context {
    /// Lets a task come to its end.
    pub fn wait_until(&self, task: LocalBoxFuture<'static, ()>) {
        let held = promise(Box::pin(async move {
            task.await;
            Ok(JsValue::UNDEFINED)
        }));
        // It takes every promise.
        let _ = self.hold(&held);
    }
}

impl Storage {
    /// Sets the alarm, instead of one that is set.
    ///
    /// # Errors
    /// What the platform threw, here as below.
    pub async fn set_alarm(&self, after: Duration) -> Result<(), JsValue> {
        let at_ms = PlatformClock.now_ms() as f64 + after.as_millis() as f64;
        settled(self.alarm_at(at_ms)).await.map(|_| ())
    }

    /// Forgets the alarm, then everything that is stored.
    ///
    /// # Errors
    /// As above.
    pub async fn clear(&self) -> Result<(), JsValue> {
        let no_alarm = settled(self.no_alarm()).await;
        no_alarm.and(settled(self.nothing()).await).map(|_| ())
    }

    /// Waits until everything that was written is safe.
    ///
    /// # Errors
    /// As above.
    pub async fn sync(&self) -> Result<(), JsValue> {
        settled(self.written()).await.map(|_| ())
    }
}

impl Namespace {
    /// Sends an object a request. The platform makes it: one made here would be copied.
    ///
    /// # Errors
    /// What the platform threw.
    pub async fn send(&self, id: &ObjectId, url: &str, init: &RequestInit) -> Result<JsValue, JsValue> {
        settled(self.get(id).and_then(|stub| stub.fetch(url, init))).await
    }
}

/// What a call of the platform comes to.
///
/// # Errors
/// What it threw, at once or later.
pub async fn settled(begun: Result<Promise, JsValue>) -> Result<JsValue, JsValue> {
    JsFuture::from(begun?).await
}

/// A task of ours for the platform. Boxed: the code that drives it is there once.
pub fn promise(task: LocalBoxFuture<'static, Result<JsValue, JsValue>>) -> Promise {
    future_to_promise(task)
}
