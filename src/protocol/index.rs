//! What is found by an id or a name, in the order it was put in.
//!
//! A hash map of the standard library is a kilobyte and more of code for each type in it. Here is one, from texts to
//! places in a list, and the lists are of whatever type.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::json_cursor::{CursorFault, JsonCursor};
use super::payload::Member;

/// What can be looked up: ids and names.
pub trait Key: Clone {
    /// Its text, to be kept.
    fn to_text(&self) -> Arc<str>;
}

impl Key for String {
    fn to_text(&self) -> Arc<str> {
        self.as_str().into()
    }
}

/// Values by their keys. What a client sends may be many: looking up takes the same time whatever is in it.
#[derive(Debug, Clone)]
pub struct Index<K, V> {
    places: Places,
    entries: Vec<(K, V)>,
}

/// Keys, each once.
pub type KeySet<K> = Index<K, ()>;

/// Places in a list by text.
#[derive(Debug, Clone, Default)]
struct Places(HashMap<Arc<str>, usize>);

impl Places {
    fn find(&self, text: &str) -> Option<usize> {
        self.0.get(text).copied()
    }

    /// Notes the place of a text; gives the one it has.
    fn note(&mut self, text: Arc<str>, place: usize) -> usize {
        *self.0.entry(text).or_insert(place)
    }
}

impl<K, V> Index<K, V> {
    /// The value of a key, by its text.
    pub fn get(&self, key: &str) -> Option<&V> {
        let (_, value) = self.entries.get(self.places.find(key)?)?;
        Some(value)
    }

    /// The value of a key, by its text, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let (_, value) = self.entries.get_mut(self.places.find(key)?)?;
        Some(value)
    }

    /// Whether there is a value of a key, by its text.
    pub fn contains(&self, key: &str) -> bool {
        self.places.find(key).is_some()
    }

    /// All keys with their values.
    pub fn iter(&self) -> std::slice::Iter<'_, (K, V)> {
        self.entries.iter()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<K: Key, V> Index<K, V> {
    /// Puts a value under a key, unless the key has one. Gives whether it was put there.
    pub fn add(&mut self, key: K, value: V) -> bool {
        let place = self.entries.len();
        let is_new = self.places.note(key.to_text(), place) == place;
        if is_new {
            self.entries.push((key, value));
        }
        is_new
    }

    /// Puts a value under a key, in place of the one it has. Gives whether it had none.
    pub fn put(&mut self, key: K, value: V) -> bool {
        let place = self.places.note(key.to_text(), self.entries.len());
        match self.entries.get_mut(place) {
            Some((_, known)) => {
                *known = value;
                false
            }
            None => {
                self.entries.push((key, value));
                true
            }
        }
    }
}

impl<K: Key> KeySet<K> {
    /// Puts a key in; gives whether it was not there.
    pub fn insert(&mut self, key: K) -> bool {
        self.add(key, ())
    }

    /// Puts a key in unless it is there; gives the number of those that came before it.
    pub fn place(&mut self, key: K) -> usize {
        let place = self.places.note(key.to_text(), self.entries.len());
        if place == self.entries.len() {
            self.entries.push((key, ()));
        }
        place
    }
}

impl<K, V> Default for Index<K, V> {
    fn default() -> Self {
        Self {
            places: Places::default(),
            entries: Vec::new(),
        }
    }
}

/// Whatever the order.
impl<K: Key, V: PartialEq> PartialEq for Index<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let is_in_other = |(key, value): &(K, V)| other.get(&key.to_text()) == Some(value);
        self.entries.len() == other.entries.len() && self.iter().all(is_in_other)
    }
}

impl<K: Key> Extend<K> for KeySet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<K: Key> FromIterator<K> for KeySet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::default();
        set.extend(keys);
        set
    }
}

impl<K: Serialize> Serialize for KeySet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|(key, ())| key))
    }
}

impl<'a, K: Member<'a> + Key> Member<'a> for KeySet<K> {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        let mut keys: Vec<K> = Vec::new();
        keys.read(json)?;
        *self = keys.into_iter().collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::id::MessageId;

    fn ids(texts: &[&str]) -> KeySet<MessageId> {
        texts.iter().map(|text| MessageId::new(*text)).collect()
    }

    #[test]
    fn a_key_has_one_value_and_keeps_its_place() {
        let mut index = Index::default();
        assert!(index.is_empty());
        assert!(index.add("b".to_owned(), 1));
        assert!(index.add("a".to_owned(), 2));
        assert!(!index.add("b".to_owned(), 3));
        assert_eq!(index.get("b"), Some(&1));
        assert!(!index.put("b".to_owned(), 4));
        assert!(index.put("c".to_owned(), 5));
        if let Some(value) = index.get_mut("a") {
            *value += 10;
        }
        let listed: Vec<_> = index.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        assert_eq!(listed, [("b", 4), ("a", 12), ("c", 5)]);
        assert_eq!(
            (index.get("d"), index.contains("d"), index.contains("c")),
            (None, false, true)
        );
    }

    #[test]
    fn sets_are_lists_of_keys_in_json_and_equal_in_any_order() {
        let mut set = ids(&["b", "a", "b"]);
        assert_eq!(serde_json::to_string(&set).unwrap(), r#"["b","a"]"#);
        let read: KeySet<MessageId> = crate::protocol::read::from_text(r#"["a","b","a"]"#).unwrap();
        assert_eq!(read, set);
        assert_ne!(ids(&["a", "c"]), set);
        assert_ne!(ids(&["a"]), set);
        let places = ["a", "c", "b"].map(|text| set.place(MessageId::new(text)));
        assert_eq!(places, [1, 2, 0]);
    }
}
