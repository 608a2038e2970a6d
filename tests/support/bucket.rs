//! A bucket of [`Attachments`] in memory, which can fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use io_bridge::store::{AttachmentError, Attachments};

/// Clones are the same bucket.
#[derive(Clone, Default)]
pub struct Bucket(Rc<State>);

#[derive(Default)]
struct State {
    objects: RefCell<BTreeMap<String, String>>,
    /// Objects it still makes; `None` = any number.
    puts_left: Cell<Option<usize>>,
    is_away: Cell<bool>,
}

impl Bucket {
    /// Keys and lengths of what is there.
    pub fn lengths(&self) -> Vec<(String, usize)> {
        let objects = self.0.objects.borrow();
        let lengths = objects.iter().map(|(key, value)| (key.clone(), value.len()));
        lengths.collect()
    }

    /// From now on only so many objects are made; `None` = any number.
    pub fn limit_puts(&self, count: Option<usize>) {
        self.0.puts_left.set(count);
    }

    /// Whether nothing works.
    pub fn set_away(&self, is_away: bool) {
        self.0.is_away.set(is_away);
    }

    /// Loses everything.
    pub fn clear(&self) {
        self.0.objects.borrow_mut().clear();
    }

    fn reach(&self) -> Result<(), AttachmentError> {
        if self.0.is_away.get() {
            return Err(AttachmentError("away".to_owned()));
        }
        Ok(())
    }
}

impl Attachments for Bucket {
    fn is_bound(&self) -> bool {
        true
    }

    async fn put(&self, key: &str, value: &str) -> Result<(), AttachmentError> {
        self.reach()?;
        if let Some(left) = self.0.puts_left.get() {
            let left = left.checked_sub(1).ok_or(AttachmentError("full".to_owned()))?;
            self.0.puts_left.set(Some(left));
        }
        let replaced = self
            .0
            .objects
            .borrow_mut()
            .insert(key.to_owned(), value.to_owned());
        assert_eq!(replaced, None, "a key is used once");
        Ok(())
    }

    async fn get(&self, keys: &[String]) -> Result<Vec<Option<String>>, AttachmentError> {
        self.reach()?;
        let objects = self.0.objects.borrow();
        Ok(keys.iter().map(|key| objects.get(key).cloned()).collect())
    }

    async fn delete(&self, keys: &[String]) -> Result<(), AttachmentError> {
        self.reach()?;
        self.0.objects.borrow_mut().retain(|key, _| !keys.contains(key));
        Ok(())
    }
}
