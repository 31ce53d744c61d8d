//! Finds functions for probe mode: assigns counters to metrics, and lists the functions of a module
//! from its symbol tables.
//!
//! A function has one counter even if several columns include it; a column of several functions has
//! several counters. A file other than the program or its libraries is read when it is first
//! mapped.

use super::target::{MetricTarget, Targets};
use instrument::probe::{Finder, ModuleInfo, ProbeRequest};
use instrument::Module;
use present::order::SortRows;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use symbol::{Kind, Listing};

/// Provides the functions of a run.
pub(super) struct Functions {
    targets: Arc<Targets>,
    counters: Counters,
    others: HashMap<PathBuf, Option<Listing>>,
}

/// Counters of functions.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Counters by file and link address.
    by_function: HashMap<(usize, u64), usize>,
    /// Counters of each column that consists of functions.
    pub(super) by_column: Vec<Option<Vec<usize>>>,
}

impl Counters {
    /// Counters of the functions among the first `columns`.
    pub(super) fn new(targets: &Targets, columns: usize) -> Counters {
        let mut counters = Counters::default();
        for column in targets.columns.iter().take(columns) {
            let numbers = match &column.place {
                MetricTarget::Code { file, addresses } if column.name.starts_with("fn:") => {
                    Some(addresses.iter().map(|&address| counters.number(*file, address)).collect())
                }
                _ => None,
            };
            counters.by_column.push(numbers);
        }
        counters
    }

    /// The number of counters.
    pub(super) fn len(&self) -> usize {
        self.by_function.len()
    }

    fn number(&mut self, file: usize, address: u64) -> usize {
        let next = self.by_function.len();
        *self.by_function.entry((file, address)).or_insert(next)
    }
}

impl Functions {
    /// Creates a finder of the functions with counters.
    pub(super) fn new(targets: Arc<Targets>, counters: Counters) -> Functions {
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
    fn known(&mut self, module: &Module) -> ModuleInfo {
        let own = self.targets.files.iter().position(|file| file.path == module.path);
        let mut wanted: Vec<ProbeRequest> = Vec::new();
        for (&(file, address), &counter) in &self.counters.by_function {
            if Some(file) == own {
                let entry = self.targets.files[file].mapped(module, address);
                let entry = entry.filter(|entry| (module.start..module.end).contains(entry));
                wanted.extend(entry.map(|entry| ProbeRequest { entry, counter }));
            }
        }
        wanted.sort_rows_by_key(|wanted| wanted.entry);
        let Some(listing) = self.listing(module) else { return ModuleInfo::default() };
        let code = listing.names.iter().filter(|named| named.kind != Kind::Variable);
        let mut starts: Vec<u64> = code.filter_map(|named| listing.mapped(module, named.address)).collect();
        starts.sort_unstable();
        starts.dedup();
        let text = listing.text.iter();
        let text = text
            .filter_map(|text| Some(listing.mapped(module, text.start)?..listing.mapped(module, text.end)?))
            .collect();
        ModuleInfo { wanted, starts, text }
    }

    fn entry(&mut self, module: &Module, name: &str) -> Option<u64> {
        let listing = self.listing(module)?;
        let named = listing.names.iter().find(|named| named.kind == Kind::Function && named.name == name)?;
        listing.mapped(module, named.address)
    }
}
