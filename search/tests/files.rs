//! Files: what is written is read back; whatever is foreign, truncated, flipped, misaligned or
//! newer is an error, never a crash, never a wrong answer.

use lightfoot_search::sample::{Distribution, Random};
use lightfoot_search::{inspect_file, BytesIndex, Error, Index, Key, KeyType, Layout, Options, LAYOUTS};

fn keys(n: usize) -> Vec<u32> {
    Distribution::Uniform.keys(n, u64::from(u32::MAX), 1).into_iter().map(|key| key as u32).collect()
}

fn laid_out(keys: &[u32], layout: Layout) -> Option<Index<u32>> {
    Index::build_with(keys, &Options { layout: Some(layout), ..Options::default() }).ok()
}

fn answers<K: Key>(index: &Index<K>, queries: &[K]) -> Vec<usize> {
    let mut ranks = vec![0; queries.len()];
    index.batch(queries, &mut ranks);
    ranks
}

#[test]
fn every_layout_survives_the_way_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for n in [0, 1, 17, 5000, 100_000] {
        let keys = keys(n);
        let queries: Vec<u32> = keys.iter().step_by(7).flat_map(|&key| [key, key.wrapping_add(1)]).collect();
        for entry in LAYOUTS {
            let Some(index) = laid_out(&keys, entry.layout) else { continue };
            let path = folder.path().join(entry.name);
            index.save(&path).unwrap();
            let opened = Index::<u32>::open(&path).unwrap();
            assert_eq!(answers(&opened, &queries), answers(&index, &queries), "{} {n}", entry.name);
            assert!(opened.iter().eq(keys.iter().copied()), "{} {n}", entry.name);
            assert_eq!(opened.layout(), entry.layout);
            let facts = inspect_file(&path).unwrap();
            assert_eq!((facts.kind, facts.layout, facts.n), (KeyType::U32, entry.layout, n));
            assert_eq!(facts.bytes, index.to_bytes().len());
        }
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().count() <= LAYOUTS.len(), "no part files stay");
}

/// Keys for which the planner takes each of its layouts, and words of the reason.
fn planned() -> [(Vec<u32>, Layout, &'static str); 5] {
    [
        (keys(50_000), Layout::Split, "evenly spread: one line"),
        (uneven(Distribution::Normal, 50_000), Layout::Pieces, "piece by piece"),
        (uneven(Distribution::Prefixes, 50_000), Layout::Pieces, "piece by piece"),
        (vec![7; 50_000], Layout::Tree, "pieces refused: the keys are too unevenly spread"),
        (keys(50), Layout::Tree, "few keys"),
    ]
}

fn uneven(distribution: Distribution, n: usize) -> Vec<u32> {
    distribution.keys(n, u64::from(u32::MAX), 1).into_iter().map(|key| key as u32).collect()
}

/// Whether pieces have one table, without cells.
fn is_in_one_table(index: &Index<u32>) -> bool {
    index.explain().contains("pieces in one table")
}

#[test]
fn why_a_layout_was_chosen_is_told_after_opening_too() {
    for (keys, layout, why) in planned() {
        let index = Index::build(&keys).unwrap();
        assert_eq!(index.layout(), layout);
        assert!(index.explain().contains(why), "{}", index.explain());
        let bytes = index.to_bytes();
        let because = |text: String| text.lines().find(|line| line.starts_with("because")).map(String::from);
        let opened = Index::<u32>::from_bytes(&bytes).unwrap();
        assert_eq!(because(opened.explain()), because(index.explain()));
        // Only what an older format lacks makes a file that its readers refuse.
        let version = match layout {
            Layout::Pieces if is_in_one_table(&index) => 4,
            Layout::Pieces => 2,
            _ => 1,
        };
        assert_eq!(u32::from(bytes[8]), version);
    }
}

#[test]
fn pieces_survive_the_way_through_a_file_with_and_without_cells() {
    for (distribution, in_one_table) in [(Distribution::Normal, true), (Distribution::Prefixes, false)] {
        let keys = uneven(distribution, 50_000);
        let queries: Vec<u32> = keys.iter().flat_map(|&key| [key, key.wrapping_sub(1), key + 1]).collect();
        let index = Index::build(&keys).unwrap();
        assert_eq!(is_in_one_table(&index), in_one_table, "{distribution:?}");
        let opened = Index::<u32>::from_bytes(&index.to_bytes()).unwrap();
        let ranks: Vec<usize> = queries.iter().map(|query| keys.partition_point(|key| key < query)).collect();
        assert_eq!(answers(&opened, &queries), ranks, "{distribution:?}");
        assert!(opened.iter().eq(keys.iter().copied()), "{distribution:?}");
    }
}

#[test]
fn copies_of_a_key_survive_the_way_through_a_file() {
    // The copied key at the start, in the midst and at the end; the others even, uneven, and few.
    for (distribution, n) in
        [(Distribution::Uniform, 20_000), (Distribution::Cells, 20_000), (Distribution::Uniform, 40)]
    {
        let others: Vec<u64> = distribution.keys(n, u64::from(u32::MAX), 3);
        for copied in [0, others[n / 2], others[n / 3] + 1, u64::from(u32::MAX)] {
            let mut keys: Vec<u32> = others.iter().map(|&key| key as u32).collect();
            keys.extend(std::iter::repeat_n(copied as u32, 7000));
            keys.sort_unstable();
            let index = Index::build(&keys).unwrap();
            assert!(index.explain().contains("copies of one key"), "{}", index.explain());
            let bytes = index.to_bytes();
            assert_eq!(bytes[8], 5);
            let opened = Index::<u32>::from_bytes(&bytes).unwrap();
            assert_eq!(opened.explain(), index.explain());
            assert_eq!(opened.len(), keys.len());
            let queries: Vec<u32> = keys
                .iter()
                .step_by(7)
                .flat_map(|&key| [key, key.wrapping_sub(1), key.wrapping_add(1)])
                .collect();
            let ranks: Vec<usize> =
                queries.iter().map(|query| keys.partition_point(|key| key < query)).collect();
            assert_eq!(answers(&opened, &queries), ranks, "{distribution:?} {copied}");
            for (query, &rank) in queries.iter().zip(&ranks) {
                assert_eq!(opened.lower_bound(*query), rank);
            }
            assert!(opened.iter().eq(keys.iter().copied()), "{distribution:?} {copied}");
            assert!(opened.iter().rev().eq(keys.iter().rev().copied()), "{distribution:?} {copied}");
            let (from, to) = (keys.len() / 5, keys.len() / 5 * 4);
            assert!(opened.iter_ranks(from..to).eq(keys[from..to].iter().copied()));
            assert_eq!(opened.get(keys.len() / 2), Some(keys[keys.len() / 2]));
            assert_eq!(
                opened.equal_range(copied as u32).len(),
                keys.iter().filter(|&&key| u64::from(key) == copied).count()
            );
        }
    }
}

#[test]
fn unsorted_keys_between_copies_are_found() {
    let mut keys = vec![3u32; 100_000];
    keys[60_000] = 2;
    assert!(matches!(Index::build(&keys), Err(Error::Unsorted { position: 60_000 })));
    for (place, key) in keys[80_000..].iter_mut().enumerate() {
        *key = 3 + place as u32;
    }
    assert!(matches!(Index::build(&keys), Err(Error::Unsorted { position: 60_000 })));
}

#[test]
fn damaged_pieces_are_errors_with_and_without_cells() {
    for distribution in [Distribution::Normal, Distribution::Prefixes] {
        let bytes = laid_out(&uneven(distribution, 700), Layout::Pieces).unwrap().to_bytes();
        let mut damaged = bytes.clone();
        for bit in (0..8 * bytes.len()).step_by(5) {
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Index::<u32>::from_bytes(&damaged).is_err(), "{distribution:?} bit {bit}");
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Index::<u32>::from_bytes(&bytes).is_ok());
    }
}

#[test]
fn a_directory_is_no_index() {
    let folder = tempfile::tempdir().unwrap();
    let said = Index::<u32>::open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("not a regular file"), "{said}");
}

#[test]
fn every_truncation_is_an_error() {
    for entry in LAYOUTS {
        let Some(index) = laid_out(&keys(300), entry.layout) else { continue };
        let bytes = index.to_bytes();
        for length in 0..bytes.len() {
            assert!(Index::<u32>::from_bytes(&bytes[..length]).is_err(), "{} cut to {length}", entry.name);
        }
        let longer = [bytes.as_slice(), &[0; 64]].concat();
        assert!(matches!(Index::<u32>::from_bytes(&longer), Err(Error::Damaged { .. })));
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    for layout in [Layout::Tree, Layout::Split, Layout::Window, Layout::Pieces] {
        let mut bytes = laid_out(&keys(200), layout).unwrap().to_bytes();
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Index::<u32>::from_bytes(&bytes).is_err(), "{} bit {bit}", layout.name());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Index::<u32>::from_bytes(&bytes).is_ok());
    }
}

#[test]
fn strings_and_wide_keys_are_held_to_the_same() {
    let strings: Vec<String> = (0..90).map(|i| format!("key {i:03}")).collect();
    let mut bytes = BytesIndex::build(&strings).unwrap().to_bytes();
    let wide: Vec<u128> = (0..90).map(|i| i << 70).collect();
    let mut other = Index::build(&wide).unwrap().to_bytes();
    for bit in 0..8 * bytes.len().max(other.len()) {
        for (bytes, read) in [
            (&mut bytes, (|bytes| BytesIndex::from_bytes(bytes).is_ok()) as fn(&[u8]) -> bool),
            (&mut other, |bytes| Index::<u128>::from_bytes(bytes).is_ok()),
        ] {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
                assert!(!read(bytes), "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    assert!(Index::<u128>::from_bytes(&other).is_ok() && BytesIndex::from_bytes(&bytes).is_ok());
}

#[test]
fn what_is_wrong_is_named() {
    let bytes = Index::build(&[1u32, 2, 3]).unwrap().to_bytes();
    let said = |bytes: &[u8]| Index::<u64>::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(said(&bytes), "index file holds u32 keys, not u64");
    assert_eq!(said(b"PK\x03\x04 and so on"), "not an index file");
    assert_eq!(said(b""), "not an index file");
    assert_eq!(said(&bytes[..200]), format!("index file is truncated: 200 bytes of {}", bytes.len()));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert_eq!(said(&newer), "index file of format 9, newer than this program understands (5)");
    let error = Index::<u32>::open("/nonexistent/index").unwrap_err();
    assert!(matches!(error, Error::Io(_)));
}

#[test]
fn random_damage_is_found() {
    let mut random = Random::new(4);
    for entry in LAYOUTS {
        let Some(index) = laid_out(&keys(3000), entry.layout) else { continue };
        let bytes = index.to_bytes();
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(20) {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << random.below(8);
            }
            assert!(Index::<u32>::from_bytes(&damaged).is_err());
        }
    }
}

/// `bytes` placed so that the first byte behind them is on a page that may not be touched; lives as
/// long as the test.
fn against_a_wall(bytes: &[u8]) -> &'static [u8] {
    const PAGE: usize = 4096;
    let pages = bytes.len().next_multiple_of(PAGE);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping whose last page is then closed; the copy stays below that page, and
    // nothing unmaps it.
    unsafe {
        let base = libc::mmap(std::ptr::null_mut(), pages + PAGE, protection, flags, -1, 0).cast::<u8>();
        assert_ne!(base.cast(), libc::MAP_FAILED);
        assert_eq!(libc::mprotect(base.add(pages).cast(), PAGE, libc::PROT_NONE), 0);
        let start = base.add(pages - bytes.len());
        start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        std::slice::from_raw_parts(start, bytes.len())
    }
}

#[test]
fn nothing_behind_the_array_is_read() {
    for n in [1, 15, 16, 17, 255, 256, 272, 273, 4096, 4097, 40_000] {
        let keys = keys(n);
        let queries: Vec<u32> =
            keys.iter().flat_map(|&key| [key, key.wrapping_sub(1), u32::MAX, 0]).collect();
        for entry in LAYOUTS {
            let Some(index) = laid_out(&keys, entry.layout) else { continue };
            let walled = Index::<u32>::from_static(against_a_wall(&index.to_bytes())).unwrap();
            assert_eq!(answers(&walled, &queries), answers(&index, &queries), "{} {n}", entry.name);
            queries.iter().for_each(|&q| assert_eq!(walled.lower_bound(q), index.lower_bound(q)));
        }
    }
}

#[test]
fn misaligned_static_bytes_are_refused() {
    let bytes = Index::build(&keys(100)).unwrap().to_bytes();
    let walled = against_a_wall(&[bytes.as_slice(), &[0]].concat());
    assert!(matches!(Index::<u32>::from_static(&walled[..bytes.len()]), Err(Error::Misaligned)));
}

#[cfg(unix)]
#[test]
fn what_is_not_a_file_stays_what_it_is() {
    use std::io::Read;
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let index = Index::build(&keys(3000)).unwrap();
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut bytes = Vec::new();
            std::fs::File::open(&pipe).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        });
        index.save(&pipe).unwrap();
        reader.join().unwrap()
    });
    assert!(read == index.to_bytes());
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}
