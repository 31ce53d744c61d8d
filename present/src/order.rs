//! Sorts rows with one compiled sort, and fills maps without any.
//!
//! **Why.** The standard library compiles its sort once for each type and comparison, 5 kB each
//! time, and an executable that shows many tables has a hundred of them. **How.** Here the numbers
//! of the rows are sorted, by a comparison that is called through a pointer, and then the rows are
//! swapped to where they belong; a table more costs 300 bytes. **Cost.** One memory allocation of 8
//! bytes a row, and an indirect call a comparison. **Leaves out** what is sorted in loops that
//! matter: call the slice's own methods there.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorting of rows that are about to be shown. All methods are stable: equal rows keep their order.
pub trait SortRows<T> {
    /// Sorts by a comparison.
    fn sort_rows(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key, which is computed at each comparison.
    fn sort_rows_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> SortRows<T> for [T] {
    fn sort_rows(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = {
            let rows = &*self;
            order(rows.len(), &mut |one, other| compare(&rows[one], &rows[other]))
        };
        apply(order, &mut |one, other| self.swap(one, other));
    }

    fn sort_rows_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_rows(|one, other| key(one).cmp(&key(other)));
    }
}

/// A map of these pairs, of which the last with a key stays. Collecting would sort them first, by a
/// sort of their own.
pub fn map_of<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    pairs.into_iter().for_each(|(key, value)| _ = map.insert(key, value));
    map
}

/// A set of these values. Collecting would sort them first, by a sort of their own.
pub fn set_of<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    values.into_iter().for_each(|value| _ = set.insert(value));
    set
}

/// The numbers of `count` rows in their order.
#[inline(never)]
fn order(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| compare(one, other));
    order
}

/// Brings row `order[place]` to each `place`, by swaps along the cycles of the permutation.
#[inline(never)]
fn apply(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut place = start;
        loop {
            // The place is done: its own number says so to later cycles.
            let from = std::mem::replace(&mut order[place], place);
            if from == start || from == place {
                break;
            }
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a key from few values and their first place, by a linear congruential generator.
    fn rows(count: usize, keys: u64) -> Vec<(u64, usize)> {
        let mut state = count as u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % keys
        };
        (0..count).map(|place| (next(), place)).collect()
    }

    #[test]
    fn rows_stand_as_the_standard_sort_leaves_them() {
        for count in (0..40).chain([100, 1000]) {
            for keys in [1, 2, 7, 1 << 20] {
                let (mut own, mut standard) = (rows(count, keys), rows(count, keys));
                own.sort_rows_by_key(|row| row.0);
                standard.sort_by_key(|row| row.0);
                assert_eq!(own, standard, "{count} rows of {keys} keys");
                own.sort_rows(|one, other| other.cmp(one));
                standard.sort_by(|one, other| other.cmp(one));
                assert_eq!(own, standard, "{count} rows of {keys} keys, backwards");
            }
        }
    }

    #[test]
    fn maps_and_sets_are_those_that_are_collected() {
        let rows = rows(200, 50);
        assert_eq!(map_of(rows.clone()), rows.iter().copied().collect());
        assert_eq!(set_of(rows.clone()), rows.into_iter().collect());
    }

    #[test]
    fn rows_that_are_no_copies_move() {
        let mut rows = ["c", "a", "b"].map(String::from);
        rows.sort_rows_by_key(|row| std::cmp::Reverse(row.clone()));
        assert_eq!(rows, ["c", "b", "a"]);
    }
}
