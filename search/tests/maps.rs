//! Maps in files: values of all kinds come back, and anything else is refused with a reason.

use lightfoot_search::{inspect_file, Error, Index, Key, Map, Value};
use proptest::prelude::*;
use std::fmt::Debug;

/// Writes a map to bytes and to a file, and reads both.
fn round_trip<K: Key, V: Value + Clone + Debug + PartialEq>(pairs: Vec<(K, V)>) {
    let map = Map::build_unsorted(pairs).expect("sorted keys");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("map");
    map.save(&path).expect("a file");
    let bytes = std::fs::read(&path).expect("the file");
    assert_eq!(bytes, map.to_bytes());
    for again in [Map::<K, V>::open(&path), Map::from_bytes(&bytes)] {
        let again = again.expect("own bytes");
        assert_eq!(again.values(), map.values());
        assert!(again.index().iter().zip(map.index().iter()).all(|(a, b)| a.compare(&b).is_eq()));
        assert!(again.iter().rev().map(|(_, value)| value).eq(map.values().iter().rev()));
    }
    let facts = inspect_file(&path).expect("an index file");
    assert_eq!((facts.kind, facts.n, facts.bytes), (K::TYPE, map.len(), bytes.len()));
    assert_eq!(Index::<K>::open(&path).expect("the keys").len(), map.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_values_come_back(
        numbers in prop::collection::vec(any::<(u32, i64)>(), 0..200),
        strings in prop::collection::vec(any::<(u64, String)>(), 0..60),
        bytes in prop::collection::vec(any::<(u128, Vec<u8>)>(), 0..60),
        arrays in prop::collection::vec(any::<((u16, i32), [u8; 5])>(), 0..200),
        flags in prop::collection::vec(any::<(i8, bool)>(), 0..200),
        nothing in prop::collection::vec(any::<(i128, ())>(), 0..50),
    ) {
        round_trip(numbers);
        round_trip(strings);
        round_trip(bytes);
        round_trip(arrays);
        round_trip(flags);
        round_trip(nothing);
    }
}

fn example() -> Map<u32, u16> {
    Map::build(&(0..900).map(|i| i * 5).collect::<Vec<u32>>(), (0..900).collect()).expect("sorted keys")
}

#[test]
fn other_values_are_refused_by_name() {
    let bytes = example().to_bytes();
    let message = |error: Option<Error>| error.expect("an error").to_string();
    assert_eq!(
        message(Map::<u32, u64>::from_bytes(&bytes).err()),
        "index file holds values of type u16, not u64"
    );
    assert_eq!(message(Map::<u64, u16>::from_bytes(&bytes).err()), "index file holds u32 keys, not u64");
    let keys = Index::build(&[(1u8, 2u16)]).expect("sorted keys").to_bytes();
    assert_eq!(
        message(Map::<(u8, u16), u16>::from_bytes(&keys).err()),
        "index file holds no values beside its keys, and u16 were asked for"
    );
    assert_eq!(
        message(Index::<(u8, i16)>::from_bytes(&keys).err()),
        "index file holds (u8, u16) keys, not (u8, i16)"
    );
    assert!(Map::<u32, [u8; 2]>::from_bytes(&bytes).is_err(), "as long, and another type");
}

#[test]
fn a_damaged_map_is_refused() {
    let bytes = example().to_bytes();
    for at in (0..bytes.len()).step_by(13) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(Map::<u32, u16>::from_bytes(&damaged).is_err(), "byte {at}");
        let _ = Index::<u32>::from_bytes(&damaged);
    }
    for length in (0..bytes.len()).step_by(61) {
        assert!(Map::<u32, u16>::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_file_is_as_old_as_it_can_be() {
    let version = |bytes: &[u8]| u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
    let keys: Vec<u32> = (0..5000).collect();
    assert_eq!(version(&Index::build(&keys).expect("sorted keys").to_bytes()), 1);
    assert_eq!(version(&example().to_bytes()), 3);
    assert_eq!(version(&Index::build(&[1u8, 2]).expect("sorted keys").to_bytes()), 3);
}
