//! Tells probe mode where functions are: metrics as counters, and everything that symbol tables know of a module.
//!
//! Columns whose functions are one address (aliases) share a counter. A file that is not the program or a library of it is read when it is first mapped.

use super::target::{Mapped, Place, Targets};
use crate::symbol::{Kind, Listing};
use instrument::probe::{Finder, Known, Wanted};
use instrument::Module;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Knows the functions of a run.
pub(super) struct Functions {
    targets: Arc<Targets>,
    counters: Vec<Option<usize>>,
    others: HashMap<PathBuf, Option<Listing>>,
}

/// The counter of each column that is a function among the first `columns`.
pub(super) fn counters(targets: &Targets, columns: usize) -> Vec<Option<usize>> {
    let mut known: HashMap<(usize, u64), usize> = HashMap::new();
    let counter = |place: &Place| match place {
        Place::Code { file, addresses } => {
            let next = known.len();
            Some(*known.entry((*file, *addresses.first()?)).or_insert(next))
        }
        _ => None,
    };
    targets.columns.iter().take(columns).map(|column| &column.place).map(counter).collect()
}

impl Functions {
    /// For the columns that have a counter.
    pub(super) fn new(targets: Arc<Targets>, counters: Vec<Option<usize>>) -> Functions {
        Functions { targets, counters, others: HashMap::new() }
    }

    fn listing(&mut self, module: &Module) -> Option<&Listing> {
        let own = self.targets.files.iter().find(|file| file.path == module.path);
        if own.is_some() {
            return own;
        }
        let read = || Listing::read(&module.path);
        self.others.entry(module.path.clone()).or_insert_with(read).as_ref()
    }
}

impl Finder for Functions {
    fn known(&mut self, module: &Module) -> Known {
        let mut wanted = Vec::new();
        for mapped in self.targets.mapped(module) {
            if let Mapped::Code(column, entries) = mapped {
                let counter = self.counters.get(column).copied().flatten();
                wanted.extend(
                    counter.zip(entries.first().copied()).map(|(counter, entry)| Wanted { entry, counter }),
                );
            }
        }
        let Some(listing) = self.listing(module) else { return Known::default() };
        let code = listing.names.iter().filter(|named| named.kind != Kind::Variable);
        let mut starts: Vec<u64> = code.filter_map(|named| listing.mapped(module, named.address)).collect();
        starts.sort_unstable();
        starts.dedup();
        let text = listing.text.iter();
        let text = text
            .filter_map(|t| Some(listing.mapped(module, t.start)?..listing.mapped(module, t.end)?))
            .collect();
        Known { wanted, starts, text }
    }

    fn entry(&mut self, module: &Module, name: &str) -> Option<u64> {
        let listing = self.listing(module)?;
        let named = listing.names.iter().find(|named| named.kind == Kind::Function && named.name == name)?;
        listing.mapped(module, named.address)
    }
}
