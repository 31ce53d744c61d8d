//! Regions: parts of a run that the program marks by code without effects.
//!
//! A marker is `nopl MAGIC(%rax)`, a jump over the region's name, and the name with a terminating
//! NUL. The jump ends the block, so a region starts and ends exactly between two blocks; no
//! register, flag or memory changes. Crate `region` and its C header contain the markers. Each
//! thread opens and closes regions separately; a region that is opened several times closes with
//! the outermost.

use instrument::tool::{BlockView, Transfer};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::FileExt;

/// The displacement of the `nop` that opens a region: `LFTB` in memory.
const OPENS: [u8; 4] = *b"LFTB";
/// The displacement of the `nop` that closes a region: `LFTE` in memory.
const CLOSES: [u8; 4] = *b"LFTE";
/// `nopl disp32(%rax)`, up to its displacement.
const NOP: [u8; 3] = [0x0f, 0x1f, 0x80];
/// Longer names are cut.
const NAME_BYTES_MAX: usize = 255;

/// A marker at the end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The region with this name opens behind the block.
    Opens(String),
    /// The region with this name closes.
    Closes(String),
}

/// The marker at the end of `block`, if there is one.
pub fn marker(block: &BlockView<'_>) -> Option<Marker> {
    let mut backwards = block.instructions().rev();
    let (jump, nop) = (backwards.next()?, backwards.next()?);
    let Transfer::Jump(target) = jump.transfer() else { return None };
    let displacement: [u8; 4] = nop.bytes().strip_prefix(&NOP)?.try_into().ok()?;
    let make = match displacement {
        OPENS => Marker::Opens,
        CLOSES => Marker::Closes,
        _ => return None,
    };
    let start = jump.address() + jump.bytes().len() as u64;
    let length = usize::try_from(target.checked_sub(start)?).ok()?.min(NAME_BYTES_MAX);
    let module = block.module();
    let mut name = vec![0; length];
    let file = std::fs::File::open(&module.path).ok()?;
    file.read_exact_at(&mut name, start.checked_sub(module.start)? + module.file_offset).ok()?;
    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(length));
    Some(make(String::from_utf8_lossy(&name).into_owned()))
}

/// Statistics about a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often it was opened, in all threads.
    pub opened: u64,
    /// How often it was closed without being open.
    pub closed_alone: u64,
    /// How many threads had it open at their end.
    pub left_open: u64,
}

/// The regions of a run, one of which is counted.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    wanted: String,
    seen: BTreeMap<String, Seen>,
    /// The nesting depth of each thread in each region.
    depths: HashMap<(u32, String), u64>,
}

impl Regions {
    /// The regions of a program; `wanted` is the one to count.
    pub fn new(wanted: &str) -> Regions {
        Regions { wanted: wanted.to_owned(), ..Regions::default() }
    }

    /// Thread `thread` passes a marker; returns whether the wanted region is now open in it.
    pub fn pass(&mut self, thread: u32, marker: &Marker) -> State {
        let (Marker::Opens(name) | Marker::Closes(name)) = marker;
        let seen = self.seen.entry(name.clone()).or_default();
        let depth = self.depths.entry((thread, name.clone())).or_default();
        match marker {
            Marker::Opens(_) => {
                seen.opened += 1;
                *depth += 1;
            }
            Marker::Closes(_) if *depth == 0 => seen.closed_alone += 1,
            Marker::Closes(_) => *depth -= 1,
        }
        self.state(thread)
    }

    /// Whether the wanted region is open in this thread.
    pub fn state(&self, thread: u32) -> State {
        match self.depths.get(&(thread, self.wanted.clone())) {
            Some(depth) if *depth > 0 => State::Open,
            _ => State::Closed,
        }
    }

    /// Opens in thread `new`, the copy of thread `maker`, the regions that are open in its maker.
    pub fn inherit(&mut self, maker: u32, new: u32) {
        let of_maker = self.depths.iter().filter(|((thread, _), _)| *thread == maker);
        let inherited: Vec<(String, u64)> =
            of_maker.map(|((_, name), depth)| (name.clone(), *depth)).collect();
        self.depths.extend(inherited.into_iter().map(|(name, depth)| ((new, name), depth)));
    }

    /// Whether the wanted region was never entered.
    pub fn never_opened(&self) -> bool {
        self.seen.get(&self.wanted).is_none_or(|seen| seen.opened == 0)
    }

    /// Warnings: the wanted region never opened; regions that were not closed, or closed without
    /// being open.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.never_opened() {
            let others: Vec<&str> =
                self.seen.keys().filter(|name| **name != self.wanted).map(String::as_str).collect();
            let others = match others.as_slice() {
                [] => "the program passed no marker of any".to_owned(),
                others => format!("the program's regions are {}", others.join(", ")),
            };
            warnings.push(format!("region {} never opened, so nothing was counted: {others}", self.wanted));
        }
        for (name, seen) in &self.seen {
            let open: u64 =
                self.depths.iter().filter(|((_, of), _)| of == name).map(|(_, depth)| depth).sum();
            if open > 0 {
                warnings
                    .push(format!("region {name} was still open at the end, {open} deep: it never closed"));
            }
            if seen.closed_alone > 0 {
                let times = seen.closed_alone;
                warnings
                    .push(format!("region {name} was closed {times} times without being open in its thread"));
            }
        }
        warnings
    }
}

/// Whether a region is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The region is open.
    Open,
    /// The region is not open.
    #[default]
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(name: &str) -> Marker {
        Marker::Opens(name.into())
    }

    fn closes(name: &str) -> Marker {
        Marker::Closes(name.into())
    }

    #[test]
    fn a_region_nests_and_belongs_to_its_thread() {
        let mut regions = Regions::new("a");
        let states: Vec<State> = [opens("a"), opens("b"), opens("a"), closes("a"), closes("b"), closes("a")]
            .iter()
            .map(|marker| regions.pass(1, marker))
            .collect();
        assert_eq!(states[..5], [State::Open; 5]);
        assert_eq!(states[5], State::Closed);
        assert_eq!(regions.pass(2, &opens("b")), State::Closed);
        let warnings = regions.warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("region b was still open"), "{warnings:?}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut regions = Regions::new("lookup");
        assert!(regions.warnings()[0].contains("no marker"));
        regions.pass(0, &closes("look"));
        let warnings = regions.warnings().join("; ");
        assert!(
            warnings.contains("lookup never opened") && warnings.contains("regions are look"),
            "{warnings}"
        );
        assert!(warnings.contains("closed 1 times without"), "{warnings}");
    }
}
