//! Lists made item by item. A sort of the standard library is 4 KiB of code for every type it sorts, and `collect` half a
//! dozen functions where it may fail.

/// Puts an item behind all that are not greater: quick where items come nearly in order, or are few.
pub fn insert_in_order<T, K: Ord>(list: &mut Vec<T>, item: T, key: impl Fn(&T) -> K) {
    let place = list.partition_point(|known| key(known) <= key(&item));
    list.insert(place, item);
}

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
    fn the_first_fault_ends_a_list() {
        let mut seen = 0;
        let items = [Ok(1), Err("a"), Err("b")].into_iter().inspect(|_| seen += 1);
        assert_eq!(all(items), Err("a"));
        assert_eq!(seen, 2);
        assert_eq!(all([Ok::<_, ()>(1), Ok(2)].into_iter()), Ok(vec![1, 2]));
    }

    #[test]
    fn equal_items_keep_their_order() {
        let mut list = Vec::new();
        for item in [(2, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')] {
            insert_in_order(&mut list, item, |(number, _)| *number);
        }
        assert_eq!(list, [(1, 'b'), (1, 'e'), (2, 'a'), (2, 'd'), (3, 'c')]);
    }
}
