//! Snapshots that are damaged or forged, or whose modules have changed: they are refused, or what
//! they restore is consistent.

use super::parts::{choose, groups, overlap};
use super::snapshot::{encode, Snapshot};
use crate::cache::CodeCache;
use crate::code::decode::CodeReader;
use crate::code::hash::hash;
use crate::code::kept_table::SharedBytes;
use crate::profile::Module;
use crate::target::layout::{context, Layout, ZonePlace};
use crate::target::memory::Shared;
use crate::target::modules::Maps;
use crate::target::trust::{Modules, Trust};
use crate::translate::Translator;
use event::Stream;
use std::rc::Rc;
use std::sync::Arc;

/// A translator of this process's own code, at its own addresses.
fn translator_of_counts() -> Translator {
    const MB: u64 = 1 << 20;
    let zone =
        |address, megabytes| ZonePlace { address, hot_bytes: megabytes * MB, cold_bytes: megabytes * MB };
    let own = own_code() & !(2 * MB - 1);
    let layout = Layout { zones: vec![zone(own - 64 * MB, 8), zone(0x2000_0000_0000, 8)], low: 0x6000_0000 };
    let bytes = layout.contexts_offset() + context::BYTES;
    let cache = CodeCache::new(Arc::new(Shared::new(bytes as usize).unwrap()), layout, None);
    Translator::new(cache, CodeReader::new(crate::target::ptrace::own_pid()), Stream::Counts)
}

fn own_code() -> u64 {
    own_code as fn() -> u64 as usize as u64
}

fn maps() -> Maps {
    Maps::new(crate::target::ptrace::own_pid())
}

/// A snapshot of a few hundred fragments.
fn snapshot() -> (Vec<u8>, usize) {
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    let mut known = 0;
    translator.fragment(own_code(), &mut maps).expect("this function can be executed");
    // These functions call nearly all others.
    let tests: [fn(); 3] = [
        what_was_written_is_restored_and_verified,
        a_module_that_changed_is_given_up,
        forged_bytes_are_refused_or_hold_together,
    ];
    let own =
        [snapshot as fn() -> (Vec<u8>, usize) as usize, translator_of_counts as fn() -> Translator as usize];
    for function in own.into_iter().chain(tests.map(|test| test as usize)) {
        translator.fragment(function as u64, &mut maps);
    }
    // Each block leads to more code, if only to the code behind it: the compiler may have made all
    // calls indirect.
    while known < translator.blocks.len() && translator.cache.fragments.len() < 300 {
        let block = &translator.blocks[known];
        let target = block.ip + u64::from(block.len);
        known += 1;
        if matches!(maps.at(target), Some((Trust::Text, _))) {
            translator.fragment(target, &mut maps);
        }
    }
    assert!(translator.cache.fragments.len() >= 20, "{}", translator.cache.fragments.len());
    (encoded(&translator, &maps), translator.cache.fragments.len())
}

fn encoded(translator: &Translator, maps: &Maps) -> Vec<u8> {
    encode(translator, maps, &choose(translator, maps))
}

/// Restores a snapshot, unless it is refused.
fn restore(bytes: &[u8], translator: &mut Translator, maps: &mut Maps) -> bool {
    let file: SharedBytes = Rc::new(bytes.to_vec());
    let snapshot = Snapshot::decode((*file).as_ref(), &translator.cache);
    snapshot.map(|snapshot| snapshot.restore(translator, maps, &file)).is_some()
}

#[test]
fn what_was_written_is_restored_and_verified() {
    let (bytes, fragments) = snapshot();
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    assert!(restore(&bytes, &mut translator, &mut maps), "it is whole");
    assert_eq!((translator.unverified.fragments, translator.cache.map.len()), (fragments, 0));
    let fragment_index = translator.fragment(own_code(), &mut maps).unwrap();
    assert!(
        fragment_index < fragments && translator.cache.fragments.len() == fragments,
        "nothing was translated"
    );
    assert!(!translator.unverified.gave_up);
    // Written again, the snapshot is the same except for the order of entries that have none.
    assert_eq!(encoded(&translator, &maps).len(), bytes.len());
}

#[test]
fn a_module_that_changed_is_given_up() {
    let (bytes, fragments) = snapshot();
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    assert!(restore(&bytes, &mut translator, &mut maps));
    // No page has the noted hash, as if every page had changed.
    translator.unverified.pages.iter_mut().flatten().for_each(|page| page.1 ^= 1);
    let fragment_index = translator.fragment(own_code(), &mut maps).unwrap();
    assert!(fragment_index >= fragments && translator.unverified.gave_up);
    // Fragments that were given up are not written again.
    let parts = choose(&translator, &maps);
    assert!(parts.gave_up && parts.fragments() < fragments);
    assert!(parts.live.iter().flatten().all(|&fragment_index| fragment_index as usize >= fragments));
}

/// Restores a snapshot, then applies `change` to the mapped modules.
fn restored_after(change: impl Fn(&mut Maps)) -> (Translator, Maps, usize) {
    let (bytes, fragments) = snapshot();
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    assert!(restore(&bytes, &mut translator, &mut maps));
    change(&mut maps);
    let fragment_index = translator.fragment(own_code(), &mut maps).unwrap();
    assert!(fragment_index >= fragments, "an old translation was taken");
    (translator, maps, fragments)
}

#[test]
fn a_module_from_another_file_or_at_another_address_is_another_module() {
    let changes: [fn(&mut Maps); 4] = [
        |maps| maps.files.iter_mut().for_each(|file| file.inode += 1),
        |maps| maps.files.iter_mut().for_each(|file| file.device += 1),
        |maps| maps.modules.iter_mut().for_each(|module| module.end += 4096),
        |maps| maps.modules.iter_mut().for_each(|module| module.file_offset += 4096),
    ];
    for change in changes {
        let (translator, maps, fragments) = restored_after(change);
        let parts = choose(&translator, &maps);
        assert!(parts.gave_up, "the old part goes");
        assert!(parts.fragments() > 0, "the new part stays");
        assert!(parts.live.iter().flatten().all(|&fragment_index| fragment_index as usize >= fragments));
        let bytes = encode(&translator, &maps, &parts);
        let again = translator_of_counts();
        assert!(Snapshot::decode(&bytes, &again.cache).is_some(), "what is left is disjoint");
    }
}

#[test]
fn parts_for_the_same_addresses_are_refused() {
    let (translator, mut maps, _) =
        restored_after(|maps| maps.files.iter_mut().for_each(|file| file.inode += 1));
    let mut parts = choose(&translator, &maps);
    // A file as a version without this rule wrote it: it holds the old part and the new one.
    let old = parts.live.iter().position(Vec::is_empty).expect("the old part was given up");
    let former = translator
        .cache
        .fragments
        .iter()
        .position(|fragment| translator.blocks[fragment.first_block as usize].module as usize == old);
    parts.live[old].push(former.expect("it had fragments") as u32);
    parts.pages[old] = parts.pages.iter().flatten().copied().collect();
    parts.pages[old].sort_unstable();
    let bytes = encode(&translator, &maps, &parts);
    assert!(Snapshot::decode(&bytes, &translator_of_counts().cache).is_none());
    // At other addresses the module would be accepted, but its blocks lie outside it.
    maps.modules[old].start += 1 << 40;
    maps.modules[old].end += 1 << 40;
    let bytes = encode(&translator, &maps, &parts);
    assert!(Snapshot::decode(&bytes, &translator_of_counts().cache).is_none());
}

#[test]
fn a_fragment_without_a_compared_page_is_refused() {
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    translator.fragment(own_code(), &mut maps).unwrap();
    let mut parts = choose(&translator, &maps);
    assert!(Snapshot::decode(&encode(&translator, &maps, &parts), &translator_of_counts().cache).is_some());
    // Without pages nothing would be compared before these fragments are used.
    parts.pages.iter_mut().for_each(Vec::clear);
    assert!(Snapshot::decode(&encode(&translator, &maps, &parts), &translator_of_counts().cache).is_none());
}

fn module(path: &str, start: u64, end: u64) -> Module {
    Module { path: path.into(), start, end, file_offset: start, process: None }
}

#[test]
fn a_second_mapping_of_one_part_is_a_group_of_its_own() {
    let first = module("/a", 0x1000, 0x3000);
    let again = Module { start: 0x9000, end: 0xa000, file_offset: 0x2000, ..first.clone() };
    let modules = [first, module("/a", 0x3000, 0x4000), again];
    assert_eq!(groups(&modules, [].into_iter(), |_| false), [0, 0, 2]);
    assert_eq!(groups(&modules, [].into_iter(), |module_index| module_index == 2), [0, 0, 2]);
    assert_eq!(groups(&modules, [(2, 0x1000)].into_iter(), |_| false), [0, 0, 0]);
}

#[test]
fn modules_of_one_path_and_those_that_branches_join_are_one_group() {
    let modules = [
        module("/a", 0x1000, 0x2000),
        module("/b", 0x2000, 0x3000),
        module("/a", 0x3000, 0x4000),
        module("/c", 0x4000, 0x5000),
        module("/d", 0x5000, 0x6000),
    ];
    let verified = |_| false;
    assert_eq!(groups(&modules, [].into_iter(), verified), [0, 1, 0, 3, 4]);
    assert_eq!(
        groups(&modules, [(3, 0x2fff), (4, 0x6000), (4, 0xfff)].into_iter(), verified),
        [0, 1, 0, 1, 4]
    );
    assert_eq!(groups(&modules, [(4, 0x3000), (4, 0x4fff)].into_iter(), verified), [0, 1, 0, 0, 0]);
}

#[test]
fn unverified_modules_and_executed_ones_share_no_group() {
    let modules = [module("/a", 0x1000, 0x2000), module("/b", 0x5000, 0x6000), module("/a", 0x3000, 0x4000)];
    // Modules 0 and 1 are unverified; module 2 is the present mapping of `/a`.
    let is_unverified = |module_index: u32| module_index < 2;
    assert_eq!(groups(&modules, [(2, 0x5000), (1, 0x3000)].into_iter(), is_unverified), [0, 1, 2]);
    assert_eq!(groups(&modules, [(0, 0x5000)].into_iter(), is_unverified), [0, 0, 2]);
}

#[test]
fn modules_overlap_where_they_hold_the_same_address() {
    let modules = [
        module("/a", 0x1000, 0x3000),
        module("/b", 0x3000, 0x4000),
        module("/c", 0x2fff, 0x3001),
        module("/given up", 0, 0),
    ];
    assert!(overlap(&modules, [0, 1, 3].into_iter()).is_empty());
    assert_eq!(overlap(&modules, 0..4), [(0, 2), (2, 1)]);
}

/// Code that calls other functions.
fn calling_code() -> u64 {
    translator_of_counts as fn() -> Translator as usize as u64
}

// A page whose code calls what lies in the next one, wherever a compiler and a linker put the rest.
std::arch::global_asm!(
    ".p2align 12",
    "lightfoot_test_calls_the_next_page:",
    "call 2f",
    "ret",
    ".p2align 12",
    "2:",
    "ret",
);

extern "C" {
    fn lightfoot_test_calls_the_next_page();
}

#[test]
fn a_branch_out_of_a_module_is_noted() {
    let (mut translator, mut maps) = (translator_of_counts(), maps());
    translator.fragment(calling_code(), &mut maps).unwrap();
    assert!(translator.cache.exits.len() > 1);
    assert!(translator.cross_branches.is_empty(), "compilers lead by tables from file to file");
    // As if that code were in a file of one page: then the called function lies outside.
    let code = lightfoot_test_calls_the_next_page as *const () as u64;
    let (mut translator, mut maps) = (translator_of_counts(), self::maps());
    maps.at(code);
    maps.cut_to_page(code);
    translator.fragment(code, &mut maps).unwrap();
    let target = code + 0x1000;
    assert!(translator.cross_branches.iter().any(|branch| branch.1 == target), "the call leads elsewhere");
}

/// Pseudo-random numbers, the same in every run of this test.
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
        // A few bytes change, and sometimes the end is missing.
        let mut forged = bytes.clone();
        for _ in 0..1 + random(&mut state) % 4 {
            let at = random(&mut state) % forged.len();
            forged[at] = random(&mut state) as u8;
        }
        if random(&mut state).is_multiple_of(8) {
            forged.truncate(random(&mut state) % forged.len());
        }
        let (mut translator, mut maps) = (translator_of_counts(), maps());
        if !restore(&forged, &mut translator, &mut maps) {
            continue;
        }
        taken += 1;
        translator.fragment(own_code(), &mut maps);
        for fragment_index in 0..fragments.min(translator.cache.fragments.len()) {
            // Walks every chain that the file describes: none may be endless or lead outside its
            // table.
            translator.cache.redirect(fragment_index, 0);
            translator.cache.retire(fragment_index);
        }
        for rip in translator.cache.zones.iter().map(|zone| zone.address + 100).collect::<Vec<_>>() {
            translator.cache.state_at(rip);
        }
    }
    assert!(taken > 0, "code itself may be anything");
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
