//! The layout of the engine's memory in the target: thread contexts at `gs`, code zones, low
//! tables.
//!
//! The program's own addresses must not move, so the engine's mappings go where the kernel's search
//! for free memory never looks: between the end of the mmap area and the stack, below the
//! executable, and far below the mmap area. Generated code reaches the low tables by 32-bit
//! absolute addresses and its thread's context by `gs:[offset]`.
//!
//! Programs with sanitizers divide the whole address space between shadow memory and the program.
//! AddressSanitizer's shadow begins at 2 GB less 32 KB and ends at `0x1000_7fff_8000`;
//! ThreadSanitizer and MemorySanitizer forbid all that is neither shadow nor theirs, and refuse to
//! start where something lies there. Three ranges are free under all of them and not used by the
//! kernel itself: the addresses below 2 GB, those below executables from `0x5500_0000_0000` on, and
//! those beside libraries. The engine uses only these. Sources: `asan_mapping.h`, `tsan_platform.h`
//! and `msan.h` of LLVM 11 to 19 and of GCC 10 to 14.

/// Offsets in a thread's context.
pub(crate) mod context {
    /// Sixteen slots, one per general register: where a scratch register's program value waits.
    pub(crate) const SPILL: u32 = 0x000;
    /// Number of the exit taken (0: none), set just before an `int3`.
    pub(crate) const EXIT: u32 = 0x080;
    /// Address at which to continue after the `int3`; set by the host.
    pub(crate) const CONTINUE: u32 = 0x088;
    /// Saved flags (lahf, seto).
    pub(crate) const FLAGS: u32 = 0x090;
    /// rax while flags are saved or restored.
    pub(crate) const FLAGS_RAX: u32 = 0x098;
    /// Scratch words of the out-of-line sequences.
    pub(crate) const TEMP: u32 = 0x0a0;
    /// Next free byte of the ring.
    pub(crate) const RING_POSITION: u32 = 0x0c0;
    /// Where the ring's segment ends (with room for one block's records behind).
    pub(crate) const RING_LIMIT: u32 = 0x0c8;
    /// The program's `fs` base.
    pub(crate) const FS_BASE: u32 = 0x0d0;
    /// Bits of an address that select the data filter's set.
    pub(crate) const MASK_SET: u32 = 0x0d8;
    /// Bits of a target address that select its slot in the lookup table.
    pub(crate) const MASK_LOOKUP: u32 = 0x0e8;
    /// Bits of an address that select the page filter's set.
    pub(crate) const MASK_PAGE_SET: u32 = 0x0f0;
    /// Bits of an address that select the hint for its page.
    pub(crate) const MASK_PAGE_HINTS: u32 = 0x0e0;
    /// Target of an indirect transfer that missed the lookup table.
    pub(crate) const TARGET: u32 = 0x100;
    /// Return address of shared out-of-line routines.
    pub(crate) const RETURN: u32 = 0x108;
    /// Registers before a repeated string instruction: rsi, rdi.
    pub(crate) const REPEAT: u32 = 0x110;
    /// Address of the top of the stack that routines use.
    pub(crate) const OWN_STACK: u32 = 0x130;
    /// Where that stack begins, growing down.
    pub(crate) const STACK_TOP: u32 = 0x1_0000;
    /// The program's stack pointer while a routine runs: on top of that stack, from where one byte
    /// of code brings it back.
    pub(crate) const PROGRAM_STACK: u32 = STACK_TOP - 8;
    /// 64 bytes for an index vector.
    pub(crate) const VECTOR: u32 = 0x140;
    /// 16 addresses that wait for their instruction's end, for a tool.
    pub(crate) const WAITING: u32 = 0x180;
    /// Instruction side kept whole: its clock, the record of a miss, registers while the routine
    /// runs.
    pub(crate) const KEPT_CLOCK: u32 = 0x200;
    pub(crate) const KEPT_WHAT: u32 = 0x20c;
    pub(crate) const KEPT_SAVED: u32 = 0x210;
    /// Page filters: data (8 bytes a set), instructions (4 bytes a set).
    pub(crate) const DATA_PAGES: u32 = 0x400;
    pub(crate) const INSTRUCTION_PAGES: u32 = 0xc00;
    /// Most sets of a page filter.
    pub(crate) const PAGE_SETS_MAX: u32 = 256;
    /// Data line filter, 8 bytes a set: minus the last line's address.
    pub(crate) const DATA_LINES: u32 = 0x1000;
    /// Instruction line filter, 4 bytes a set: number of the last line.
    pub(crate) const INSTRUCTION_LINES: u32 = 0x9000;
    /// Most sets of a line filter.
    pub(crate) const LINE_SETS_MAX: u32 = 4096;
    /// Data TLB kept whole: its entries, 8 bytes each, a set's ways behind each other: minus a
    /// page's address, [`RESIDENT_EMPTY`] where the entry is empty.
    pub(crate) const RESIDENT_PAGES: u32 = 0xd000;
    /// Minus an address that no program has.
    pub(crate) const RESIDENT_EMPTY: u64 = 1 << 63;
    /// When each entry was used last, 8 bytes each.
    pub(crate) const RESIDENT_TIMES: u32 = 0xd800;
    /// Most entries.
    pub(crate) const RESIDENT_PAGES_MAX: u32 = event::RESIDENT_PAGES_MAX;
    /// By the lowest bits of a page's number, an entry that may hold it, a byte each.
    pub(crate) const PAGE_HINTS: u32 = 0xe000;
    pub(crate) const PAGE_HINTS_COUNT: u32 = 1024;
    /// The time: at least [`PAGE_CLOCK_STEP`] more than when it was last set.
    pub(crate) const PAGE_CLOCK: u32 = 0xe400;
    /// The lowest bits of a time are the number of its entry.
    pub(crate) const PAGE_TIME_SHIFT: u32 = 8;
    /// Number of uses by which the clock advances at once.
    pub(crate) const PAGE_CLOCK_STEPS: u32 = 64;
    pub(crate) const PAGE_CLOCK_STEP: u32 = PAGE_CLOCK_STEPS << PAGE_TIME_SHIFT;
    /// By the lowest bits of a page's number, how many of the pages that are held have these, a
    /// byte each.
    pub(crate) const PAGE_COUNTS: u32 = 0xe800;
    /// What the routines that use pages are given: first and last byte, `what` of a record.
    pub(crate) const PAGE_FIRST: u32 = 0xe408;
    pub(crate) const PAGE_LAST: u32 = 0xe410;
    pub(crate) const PAGE_WHAT: u32 = 0xe418;
    /// The page before it, of the same reference, missed.
    pub(crate) const PAGE_MISSED: u32 = 0xe41c;
    /// Bytes of the group that the host is to look at.
    pub(crate) const PAGE_GROUP: u32 = 0xe420;
    /// The distance of a tile's rows.
    pub(crate) const PAGE_STRIDE: u32 = 0xe428;
    /// Flags and registers of the program while such a routine runs.
    pub(crate) const PAGE_FLAGS: u32 = 0xe430;
    pub(crate) const PAGE_SAVED: u32 = 0xe438;
    /// The ring: `RING_SEGMENTS` segments.
    pub(crate) const RING: u32 = 0x1_0000;
    pub(crate) const RING_SEGMENT_BYTES: u32 = 1 << 20;
    pub(crate) const RING_SEGMENTS: u32 = 4;
    /// The used part of a segment if program and observer share one core: it fits into the
    /// second-level cache of any server.
    pub(crate) const RING_SINGLE_BYTES: u32 = 512 << 10;
    /// Bytes behind a segment's limit that one check may still use: more than the records of a
    /// superblock.
    pub(crate) const RING_SLACK_BYTES: u32 = 64 << 10;
    /// Rows of the instruction side kept whole: numbers of the lines, and of the pages, in each
    /// set, 4 bytes each.
    pub(crate) const KEPT_LINES: u32 = RING + RING_SEGMENTS * RING_SEGMENT_BYTES;
    pub(crate) const KEPT_PAGES: u32 = KEPT_LINES + 4 * event::KEPT_LINES_MAX;
    /// By number, the time of the last use, 8 bytes; 0: not in its set.
    pub(crate) const KEPT_TIMES: u32 = KEPT_PAGES + 4 * event::KEPT_LINES_MAX;
    /// By number, address and row, 16 bytes; the first context's serves all.
    pub(crate) const KEPT_PLACES: u32 = KEPT_TIMES + 8 * NUMBERS_MAX as u32;
    /// Most lines and pages that code touches.
    pub(crate) const NUMBERS_MAX: usize = 2 << 20;
    /// Exit counters, 8 bytes each.
    pub(crate) const COUNTERS: u32 = KEPT_PLACES + 16 * NUMBERS_MAX as u32;
    /// What code of many fragments uses from everywhere: its scratch words and filters, times of
    /// lines, counters.
    pub(crate) const OFTEN_USED: [u32; 4] = [0, KEPT_TIMES, COUNTERS, COUNTERS + (2 << 20)];
    /// Size of a context.
    pub(crate) const BYTES: u64 = 128 << 20;
    /// Most exit counters.
    pub(crate) const COUNTERS_MAX: usize = (BYTES as usize - COUNTERS as usize) / 8;
}

/// Offset in the shared file of a context's segment.
pub(crate) fn segment_start(context_offset: usize, segment: u32) -> usize {
    context_offset + (context::RING + segment * context::RING_SEGMENT_BYTES) as usize
}

/// First context's address; the others follow.
pub(crate) const CONTEXTS: u64 = 0x5500_0000_0000;
/// The zone without a limit, behind the contexts.
const FAR_ZONE: u64 = 0x5520_0000_0000;
/// The zone of libraries where there is no room beside them.
const LIBRARIES_ZONE: u64 = 0x5530_0000_0000;
/// Most threads of one process at a time.
pub(crate) const CONTEXTS_MAX: usize = 512;
/// Bits that select a slot of the lookup table, and how many below them do not: targets are seldom
/// nearer to each other, and a table that they fill is in fewer lines of the program's cache.
pub(crate) const LOOKUP_BITS: u32 = 18;
pub(crate) const LOOKUP_SHIFT: u32 = 2;
/// Slots probed one after the other.
pub(crate) const LOOKUP_PROBES: u32 = 4;
/// The lookup table (16 bytes a slot: minus the target, then its code), then one byte per system
/// call number.
pub(crate) const LOOKUP_BYTES: u64 = (16 << LOOKUP_BITS) + 4096;
const SYSTEM_CALL_BYTES: u64 = 64 << 10;
/// Most sites of an image: a record has 24 bits for them, the last is `event::CUT_SITE`.
pub(crate) const SITES_MAX: usize = 0xff_fff0;
pub(crate) const LOW_BYTES: u64 = LOOKUP_BYTES + SYSTEM_CALL_BYTES;

/// A stretch of code cache: the same bytes in the target and in the shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZonePlace {
    /// Address in the target.
    pub(crate) address: u64,
    /// Bytes for fragments.
    pub(crate) hot_bytes: u64,
    /// Bytes for out-of-line code, directly behind.
    pub(crate) cold_bytes: u64,
}

impl ZonePlace {
    pub(crate) fn bytes(&self) -> u64 {
        self.hot_bytes + self.cold_bytes
    }
}

/// All of it for one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Near the executable, near the libraries, and one without a limit.
    pub(crate) zones: Vec<ZonePlace>,
    /// Address of the lookup table, below 2 GB.
    pub(crate) low: u64,
}

const MB: u64 = 1 << 20;
const STACK_RESERVE: u64 = 16 * MB;
/// Zones begin at multiples of this in memory and in the file, so that huge pages can hold them.
const HUGE: u64 = 2 * MB;

/// A mapped range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) stack: bool,
}

impl Layout {
    /// Finds room beside the ranges that are mapped right after exec; `entry` is the executable's
    /// entry point.
    pub(crate) fn plan(mapped: &[Range], entry: u64) -> Option<Layout> {
        let near = Layout::below(mapped, entry).or_else(|| Layout::anywhere(mapped, 0x7000_0000))?;
        let libraries = Layout::under_stack(mapped)?;
        let far = ZonePlace { address: FAR_ZONE, hot_bytes: 1024 * MB, cold_bytes: 512 * MB };
        let candidates = [0x6000_0000u64, 0x5000_0000, 0x3000_0000, 0x2000_0000, 0x1000_0000];
        let low = candidates.into_iter().find(|&a| free(mapped, a, a + LOW_BYTES))?;
        Some(Layout { zones: vec![near, libraries, far], low })
    }

    /// Directly below a position-independent executable, where neither its heap nor a mapping ever
    /// grows.
    fn below(mapped: &[Range], entry: u64) -> Option<ZonePlace> {
        let image = mapped.iter().filter(|r| r.start <= entry).map(|r| r.start).max()?;
        let image = mapped.iter().filter(|r| image - r.start.min(image) < 1 << 30).map(|r| r.start).min()?;
        let place = ZonePlace { address: 0, hot_bytes: 192 * MB, cold_bytes: 128 * MB };
        let address = image.checked_sub(place.bytes() + 2 * MB)? & !(2 * MB - 1);
        let place = ZonePlace { address, ..place };
        (address > 1 << 32 && free(mapped, address, address + place.bytes())).then_some(place)
    }

    /// In the low 2 GB, for executables that are linked to a fixed low address.
    fn anywhere(mapped: &[Range], address: u64) -> Option<ZonePlace> {
        let place = ZonePlace { address, hot_bytes: 160 * MB, cold_bytes: 64 * MB };
        free(mapped, address, address + place.bytes()).then_some(place)
    }

    /// Between the highest mapping and the stack's lowest possible page.
    fn under_stack(mapped: &[Range]) -> Option<ZonePlace> {
        let stack = mapped.iter().find(|r| r.stack)?;
        let below = mapped.iter().filter(|r| r.end <= stack.start).map(|r| r.end).max().unwrap_or(0);
        let start = (below + HUGE) & !(HUGE - 1);
        let room = stack.start.saturating_sub(STACK_RESERVE).saturating_sub(start) & !(HUGE - 1);
        let room = room.min(1024 * MB);
        if room < 24 * MB {
            return Layout::anywhere(mapped, LIBRARIES_ZONE);
        }
        let hot_bytes = (room * 5 / 8) & !(HUGE - 1);
        Some(ZonePlace { address: start, hot_bytes, cold_bytes: room - hot_bytes })
    }

    /// All addresses in the target that are the engine's.
    pub(crate) fn own(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        let zones = self.zones.iter().map(|zone| zone.address..zone.address + zone.bytes());
        let low = self.low..(self.low + LOW_BYTES).next_multiple_of(4096);
        zones.chain([low, CONTEXTS..CONTEXTS + context::BYTES * CONTEXTS_MAX as u64])
    }

    /// Bytes of the shared files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.contexts_offset() + context::BYTES * CONTEXTS_MAX as u64
    }

    /// Whether the address is in the engine's memory.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let zones = self.zones.iter().map(|zone| (zone.address, zone.bytes()));
        let contexts = (CONTEXTS, context::BYTES * CONTEXTS_MAX as u64);
        let mut all = zones.chain([(self.low, LOW_BYTES), contexts]);
        all.any(|(start, bytes)| address.wrapping_sub(start) < bytes)
    }

    /// Where zone `z` begins in the shared file.
    pub(crate) fn zone_offset(&self, zone: usize) -> u64 {
        self.zones[..zone].iter().map(ZonePlace::bytes).sum()
    }

    /// Where the low tables begin in the shared file.
    pub(crate) fn low_offset(&self) -> u64 {
        self.zone_offset(self.zones.len())
    }

    /// Where the contexts begin in the shared file.
    pub(crate) fn contexts_offset(&self) -> u64 {
        (self.low_offset() + LOW_BYTES + HUGE - 1) & !(HUGE - 1)
    }

    /// Address of the table with one byte per system call.
    pub(crate) fn system_call_table(&self) -> u64 {
        self.low + LOOKUP_BYTES
    }
}

fn free(mapped: &[Range], start: u64, end: u64) -> bool {
    mapped.iter().all(|r| r.end <= start || r.start >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What AddressSanitizer, ThreadSanitizer and MemorySanitizer all leave to the program.
    const LEFT_FREE: [(u64, u64); 3] =
        [(0x1000, 0x7fff_8000), (0x5500_0000_0000, 0x5680_0000_0000), (0x7e80_0000_0000, 0x8000_0000_0000)];

    fn range(start: u64, end: u64) -> Range {
        Range { start, end, stack: false }
    }

    fn check(mapped: &[Range], entry: u64) -> Layout {
        let layout = Layout::plan(mapped, entry).expect("there is room");
        let mut taken: Vec<Range> = mapped.to_vec();
        for z in &layout.zones {
            assert!(free(&taken, z.address, z.address + z.bytes()), "{z:x?} overlaps");
            taken.push(range(z.address, z.address + z.bytes()));
        }
        assert!(free(&taken, layout.low, layout.low + LOW_BYTES));
        for own in layout.own() {
            let left_free = LEFT_FREE.iter().any(|free| own.start >= free.0 && own.end <= free.1);
            assert!(left_free, "{own:x?} is some sanitizer's");
        }
        layout
    }

    #[test]
    fn a_dynamic_executable_has_zones_within_reach() {
        let mapped = [
            range(0x5555_5555_4000, 0x5555_5557_0000),
            range(0x7fff_f7fc_0000, 0x7fff_f7ff_f000),
            Range { start: 0x7fff_fffd_e000, end: 0x7fff_ffff_f000, stack: true },
        ];
        let layout = check(&mapped, 0x7fff_f7fd_0000);
        assert!(layout.zones[1].address - 0x7fff_f7fc_0000 < 1 << 30);
        let layout = check(&mapped, 0x5555_5555_5000);
        assert!(0x5555_5557_0000 - layout.zones[0].address < 1 << 30);
    }

    #[test]
    fn a_static_executable_at_a_low_address_has_a_low_zone() {
        let mapped = [
            range(0x40_0000, 0x4c_0000),
            range(0x7fff_f7ff_9000, 0x7fff_f7ff_f000),
            Range { start: 0x7fff_fffd_e000, end: 0x7fff_ffff_f000, stack: true },
        ];
        assert_eq!(check(&mapped, 0x40_1000).zones[0].address, 0x7000_0000);
    }
}
