//! What lies where in one process image.

use crate::globals::{Globals, Variables};
use crate::locals::Scopes;
use crate::modules::Modules;
use crate::place::{Earlier, ObjectKey, Place};
use crate::recent::{Last, Recent};
use heap::Blocks;
use instrument::Fork;
use std::ops::Range;
use symbol::ByNumber;

/// The map of an image.
pub(crate) struct ImageMap {
    pub(crate) blocks: Blocks,
    pub(crate) globals: Globals,
    /// Numbers of its modules, in the order in which they were met.
    pub(crate) modules: Vec<u32>,
    /// Those of them whose variables are not known yet.
    pub(crate) unread: Vec<u32>,
    /// How many modules of the run had variables when that was looked at.
    read: usize,
    /// Modules by page of code.
    pub(crate) code_pages: ByNumber<u64, Option<u32>>,
    /// What is in scope by address of code.
    pub(crate) scopes: Scopes,
    /// Addresses of the instructions of its sites.
    pub(crate) ips: Vec<u64>,
    /// Numbers in the run of its places of allocation.
    pub(crate) sites: Vec<u32>,
    /// What was found last: a block, or a variable that shares bytes with no other one.
    pub(crate) last: Last,
    /// What each instruction touched last.
    pub(crate) recent: Recent,
    /// The whole frame around the address of a stack that was found last, and the number of what
    /// was in scope.
    pub(crate) whole_and_scope: (Place, Option<u32>),
    /// Memory that the program had before it was followed, by address.
    before: Vec<(Range<u64>, Earlier)>,
}

const PAGE_BITS: u32 = 12;

impl ImageMap {
    /// A map of nothing but these blocks.
    pub(crate) fn new(blocks: Blocks) -> ImageMap {
        let nowhere = Place { key: ObjectKey::Unknown, start: 0, size_bytes: 0 };
        ImageMap {
            blocks,
            globals: Globals::default(),
            modules: Vec::new(),
            unread: Vec::new(),
            read: 0,
            code_pages: ByNumber::default(),
            scopes: Scopes::default(),
            ips: Vec::new(),
            sites: Vec::new(),
            last: Last::Nothing,
            recent: Recent::default(),
            whole_and_scope: (nowhere, None),
            before: Vec::new(),
        }
    }

    /// The map of a forked child, whose sites have numbers of their own.
    pub(crate) fn forked(&mut self, fork: &Fork) -> ImageMap {
        let blocks = self.blocks.forked((fork.maker.1, fork.made.1), fork.instructions);
        ImageMap {
            globals: self.globals.clone(),
            modules: self.modules.clone(),
            unread: self.unread.clone(),
            scopes: self.scopes.clone(),
            sites: self.sites.clone(),
            ..ImageMap::new(blocks)
        }
    }

    /// Notes what process `pid` has in its memory.
    pub(crate) fn ran_before(&mut self, pid: i32) {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        self.before = maps.lines().filter_map(earlier).collect();
        self.blocks.ran_before(self.before.iter().map(|(memory, _)| memory.clone()).collect());
    }

    /// What the program had at an address before it was followed.
    pub(crate) fn had_before(&self, address: u64) -> Option<Earlier> {
        let behind = self.before.partition_point(|(memory, _)| memory.start <= address);
        let (memory, earlier) = self.before[..behind].last()?;
        memory.contains(&address).then_some(*earlier)
    }

    /// Adds the variables of modules that are known by now.
    #[inline]
    pub(crate) fn read_variables(&mut self, all: &Variables) {
        if self.unread.is_empty() || self.read == all.modules() {
            return;
        }
        self.read = all.modules();
        self.unread.retain(|&module| match all.of_module(module) {
            Some(numbers) => {
                self.globals.add(&all.all, numbers);
                false
            }
            None => true,
        });
    }

    /// The number of the module with code at an address.
    #[inline]
    pub(crate) fn module_at(&mut self, all: &Modules, address: u64) -> u32 {
        let own = &self.modules;
        let page = address >> PAGE_BITS;
        let known = self.code_pages.get(&page).copied();
        let found = known.unwrap_or_else(|| {
            let found = all.at(own, address).map(|found| found.0);
            self.code_pages.insert(page, found);
            found
        });
        found.unwrap_or(Modules::NONE)
    }
}

/// The memory of a line of `/proc/PID/maps`, if no file holds it and the program may write there.
fn earlier(line: &str) -> Option<(Range<u64>, Earlier)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let memory = number(start)?..number(end)?;
    let is_written = words.next()?.starts_with("rw");
    let earlier = match words.nth(3) {
        Some("[heap]") => Earlier::Heap,
        Some("[stack]") => Earlier::Stack,
        None => Earlier::Mapped,
        Some(_) => return None,
    };
    is_written.then_some((memory, earlier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_no_file_is_told_apart() {
        let of = |line| earlier(line).map(|(memory, kind)| (memory.start, memory.end, kind));
        let heap = "55d0c000-55d2d000 rw-p 00000000 00:00 0                                  [heap]";
        assert_eq!(of(heap), Some((0x55d0_c000, 0x55d2_d000, Earlier::Heap)));
        let stack = "7ffc1000-7ffc3000 rw-p 00000000 00:00 0  [stack]";
        assert_eq!(of(stack), Some((0x7ffc_1000, 0x7ffc_3000, Earlier::Stack)));
        let mapped = "7f1000-7f3000 rw-p 00000000 00:00 0 ";
        assert_eq!(of(mapped), Some((0x7f_1000, 0x7f_3000, Earlier::Mapped)));
        for other in [
            "7f1000-7f3000 ---p 00000000 00:00 0 ",
            "7f1000-7f3000 rw-p 00001000 fe:00 99 /lib/libc.so.6",
            "7f1000-7f3000 r-xp 00000000 00:00 0 [vdso]",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_is_looked_for_among_what_the_program_had() {
        let mut image = ImageMap::new(Blocks::new(4));
        assert_eq!(image.had_before(0x1000), None);
        image.before = vec![(0x1000..0x2000, Earlier::Heap), (0x5000..0x6000, Earlier::Mapped)];
        let found = [0xfff, 0x1000, 0x1fff, 0x2000, 0x5000, 0x6000].map(|address| image.had_before(address));
        let (heap, mapped) = (Some(Earlier::Heap), Some(Earlier::Mapped));
        assert_eq!(found, [None, heap, heap, None, mapped, None]);
    }
}
