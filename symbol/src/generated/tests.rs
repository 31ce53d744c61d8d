//! Maps and dumps as run-time compilers write them, and damaged ones.

use super::ranges::Ranges;
use super::{jit_dump, names, perf_map};
use proptest::prelude::*;
use std::path::Path;

fn of_map(text: &[u8]) -> Ranges {
    let mut ranges = Ranges::default();
    perf_map::read(text, &mut ranges);
    ranges
}

fn of_dump(bytes: &[u8]) -> Ranges {
    let mut ranges = Ranges::default();
    jit_dump::read(bytes, &mut ranges);
    ranges
}

/// A dump in the order of bytes of this machine.
struct Dump(Vec<u8>);

impl Dump {
    fn new(header_bytes: u32) -> Dump {
        let words = [0x4a69_5444, 1, header_bytes, 62, 0, 7, 0, 0, 0, 0].map(u32::to_ne_bytes);
        let mut bytes = words.concat();
        bytes.resize(header_bytes as usize, 0xee);
        Dump(bytes)
    }

    fn record(mut self, kind: u32, payload: &[u8]) -> Dump {
        self.0.extend([kind, 16 + payload.len() as u32, 1, 0].map(u32::to_ne_bytes).concat());
        self.0.extend(payload);
        self
    }

    fn load(self, address: u64, bytes: u64, name: &str) -> Dump {
        let words = [7, address, address, bytes, 1].map(u64::to_ne_bytes).concat();
        let code = vec![0x90; bytes as usize];
        self.record(0, &[&words[..], name.as_bytes(), &[0], &code].concat())
    }

    fn move_to(self, from: u64, to: u64, bytes: u64) -> Dump {
        self.record(1, &[7, to, from, to, bytes, 1].map(u64::to_ne_bytes).concat())
    }
}

#[test]
fn a_map_names_functions() {
    let map = b"1000 10 JS:*fib w.js:1\n0x2000 0x20 void Main.run(int)\r\n3000 8 py::f:/a b.py\n";
    let ranges = of_map(map);
    assert_eq!(ranges.find(0x100f), (Some("JS:*fib w.js:1"), 0x1000..0x1010));
    assert_eq!(ranges.find(0x1010), (None, 0x1010..0x2000));
    assert_eq!(ranges.find(0x201f).0, Some("void Main.run(int)"));
    assert_eq!(ranges.find(0x3000).0, Some("py::f:/a b.py"));
}

#[test]
fn lines_of_another_form_are_left_out() {
    let long = format!("5000 10 {}\n", "x".repeat(1 << 17));
    let map = format!("\nname\n1000\n1000 10\n1000 10 \nxyz 10 a\n1000 zz a\nffffffffffffffff 2 a\n{long}2000 4 good\n3000 4 cut");
    let ranges = of_map(map.as_bytes());
    assert_eq!(ranges.find(0x2000), (Some("good"), 0x2000..0x2004));
    for address in [0x1000, 0x3000, 0x5000, u64::MAX] {
        assert_eq!(ranges.find(address).0, None, "{address:x}");
    }
}

#[test]
fn what_was_named_last_owns_the_address() {
    let ranges = of_map(b"1000 100 old\n1040 20 new\n");
    assert_eq!(ranges.find(0x103f), (Some("old"), 0x1000..0x1040));
    assert_eq!(ranges.find(0x1040), (Some("new"), 0x1040..0x1060));
    assert_eq!(ranges.find(0x1060), (Some("old"), 0x1060..0x1100));
}

#[test]
fn a_dump_names_functions_that_are_loaded_and_moved() {
    let dump = Dump::new(48)
        .load(0x1000, 0x40, "first")
        .record(2, b"lines of a function")
        .load(0x2000, 0x40, "second")
        .move_to(0x1000, 0x8000, 0x40)
        .record(3, b"");
    let ranges = of_dump(&dump.0);
    assert_eq!(ranges.find(0x803f), (Some("first"), 0x8000..0x8040));
    assert_eq!(ranges.find(0x1000).0, None);
    assert_eq!(ranges.find(0x2000).0, Some("second"));
}

#[test]
fn a_dump_outranks_a_map_and_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (map, dump) = (folder.path().join("perf-7.map"), folder.path().join("jit-7.dump"));
    std::fs::write(&map, "1000 40 of the map\n2000 40 of the map, too\n").unwrap();
    std::fs::write(&dump, Dump::new(40).load(0x1000, 0x40, "of the dump").0).unwrap();
    let both = names(&map, Some(&dump));
    assert_eq!(both.find(0x1000).0, Some("of the dump"));
    assert_eq!(both.find(0x2000).0, Some("of the map, too"));
    let link = folder.path().join("link.map");
    std::os::unix::fs::symlink(&map, &link).unwrap();
    assert_eq!(names(&link, None), Ranges::default());
    assert_eq!(names(Path::new("/dev/zero"), None), Ranges::default());
    assert_eq!(names(folder.path(), None), Ranges::default());
}

proptest! {
    /// Damaged dumps end without a panic, and what stands before the damage is named.
    #[test]
    fn a_damaged_dump_names_what_stands_before(at in 40..400_usize, byte: u8, cut in 0..500_usize) {
        let whole = Dump::new(40).load(0x1000, 0x40, "a").load(0x2000, 0x40, "b").move_to(0x2000, 0x3000, 0x40).0;
        let mut damaged = whole.clone();
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
        of_dump(&damaged);
        let first = 40 + 16 + 40 + 2 + 0x40;
        let cut = &whole[..cut.min(whole.len())];
        let ranges = of_dump(cut);
        prop_assert_eq!(ranges.find(0x1000).0, (cut.len() >= first).then_some("a"));
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        of_map(&bytes);
        of_dump(&bytes);
        let header = Dump::new(40).0;
        of_dump(&[&header[..], &bytes].concat());
    }
}
