//! Plans which records can be left out: those that the inline filter can drop without changing the
//! simulation.
//!
//! **What.** [`plan_levels`] answers with an [`event::Stream`] and the reason as text. **Why it
//! holds.** A reference to the line that was used last in its set hits a cache of recency order and
//! changes nothing in it, and what hits the first level never reaches an outer one. So only the
//! first level and the first-level TLBs bound the filter: its sets must divide theirs (then a
//! filter set never sees less than a cache set does), its lines must be theirs. With true LRU that
//! is always possible:
//!
//! | case | plan |
//! |---|---|
//! | stores allocate in L1D | filter, stores like loads |
//! | stores bypass L1D | filter, stores never enter it |
//! | set count s, also no power of two | filter with the largest power of two that divides s |
//! | a TLB of s sets | page filter with the largest power of two that divides s |
//! | an instruction cache, and TLB if any, of 2 ways or more | the engine keeps both whole (1) |
//! | a fully associative data TLB of 2 to 256 entries | the engine keeps it whole (2) |
//! | another policy than LRU | these filters, but neither side is kept |
//! | a policy that counts repeated uses, in a first level or TLB | full stream |
//! | another prefetcher in an outer level | these filters: it sees misses of the level inside only |
//! | slices, physical pages | these filters: they move lines of outer levels |
//! | large pages | a page filter of one entry |
//! | a prefetcher in a first level; strides; inclusive and exclusive levels | full stream |
//! | write-back traffic wanted | full stream: which store made a line dirty is not recorded |
//!
//! (1) They see instructions only, and the engine knows the lines of code before it runs. (2) Where
//! it keeps the instruction side too, so that the simulator behind it has no first-level TLB. In
//! front of one of several sets the page filter drops enough, and costs the program less.
//!
//! Source: the truth table of DESIGN's system description; every row is held by `tests/filter.rs`.

use crate::policy::Repeats;
use crate::{Geometry, Inclusion, Levels, Outer, Prefetch, StoreMiss};
use event::{
    FetchFilter, Filter, ModifyFilter, PageFilter, SetFilter, StoreFilter, Stream, FETCH_LINES_MAX,
    FETCH_SETS_MAX, RESIDENT_PAGES_MAX,
};

/// The most sets of a filter: each takes 8 bytes of the program's own first-level cache.
pub const FILTER_SETS_MAX: u32 = 1024;

/// Whether write-back traffic is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBacks {
    /// They are counted, which takes the full stream.
    Counted,
    /// They are not: [`Counts::write_backs`](crate::Counts::write_backs) is `None`.
    Ignored,
}

/// A stream, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// The stream that the engine should record.
    pub stream: Stream,
    /// One sentence for the user.
    pub why: String,
}

/// The least stream from which `levels` can be simulated exactly.
pub fn plan_levels(levels: &Levels, write_backs: WriteBacks) -> StreamPlan {
    if write_backs == WriteBacks::Counted {
        let why =
            "full stream: write-back traffic depends on the first store to each line, which the filter drops";
        return StreamPlan { stream: Stream::Full, why: why.into() };
    }
    if let Some(why) = needs_all(levels) {
        return StreamPlan { stream: Stream::Full, why: format!("full stream: {why}") };
    }
    let stores = match levels.data.store_miss {
        StoreMiss::Allocate => StoreFilter::LikeLoads,
        StoreMiss::Bypass => StoreFilter::NeverEnter,
    };
    let data = set_filter(levels.data);
    let fetches = fetch_filter(levels);
    let instruction_filter = match fetches {
        FetchFilter::LastOfSet => set_filter,
        FetchFilter::FirstLevel { .. } => whole,
    };
    // Fetches are not simulated without an instruction cache; the data filter's shape then keeps
    // them few.
    let instruction = levels.instruction.map_or(data, instruction_filter);
    // A page's neighbours in a set depend on its size; the page that was used last is alone in
    // that.
    let page = |geometry: Geometry, filter: fn(Geometry) -> SetFilter| match levels.large_pages {
        Some(_) => SetFilter { sets: 1, line_bytes: geometry.line_bytes },
        None => filter(geometry),
    };
    let pages = page_filter(levels, fetches);
    let filter = Filter {
        data,
        instruction,
        data_page: levels.data_tlb.map(|geometry| page(geometry, set_filter)),
        instruction_page: levels.instruction_tlb.map(|geometry| page(geometry, instruction_filter)),
        stores,
        fetches,
        pages,
        modifies: ModifyFilter::Both,
    };
    StreamPlan { stream: Stream::Filtered(filter), why: reason(&filter) }
}

/// Why no reference may be dropped; `None` if a filter is exact.
fn needs_all(levels: &Levels) -> Option<&'static str> {
    let inclusion = |inclusion| levels.outer.iter().any(|outer| outer.inclusion == inclusion);
    let prefetches = |geometry: Geometry| !geometry.prefetch.is_none();
    let strides = |outer: &Outer| outer.geometry.prefetch.has(Prefetch::Stride);
    let first = [levels.instruction, Some(levels.data), levels.instruction_tlb, levels.data_tlb];
    if first.iter().flatten().any(|geometry| geometry.policy.repeats == Repeats::Count) {
        Some("the policy of a first level or TLB counts repeated uses of one line")
    } else if levels.instruction.is_some_and(prefetches) || prefetches(levels.data) {
        Some(
            "a first level that prefetches has lines that no reference entered, and strides are seen in hits",
        )
    } else if levels.outer.iter().any(strides) {
        Some("strides are learnt by site, and code that is translated again, as the filter's may be, has new sites")
    } else if inclusion(Inclusion::Inclusive) {
        Some("an inclusive level takes lines from the first one, so that its last line may be gone")
    } else if inclusion(Inclusion::Exclusive) {
        Some("an exclusive level moves lines")
    } else {
        None
    }
}

/// The filter in front of one cache or TLB.
fn set_filter(geometry: Geometry) -> SetFilter {
    let power = 1u64 << geometry.sets.trailing_zeros();
    SetFilter { sets: power.min(FILTER_SETS_MAX.into()) as u32, line_bytes: geometry.line_bytes }
}

/// The whole first level of the instruction side if generated code can simulate it, else last
/// lines.
fn fetch_filter(levels: &Levels) -> FetchFilter {
    let fits = |geometry: Geometry| {
        let lines = geometry.sets * u64::from(geometry.ways);
        geometry.ways > 1 && geometry.sets <= FETCH_SETS_MAX.into() && lines <= FETCH_LINES_MAX.into()
    };
    if !levels.is_plain() {
        return FetchFilter::LastOfSet;
    }
    match (levels.instruction, levels.instruction_tlb) {
        (Some(lines), None) if fits(lines) => FetchFilter::FirstLevel { line_ways: lines.ways, page_ways: 0 },
        (Some(lines), Some(pages)) if fits(lines) && fits(pages) => {
            FetchFilter::FirstLevel { line_ways: lines.ways, page_ways: pages.ways }
        }
        _ => FetchFilter::LastOfSet,
    }
}

/// The whole first-level data TLB if generated code can simulate it and also simulates the
/// instruction side: then the simulator needs no first-level TLB at all.
fn page_filter(levels: &Levels, fetches: FetchFilter) -> PageFilter {
    let Some(pages) = levels.data_tlb.filter(|_| levels.is_plain()) else { return PageFilter::LastOfSet };
    let fits = pages.sets == 1 && (2..=RESIDENT_PAGES_MAX).contains(&pages.ways);
    let keeps_fetches = fetches != FetchFilter::LastOfSet || levels.instruction_tlb.is_none();
    match fits && keeps_fetches {
        true => PageFilter::FirstLevel { ways: pages.ways },
        false => PageFilter::LastOfSet,
    }
}

/// The shape of a cache or TLB that generated code simulates.
fn whole(geometry: Geometry) -> SetFilter {
    SetFilter { sets: geometry.sets as u32, line_bytes: geometry.line_bytes }
}

fn reason(filter: &Filter) -> String {
    let shape = |filter: SetFilter| format!("{} × {} B", filter.sets, filter.line_bytes);
    let mut why = format!(
        "filtered stream: using a set's last line again changes nothing (data {}, instructions {}",
        shape(filter.data),
        shape(filter.instruction)
    );
    for (name, pages) in [("data pages", filter.data_page), ("instruction pages", filter.instruction_page)] {
        if let Some(pages) = pages {
            why += &format!(", {name} {}", shape(pages));
        }
    }
    if let FetchFilter::FirstLevel { .. } = filter.fetches {
        why +=
            "; the first level of the instruction side is kept beside the program, which records its misses";
    }
    if filter.resident_pages().is_some() {
        why += "; so is the first-level data TLB";
    }
    if filter.stores == StoreFilter::NeverEnter {
        why += "; stores that miss do not allocate, so stores never enter the filter";
    }
    why + ")"
}
