//! A kernel through a hierarchy: the bytes that each link moves for an update.
//!
//! **What.** The sweep before is replayed towards its end, so that every level is full; then come
//! the first pieces of a sweep, and some in its middle, which stand for all that follow: each piece
//! makes the touches of the piece before, shifted. A sweep of few pieces is replayed whole. A test
//! holds the slice against the whole. **Evictions.** A kernel's written lines are stored in one go
//! and never read, so each of them that enters a level leaves it dirty: evictions are counted as
//! those entries. Behind a level that fills the next one with its victims, every line leaves to
//! there. A test holds both against the counted write-backs. **Left out:** what the kernel leaves
//! behind when it ends.

use super::kernel::{Kernel, Touches, LINE_BYTES};
use super::pages::Pages;
use super::points::{Moved, LINKS};
use anyhow::{anyhow, Result};
use simulate::{Inclusion, Levels, Simulator, WriteBacks};

/// How much is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The least pieces in the middle of a sweep, and the least bytes that they use anew.
    pub(super) middle_pieces: usize,
    pub(super) middle_bytes: u64,
}

/// The pieces of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    /// Pieces of the sweeps before.
    before: usize,
    /// Pieces from a sweep's first on.
    first: usize,
    /// Pieces that stand for all that follow; 0 where whole sweeps are replayed.
    middle: usize,
}

impl Slice {
    fn of(kernel: &dyn Kernel, levels: &Levels, extent: Extent) -> Slice {
        let pieces = kernel.pieces();
        let held_bytes = levels.outer.iter().map(|outer| outer.geometry.size_bytes()).max();
        // Twice the largest level drives out all that it held before.
        let filling = 2 * held_bytes.unwrap_or(0) + 2 * levels.data.size_bytes();
        let before = filling.div_ceil(kernel.piece_bytes()) as usize + kernel.reach() + 1;
        let middle = extent.middle_bytes.div_ceil(kernel.piece_bytes()) as usize;
        let middle = middle.max(extent.middle_pieces);
        let first = 2 * kernel.reach() + 4;
        if first + 2 * middle >= pieces {
            let sweeps = middle.div_ceil(pieces);
            return Slice { before, first: sweeps * pieces, middle: 0 };
        }
        Slice { before, first, middle }
    }

    /// Touches are replayed in as many pieces.
    fn pieces(&self) -> usize {
        self.before + self.first + self.middle
    }
}

/// What was counted until some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Entered {
    /// Lines that entered each level, and those of them that are written.
    all: [f64; LINKS],
    written: [f64; LINKS],
}

impl Entered {
    fn combine(self, other: Entered, one: impl Fn(f64, f64) -> f64) -> Entered {
        let both = |a: [f64; LINKS], b: [f64; LINKS]| std::array::from_fn(|link| one(a[link], b[link]));
        Entered { all: both(self.all, other.all), written: both(self.written, other.written) }
    }
}

/// Bytes per update on the links of the levels, outermost last.
///
/// # Errors
/// When the levels cannot be simulated.
pub(super) fn moved(
    kernel: &dyn Kernel,
    levels: &Levels,
    pages: Pages,
    extent: Extent,
) -> Result<[Option<Moved>; LINKS]> {
    let mut replay = Replay::new(kernel, levels, pages)?;
    let slice = Slice::of(kernel, levels, extent);
    let pieces = kernel.pieces();
    // The sweeps before end where the first piece begins.
    let offset = slice.before.next_multiple_of(pieces) - slice.before;
    (0..slice.before).for_each(|piece| replay.piece((offset + piece) % pieces));
    let full = replay.entered();
    (0..slice.first).for_each(|piece| replay.piece(piece % pieces));
    let first = replay.entered().combine(full, |now, then| now - then);
    if slice.middle == 0 {
        let updates = kernel.updates() as f64 * slice.first as f64;
        return Ok(links(levels, first, updates));
    }
    let before = replay.entered();
    (slice.first..slice.first + slice.middle).for_each(|piece| replay.piece(piece));
    let middle = replay.entered().combine(before, |now, then| now - then);
    let times = (pieces - slice.first) as f64 / slice.middle as f64;
    let whole = first.combine(middle, |first, middle| first + times * middle);
    Ok(links(levels, whole, kernel.updates() as f64 * pieces as f64))
}

/// Millions of updates that are replayed: what a replay costs, but for the kernel.
pub(super) fn replayed_millions(kernel: &dyn Kernel, levels: &Levels, extent: Extent) -> f64 {
    Slice::of(kernel, levels, extent).pieces() as f64 * kernel.updates() as f64 / 1e6
}

fn links(levels: &Levels, entered: Entered, updates: f64) -> [Option<Moved>; LINKS] {
    let bytes = |lines: f64| lines * LINE_BYTES as f64 / updates;
    std::array::from_fn(|link| {
        if link > levels.outer.len() {
            return None;
        }
        // A level is filled with the victims of the level inside: all of them, clean ones too.
        let takes_all = levels.outer.get(link).is_some_and(|outer| outer.inclusion == Inclusion::Exclusive);
        let load = bytes(entered.all[link]);
        let evict = if takes_all { load } else { bytes(entered.written[link]) };
        Some(Moved { load, evict })
    })
}

/// A kernel on its way through a hierarchy.
struct Replay<'k> {
    kernel: &'k dyn Kernel,
    simulator: Simulator,
    touches: Touches,
}

/// Records that are handed over at once.
const BATCH: usize = 1 << 14;

impl Replay<'_> {
    fn new<'k>(kernel: &'k dyn Kernel, levels: &Levels, pages: Pages) -> Result<Replay<'k>> {
        let simulator = Simulator::of_stream(levels, &event::Stream::Full, WriteBacks::Ignored)
            .map_err(|error| anyhow!("{error}"))?;
        Ok(Replay { kernel, simulator, touches: Touches::new(pages) })
    }

    fn piece(&mut self, piece: usize) {
        for row in 0..self.kernel.rows() {
            self.kernel.push(piece, row, &mut self.touches);
            if self.touches.len() >= BATCH {
                self.hand_over();
            }
        }
    }

    fn hand_over(&mut self) {
        self.simulator.records(0, self.touches.records());
        self.touches.clear();
    }

    fn entered(&mut self) -> Entered {
        self.hand_over();
        let counts = self.simulator.counts();
        let mut entered = Entered::default();
        for (site, misses) in (0..).zip(&counts.sites) {
            for link in 0..LINKS {
                let lines = (misses.loads[link] + misses.stores[link]) as f64;
                entered.all[link] += lines;
                entered.written[link] += if self.kernel.written() == Some(site) { lines } else { 0.0 };
            }
        }
        entered
    }
}

#[cfg(test)]
mod tests {
    use super::super::product::Product;
    use super::super::stencil::Stencil;
    use super::super::streams::Streams;
    use super::*;
    use simulate::{Geometry, Outer, Policy, Sharing};

    const SMALL: Extent = Extent { middle_pieces: 4, middle_bytes: 1 };
    const WHOLE: Extent = Extent { middle_pieces: 1000, middle_bytes: 1 };

    /// Levels of 4, 32 and 256 KiB: a cube of 60 elements is to them what one of 500 is to a
    /// processor.
    fn levels(policy: Policy, last: Inclusion) -> Levels {
        let cache = |kilobytes: u64, ways| Geometry::cache(kilobytes << 10, ways, 64).with_policy(policy);
        let second = Outer::new(cache(32, 8), Sharing::PerThread);
        let third = Outer { inclusion: last, ..Outer::new(cache(256, 16), Sharing::PerThread) };
        Levels { outer: vec![second, third], ..Levels::data_only(cache(4, 8)) }
    }

    fn lru() -> Levels {
        levels(Policy::LRU, Inclusion::Independent)
    }

    fn near(measured: Option<Moved>, load: f64, evict: f64) {
        let moved = measured.unwrap();
        let off = |is: f64, should: f64| (is - should).abs() > 1e-9 * should.max(1.0);
        assert!(!off(moved.load, load) && !off(moved.evict, evict), "{moved:?} instead of {load} and {evict}");
    }

    #[test]
    fn streams_move_each_array_once_and_the_written_one_twice() {
        for (name, load, evict) in [
            ("likwid-bench load", 8.0, 0.0),
            ("likwid-bench store", 8.0, 8.0),
            ("likwid-bench copy", 16.0, 8.0),
            ("likwid-bench stream", 24.0, 8.0),
            ("likwid-bench triad", 32.0, 8.0),
        ] {
            let kernel = Streams::named(name, 4, 0).unwrap();
            let links = moved(&kernel, &lru(), Pages::Contiguous, SMALL).unwrap();
            links.into_iter().for_each(|link| near(link, load, evict));
            // A victim cache takes clean lines too, and sends on the dirty ones.
            let victim = levels(Policy::LRU, Inclusion::Exclusive);
            let links = moved(&kernel, &victim, Pages::Contiguous, SMALL).unwrap();
            near(links[1], load, load);
            near(links[2], load, evict);
        }
    }

    #[test]
    fn a_star_obeys_the_layer_condition() {
        // Rows of 64 elements, 512 bytes. L1 keeps no row until the next one: five rows of `a` are
        // read anew, and `b`. L2 of 32 KiB keeps rows but no plane of 32 KiB: three planes of `a`.
        // L3 keeps planes: `a` once. Elements 1 to 62 are updated, of lines that hold 0 to 63.
        let kernel = Stencil::named("3D/r1/homogeneous/star/constant", 64, 8, 0).unwrap();
        let mut levels = lru();
        levels.data = Geometry::cache(1 << 10, 16, 64);
        let links = moved(&kernel, &levels, Pages::Contiguous, WHOLE).unwrap();
        // A row begins in the middle of a line, so that its 62 updated elements lie in 9 lines.
        let lines_per_row = 9.0;
        let row = lines_per_row * 64.0 / 62.0;
        let first = links[0].unwrap();
        assert!((first.evict - row).abs() < 1e-9, "{first:?} and {row}");
        assert!((first.load - 6.0 * row).abs() < 0.02 * 6.0 * row, "{first:?}");
        let second = links[1].unwrap();
        assert!((second.load - 4.0 * row).abs() < 0.06 * 4.0 * row, "{second:?}");
        let third = links[2].unwrap();
        assert!((third.load - 2.0 * row).abs() < 0.06 * 2.0 * row, "{third:?}");
        assert!((third.evict - row).abs() < 0.02 * row, "{third:?}");
    }

    #[test]
    fn a_slice_moves_what_the_whole_moves() {
        let names = [
            "3D/r1/homogeneous/star/constant",
            "3D/r3/homogeneous/star/constant",
            "3D/r1/heterogeneous/star/variable",
            "3D/r1/homogeneous/box/variable",
        ];
        for levels in [lru(), levels(Policy::named("plru").unwrap(), Inclusion::Inclusive)] {
            for (name, n) in names.into_iter().flat_map(|name| [60, 70].map(|n| (name, n))) {
                let kernel = Stencil::named(name, n, 4, 0).unwrap();
                assert!(Slice::of(&kernel, &levels, SMALL).middle > 0, "{name} {n} is no slice");
                agree(&kernel, &levels, 0.01, &format!("{name}, N = {n}"));
            }
            // 16 n is twice the first level, and half the second.
            for n in [300, 1000] {
                let kernel = Product::new(n, 4, 4, 0);
                agree(&kernel, &levels, 0.01, &format!("product, n = {n}"));
            }
        }
    }

    fn agree(kernel: &dyn Kernel, levels: &Levels, within: f64, what: &str) {
        let whole = Extent { middle_pieces: kernel.pieces(), ..WHOLE };
        let whole = moved(kernel, levels, Pages::Random(7), whole).unwrap();
        let slice = moved(kernel, levels, Pages::Random(7), SMALL).unwrap();
        for (link, (whole, slice)) in whole.into_iter().zip(slice).enumerate() {
            let (whole, slice) = (whole.unwrap().total(), slice.unwrap().total());
            assert!((slice / whole - 1.0).abs() < within, "{what}, link {link}: {slice} of {whole}");
        }
    }

    #[test]
    fn written_lines_that_enter_are_the_write_backs() {
        let levels = lru();
        for kernel in [
            Box::new(Stencil::named("3D/r2/isotropic/star/variable", 50, 4, 64).unwrap()) as Box<dyn Kernel>,
            Box::new(Product::new(900, 4, 4, 0)),
        ] {
            let mut replay = Replay::new(&*kernel, &levels, Pages::Contiguous).unwrap();
            replay.simulator =
                Simulator::of_stream(&levels, &event::Stream::Full, WriteBacks::Counted).unwrap();
            (0..kernel.pieces()).for_each(|piece| replay.piece(piece));
            let written = replay.entered().written;
            let counted = replay.simulator.counts().write_backs.unwrap();
            // What the levels still hold at the end has not left yet.
            let held = [4 << 10, 32 << 10, 256 << 10].map(|bytes| f64::from(bytes / 64));
            for link in 0..LINKS {
                let short = written[link] - counted[link] as f64;
                assert!((0.0..=held[link]).contains(&short), "link {link}: {written:?} and {counted:?}");
            }
            assert!(written[0] > 0.0);
        }
    }
}
