//! Files that are not whole, not ours, or not what they say: refused, or restored into something that holds together.

use super::snapshot::{encode, text_fragments, Snapshot};
use super::{bound, hash, Store};
use crate::cache::CodeCache;
use crate::decode::CodeReader;
use crate::emit::events::Events;
use crate::layout::{context, Layout, ZonePlace};
use crate::memory::Shared;
use crate::modules::Maps;
use crate::translate::{Modules, Translator, Trust};
use event::Stream;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A translator of this process's own code, which lies where it lies.
fn translator_of_counts() -> Translator {
    const MB: u64 = 1 << 20;
    let zone =
        |address, megabytes| ZonePlace { address, hot_bytes: megabytes * MB, cold_bytes: megabytes * MB };
    let own = own_code() & !(2 * MB - 1);
    let layout = Layout { zones: vec![zone(own - 64 * MB, 8), zone(0x2000_0000_0000, 8)], low: 0x6000_0000 };
    let bytes = layout.contexts_offset() + context::BYTES;
    let cache = CodeCache::new(Arc::new(Shared::new(bytes as usize).unwrap()), layout, None);
    Translator::new(cache, CodeReader::new(crate::ptrace::own_pid()), Events::new(Stream::Counts))
}

fn own_code() -> u64 {
    own_code as fn() -> u64 as usize as u64
}

fn maps() -> Maps {
    Maps::new(crate::ptrace::own_pid())
}

/// A snapshot of a few hundred fragments.
fn snapshot() -> (Vec<u8>, usize) {
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    let mut known = 0;
    translator.fragment(own_code(), &mut maps).expect("this function can be executed");
    // These functions lead to nearly everything, however much the compiler has put into one, and however little is translated ahead.
    let tests: [fn(); 3] = [
        what_was_written_is_restored_and_wakes,
        a_module_that_changed_sleeps_on,
        forged_bytes_are_refused_or_hold_together,
    ];
    let own =
        [snapshot as fn() -> (Vec<u8>, usize) as usize, translator_of_counts as fn() -> Translator as usize];
    for function in own.into_iter().chain(tests.map(|test| test as usize)) {
        translator.fragment(function as u64, &mut maps);
    }
    // Whatever was translated leads to more.
    while known < translator.cache.exits.len() && translator.cache.fragments.len() < 300 {
        let target = translator.cache.exits[known].target;
        known += 1;
        if matches!(maps.at(target), Some((Trust::Text, _))) {
            translator.fragment(target, &mut maps);
        }
    }
    assert!(translator.cache.fragments.len() >= 20, "{}", translator.cache.fragments.len());
    (encode(&translator, &maps, &text_fragments(&translator)), translator.cache.fragments.len())
}

#[test]
fn what_was_written_is_restored_and_wakes() {
    let (bytes, fragments) = snapshot();
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    Snapshot::decode(&bytes, &translator.cache).expect("it is whole").restore(&mut translator, &mut maps);
    assert_eq!((translator.dormant.fragments, translator.cache.map.len()), (fragments, 0));
    let f = translator.fragment(own_code(), &mut maps).unwrap();
    assert!(f < fragments && translator.cache.fragments.len() == fragments, "nothing was translated");
    assert!(!translator.dormant.mismatch);
    // Written again it is the same but for the order of what has none.
    assert_eq!(encode(&translator, &maps, &text_fragments(&translator)).len(), bytes.len());
}

#[test]
fn a_module_that_changed_sleeps_on() {
    let (bytes, fragments) = snapshot();
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    Snapshot::decode(&bytes, &translator.cache).unwrap().restore(&mut translator, &mut maps);
    translator.dormant.pages.iter_mut().flatten().for_each(|page| page.1 ^= 1);
    let f = translator.fragment(own_code(), &mut maps).unwrap();
    assert!(f >= fragments && translator.dormant.mismatch);
}

/// Numbers that differ from run to run of nothing but this test.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

#[test]
fn forged_bytes_are_refused_or_hold_together() {
    let (bytes, fragments) = snapshot();
    let mut state = 1;
    let mut taken = 0;
    for _ in 0..4000 {
        let mut forged = bytes.clone();
        for _ in 0..1 + random(&mut state) % 4 {
            let at = random(&mut state) % forged.len();
            forged[at] = random(&mut state) as u8;
        }
        if random(&mut state).is_multiple_of(8) {
            forged.truncate(random(&mut state) % forged.len());
        }
        let (mut translator, mut maps) = (translator_of_counts(), maps());
        let Some(snapshot) = Snapshot::decode(&forged, &translator.cache) else { continue };
        taken += 1;
        snapshot.restore(&mut translator, &mut maps);
        translator.fragment(own_code(), &mut maps);
        for f in 0..fragments.min(translator.cache.fragments.len()) {
            translator.cache.redirect(f, 0);
            translator.cache.retire(f);
        }
        for rip in translator.cache.zones.iter().map(|zone| zone.address + 100).collect::<Vec<_>>() {
            translator.cache.bound(rip);
        }
    }
    assert!(taken > 0, "code itself may be anything");
}

/// What a store gives, as bytes.
fn read(store: &Store) -> Option<Vec<u8>> {
    store.read().map(|body| body.bytes().to_vec())
}

#[test]
fn a_file_is_read_as_it_was_written_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("deep/folder");
    let store = Store::new(&inside, b"program");
    assert_eq!(read(&store), None);
    let body: Vec<u8> = (0..1000u32).map(|n| n as u8).collect();
    store.write(&body);
    assert_eq!(read(&store).as_deref(), Some(&body[..]));
    assert_eq!(read(&Store::new(&inside, b"another")), None);
    let file = fs::read_dir(&inside).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&file).unwrap();
    for at in [0, 8, 15, 16, 500, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(&file, &bytes).unwrap();
        assert_eq!(read(&store), None, "byte {at} changed");
    }
    for len in [0, 7, 16, 100, whole.len() - 1] {
        fs::write(&file, &whole[..len]).unwrap();
        assert_eq!(read(&store), None, "{len} bytes are left");
    }
    fs::write(&file, &whole).unwrap();
    assert!(read(&store).is_some());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(read(&store), None, "anybody may have written it");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    fs::set_permissions(&inside, PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(read(&store), None, "anybody may have put it there");
}

#[test]
fn a_full_folder_loses_what_was_used_least_recently() {
    let folder = tempfile::tempdir().unwrap();
    for (name, age_s) in [("old", 300), ("new", 100), ("older", 400), ("newest", 0)] {
        let path = folder.path().join(name);
        fs::write(&path, [0u8; 100]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
    }
    bound(folder.path(), 250);
    let mut left: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["new", "newest"]);
}

#[test]
fn hashes_depend_on_every_byte_and_on_their_number() {
    let bytes: Vec<u8> = (0..200u8).collect();
    let mut seen = std::collections::HashSet::new();
    for len in 0..bytes.len() {
        assert!(seen.insert(hash(&bytes[..len], 0)));
        assert!(seen.insert(hash(&bytes[..len], 1)));
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x80;
        assert!(seen.insert(hash(&changed, 0)), "{at}");
    }
    assert!(seen.insert(hash(&[0; 32], 0)) && seen.insert(hash(&[0; 64], 0)));
}
