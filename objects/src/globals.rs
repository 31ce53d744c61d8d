//! Variables of a program's files: which of them holds an address.
//!
//! Instrumentation code reads the symbols of each file in which code runs, and hands its variables
//! over; the analysis side finds them by the page of an address. A file that several images have
//! mapped at one place has one set of variables ([`Variables`]); each image has pages of its own
//! ([`Globals`]), which a forked child shares with its maker until one of them maps a file. What a
//! file has no symbol for belongs to the section around it. **Leaves out** variables of single
//! threads, and files without code that has run.

use instrument::Module;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use symbol::{ByNumber, Kind, Listing};

const PAGE_BITS: u32 = 12;

/// A variable, or a section of data that holds variables without names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its symbol, or the name of the section.
    pub(crate) name: String,
    /// Its addresses in the running program.
    pub(crate) range: Range<u64>,
    /// Its address in the file.
    pub(crate) link_address: u64,
    pub(crate) kind: VariableKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableKind {
    Named,
    /// What a section holds besides named variables.
    Section,
}

/// The variables of a file that is mapped as `module`.
pub(crate) fn variables(module: &Module, listing: &Listing) -> Vec<Variable> {
    let mapped = |range: Range<u64>| {
        let start = listing.mapped(module, range.start)?;
        Some(start..start.checked_add(range.end - range.start)?)
    };
    let named = listing.names.iter().filter(|named| named.kind == Kind::Variable && named.size_bytes > 0);
    let named = named
        .map(|named| (named.name.as_str(), named.address..named.address.saturating_add(named.size_bytes)));
    let sections = listing.data.iter().map(|(name, range)| (name.as_str(), range.clone()));
    let variable = |kind| {
        let (path, mapped) = (&module.path, &mapped);
        move |(name, link): (&str, Range<u64>)| {
            let (name, link_address, path) = (name.to_owned(), link.start, path.clone());
            Some(Variable { path, name, range: mapped(link)?, link_address, kind })
        }
    };
    let named = named.filter_map(variable(VariableKind::Named));
    named.chain(sections.filter_map(variable(VariableKind::Section))).collect()
}

/// All variables of a run.
#[derive(Default)]
pub(crate) struct Variables {
    pub(crate) all: Vec<Variable>,
    /// Whether each shares bytes with no other variable of its file.
    alone: Vec<bool>,
    /// The numbers of the variables of a module, by the module's number.
    of_modules: Vec<(u32, Range<u32>)>,
}

/// The variables of an image, by address.
#[derive(Clone, Default)]
pub(crate) struct Globals {
    /// Variables with names that lie in a page, by number, sorted by address; then sections.
    pages: Arc<ByNumber<u64, Vec<u32>>>,
}

impl Variables {
    /// Adds the variables of the module with a number.
    pub(crate) fn add(&mut self, module: u32, variables: Vec<Variable>) {
        let first = self.all.len();
        self.all.extend(variables);
        self.mark_alone(first);
        self.of_modules.push((module, first as u32..self.all.len() as u32));
    }

    /// The numbers of the variables of a module, if its symbols were read.
    pub(crate) fn of_module(&self, module: u32) -> Option<Range<u32>> {
        self.of_modules.iter().find(|of| of.0 == module).map(|of| of.1.clone())
    }

    /// How many modules have variables.
    pub(crate) fn modules(&self) -> usize {
        self.of_modules.len()
    }

    /// Marks those of the variables from `first` on, which are of one file, that share bytes with
    /// none of them.
    fn mark_alone(&mut self, first: usize) {
        self.alone.extend(self.all[first..].iter().map(|variable| variable.kind == VariableKind::Named));
        let mut sorted: Vec<usize> = (first..self.all.len()).filter(|&number| self.alone[number]).collect();
        sorted.sort_unstable_by_key(|&number| self.all[number].range.start);
        // The one that reaches farthest so far.
        let mut farthest: Option<usize> = None;
        for number in sorted {
            let range = &self.all[number].range;
            match farthest.filter(|&before| self.all[before].range.end > range.start) {
                Some(before) => (self.alone[before], self.alone[number]) = (false, false),
                None => farthest = Some(number),
            }
            if farthest.is_none_or(|before| self.all[before].range.end < range.end) {
                farthest = Some(number);
            }
        }
    }

    /// Whether all bytes of a variable are of no other one.
    pub(crate) fn is_alone(&self, number: u32) -> bool {
        self.alone[number as usize]
    }
}

impl Globals {
    /// Adds those of all variables that have these numbers.
    pub(crate) fn add(&mut self, all: &[Variable], numbers: Range<u32>) {
        let pages = Arc::make_mut(&mut self.pages);
        let mut changed = Vec::new();
        for number in numbers {
            let range = &all[number as usize].range;
            for page in range.start >> PAGE_BITS..=(range.end.max(range.start + 1) - 1) >> PAGE_BITS {
                let known = pages.entry(page).or_default();
                // A forked child is told of the files that it has from its maker.
                if !known.contains(&number) {
                    known.push(number);
                    changed.push(page);
                }
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for page in changed {
            if let Some(numbers) = pages.get_mut(&page) {
                numbers.sort_unstable_by_key(|&number| {
                    let Variable { range, kind, .. } = &all[number as usize];
                    (*kind == VariableKind::Section, range.start, range.end)
                });
            }
        }
    }

    /// The number of the variable of these that holds an address.
    pub(crate) fn find(&self, all: &[Variable], address: u64) -> Option<u32> {
        let numbers = self.pages.get(&(address >> PAGE_BITS))?;
        let of = |number: &u32| &all[*number as usize];
        let holds = |number: &&u32| of(number).range.contains(&address);
        let behind = numbers.partition_point(|number| {
            of(number).kind == VariableKind::Named && of(number).range.start <= address
        });
        // An alias or a smaller variable may begin between the one that holds it and the address.
        let named = numbers[..behind].iter().rev().take(4).find(holds);
        let sections = || {
            numbers[behind..].iter().find(|number| holds(number) && of(number).kind == VariableKind::Section)
        };
        named.or_else(sections).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, range: Range<u64>, kind: VariableKind) -> Variable {
        Variable { path: "/bin/a".into(), name: name.into(), link_address: range.start, range, kind }
    }

    #[test]
    fn an_address_belongs_to_its_variable_or_section() {
        let (mut variables, mut globals) = (Variables::default(), Globals::default());
        variables.add(
            0,
            vec![
                variable(".data", 0x5000..0x7000, VariableKind::Section),
                variable("first", 0x5010..0x5020, VariableKind::Named),
                variable("large", 0x5800..0x6800, VariableKind::Named),
            ],
        );
        variables.add(1, vec![variable("other", 0x9000..0x9004, VariableKind::Named)]);
        let all = &variables.all;
        // Those of the second file twice, as a forked child adds them.
        for module in [0, 1, 1] {
            globals.add(all, variables.of_module(module).unwrap());
        }
        for (address, expected) in [
            (0x5010, Some("first")),
            (0x501f, Some("first")),
            (0x5020, Some(".data")),
            (0x57ff, Some(".data")),
            (0x6000, Some("large")),
            (0x6800, Some(".data")),
            (0x7000, None),
            (0x9003, Some("other")),
            (0x9004, None),
        ] {
            let found = globals.find(all, address).map(|number| all[number as usize].name.as_str());
            assert_eq!(found, expected, "{address:#x}");
        }
    }

    #[test]
    fn a_variable_is_alone_if_none_of_its_file_shares_a_byte() {
        let mut variables = Variables::default();
        variables.add(
            0,
            vec![
                variable(".data", 0x5000..0x7000, VariableKind::Section),
                variable("around", 0x5000..0x5100, VariableKind::Named),
                variable("within", 0x5010..0x5020, VariableKind::Named),
                variable("at its end", 0x50f0..0x5110, VariableKind::Named),
                variable("behind", 0x5110..0x5120, VariableKind::Named),
                variable("alias", 0x5200..0x5210, VariableKind::Named),
                variable("other alias", 0x5200..0x5210, VariableKind::Named),
            ],
        );
        variables.add(1, vec![variable("of another file", 0x9000..0x9008, VariableKind::Named)]);
        let alone: Vec<&str> = (0..variables.all.len() as u32)
            .filter(|&number| variables.is_alone(number))
            .map(|number| variables.all[number as usize].name.as_str())
            .collect();
        assert_eq!(alone, ["behind", "of another file"]);
    }
}
