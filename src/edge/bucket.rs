//! The attachments port over R2.

use js_sys::{Array, JsString, Promise};
use wasm_bindgen::prelude::*;

use super::bindings::settled;
use super::stream::describe;
use crate::store::{AttachmentError, Attachments};

#[wasm_bindgen]
extern "C" {
    /// An R2 binding.
    #[derive(Debug, Clone)]
    pub type R2;

    #[wasm_bindgen(method, catch, js_name = put)]
    fn put_object(this: &R2, key: &str, value: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = get)]
    fn get_object(this: &R2, key: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = delete)]
    fn delete_objects(this: &R2, keys: &Array) -> Result<Promise, JsValue>;

    type Object;

    #[wasm_bindgen(method, catch)]
    fn text(this: &Object) -> Result<Promise, JsValue>;
}

impl Attachments for R2 {
    fn is_bound(&self) -> bool {
        true
    }

    async fn put(&self, key: &str, value: &str) -> Result<(), AttachmentError> {
        done(self.put_object(key, value)).await.map(|_| ())
    }

    async fn get(&self, keys: &[String]) -> Result<Vec<Option<String>>, AttachmentError> {
        let objects = all(keys.iter().map(|key| self.get_object(key))).await?;
        let texts = all(objects.iter().map(|object| {
            if object.is_null() {
                return Ok(Promise::resolve(&object));
            }
            object.unchecked_into::<Object>().text()
        }));
        Ok(texts.await?.iter().map(|text| text.as_string()).collect())
    }

    async fn delete(&self, keys: &[String]) -> Result<(), AttachmentError> {
        let keys: Array = keys.iter().map(|key| JsString::from(key.as_str())).collect();
        done(self.delete_objects(&keys)).await.map(|_| ())
    }
}

/// What all of them come to.
async fn all(begun: impl Iterator<Item = Result<Promise, JsValue>>) -> Result<Array, AttachmentError> {
    let begun = begun.collect::<Result<Array, _>>();
    let ended = done(begun.map(|begun| Promise::all(&begun))).await?;
    Ok(ended.unchecked_into())
}

async fn done(begun: Result<Promise, JsValue>) -> Result<JsValue, AttachmentError> {
    settled(begun)
        .await
        .map_err(|thrown| AttachmentError(describe(&thrown)))
}
