//! Look-ups in sorted columns against Polars' own `search_sorted`: every indexed type, nulls at
//! both ends, duplicates, several chunks, the ends of types, NaN and both zeros.

use lightfoot_polars::{SearchSortedSide, SortedIndex};
use polars_core::prelude::*;
use polars_ops::series::search_sorted;
use proptest::prelude::*;

const SIDES: [SearchSortedSide; 3] = [SearchSortedSide::Any, SearchSortedSide::Left, SearchSortedSide::Right];

fn agrees(sorted: &Series, keys: &Series) {
    let index = SortedIndex::build(sorted).unwrap();
    assert_eq!((index.len(), index.is_empty()), (sorted.len(), sorted.is_empty()));
    for side in SIDES {
        let ours = index.search_sorted(keys, side).unwrap().to_vec();
        // Polars answers any place among equal keys for `Any`; ours is the first.
        let theirs = if side == SearchSortedSide::Any { SearchSortedSide::Left } else { side };
        let theirs = search_sorted(sorted, keys, theirs, false).unwrap().to_vec();
        assert_eq!(ours, theirs, "{side:?} of {keys:?} in {sorted:?}");
    }
}

/// A sorted column of two chunks, and keys of two chunks.
fn columns<T: NumericNative>(
    sorted: &[Option<T>],
    keys: &[Option<T>],
    has_nulls_last: bool,
) -> (Series, Series)
where
    ChunkedArray<T::PolarsType>: NewChunkedArray<T::PolarsType, T> + IntoSeries,
{
    let column = |rows: &[Option<T>]| {
        ChunkedArray::<T::PolarsType>::from_slice_options("c".into(), rows).into_series()
    };
    let options = SortOptions { nulls_last: has_nulls_last, ..SortOptions::default() };
    let sorted = column(sorted).sort(options).unwrap();
    let middle = sorted.len() / 2;
    let mut two = sorted.slice(0, middle);
    two.append(&sorted.slice(middle as i64, sorted.len())).unwrap();
    let mut keys_twice = column(keys);
    keys_twice.append(&column(keys)).unwrap();
    (two, keys_twice)
}

fn keys(most: usize) -> impl Strategy<Value = Vec<Option<u64>>> {
    let key = prop_oneof![
        4 => (0u64..40).prop_map(Some),
        2 => any::<u64>().prop_map(Some),
        1 => prop::sample::select(vec![0, u64::MAX, u64::MAX >> 1, 1 << 63]).prop_map(Some),
        1 => Just(None),
    ];
    prop::collection::vec(key, 0..most)
}

fn map<T>(keys: &[Option<u64>], to: impl Fn(u64) -> T) -> Vec<Option<T>> {
    keys.iter().map(|key| key.map(&to)).collect()
}

fn float(bits: u64) -> f64 {
    match bits {
        0..=4 => [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY][bits as usize],
        5..40 => bits as f64 - 20.0,
        _ => f64::from_bits(bits),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn places_are_those_of_polars(rows in keys(300), wanted in keys(20), has_nulls_last: bool) {
        let (sorted, keys) = columns(&rows, &wanted, has_nulls_last);
        agrees(&sorted, &keys);
        let (sorted, keys) = columns(&map(&rows, |key| key as i64), &map(&wanted, |key| key as i64), has_nulls_last);
        agrees(&sorted, &keys);
        let (sorted, keys) = columns(&map(&rows, |key| key as u32), &map(&wanted, |key| key as u32), has_nulls_last);
        agrees(&sorted, &keys);
        let (sorted, keys) = columns(&map(&rows, |key| key as i32), &map(&wanted, |key| key as i32), has_nulls_last);
        agrees(&sorted, &keys);
        let (sorted, keys) = columns(&map(&rows, float), &map(&wanted, float), has_nulls_last);
        agrees(&sorted, &keys);
        let single = |key| float(key) as f32;
        let (sorted, keys) = columns(&map(&rows, single), &map(&wanted, single), has_nulls_last);
        agrees(&sorted, &keys);
    }
}

#[test]
fn refusals_name_the_remedy() {
    let refusal = |column: Series| SortedIndex::build(&column).unwrap_err().to_string();
    let nulls = refusal(Series::new("c".into(), [Some(1i64), None, Some(2)]));
    assert!(nulls.contains("'c' has nulls among its keys: sort it first"), "{nulls}");
    let strings = refusal(Series::new("c".into(), ["a"]));
    assert!(strings.contains("no index over str: cast the column"), "{strings}");
    assert!(refusal(Series::new("c".into(), [2i64, 1])).contains('1'));
    let index = SortedIndex::build(&Series::new("c".into(), [1i64])).unwrap();
    let error = index.search_sorted(&Series::new("k".into(), [1i32]), SearchSortedSide::Left).unwrap_err();
    assert!(error.to_string().contains("keys are i32, the indexed column is i64: cast the keys"), "{error}");
}
