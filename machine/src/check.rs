//! Checks that a machine's description is consistent. Every constructor ends here, so that users of
//! a machine need no checks of their own.

use crate::{Cache, Error, Geometry, Inclusion, Machine, StoreMiss, Tlb};

impl Machine {
    /// Checks what the documentation of the fields promises: whole sets, powers of two where
    /// addresses are split, one cache per level and kind, lines that do not become shorter
    /// outwards.
    ///
    /// # Errors
    /// The first field that breaks a promise.
    pub fn check(&self) -> Result<(), Error> {
        self.check_pages()?;
        self.caches.iter().try_for_each(check_cache)?;
        self.check_levels()?;
        self.check_inclusion()?;
        self.tlbs.iter().try_for_each(|tlb| self.check_tlb(tlb))?;
        if self.threads_per_core == 0 {
            return Err(wrong("threads_per_core", "0", "at least 1"));
        }
        let unknown = self.features.iter().find(|name| !crate::FEATURES.contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(wrong("features", &format!("\"{name}\" is unknown"), &crate::FEATURES.join(", ")));
        }
        self.check_cycle()
    }

    fn check_pages(&self) -> Result<(), Error> {
        if self.page_bytes.is_empty() {
            return Err(wrong("page_bytes", "no page size", "at least one, such as [4096]"));
        }
        check_page_list("page_bytes", &self.page_bytes)
    }

    /// Kinds may not overlap at a level, and a line may not be shorter than an inner one.
    fn check_levels(&self) -> Result<(), Error> {
        for (index, outer) in self.caches.iter().enumerate() {
            for inner in &self.caches[..index] {
                let overlap = (inner.holds_data() && outer.holds_data())
                    || (inner.holds_instructions() && outer.holds_instructions());
                let field = format!("cache.{}", outer.name());
                if overlap && inner.level == outer.level {
                    let problem = format!("stands beside {} at the same level", inner.name());
                    return Err(wrong(&field, &problem, "one cache per level and kind"));
                }
                if overlap && inner.line_bytes > outer.line_bytes {
                    let problem = format!("{} is less than {} has", outer.line_bytes, inner.name());
                    let expected = "lines that do not shrink outwards";
                    return Err(wrong(&format!("{field}.line_bytes"), &problem, expected));
                }
            }
        }
        Ok(())
    }

    /// A first level has no inner level, so it is neither inclusive nor exclusive. An inclusive
    /// level holds no less than each level inside. An exclusive level is filled by the next inner
    /// level: their lines have equal lengths, the inner level allocates for stores, and the
    /// exclusive one neither bypasses nor prefetches.
    fn check_inclusion(&self) -> Result<(), Error> {
        for cache in self.caches.iter().filter(|cache| cache.behaviour.inclusion != Inclusion::Independent) {
            let field = |name: &str| format!("cache.{}.{name}", cache.name());
            let inside = self.caches.iter().filter(|inner| inner.level < cache.level);
            let Some(next) = inside.clone().map(|inner| inner.level).max() else {
                let problem = format!("{} has no level inside", cache.name());
                return Err(wrong(&field("inclusion"), &problem, "an outer level"));
            };
            let held = |inner: &&Cache| {
                (inner.holds_data() && cache.holds_data())
                    || (inner.holds_instructions() && cache.holds_instructions())
            };
            let larger = inside.clone().filter(held).find(|inner| inner.size_bytes > cache.size_bytes);
            if let Some(inner) = larger.filter(|_| cache.behaviour.inclusion == Inclusion::Inclusive) {
                let problem = format!("{} is less than {} holds", cache.size_bytes, inner.name());
                let expected = format!("at least {} in an inclusive level", inner.size_bytes);
                return Err(wrong(&field("size_bytes"), &problem, &expected));
            }
            if cache.behaviour.inclusion != Inclusion::Exclusive {
                continue;
            }
            for inner in inside.filter(|inner| inner.level == next) {
                if inner.line_bytes != cache.line_bytes || inner.store_miss == StoreMiss::Bypass {
                    let problem = format!("exclusive behind {}", inner.name());
                    let expected = "a level inside with lines of the same length that allocates for stores";
                    return Err(wrong(&field("inclusion"), &problem, expected));
                }
            }
            if !cache.behaviour.prefetch.is_none() || cache.store_miss == StoreMiss::Bypass {
                let problem = "an exclusive level is filled by the level inside";
                return Err(wrong(&field("inclusion"), problem, "no prefetcher and no bypass beside it"));
            }
        }
        Ok(())
    }

    fn check_tlb(&self, tlb: &Tlb) -> Result<(), Error> {
        let field = |name: &str| format!("tlb.{}.{name}", tlb.name());
        if !(1..=2).contains(&tlb.level) {
            return Err(wrong(&field("level"), &tlb.level.to_string(), "1 or 2"));
        }
        if tlb.page_bytes.is_empty() {
            return Err(wrong(&field("page_bytes"), "no page size", "at least one, such as [4096]"));
        }
        check_page_list(&field("page_bytes"), &tlb.page_bytes)?;
        if tlb.entries == 0 {
            return Err(wrong(&field("entries"), "0", "at least 1"));
        }
        if tlb.ways == 0 || !tlb.entries.is_multiple_of(tlb.ways) {
            let problem = format!("{} does not divide {} entries", tlb.ways, tlb.entries);
            let expected = format!("a divisor of entries such as {}, or \"full\"", divisors_near(tlb));
            return Err(wrong(&field("ways"), &problem, &expected));
        }
        if let Some((problem, expected)) = tlb.replacement.problem(tlb.sets().into(), tlb.ways) {
            return Err(wrong(&field("replacement"), &problem, &expected));
        }
        // It must be clear which buffer translates a page.
        let twin = |other: &&Tlb| {
            other.level == tlb.level
                && other.kind == tlb.kind
                && other.page_bytes.iter().any(|&page| tlb.translates(page))
        };
        if self.tlbs.iter().filter(twin).count() > 1 {
            return Err(wrong(
                &field("page_bytes"),
                "another buffer has the same pages",
                "one buffer per size",
            ));
        }
        Ok(())
    }

    fn check_cycle(&self) -> Result<(), Error> {
        let Some(cycle) = self.cycle else { return Ok(()) };
        let base = cycle.base_cycles_per_instruction;
        if base.is_finite() && base >= 0.0 {
            return Ok(());
        }
        Err(wrong("cycle.base_cycles_per_instruction", &base.to_string(), "a number, 0 or more"))
    }
}

fn check_cache(cache: &Cache) -> Result<(), Error> {
    let field = |name: &str| format!("cache.{}.{name}", cache.name());
    if !(1..=4).contains(&cache.level) {
        return Err(wrong(&field("level"), &cache.level.to_string(), "1 to 4"));
    }
    if cache.shared_by_cpus == 0 {
        return Err(wrong(&field("shared_by_cpus"), "0", "at least 1"));
    }
    let shape = Geometry::new(cache.size_bytes, cache.ways, cache.line_bytes);
    shape.map(|_| ()).map_err(|problem| {
        let mut expected =
            "a size of whole sets: sets * ways * line_bytes, with lines of 2^n bytes".to_owned();
        let set_bytes = u64::from(cache.ways) * u64::from(cache.line_bytes);
        let whole_sets = |set_bytes: &u64| cache.line_bytes.is_power_of_two() && *set_bytes > 0;
        if let Some(set_bytes) = Some(set_bytes).filter(whole_sets) {
            let below = cache.size_bytes / set_bytes * set_bytes;
            let sizes = [below, below.saturating_add(set_bytes)].into_iter().filter(|size| *size > 0);
            let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
            expected += &format!("; here {}", sizes.join(" or "));
        }
        wrong(&field("size_bytes"), &problem, &expected)
    })?;
    match cache.behaviour.replacement.problem(cache.sets(), cache.ways) {
        Some((problem, expected)) => Err(wrong(&field("replacement"), &problem, &expected)),
        None => check_slices(cache)
            .map_err(|(problem, expected)| wrong(&field("slice_masks"), &problem, expected)),
    }
}

/// The problem of a cache's slices, and what would be accepted.
fn check_slices(cache: &Cache) -> Result<(), (String, &'static str)> {
    let (masks, slices) = (cache.behaviour.slices.masks(), cache.behaviour.slices.slices());
    if !cache.sets().is_multiple_of(slices) {
        return Err((format!("{slices} slices of {} sets", cache.sets()), "as many sets in each slice"));
    }
    let in_line = u64::from(cache.line_bytes) - 1;
    match masks.iter().find(|mask| **mask & in_line != 0) {
        Some(mask) => Err((
            format!("{mask:#x} has bits inside a line of {} bytes", cache.line_bytes),
            "address bits of lines",
        )),
        None => Ok(()),
    }
}

/// The divisors of a buffer's entries that are next to its ways.
fn divisors_near(tlb: &Tlb) -> String {
    let ways = tlb.ways.min(tlb.entries);
    let divides = |ways: &u32| tlb.entries.is_multiple_of(*ways);
    let (below, above) = ((1..=ways).rev().find(divides), (ways + 1..=tlb.entries).find(divides));
    let near: Vec<String> = below.into_iter().chain(above).map(|ways| ways.to_string()).collect();
    near.join(" or ")
}

fn check_page_list(field: &str, pages: &[u64]) -> Result<(), Error> {
    let expected = "ascending powers of two from 512 bytes to 2^40";
    for (index, &page) in pages.iter().enumerate() {
        let ascending = index == 0 || pages[index - 1] < page;
        if !page.is_power_of_two() || !(512..=1 << 40).contains(&page) || !ascending {
            return Err(wrong(field, &page.to_string(), expected));
        }
    }
    Ok(())
}

fn wrong(field: &str, problem: &str, expected: &str) -> Error {
    let (problem, expected) = (problem.to_string(), expected.to_string());
    Error::Field { path: None, line: None, field: field.into(), problem, expected }
}
