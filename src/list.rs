//! Lists made of iterators.

/// Any iterator.
pub trait List: Iterator + Sized {
    /// Its items, as `collect` gives them, by one loop: `collect` takes three functions of each iterator.
    fn list(self) -> Vec<Self::Item> {
        let mut list = Vec::new();
        for item in self {
            list.push(item);
        }
        list
    }
}

impl<I: Iterator> List for I {}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn a_list_has_the_items_in_their_order() {
        assert_eq!((1..=3).map(|number| number * 2).list(), [2, 4, 6]);
        assert_eq!("".chars().list(), []);
    }
}
