//! Coherent private caches: MESI between cores, and every miss by its cause.
//!
//! **What.** Each core has a first level and perhaps a second one, both with LRU and independent of
//! each other, as crate `simulate` has them. What is behind them is shared; a directory there knows
//! which cores hold a line and in which state. A read of a line that another core has changed makes
//! both share it; a write takes it from all others.
//!
//! ```text
//!             read, nobody holds it        write
//!   Invalid ───────────────────▶ Exclusive ─────▶ Modified
//!      │ read, others hold it        │ another reads  │ another reads: a dirty transfer
//!      └───────────▶ Shared ◀────────┴────────────────┘
//!                      │ write: an upgrade takes the others' copies away
//!                      ▼
//!                   Modified
//! ```
//!
//! **Causes.** A miss of the first level is *cold* if the core never held the line. It is *sharing*
//! if another core's write took the line from all private levels of this core. Else room was
//! missing: it is *capacity* if a fully associative first level of equal size and LRU misses too, a
//! *conflict* if it does not (Hill and Smith 1989). A sharing miss is *true* if the core, before it
//! loses the line again, touches a byte that another core has written since the core last made such
//! a touch or held the line first; else it is *false*. That is the essential miss of Dubois,
//! Skeppstedt, Ricciulli, Ramamurthy and Stenström (ISCA 1993), with bytes for words, and with
//! writes as touches as well: cores that overwrite the same bytes blindly do not share falsely.
//!
//! **How.** A core's way of a line has the number of its *copy*: the state, the bytes that others
//! have written since (*stale*), and the bytes that the core has written while the line was its
//! own. The latter become stale for others when the core loses the line, because nobody can read
//! them before. So a hit touches one row and one copy, and only misses and upgrades look at other
//! cores.
//!
//! **Leaves out** instructions, prefetchers, and lines that the shared level or its directory drops
//! for want of room. **Cost:** 64 bytes of memory for each line and core that touches it.

mod results;

use crate::associative::{Associative, Dated, Standing};
use crate::counts::{Counts, LineCounts, Pair, SiteCounts};
use crate::ways::{FirstLevel, SecondLevel};
use simulate::Geometry;
use symbol::ByNumber;

const NONE: u32 = u32::MAX;

/// The private levels of each core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateLevels {
    /// The first level of data.
    pub first: Geometry,
    /// The second level, if it is private too.
    pub second: Option<Geometry>,
}

/// What a reference does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and then writes the same bytes.
    Modify,
    /// It reads and writes the same bytes in one step.
    Atomic,
}

impl Access {
    fn reads(self) -> bool {
        self != Access::Store
    }

    fn writes(self) -> bool {
        self != Access::Load
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Invalid,
    Shared,
    Exclusive,
    Modified,
}

/// Where a core has a line, and how it lost it.
const IN_FIRST: u8 = 1;
const IN_SECOND: u8 = 2;
const TAKEN: u8 = 4;

/// A core's copy of a line, present or lost.
#[derive(Clone, Copy, Debug)]
struct CoreCopy {
    /// Bytes that others have written since the last true sharing.
    stale: u64,
    /// Bytes that the core has written and that are not stale for others yet.
    fresh: u64,
    /// All bytes that the core has read, and written.
    read: u64,
    written: u64,
    /// When the core used it last.
    time: u64,
    line: u32,
    /// The next copy of the line.
    next: u32,
    /// The pair of the miss that is neither true nor false yet.
    pending: u32,
    /// The site whose write took the line.
    taker: u32,
    core: u16,
    state: State,
    place: u8,
    taker_at: u8,
    /// In the fully associative level.
    twin: Standing,
}

impl Dated for CoreCopy {
    fn time(&self) -> u64 {
        self.time
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.twin
    }
}

/// A line that was touched.
#[derive(Clone, Copy, Debug)]
struct Line {
    number: u64,
    /// The copy of the core that touched it last for the first time.
    copies: u32,
    /// Its index among the shared lines.
    shared: u32,
}

/// A core.
#[derive(Clone, Debug)]
struct Core {
    first: FirstLevel,
    second: Option<SecondLevel>,
    /// The fully associative level.
    twin: Associative,
    /// Counts the uses of lines.
    time: u64,
    counts: Counts,
}

/// The write that takes a line.
#[derive(Clone, Copy)]
struct Taker {
    core: usize,
    site: u32,
    at: u8,
}

/// A touch of a line.
#[derive(Clone, Copy)]
struct Touch {
    core: usize,
    line: u64,
    /// The bytes, a bit for each 64th of the line.
    bytes: u64,
    access: Access,
    site: u32,
    at: u8,
}

/// The caches of all cores.
#[derive(Clone, Debug)]
pub struct CoherentCaches {
    levels: PrivateLevels,
    line_shift: u32,
    cores: Vec<Core>,
    copies: Vec<CoreCopy>,
    lines: Vec<Line>,
    numbers: ByNumber<u64, u32>,
    shared: Vec<LineCounts>,
    /// The line of each entry of `shared`.
    shared_lines: Vec<u32>,
    pairs: Vec<Pair>,
    pair_numbers: ByNumber<(u32, u32, u32), u32>,
    sites: Vec<SiteCounts>,
}

impl CoherentCaches {
    /// Empty caches. Lines have up to 255 bytes, and private levels equal ones.
    pub fn new(levels: PrivateLevels) -> CoherentCaches {
        let first = levels.first;
        CoherentCaches {
            levels,
            line_shift: first.line_bytes.trailing_zeros(),
            cores: Vec::new(),
            copies: Vec::new(),
            lines: Vec::new(),
            numbers: ByNumber::default(),
            shared: Vec::new(),
            shared_lines: Vec::new(),
            pairs: Vec::new(),
            pair_numbers: ByNumber::default(),
            sites: Vec::new(),
        }
    }

    /// A core makes a reference. Cost: some ns for a hit, some tens of ns for a miss.
    #[inline]
    pub fn access(&mut self, core: usize, address: u64, size_bytes: u32, access: Access, site: u32) {
        if core >= self.cores.len() {
            self.add_cores(core + 1);
        }
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let line = address >> self.line_shift;
        let transfers = if last >> self.line_shift == line {
            let (at, bytes) = (self.within(address), self.bits(self.within(address), self.within(last)));
            self.touch(Touch { core, line, bytes, access, site, at })
        } else {
            self.access_lines(core, address..=last, access, site)
        };
        if access == Access::Atomic {
            let counts = &mut self.cores[core].counts;
            counts.atomics += 1;
            counts.atomic_transfers += u64::from(transfers);
        }
    }

    /// Where in its line an address lies.
    #[inline(always)]
    fn within(&self, address: u64) -> u8 {
        (address & ((1 << self.line_shift) - 1)) as u8
    }

    /// A core makes a reference to several lines.
    #[cold]
    fn access_lines(
        &mut self,
        core: usize,
        bytes: std::ops::RangeInclusive<u64>,
        access: Access,
        site: u32,
    ) -> bool {
        let (first, last) = (*bytes.start(), *bytes.end());
        let mut transfers = false;
        for line in first >> self.line_shift..=last >> self.line_shift {
            let start = first.max(line << self.line_shift);
            let end = last.min(line << self.line_shift | ((1 << self.line_shift) - 1));
            let (at, end) = (self.within(start), self.within(end));
            transfers |= self.touch(Touch { core, line, bytes: self.bits(at, end), access, site, at });
        }
        transfers
    }

    #[cold]
    fn add_cores(&mut self, count: usize) {
        while self.cores.len() < count {
            self.cores.push(self.empty_core());
        }
    }

    fn empty_core(&self) -> Core {
        Core {
            first: FirstLevel::new(self.levels.first),
            second: self.levels.second.map(SecondLevel::new),
            twin: Associative::new(self.levels.first.sets as usize * self.levels.first.ways as usize),
            time: 0,
            counts: Counts::default(),
        }
    }

    /// The bits of the bytes from `first` to `last` of a line.
    #[inline(always)]
    fn bits(&self, first: u8, last: u8) -> u64 {
        // A bit is a byte in lines of up to 64 bytes.
        let shift = self.line_shift.saturating_sub(6);
        let (first, last) = (u32::from(first) >> shift, u32::from(last) >> shift);
        (u64::MAX >> (63 - (last - first))) << first
    }

    /// A core touches a line; returns whether it needed another core's leave.
    #[inline(always)]
    fn touch(&mut self, touch: Touch) -> bool {
        let Touch { core, line, bytes, access, .. } = touch;
        let own = &mut self.cores[core];
        own.counts.loads += u64::from(access.reads());
        own.counts.stores += u64::from(access.writes());
        own.time += 1;
        let (copy, transfers) = match own.first.find(line) {
            Some(copy) => (copy, false),
            None => self.miss(&touch),
        };
        let time = self.cores[core].time;
        let own = &mut self.copies[copy as usize];
        own.time = time;
        own.read |= if access.reads() { bytes } else { 0 };
        let written = if access.writes() { bytes } else { 0 };
        own.written |= written;
        own.fresh |= written;
        // Nearly all references end here.
        let is_plain =
            own.stale & bytes == 0 && own.twin.in_level && (written == 0 || own.state == State::Modified);
        match is_plain {
            true => transfers,
            false => self.unusual(copy, &touch) | transfers,
        }
    }

    /// Completes a touch of a copy that is not as it is mostly; returns whether it needed another
    /// core's leave.
    #[cold]
    #[inline(never)]
    fn unusual(&mut self, copy: u32, touch: &Touch) -> bool {
        let Touch { core, bytes, access, site, .. } = *touch;
        let own = &mut self.copies[copy as usize];
        if own.stale & bytes != 0 {
            own.stale = 0;
            self.essential(copy);
        }
        if !self.copies[copy as usize].twin.in_level {
            self.cores[core].twin.enter(&mut self.copies, copy);
        }
        let state = self.copies[copy as usize].state;
        if !access.writes() || state == State::Modified {
            return false;
        }
        let mut taken = 0;
        if state == State::Shared {
            taken = self.take(copy, Taker { core, site, at: touch.at });
            self.cores[core].counts.upgrades += 1;
            self.site(site).upgrades += 1;
            let line = self.copies[copy as usize].line;
            let known = self.lines[line as usize].shared;
            if let Some(counts) = self.shared.get_mut(known as usize) {
                counts.upgrades += 1;
            }
        }
        self.copies[copy as usize].state = State::Modified;
        taken > 0
    }

    /// The first level lacks the line: finds out why, and fetches it. Returns the copy, and whether
    /// another core held it.
    #[cold]
    #[inline(never)]
    fn miss(&mut self, touch: &Touch) -> (u32, bool) {
        let Touch { core, line, access, site, .. } = *touch;
        // A line that the second level has needs no look-up among all lines.
        let near = self.cores[core].second.as_mut().and_then(|second| second.find(line));
        let (copy, is_new) = near.map_or_else(|| self.copy_of(core, line), |copy| (copy, false));
        let CoreCopy { state, place, twin, .. } = self.copies[copy as usize];
        let counts = &mut self.cores[core].counts;
        if is_new {
            counts.cold += 1;
            self.site(site).cold += 1;
        } else if place & TAKEN != 0 {
            self.shares(copy, touch);
        } else if twin.in_level {
            counts.conflict += 1;
            self.site(site).conflict += 1;
        } else {
            counts.capacity += 1;
            self.site(site).capacity += 1;
        }
        let mut transfers = false;
        if state == State::Invalid {
            self.cores[core].counts.private_misses += 1;
            transfers = self.fetch(copy, touch);
            self.copies[copy as usize].state = match access {
                Access::Load if transfers => State::Shared,
                Access::Load => State::Exclusive,
                _ => State::Modified,
            };
        }
        let own = &mut self.copies[copy as usize];
        own.place &= !TAKEN;
        // What was written before a cold miss has come with the line.
        own.stale = if is_new { 0 } else { own.stale };
        self.enter(core, copy, line);
        (copy, transfers)
    }

    /// The core's copy of a line, and whether it is new.
    fn copy_of(&mut self, core: usize, number: u64) -> (u32, bool) {
        let lines = &mut self.lines;
        let line = *self.numbers.entry(number).or_insert_with(|| {
            lines.push(Line { number, copies: NONE, shared: NONE });
            lines.len() as u32 - 1
        });
        let mut at = self.lines[line as usize].copies;
        while at != NONE && usize::from(self.copies[at as usize].core) != core {
            at = self.copies[at as usize].next;
        }
        if at != NONE {
            return (at, false);
        }
        let copy = self.copies.len() as u32;
        self.copies.push(CoreCopy {
            stale: 0,
            fresh: 0,
            read: 0,
            written: 0,
            time: 0,
            line,
            next: std::mem::replace(&mut self.lines[line as usize].copies, copy),
            pending: NONE,
            taker: NONE,
            core: core as u16,
            state: State::Invalid,
            place: 0,
            taker_at: 0,
            twin: Standing::default(),
        });
        (copy, true)
    }

    /// Asks the directory for a line that no private level of the core has; returns whether another
    /// core held it.
    fn fetch(&mut self, copy: u32, touch: &Touch) -> bool {
        let Touch { core, access, site, at, .. } = *touch;
        let line = self.copies[copy as usize].line;
        let mut holds = false;
        let mut other = self.lines[line as usize].copies;
        while other != NONE {
            let held = self.copies[other as usize];
            if other != copy && held.state != State::Invalid {
                holds = true;
                if held.state == State::Modified {
                    self.cores[core].counts.dirty_transfers += 1;
                    let shared = self.shared_line(line);
                    self.shared[shared].dirty_transfers += 1;
                    self.publish(other);
                }
                if access == Access::Load {
                    self.copies[other as usize].state = State::Shared;
                }
            }
            other = held.next;
        }
        if holds && access != Access::Load {
            self.take(copy, Taker { core, site, at });
        }
        holds
    }

    /// Makes the bytes that a core has written stale for all others.
    fn publish(&mut self, copy: u32) {
        let CoreCopy { fresh, line, .. } = self.copies[copy as usize];
        self.copies[copy as usize].fresh = 0;
        let mut other = self.lines[line as usize].copies;
        while other != NONE {
            let held = &mut self.copies[other as usize];
            if other != copy {
                held.stale |= fresh;
            }
            other = held.next;
        }
    }

    /// Takes a line from all other cores; returns how many held it.
    fn take(&mut self, copy: u32, taker: Taker) -> u32 {
        let line = self.copies[copy as usize].line;
        let number = self.lines[line as usize].number;
        let mut taken = 0;
        let mut other = self.lines[line as usize].copies;
        while other != NONE {
            let held = self.copies[other as usize];
            if other != copy && held.state != State::Invalid {
                taken += 1;
                self.publish(other);
                self.is_false(other);
                let loses = usize::from(held.core);
                let core = &mut self.cores[loses];
                core.twin.take(&mut self.copies[other as usize].twin);
                core.first.remove(number);
                core.second.iter_mut().for_each(|second| second.remove(number));
                let held = &mut self.copies[other as usize];
                (held.state, held.place) = (State::Invalid, TAKEN);
                (held.taker, held.taker_at) = (taker.site, taker.at);
            }
            other = held.next;
        }
        if taken > 0 {
            self.cores[taker.core].counts.invalidations += u64::from(taken);
            let shared = self.shared_line(line);
            self.shared[shared].invalidations += u64::from(taken);
        }
        taken
    }

    /// Puts a copy into the levels that lack it.
    fn enter(&mut self, core: usize, copy: u32, line: u64) {
        let own = &mut self.cores[core];
        let left = own.first.insert(line, copy, |copy| self.copies[copy as usize].time);
        let place = self.copies[copy as usize].place;
        self.copies[copy as usize].place |= IN_FIRST;
        self.leaves(left, IN_FIRST);
        // The second level sees the misses of the first one.
        let own = &mut self.cores[core];
        if let Some(second) = &mut own.second {
            if place & IN_SECOND != 0 {
                second.find(line);
            } else {
                let left = second.insert(line, copy);
                self.copies[copy as usize].place |= IN_SECOND;
                self.leaves(left, IN_SECOND);
            }
        }
    }

    /// A copy has left a level; without a level it is lost for want of room.
    fn leaves(&mut self, copy: Option<u32>, level: u8) {
        let Some(copy) = copy else { return };
        let left = &mut self.copies[copy as usize];
        left.place &= !level;
        if left.place & (IN_FIRST | IN_SECOND) != 0 {
            return;
        }
        let (was, core) = (left.state, usize::from(left.core));
        left.state = State::Invalid;
        if was == State::Modified {
            self.cores[core].counts.write_backs += 1;
            self.publish(copy);
        }
        self.is_false(copy);
    }

    /// Notes a miss of a line that another core's write has taken.
    fn shares(&mut self, copy: u32, touch: &Touch) {
        let CoreCopy { line, taker, taker_at, .. } = self.copies[copy as usize];
        let shared = self.shared_line(line) as u32;
        let pairs = &mut self.pairs;
        let pair = *self.pair_numbers.entry((shared, touch.site, taker)).or_insert_with(|| {
            pairs.push(Pair {
                line: shared,
                missed: touch.site,
                took: taker,
                missed_at: touch.at,
                took_at: taker_at,
                true_sharing: 0,
                false_sharing: 0,
            });
            pairs.len() as u32 - 1
        });
        self.copies[copy as usize].pending = pair;
    }

    /// The core has touched a byte that another one wrote: its last miss was of true sharing.
    fn essential(&mut self, copy: u32) {
        let CoreCopy { pending, core, .. } = self.copies[copy as usize];
        if pending != NONE {
            self.copies[copy as usize].pending = NONE;
            self.pairs[pending as usize].true_sharing += 1;
            let shared = self.pairs[pending as usize].line as usize;
            self.shared[shared].true_sharing += 1;
            self.cores[usize::from(core)].counts.true_sharing += 1;
        }
    }

    /// The core loses the line: if its last miss was not of true sharing, it was of false sharing.
    fn is_false(&mut self, copy: u32) {
        let CoreCopy { pending, core, .. } = self.copies[copy as usize];
        if pending != NONE {
            self.copies[copy as usize].pending = NONE;
            self.pairs[pending as usize].false_sharing += 1;
            let shared = self.pairs[pending as usize].line as usize;
            self.shared[shared].false_sharing += 1;
            self.cores[usize::from(core)].counts.false_sharing += 1;
        }
    }

    /// The index of a line among the shared ones.
    fn shared_line(&mut self, line: u32) -> usize {
        let entry = &mut self.lines[line as usize].shared;
        if *entry == NONE {
            *entry = self.shared.len() as u32;
            self.shared.push(LineCounts::default());
            self.shared_lines.push(line);
        }
        *entry as usize
    }

    fn site(&mut self, site: u32) -> &mut SiteCounts {
        let index = site as usize;
        if self.sites.len() <= index {
            self.sites.resize(index + 1, SiteCounts::default());
        }
        &mut self.sites[index]
    }
}
