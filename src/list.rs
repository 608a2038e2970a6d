//! Lists made of iterators, by one loop each: `collect` takes three functions of every iterator, six where it may fail.

/// Any iterator.
pub trait List: Iterator + Sized {
    /// Its items, as `collect` gives them.
    fn list(self) -> Vec<Self::Item> {
        let mut list = Vec::new();
        for item in self {
            list.push(item);
        }
        list
    }
}

impl<I: Iterator> List for I {}

/// All items, or the first fault.
///
/// # Errors
/// The first that is one.
pub fn all<T, E>(items: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let mut list = Vec::new();
    for item in items {
        list.push(item?);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_items_in_their_order() {
        assert_eq!((1..=3).map(|number| number * 2).list(), [2, 4, 6]);
        assert_eq!("".chars().list(), []);
    }

    #[test]
    fn the_first_fault_ends_a_list() {
        let mut seen = 0;
        let items = [Ok(1), Err("a"), Err("b")].into_iter().inspect(|_| seen += 1);
        assert_eq!(all(items), Err("a"));
        assert_eq!(seen, 2);
        assert_eq!(all([Ok::<_, ()>(1), Ok(2)].into_iter()), Ok(vec![1, 2]));
    }
}
