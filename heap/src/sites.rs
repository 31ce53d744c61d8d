//! The places that allocate, and what became of their blocks.
//!
//! The peak needs what each place had then. It is taken before memory becomes less, and only of
//! places that have changed since the last time, so that a heap that grows and shrinks in turns
//! costs no pass over all places each time.

use crate::amount::Amount;
use crate::live::{Block, Touched, NO_COUNTS};
use crate::snapshots::{padding_bytes, Moment, Snapshots};
use symbol::ByNumber;

/// Blocks of more bytes have no counts of accesses by byte.
pub(crate) const COUNTED_BYTES_MAX: u64 = 1024;

/// What became of the blocks of a place that allocates, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The calls that led to the allocation, the innermost first, as numbers of
    /// [`HeapProfile::calls`](crate::HeapProfile::calls).
    pub stack: Vec<u32>,
    /// All that was allocated; a block that was resized counts again with its new size.
    pub total: Amount,
    /// At the most that the place had at a time.
    pub most: Amount,
    /// At the time at which the program had most.
    pub at_peak: Amount,
    /// At the end.
    pub at_end: Amount,
    /// Sum of the lives of all blocks, in instructions of all threads.
    pub lifetimes: u64,
    /// Bytes that were read in blocks.
    pub read_bytes: u64,
    /// Bytes that were written in blocks.
    pub written_bytes: u64,
    /// Blocks that were freed, or lived at the end, without one access.
    pub untouched: u64,
    /// Accesses of each byte, over all blocks; empty unless all had one size of at most 1024 bytes.
    pub accesses: Vec<u32>,
}

/// A hash of a stack, whose numbers nobody chooses.
fn hash(stack: &[u32]) -> u64 {
    let mix =
        |hash: u64, &call: &u32| (hash ^ u64::from(call)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    stack.iter().fold(stack.len() as u64, mix)
}

/// What the blocks of a place have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    Unknown,
    Equal(u64),
    Different,
}

/// What a record adds to a block, or rather to its place.
#[derive(Clone, Copy)]
pub(crate) struct Accessed {
    pub(crate) size_bytes: u32,
    pub(crate) read_bytes: u32,
    pub(crate) written_bytes: u32,
    /// Accesses; 0 for a record of another kind.
    pub(crate) times: u8,
}

/// What accesses add to a place, apart from the rest because each access needs it.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Accesses {
    read_bytes: u64,
    written_bytes: u64,
    /// Offset of the counts by byte; [`NO_COUNTS`] of a place that has none, or whose blocks have
    /// several sizes.
    counts: u32,
}

/// A place, and what changes while the program runs.
#[derive(Clone)]
struct Running {
    site: Site,
    now: Amount,
    sizes: Sizes,
    /// Whether `now` has changed since the last peak was noted.
    is_changed: bool,
}

/// All places.
#[derive(Clone)]
pub(crate) struct Sites {
    /// Places by a hash of their stacks; of several with one hash, the later ones follow it.
    numbers: ByNumber<u64, u32>,
    running: Vec<Running>,
    /// Places whose amounts have changed since the last peak was noted.
    changed: Vec<u32>,
    /// Accesses by byte, of all places that have them: each number is the difference to the byte
    /// before, so that an access changes two of them, however long it is.
    counts: Vec<u32>,
    accesses: Vec<Accesses>,
    pub(crate) all: Site,
    now: Amount,
    /// When the program had most.
    pub(crate) peak_at: u64,
    /// What fills up the blocks that live.
    padding_bytes: u64,
    pub(crate) snapshots: Option<Snapshots>,
}

impl Sites {
    pub(crate) fn new() -> Sites {
        Sites {
            numbers: ByNumber::default(),
            running: Vec::new(),
            changed: Vec::new(),
            counts: Vec::new(),
            accesses: Vec::new(),
            all: Site::default(),
            now: Amount::default(),
            peak_at: 0,
            padding_bytes: 0,
            snapshots: None,
        }
    }

    /// The number of the place with this stack.
    pub(crate) fn number(&mut self, stack: &[u32]) -> u32 {
        let mut hash = hash(stack);
        while let Some(&known) = self.numbers.get(&hash) {
            if self.running[known as usize].site.stack == stack {
                return known;
            }
            hash = hash.wrapping_add(1);
        }
        let number = self.running.len() as u32;
        self.numbers.insert(hash, number);
        let site = Site { stack: stack.to_vec(), ..Site::default() };
        self.running.push(Running { site, now: Amount::default(), sizes: Sizes::Unknown, is_changed: false });
        self.accesses.push(Accesses { read_bytes: 0, written_bytes: 0, counts: NO_COUNTS });
        number
    }

    /// The stack of a place.
    pub(crate) fn stack(&self, site: u32) -> &[u32] {
        self.running.get(site as usize).map_or(&[], |place| &place.site.stack)
    }

    /// A block of a place begins to live.
    pub(crate) fn born(&mut self, site: u32, size_bytes: u64, now: u64) {
        self.change(site);
        let place = &mut self.running[site as usize];
        place.now.bytes += size_bytes;
        place.now.blocks += 1;
        self.now.bytes += size_bytes;
        self.now.blocks += 1;
        self.padding_bytes += padding_bytes(size_bytes);
        self.allocated(site, size_bytes, now);
        self.snapshot(Moment::Changed, now);
        self.note_size(site, size_bytes);
    }

    /// A place copies bytes.
    pub(crate) fn copied(&mut self, site: u32, bytes: u64) {
        for site in [&mut self.running[site as usize].site, &mut self.all] {
            site.total.bytes += bytes;
            site.total.blocks += 1;
        }
    }

    /// A block of a place gets another size.
    pub(crate) fn resized(&mut self, site: u32, (old, new): (u64, u64), now: u64) {
        if new < old {
            self.note_peak();
            self.snapshot(Moment::Falling, now);
        }
        self.change(site);
        let place = &mut self.running[site as usize];
        place.now.bytes = place.now.bytes + new - old;
        place.sizes = Sizes::Different;
        self.accesses[site as usize].counts = NO_COUNTS;
        self.now.bytes = self.now.bytes + new - old;
        self.padding_bytes = self.padding_bytes + padding_bytes(new) - padding_bytes(old);
        self.allocated(site, new, now);
        self.snapshot(Moment::Changed, now);
    }

    /// A block of a place is freed.
    pub(crate) fn freed(&mut self, site: u32, size_bytes: u64, now: u64) {
        self.note_peak();
        self.snapshot(Moment::Falling, now);
        self.change(site);
        let place = &mut self.running[site as usize];
        for amount in [&mut place.now, &mut self.now] {
            amount.bytes -= size_bytes;
            amount.blocks -= 1;
        }
        self.padding_bytes -= padding_bytes(size_bytes);
        self.snapshot(Moment::Changed, now);
    }

    /// Takes a snapshot, if any are wanted and one is due.
    fn snapshot(&mut self, moment: Moment, now: u64) {
        let Some(snapshots) = &mut self.snapshots else { return };
        let running = &self.running;
        snapshots.offer(moment, now, (self.now, self.padding_bytes), || {
            let bytes = (0..).zip(running).map(|(number, place)| (number, place.now.bytes));
            bytes.filter(|(_, bytes)| *bytes > 0).collect()
        });
    }

    /// Adds what became of a block: its life, and whether it was accessed.
    pub(crate) fn retired(&mut self, block: &Block, now: u64) {
        let place = &mut self.running[block.site as usize].site;
        for site in [place, &mut self.all] {
            site.lifetimes += now.saturating_sub(block.born);
            site.untouched += u64::from(!block.is_touched);
        }
    }

    /// Counts an access of a block.
    #[inline(always)]
    pub(crate) fn accessed(&mut self, touched: &Touched, access: &Accessed) {
        let Some(place) = self.accesses.get_mut(touched.site as usize) else { return };
        place.read_bytes += u64::from(access.read_bytes);
        place.written_bytes += u64::from(access.written_bytes);
        if place.counts != NO_COUNTS {
            let (counts, times) = (u64::from(place.counts), u32::from(access.times));
            let end = (touched.offset + u64::from(access.size_bytes)).min(touched.size_bytes);
            for (at, change) in [(touched.offset, times), (end, times.wrapping_neg())] {
                if let Some(count) = self.counts.get_mut((counts + at) as usize) {
                    *count = count.wrapping_add(change);
                }
            }
        }
    }

    /// A block of a place is resized, and keeps these bytes.
    pub(crate) fn kept(&mut self, site: u32, bytes: u64) {
        let place = &mut self.accesses[site as usize];
        place.read_bytes += bytes;
        place.written_bytes += bytes;
    }

    /// Begins the sums of what was allocated anew. What each place has at most begins with what it
    /// has now.
    pub(crate) fn forget_sums(&mut self) {
        self.accesses.iter_mut().for_each(|place| (place.read_bytes, place.written_bytes) = (0, 0));
        for place in &mut self.running {
            place.site =
                Site { stack: std::mem::take(&mut place.site.stack), most: place.now, ..Site::default() };
        }
        self.all = Site { most: self.now, ..Site::default() };
    }

    /// Notes what is left when the program ends.
    pub(crate) fn ended(&mut self) {
        self.note_peak();
        (self.all.read_bytes, self.all.written_bytes) = (0, 0);
        for (place, accesses) in self.running.iter_mut().zip(&self.accesses) {
            let site = &mut place.site;
            site.at_end = place.now;
            (site.read_bytes, site.written_bytes) = (accesses.read_bytes, accesses.written_bytes);
            self.all.read_bytes += site.read_bytes;
            self.all.written_bytes += site.written_bytes;
        }
        self.all.at_end = self.now;
    }

    /// What became of all places.
    pub(crate) fn finish(self) -> Vec<Site> {
        let Sites { running, counts, accesses, .. } = self;
        let finish = |(place, accesses): (Running, Accesses)| {
            let mut site = place.site;
            if let (Sizes::Equal(size_bytes), true) = (place.sizes, accesses.counts != NO_COUNTS) {
                let mut sum = 0u32;
                let changes = counts[accesses.counts as usize..][..size_bytes as usize].iter();
                site.accesses = changes
                    .map(|change| {
                        sum = sum.wrapping_add(*change);
                        sum
                    })
                    .collect();
            }
            site
        };
        running.into_iter().zip(accesses).map(finish).collect()
    }

    fn change(&mut self, site: u32) {
        let place = &mut self.running[site as usize];
        if !std::mem::replace(&mut place.is_changed, true) {
            self.changed.push(site);
        }
    }

    /// Counts an allocation of a place, whose amounts have changed already.
    fn allocated(&mut self, site: u32, size_bytes: u64, now: u64) {
        let place = &mut self.running[site as usize];
        for site in [&mut place.site, &mut self.all] {
            site.total.bytes += size_bytes;
            site.total.blocks += 1;
        }
        if place.now.bytes >= place.site.most.bytes {
            place.site.most = place.now;
        }
        // Of several equal peaks the last one counts.
        if self.now.bytes >= self.all.most.bytes {
            self.all.most = self.now;
            self.peak_at = now;
        }
    }

    /// Notes what each place has if the program has never had more. To be called before memory
    /// becomes less.
    fn note_peak(&mut self) {
        if self.now.bytes != self.all.most.bytes {
            return;
        }
        for site in self.changed.drain(..) {
            let place = &mut self.running[site as usize];
            place.is_changed = false;
            place.site.at_peak = place.now;
        }
        self.all.at_peak = self.all.most;
    }

    /// Notes the size of a new block.
    fn note_size(&mut self, site: u32, size_bytes: u64) {
        let place = &mut self.running[site as usize];
        match place.sizes {
            Sizes::Equal(known) if known == size_bytes => return,
            Sizes::Unknown => place.sizes = Sizes::Equal(size_bytes),
            _ => {
                place.sizes = Sizes::Different;
                self.accesses[site as usize].counts = NO_COUNTS;
                return;
            }
        }
        if size_bytes > COUNTED_BYTES_MAX || self.counts.len() as u64 + size_bytes >= u64::from(u32::MAX) {
            return;
        }
        self.accesses[site as usize].counts = self.counts.len() as u32;
        self.counts.resize(self.counts.len() + size_bytes as usize + 1, 0);
    }
}
