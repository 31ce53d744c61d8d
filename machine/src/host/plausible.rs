//! Recognises reported sizes that are impossible.
//!
//! **What.** No processor has an outer level that is hardly larger than the next inner one. If one
//! is reported, the report uses other units than the reader assumes (as for Zen 5's TLBs), or a
//! hypervisor made it up. Such a level is replaced by the default of the core's family, and its
//! origin says why. **Why this way.** Only the doubtful level is replaced, because the others are
//! as reliable as before. **Leaves out** sizes that are wrong but possible: nothing here is
//! measured.

use super::assumed::Core;
use crate::machine::sort_few;
use crate::{Cache, FieldSource, Machine, Origin, Tlb, TlbKind};

/// A second-level TLB has at least this many times the entries of the first level. Existing ones
/// have 4 times (Skylake's buffers for pages of 1 GB) to 48 times (Zen 4).
const TLB_RATIO_MIN: u32 = 2;

impl Machine {
    /// Replaces the reported levels that are impossible.
    pub(super) fn distrust(&mut self, core: &Core) {
        if self.is_reported("cache") {
            while let Some((index, doubt)) = self.doubtful_cache() {
                self.replace_cache(index, &doubt, core);
            }
        }
        if self.is_reported("tlb") {
            for kind in [TlbKind::Data, TlbKind::Instruction, TlbKind::Unified] {
                if let Some(doubt) = self.doubtful_tlb(kind) {
                    self.replace_outer_tlbs(kind, &doubt, core);
                }
            }
        }
    }

    fn is_reported(&self, field: &str) -> bool {
        self.source_of(field).is_some_and(|source| source.origin == Origin::Reported)
    }

    /// The index of a cache that is no larger than an inner one, and a sentence that says so.
    fn doubtful_cache(&self) -> Option<(usize, String)> {
        for (index, outer) in self.caches.iter().enumerate() {
            let feeds = |inner: &Cache| {
                inner.holds_data() && outer.holds_data()
                    || inner.holds_instructions() && outer.holds_instructions()
            };
            let inside = self.caches.iter().filter(|inner| inner.level < outer.level && feeds(inner));
            let large = inside.max_by_key(|inner| inner.size_bytes);
            let Some(large) = large.filter(|inner| inner.size_bytes >= outer.size_bytes) else { continue };
            let sizes = (outer.size_bytes >> 10, large.size_bytes >> 10);
            let (name, inner) = (outer.name(), large.name());
            let doubt = format!("{name} of {} KiB behind {inner} of {} KiB", sizes.0, sizes.1);
            return Some((index, doubt));
        }
        None
    }

    /// Replaces an impossible cache by the family's default, or removes it if that would be no
    /// larger than the inner level either.
    fn replace_cache(&mut self, index: usize, doubt: &str, core: &Core) {
        let old = self.caches.remove(index);
        let inside = |cache: &&Cache| cache.level < old.level;
        let inner_bytes = self.caches.iter().filter(inside).map(|cache| cache.size_bytes).max();
        let same = |cache: &Cache| cache.level == old.level && cache.kind == old.kind;
        let fits = |cache: &Cache| same(cache) && Some(cache.size_bytes) > inner_bytes;
        self.caches.extend(core.caches().into_iter().find(fits));
        self.sort_caches();
        self.note_doubt(&format!("cache.{}", old.name()), doubt, core);
    }

    /// Why one of the second-level TLBs of `kind` is impossible; `None` if they all are possible.
    fn doubtful_tlb(&self, kind: TlbKind) -> Option<String> {
        let outer = self.tlbs.iter().filter(|tlb| tlb.level == 2 && tlb.kind == kind);
        outer.flat_map(|outer| outer.page_bytes.iter().map(move |&page| (outer, page))).find_map(
            |(outer, page)| {
                let inside = self.tlbs.iter().filter(|tlb| tlb.level == 1 && tlb.translates(page));
                let feeds = |tlb: &&Tlb| kind == TlbKind::Unified || tlb.kind == kind;
                let large = inside.filter(feeds).max_by_key(|inner| inner.entries)?;
                (outer.entries < TLB_RATIO_MIN.saturating_mul(large.entries)).then(|| {
                    let (name, inner) = (outer.name(), large.name());
                    let (entries, inside) = (outer.entries, large.entries);
                    format!("{name} of {entries} entries behind {inner} of {inside}")
                })
            },
        )
    }

    /// Replaces an impossible second-level TLB by the family's default, for the same page sizes.
    fn replace_outer_tlbs(&mut self, kind: TlbKind, doubt: &str, core: &Core) {
        let (doubtful, kept): (Vec<Tlb>, Vec<Tlb>) =
            self.tlbs.drain(..).partition(|tlb| tlb.level == 2 && tlb.kind == kind);
        self.tlbs = kept;
        let mut stand_ins = core.tlbs(self.base_page_bytes());
        stand_ins.retain(|tlb| tlb.level == 2 && (tlb.kind == kind || tlb.kind == TlbKind::Unified));
        let Some(mut stand_in) = stand_ins.pop() else { return };
        stand_in.kind = kind;
        stand_in.page_bytes = doubtful.iter().flat_map(|tlb| tlb.page_bytes.iter().copied()).collect();
        stand_in.page_bytes.sort_unstable();
        stand_in.page_bytes.dedup();
        let fields = format!("tlb.{}", stand_in.name());
        self.tlbs.push(stand_in);
        if self.doubtful_tlb(kind).is_some() {
            // The family's does not fit the reported first level either: no second level is known.
            self.tlbs.pop();
        }
        sort_few(&mut self.tlbs, |tlb| tlb.level);
        self.note_doubt(&fields, doubt, core);
    }

    /// Marks `field` as assumed, and notes why the reported value is not used.
    fn note_doubt(&mut self, field: &str, doubt: &str, core: &Core) {
        let note = format!("reported is {doubt}, which cannot be; {}", core.note());
        let doubted = FieldSource::new(field, Origin::Assumed, note);
        let inside = |path: &str| path.strip_prefix(field).is_some_and(|rest| rest.starts_with('.'));
        self.sources.retain(|source| source.field != field && !inside(&source.field));
        self.sources.push(doubted);
    }
}
