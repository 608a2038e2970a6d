//! The attachments port over R2.

use std::rc::Rc;

use worker::Bucket;

use super::stream::describe;
use crate::store::{AttachmentError, Attachments};

/// An R2 binding.
#[derive(Debug, Clone)]
pub struct R2 {
    bucket: Rc<Bucket>,
}

impl R2 {
    /// Takes a binding.
    pub fn new(bucket: Bucket) -> Self {
        Self {
            bucket: Rc::new(bucket),
        }
    }
}

impl Attachments for R2 {
    fn is_bound(&self) -> bool {
        true
    }

    async fn put(&self, key: &str, value: &str) -> Result<(), AttachmentError> {
        let put = self.bucket.put(key, value.to_owned()).execute().await;
        put.map(|_| ()).map_err(failed)
    }

    async fn get(&self, key: &str) -> Result<Option<String>, AttachmentError> {
        let object = self.bucket.get(key).execute().await.map_err(failed)?;
        match object.as_ref().and_then(|object| object.body()) {
            Some(body) => body.text().await.map(Some).map_err(failed),
            None => Ok(None),
        }
    }

    async fn delete(&self, keys: &[String]) -> Result<(), AttachmentError> {
        let keys = keys.iter().map(String::as_str).collect();
        self.bucket.delete_multiple(keys).await.map_err(failed)
    }
}

fn failed(error: worker::Error) -> AttachmentError {
    AttachmentError(describe(&error.into()))
}
