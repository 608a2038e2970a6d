//! Lists kept in order. A sort of the standard library is 4 KiB of code for every type it sorts.

/// Puts an item behind all that are not greater: quick where items come nearly in order, or are few.
pub fn insert_in_order<T, K: Ord>(list: &mut Vec<T>, item: T, key: impl Fn(&T) -> K) {
    let place = list.partition_point(|known| key(known) <= key(&item));
    list.insert(place, item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_keep_their_order() {
        let mut list = Vec::new();
        for item in [(2, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')] {
            insert_in_order(&mut list, item, |(number, _)| *number);
        }
        assert_eq!(list, [(1, 'b'), (1, 'e'), (2, 'a'), (2, 'd'), (3, 'c')]);
    }
}
