//! The layout of the engine's memory in the target: thread contexts at `gs`, code zones, low
//! tables.
//!
//! **The problem.** The program's own addresses must not change, so the engine may not use any
//! address that the kernel would give to the program.
//!
//! **The idea.** The kernel's search for free memory leaves three gaps: between the end of the mmap
//! area and the stack, below the executable, and far below the mmap area.
//!
//! ```text
//!   0x1000_0000       low tables; code zone of executables at low addresses    below 2 GB
//!   0x5500_0000_0000  contexts; the far zone                                   below executables
//!   0x5555_5555_4000  executable, with its code zone directly below it
//!   0x7fff_f7ff_f000  libraries (the mmap area)
//!                     code zone of the libraries                               below the stack
//!   0x7fff_ffff_f000  stack
//! ```
//!
//! Generated code reaches the low tables by 32-bit absolute addresses, and its thread's context by
//! `gs:[offset]`.
//!
//! **Sanitizers** divide the whole address space between shadow memory and the program.
//! AddressSanitizer's shadow begins at 2 GB less 32 KB and ends at `0x1000_7fff_8000`.
//! ThreadSanitizer and MemorySanitizer refuse to start if anything is mapped outside of their
//! shadow and of the program's ranges. Three ranges are free under all of them: the addresses below
//! 2 GB, those below executables from `0x5500_0000_0000` on, and those beside libraries. The engine
//! uses only these. Sources: `asan_mapping.h`, `tsan_platform.h` and `msan.h` of LLVM 11 to 19 and
//! of GCC 10 to 14.

/// Offsets in a thread's context.
pub(crate) mod context {
    /// Sixteen slots, one for each general register. A slot holds the program's value while
    /// generated code uses the register.
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
    /// Limit of the ring's segment; behind it there is room for the records of one superblock.
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
    /// Offset of that stack's top; the stack grows down.
    pub(crate) const STACK_TOP: u32 = 0x1_0000;
    /// The program's stack pointer while a routine runs. It lies on top of the routine's stack, so
    /// that `pop rsp`, one byte of code, restores it.
    pub(crate) const PROGRAM_STACK: u32 = STACK_TOP - 8;
    /// 64 bytes for an index vector.
    pub(crate) const VECTOR: u32 = 0x140;
    /// 16 addresses that a tool's events record after their instruction has executed.
    pub(crate) const WAITING: u32 = 0x180;
    /// The clock of the inline instruction cache.
    pub(crate) const FETCH_CLOCK: u32 = 0x200;
    /// The word `what` of the record of a miss in the inline instruction cache.
    pub(crate) const FETCH_WHAT: u32 = 0x20c;
    /// Registers of the program while the routine of the inline instruction cache runs.
    pub(crate) const FETCH_SAVED: u32 = 0x210;
    /// The thread's running sums of instructions, loads and stores, if calls are recorded.
    pub(crate) const TICKS: u32 = 0x280;
    /// Address of the routine by which the thread hands over to the host.
    pub(crate) const HAND_OVER: u32 = 0x2a0;
    /// Whether the thread's request, the number of its exit, waits for an answer; 4 bytes.
    pub(crate) const POSTED: u32 = 0x2a8;
    /// Whether the thread may sleep until its request is answered; 4 bytes.
    pub(crate) const ASLEEP: u32 = 0x2ac;
    /// Address of the word [`POSTED`].
    pub(crate) const POSTED_ADDRESS: u32 = 0x2b0;
    /// rcx of the program while the code for a full ring begins.
    pub(crate) const RING_SAVED: u32 = 0x2b8;
    /// Address of the routine that hands a full ring over.
    pub(crate) const LEAVE_RING: u32 = 0x2f8;
    /// Address of the word beside the bell by which the thread shows that it has posted.
    pub(crate) const BELL_PLACE: u32 = 0x300;
    /// Registers of the program while a request waits.
    pub(crate) const HAND_OVER_SAVED: u32 = 0x2c0;
    /// Data page filter, 8 bytes a set.
    pub(crate) const DATA_PAGES: u32 = 0x400;
    /// Instruction page filter, 4 bytes a set.
    pub(crate) const INSTRUCTION_PAGES: u32 = 0xc00;
    /// The most sets of a page filter.
    pub(crate) const PAGE_SETS_MAX: u32 = 256;
    /// Data line filter, 8 bytes a set: minus the last line's address.
    pub(crate) const DATA_LINES: u32 = 0x1000;
    /// Instruction line filter, 4 bytes a set: number of the last line.
    pub(crate) const INSTRUCTION_LINES: u32 = 0x9000;
    /// The most sets of a line filter.
    pub(crate) const LINE_SETS_MAX: u32 = 4096;
    /// The simulated data TLB: for each entry minus its page's address, 8 bytes, or
    /// [`RESIDENT_EMPTY`].
    pub(crate) const RESIDENT_PAGES: u32 = 0xd000;
    /// The value of an empty entry: minus an address that no program has.
    pub(crate) const RESIDENT_EMPTY: u64 = 1 << 63;
    /// The time of each entry's last use, 8 bytes each.
    pub(crate) const RESIDENT_TIMES: u32 = 0xd800;
    /// The most entries of the simulated data TLB.
    pub(crate) const RESIDENT_PAGES_MAX: u32 = event::RESIDENT_PAGES_MAX;
    /// The present time: at least [`PAGE_CLOCK_STEP`] more than when it was last set.
    pub(crate) const PAGE_CLOCK: u32 = 0xe400;
    /// The number of low bits of a time that hold the number of its entry.
    pub(crate) const PAGE_TIME_SHIFT: u32 = 8;
    /// The number of uses by which the clock advances at once.
    pub(crate) const PAGE_CLOCK_STEPS: u32 = 64;
    /// The least advance of the clock.
    pub(crate) const PAGE_CLOCK_STEP: u32 = PAGE_CLOCK_STEPS << PAGE_TIME_SHIFT;
    /// Argument of the routines that use pages: the address of the first byte. Those that use the
    /// pages of several references keep the present one's there.
    pub(crate) const PAGE_FIRST: u32 = 0xe408;
    /// Argument of the routines that use pages: the address of the last byte.
    pub(crate) const PAGE_LAST: u32 = 0xe410;
    /// Argument of the routines that use pages: the word `what` of a record.
    pub(crate) const PAGE_WHAT: u32 = 0xe418;
    /// Whether the page before the present one, of the same reference, missed.
    pub(crate) const PAGE_MISSED: u32 = 0xe41c;
    /// Bytes of the group whose pages the host must look up.
    pub(crate) const PAGE_GROUP: u32 = 0xe420;
    /// The distance of a tile's rows.
    pub(crate) const PAGE_STRIDE: u32 = 0xe428;
    /// The program's flags while a routine that uses pages runs.
    pub(crate) const PAGE_FLAGS: u32 = 0xe430;
    /// The program's registers while a routine that uses pages runs.
    pub(crate) const PAGE_SAVED: u32 = 0xe438;
    /// The number of entries of the simulated data TLB that form a group.
    pub(crate) const RESIDENT_GROUP: u32 = 8;
    /// For each group of entries, the least of their times when it was last looked for, 8 bytes
    /// each.
    pub(crate) const RESIDENT_LEAST: u32 = 0xe4c0;
    /// How many groups a search for the oldest entry may still compare.
    pub(crate) const RESIDENT_TRIES: u32 = 0xe480;
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
    /// The inline instruction cache: for each set, the numbers of its lines, 4 bytes each.
    pub(crate) const FETCH_LINES: u32 = RING + RING_SEGMENTS * RING_SEGMENT_BYTES;
    /// The inline instruction cache: for each set, the numbers of its pages, 4 bytes each.
    pub(crate) const FETCH_PAGES: u32 = FETCH_LINES + 4 * event::FETCH_LINES_MAX;
    /// For each number of a line or page, the time of its last use, 8 bytes; 0 if it is not in its
    /// set.
    pub(crate) const FETCH_TIMES: u32 = FETCH_PAGES + 4 * event::FETCH_LINES_MAX;
    /// For each number of a line or page, its address and row, 16 bytes. All threads read the first
    /// context's table.
    pub(crate) const FETCH_PLACES: u32 = FETCH_TIMES + 8 * NUMBERS_MAX as u32;
    /// The most lines and pages that code can touch.
    pub(crate) const NUMBERS_MAX: usize = 2 << 20;
    /// Hints: for each value of the lowest bits of a page's number, the entry that may hold the
    /// page, a byte each.
    pub(crate) const PAGE_HINTS: u32 = FETCH_PLACES + 16 * NUMBERS_MAX as u32;
    /// The number of hints: as many as the pages of 16 MB, because two pages that share a hint and
    /// are used by turns are searched for each time.
    pub(crate) const PAGE_HINTS_COUNT: u32 = 4096;
    /// For each hint, the number of entries whose pages have it, a byte each.
    pub(crate) const PAGE_COUNTS: u32 = PAGE_HINTS + PAGE_HINTS_COUNT;
    /// For each value of [`crate::call::stub_cell`], the complement of the address to which a stub
    /// of the linkage table jumped last, 8 bytes each.
    pub(crate) const STUBS: u32 = PAGE_COUNTS + PAGE_HINTS_COUNT;
    /// Exit counters, 8 bytes each.
    pub(crate) const COUNTERS: u32 = STUBS + 8 * crate::call::STUB_CELLS as u32;
    /// Offsets of the parts that all fragments use often: scratch words and filters, times of
    /// lines, counters.
    pub(crate) const OFTEN_USED: [u32; 4] = [0, FETCH_TIMES, COUNTERS, COUNTERS + (2 << 20)];
    /// Bytes of a context.
    pub(crate) const BYTES: u64 = 128 << 20;
    /// The most exit counters.
    pub(crate) const COUNTERS_MAX: usize = (BYTES as usize - COUNTERS as usize) / 8;
}

/// Offset in the shared file of a context's segment.
pub(crate) fn segment_start(context_offset: usize, segment: u32) -> usize {
    context_offset + (context::RING + segment * context::RING_SEGMENT_BYTES) as usize
}

/// Address of the first context; the others follow.
pub(crate) const CONTEXTS: u64 = 0x5500_0000_0000;
/// Address of the far zone, which takes the code that finds no room near its program code.
const FAR_ZONE: u64 = 0x5520_0000_0000;
/// Address of the zone of libraries, if there is no room beside the libraries.
const LIBRARIES_ZONE: u64 = 0x5530_0000_0000;
/// The most threads of one process at a time.
pub(crate) const CONTEXTS_MAX: usize = 512;
/// Slots of the lookup table when it has grown.
pub(crate) const LOOKUP_SLOTS_MAX: u64 = 1 << 21;
/// The most slots that a lookup tries, one after the other.
pub(crate) const LOOKUP_PROBES: u32 = 12;
/// Bytes of the grown lookup table. A slot has 16: minus the target, then the address of its code.
pub(crate) const LOOKUP_BYTES: u64 = 16 * LOOKUP_SLOTS_MAX + 4096;
/// Bytes of the table behind the lookup table: one for each system call number.
const SYSTEM_CALL_BYTES: u64 = 64 << 10;
/// The most sites of an image: a record has 24 bits for a site, and the highest number is
/// `event::CUT_SITE`.
pub(crate) const SITES_MAX: usize = 0xff_fff0;
/// Bytes of the low tables.
pub(crate) const LOW_BYTES: u64 = LOOKUP_BYTES + SYSTEM_CALL_BYTES;
const _: () = assert!(LOW_BYTES.is_multiple_of(4096));
/// Bytes of the page of the run's bell, directly behind the low tables.
pub(crate) const BELL_BYTES: u64 = 4096;

/// The place of a zone of the code cache. The target maps it from the shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZonePlace {
    /// Address in the target.
    pub(crate) address: u64,
    /// Bytes for fragments.
    pub(crate) hot_bytes: u64,
    /// Bytes for out-of-line code, directly behind the fragments.
    pub(crate) cold_bytes: u64,
}

impl ZonePlace {
    pub(crate) fn bytes(&self) -> u64 {
        self.hot_bytes + self.cold_bytes
    }
}

/// The layout of the engine's memory in one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Three zones: near the executable, near the libraries, and far from both.
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
    /// Finds room outside the ranges that are mapped right after the exec; `entry` is the
    /// executable's entry point.
    pub(crate) fn plan(mapped: &[Range], entry: u64) -> Option<Layout> {
        let near = Layout::below(mapped, entry).or_else(|| Layout::anywhere(mapped, 0x7000_0000))?;
        let libraries = Layout::under_stack(mapped)?;
        let far = ZonePlace { address: FAR_ZONE, hot_bytes: 1024 * MB, cold_bytes: 512 * MB };
        let candidates = [0x6000_0000u64, 0x5000_0000, 0x3000_0000, 0x2000_0000, 0x1000_0000];
        let low = candidates
            .into_iter()
            .find(|&address| free(mapped, address, address + LOW_BYTES + BELL_BYTES))?;
        Some(Layout { zones: vec![near, libraries, far], low })
    }

    /// A zone directly below a position-independent executable, where neither its heap nor a
    /// mapping ever grows.
    fn below(mapped: &[Range], entry: u64) -> Option<ZonePlace> {
        let image = mapped.iter().filter(|range| range.start <= entry).map(|range| range.start).max()?;
        let image = mapped
            .iter()
            .filter(|range| image - range.start.min(image) < 1 << 30)
            .map(|range| range.start)
            .min()?;
        let place = ZonePlace { address: 0, hot_bytes: 192 * MB, cold_bytes: 128 * MB };
        let address = image.checked_sub(place.bytes() + 2 * MB)? & !(2 * MB - 1);
        let place = ZonePlace { address, ..place };
        (address > 1 << 32 && free(mapped, address, address + place.bytes())).then_some(place)
    }

    /// A zone at `address`, if it is free: in the low 2 GB for executables with a fixed low
    /// address.
    fn anywhere(mapped: &[Range], address: u64) -> Option<ZonePlace> {
        let place = ZonePlace { address, hot_bytes: 160 * MB, cold_bytes: 64 * MB };
        free(mapped, address, address + place.bytes()).then_some(place)
    }

    /// A zone between the highest mapping and the stack's lowest possible page.
    fn under_stack(mapped: &[Range]) -> Option<ZonePlace> {
        let stack = mapped.iter().find(|range| range.stack)?;
        let below =
            mapped.iter().filter(|range| range.end <= stack.start).map(|range| range.end).max().unwrap_or(0);
        let start = (below + HUGE) & !(HUGE - 1);
        let room = stack.start.saturating_sub(STACK_RESERVE).saturating_sub(start) & !(HUGE - 1);
        let room = room.min(1024 * MB);
        if room < 24 * MB {
            return Layout::anywhere(mapped, LIBRARIES_ZONE);
        }
        let hot_bytes = (room * 5 / 8) & !(HUGE - 1);
        Some(ZonePlace { address: start, hot_bytes, cold_bytes: room - hot_bytes })
    }

    /// The address ranges of all memory of the engine in the target.
    pub(crate) fn own(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        let zones = self.zones.iter().map(|zone| zone.address..zone.address + zone.bytes());
        let low = self.low..self.bell() + BELL_BYTES;
        zones.chain([low, CONTEXTS..CONTEXTS + context::BYTES * CONTEXTS_MAX as u64])
    }

    /// Bytes of the shared files together.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.contexts_offset() + context::BYTES * CONTEXTS_MAX as u64
    }

    /// Whether the address lies in the engine's memory.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let zones = self.zones.iter().map(|zone| (zone.address, zone.bytes()));
        let contexts = (CONTEXTS, context::BYTES * CONTEXTS_MAX as u64);
        let mut all = zones.chain([(self.low, LOW_BYTES + BELL_BYTES), contexts]);
        all.any(|(start, bytes)| address.wrapping_sub(start) < bytes)
    }

    /// Offset of a zone in the shared file.
    pub(crate) fn zone_offset(&self, zone: usize) -> u64 {
        self.zones[..zone].iter().map(ZonePlace::bytes).sum()
    }

    /// Offset of the low tables in the shared file.
    pub(crate) fn low_offset(&self) -> u64 {
        self.zone_offset(self.zones.len())
    }

    /// Offset of the contexts in the shared files, one behind the other.
    pub(crate) fn contexts_offset(&self) -> u64 {
        (self.low_offset() + LOW_BYTES + HUGE - 1) & !(HUGE - 1)
    }

    /// Address of the run's bell, which the host shares with all images.
    pub(crate) fn bell(&self) -> u64 {
        self.low + LOW_BYTES
    }

    /// Address of the table with one byte per system call.
    pub(crate) fn system_call_table(&self) -> u64 {
        self.low + LOOKUP_BYTES
    }
}

fn free(mapped: &[Range], start: u64, end: u64) -> bool {
    mapped.iter().all(|range| range.end <= start || range.start >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges that AddressSanitizer, ThreadSanitizer and MemorySanitizer all leave free.
    const LEFT_FREE: [(u64, u64); 3] =
        [(0x1000, 0x7fff_8000), (0x5500_0000_0000, 0x5680_0000_0000), (0x7e80_0000_0000, 0x8000_0000_0000)];

    fn range(start: u64, end: u64) -> Range {
        Range { start, end, stack: false }
    }

    fn check(mapped: &[Range], entry: u64) -> Layout {
        let layout = Layout::plan(mapped, entry).expect("there is room");
        let mut taken: Vec<Range> = mapped.to_vec();
        for zone in &layout.zones {
            assert!(free(&taken, zone.address, zone.address + zone.bytes()), "{zone:x?} overlaps");
            taken.push(range(zone.address, zone.address + zone.bytes()));
        }
        assert!(free(&taken, layout.low, layout.bell() + BELL_BYTES));
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
