//! Few things by their names, in the names' order. The build script compiles this file too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

/// A table of the file: a sorted list. The standard library's tree is kilobytes of code for each type in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, T>")]
pub struct Named<T>(Vec<(String, T)>);

impl<T> Named<T> {
    /// Nothing.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// All of it, by name.
    pub fn iter(&self) -> std::slice::Iter<'_, (String, T)> {
        self.0.iter()
    }

    /// The name, and what has it.
    pub fn get(&self, name: &str) -> Option<&(String, T)> {
        self.0.get(self.place(name).ok()?)
    }

    /// What has this name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let place = self.place(name).ok()?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Puts something under a name, in the place of what has it.
    pub fn insert(&mut self, name: String, value: T) {
        match self.place(&name) {
            Ok(place) => {
                if let Some((_, known)) = self.0.get_mut(place) {
                    *known = value;
                }
            }
            Err(place) => self.0.insert(place, (name, value)),
        }
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<BTreeMap<String, T>> for Named<T> {
    fn from(sorted: BTreeMap<String, T>) -> Self {
        Self(sorted.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_found_by_their_names_and_listed_in_the_order_of_them() {
        let mut named = Named::new();
        for (name, value) in [("b", 1), ("c", 2), ("a", 3), ("b", 4)] {
            named.insert(name.to_owned(), value);
        }
        let listed: Vec<_> = named
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(listed, [("a", 3), ("b", 4), ("c", 2)]);
        *named.get_mut("c").unwrap() = 5;
        assert_eq!(named.get("c"), Some(&("c".to_owned(), 5)));
        assert_eq!(named.get("d"), None);
        assert_eq!(named.get_mut(""), None);
        let text = serde_json::to_string(&named).unwrap();
        assert_eq!(text, r#"{"a":3,"b":4,"c":5}"#);
        assert_eq!(serde_json::from_str::<Named<i32>>(&text).unwrap(), named);
    }
}
