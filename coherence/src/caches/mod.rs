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
//! them before. A hit changes nothing but the core's copy, one line of the host's memory, and only
//! misses and upgrades look at other cores.
//!
//! **Leaves out** instructions, prefetchers, and lines that the shared level or its directory drops
//! for want of room. **Cost:** 64 bytes of memory for each line and core that touches it.

mod hits;
mod results;

use crate::associative::Associative;
use crate::copies::{CoreCopy, State, NEEDS_TO_READ, NEEDS_TO_WRITE, NONE};
use crate::counts::{Counts, LineCounts, Pair, SiteCounts};
use crate::directory::Directory;
use crate::ways::{FirstLevel, SecondLevel};
pub(crate) use hits::plain;
use simulate::Geometry;
use symbol::ByNumber;

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
#[repr(u8)]
pub enum Access {
    /// It reads.
    Load = READS,
    /// It writes.
    Store = WRITES,
    /// It reads and then writes the same bytes.
    Modify = READS | WRITES,
    /// It reads and writes the same bytes in one step.
    Atomic = READS | WRITES | 4,
}

const READS: u8 = 1;
const WRITES: u8 = 2;

impl Access {
    #[inline(always)]
    pub(crate) const fn reads(self) -> bool {
        self as u8 & READS != 0
    }

    #[inline(always)]
    pub(crate) const fn writes(self) -> bool {
        self as u8 & WRITES != 0
    }

    /// What a line must not lack for it to be without consequences.
    #[inline(always)]
    const fn needs(self) -> u8 {
        if self.writes() {
            NEEDS_TO_WRITE
        } else {
            NEEDS_TO_READ
        }
    }

    /// Of the bytes that it touches those that it reads, and those that it writes. Loads and stores
    /// take turns as no branch foresees, so there is none.
    #[inline(always)]
    fn divide(self, bytes: u64) -> (u64, u64) {
        let all_or_none = |is: bool| 0u64.wrapping_sub(is.into());
        (all_or_none(self.reads()) & bytes, all_or_none(self.writes()) & bytes)
    }
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
    lines: Directory,
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
            lines: Directory::default(),
            shared: Vec::new(),
            shared_lines: Vec::new(),
            pairs: Vec::new(),
            pair_numbers: ByNumber::default(),
            sites: Vec::new(),
        }
    }

    /// A core makes a reference. Cost: some ns for a hit, some tens of ns for a miss.
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
        let first = self.levels.first;
        Core {
            first: FirstLevel::new(first),
            second: self.levels.second.map(SecondLevel::new),
            twin: Associative::new(first.sets as usize * first.ways as usize),
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
    fn touch(&mut self, touch: Touch) -> bool {
        let Touch { core, line, bytes, access, .. } = touch;
        let own = &mut self.cores[core];
        own.counts.loads += u64::from(access.reads());
        own.counts.stores += u64::from(access.writes());
        own.time += 1;
        let (copy, transfers) = match own.first.find(line, own.time) {
            Some(copy) => (copy, false),
            None => self.miss(&touch),
        };
        let own = &mut self.copies[copy as usize];
        let (read, written) = access.divide(bytes);
        let changes = own.changes(bytes, access.needs());
        own.touch(read, written, self.cores[core].time);
        match changes {
            0 => transfers,
            _ => self.unusual(copy, &touch) | transfers,
        }
    }

    /// Completes a touch of a copy that is not as it is mostly; returns whether it needed another
    /// core's leave.
    #[cold]
    #[inline(never)]
    fn unusual(&mut self, copy: u32, touch: &Touch) -> bool {
        let Touch { core, bytes, access, site, .. } = *touch;
        let own = &mut self.copies[copy as usize];
        let (state, is_stale) = (own.state(), own.stale & bytes != 0);
        own.stale = if is_stale { 0 } else { own.stale };
        if !own.twin.in_level() {
            self.cores[core].twin.enter(&mut self.copies, copy);
        }
        if is_stale {
            self.essential(core, copy);
        }
        if !access.writes() || state == State::Modified {
            return false;
        }
        let mut taken = 0;
        if state == State::Shared {
            taken = self.take(copy, Taker { core, site, at: touch.at });
            self.cores[core].counts.upgrades += 1;
            self.site(site).upgrades += 1;
            let known = self.lines[self.copies[copy as usize].line].shared;
            if let Some(counts) = self.shared.get_mut(known as usize) {
                counts.upgrades += 1;
            }
        }
        self.copies[copy as usize].set_state(State::Modified);
        taken > 0
    }

    /// The first level lacks the line: finds out why, and fetches it. Returns the core's copy, and
    /// whether another core held the line.
    #[cold]
    #[inline(never)]
    fn miss(&mut self, touch: &Touch) -> (u32, bool) {
        let Touch { core, line, site, .. } = *touch;
        // A line that the second level has needs no look-up among all lines.
        let near = self.cores[core].second.as_mut().and_then(|second| second.find(line));
        let (copy, is_new) = near.map_or_else(|| self.copy_of(core, line), |copy| (copy, false));
        let own = &mut self.copies[copy as usize];
        let (in_twin, was_taken) = (own.twin.in_level(), std::mem::take(&mut own.is_taken));
        let counts = &mut self.cores[core].counts;
        if is_new {
            counts.cold += 1;
            self.site(site).cold += 1;
        } else if was_taken {
            self.shares(copy, touch);
        } else if in_twin {
            counts.conflict += 1;
            self.site(site).conflict += 1;
        } else {
            counts.capacity += 1;
            self.site(site).capacity += 1;
        }
        let transfers = near.is_none() && self.fetches(copy, is_new, touch);
        self.enter(copy, line, near.is_some());
        (copy, transfers)
    }

    /// Fetches a line that no private level of the core has; returns whether another core held it.
    fn fetches(&mut self, copy: u32, is_new: bool, touch: &Touch) -> bool {
        self.cores[touch.core].counts.private_misses += 1;
        let transfers = self.fetch(copy, touch);
        let own = &mut self.copies[copy as usize];
        own.set_state(match touch.access {
            Access::Load if transfers => State::Shared,
            Access::Load => State::Exclusive,
            _ => State::Modified,
        });
        // What was written before a cold miss has come with the line.
        own.stale = if is_new { 0 } else { own.stale };
        transfers
    }

    /// The core's copy of a line, and whether it is new.
    fn copy_of(&mut self, core: usize, number: u64) -> (u32, bool) {
        let first = self.lines.copy(number);
        let copy = self.copies.len() as u32;
        if first == NONE {
            let line = self.lines.enter(number, copy);
            self.copies.push(CoreCopy::new(core, line, copy));
            return (copy, true);
        }
        let of_core = |copy: u32| usize::from(self.copies[copy as usize].core) == core;
        let known = if of_core(first) { Some(first) } else { self.others(first).find(|&copy| of_core(copy)) };
        if let Some(known) = known {
            return (known, false);
        }
        let CoreCopy { line, next, .. } = self.copies[first as usize];
        self.copies[first as usize].next = copy;
        self.copies.push(CoreCopy::new(core, line, next));
        (copy, true)
    }

    /// The other copies of a copy's line.
    fn others(&self, copy: u32) -> impl Iterator<Item = u32> + '_ {
        let next = move |other: &u32| Some(self.copies[*other as usize].next).filter(|&next| next != copy);
        std::iter::successors(next(&copy), next)
    }

    /// Asks the directory for a line that no private level of the core has; returns whether another
    /// core held it.
    fn fetch(&mut self, copy: u32, touch: &Touch) -> bool {
        let Touch { core, access, site, at, .. } = *touch;
        let line = self.copies[copy as usize].line;
        let mut holds = false;
        let mut other = self.copies[copy as usize].next;
        while other != copy {
            let state = self.copies[other as usize].state();
            if state != State::Invalid {
                holds = true;
                if state == State::Modified {
                    self.cores[core].counts.dirty_transfers += 1;
                    let shared = self.shared_line(line);
                    self.shared[shared].dirty_transfers += 1;
                    self.publish(other);
                }
                if access == Access::Load {
                    self.copies[other as usize].set_state(State::Shared);
                }
            }
            other = self.copies[other as usize].next;
        }
        if holds && access != Access::Load {
            self.take(copy, Taker { core, site, at });
        }
        holds
    }

    /// Makes the bytes that a core has written stale for all others.
    fn publish(&mut self, copy: u32) {
        let own = &mut self.copies[copy as usize];
        let (fresh, mut other) = (own.publish(), own.next);
        while other != copy {
            self.copies[other as usize].stale |= fresh;
            other = self.copies[other as usize].next;
        }
    }

    /// Takes a line from all other cores; returns how many held it.
    fn take(&mut self, copy: u32, taker: Taker) -> u32 {
        let line = self.copies[copy as usize].line;
        let number = self.lines[line].number;
        let mut taken = 0;
        let mut other = self.copies[copy as usize].next;
        while other != copy {
            if self.copies[other as usize].state() != State::Invalid {
                taken += 1;
                self.publish(other);
                self.is_false(other);
                let lost = &mut self.copies[other as usize];
                let core = &mut self.cores[usize::from(lost.core)];
                core.twin.take(&mut lost.twin);
                core.first.remove(number);
                core.second.iter_mut().for_each(|second| second.remove(number));
                lost.set_state(State::Invalid);
                lost.is_taken = true;
                (lost.taker, lost.taker_at) = (taker.site, taker.at);
            }
            other = self.copies[other as usize].next;
        }
        if taken > 0 {
            self.cores[taker.core].counts.invalidations += u64::from(taken);
            let shared = self.shared_line(line);
            self.shared[shared].invalidations += u64::from(taken);
        }
        taken
    }

    /// Puts a copy of a line into the levels that lack it.
    fn enter(&mut self, copy: u32, line: u64, is_in_second: bool) {
        let core = usize::from(self.copies[copy as usize].core);
        let Core { first, second, time, .. } = &mut self.cores[core];
        let left = first.insert(line, copy, *time, second.is_some());
        if let Some((left, _)) = left.filter(|&(_, stays)| !stays) {
            self.lost(left);
        }
        // The second level sees the misses of the first one; if it has the line, it was found.
        if is_in_second {
            return;
        }
        let Core { first, second, .. } = &mut self.cores[core];
        let left = second.as_mut().and_then(|second| second.insert(line, copy));
        if let Some((_, left)) = left.filter(|&(line, _)| !first.has_left_second(line)) {
            self.lost(left);
        }
    }

    /// No level has a copy any more, for want of room.
    fn lost(&mut self, copy: u32) {
        let left = &mut self.copies[copy as usize];
        let was = left.set_state(State::Invalid);
        let core = usize::from(left.core);
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

    /// A core has touched a byte that another one wrote: its last miss was of true sharing.
    fn essential(&mut self, core: usize, copy: u32) {
        let pending = std::mem::replace(&mut self.copies[copy as usize].pending, NONE);
        if let Some(pair) = self.pairs.get_mut(pending as usize) {
            pair.true_sharing += 1;
            self.shared[pair.line as usize].true_sharing += 1;
            self.cores[core].counts.true_sharing += 1;
        }
    }

    /// The core loses the line: if its last miss was not of true sharing, it was of false sharing.
    fn is_false(&mut self, copy: u32) {
        let copy = &mut self.copies[copy as usize];
        let pending = std::mem::replace(&mut copy.pending, NONE);
        if let Some(pair) = self.pairs.get_mut(pending as usize) {
            pair.false_sharing += 1;
            self.shared[pair.line as usize].false_sharing += 1;
            self.cores[usize::from(copy.core)].counts.false_sharing += 1;
        }
    }

    /// The index of a line among the shared ones.
    fn shared_line(&mut self, line: u32) -> usize {
        let entry = &mut self.lines[line].shared;
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
