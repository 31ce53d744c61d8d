//! Variables of a program's files: which of them holds an address.
//!
//! Instrumentation code reads the symbols of each file in which code runs, and hands its variables
//! over; the analysis side finds them by the page of an address. What a file has no symbol for
//! belongs to the section around it. **Leaves out** variables of single threads, and files without
//! code that has run.

use instrument::Module;
use std::ops::Range;
use std::path::PathBuf;
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

/// All variables that are known, by address.
#[derive(Default)]
pub(crate) struct Globals {
    pub(crate) all: Vec<Variable>,
    /// Whether each shares bytes with no other variable.
    alone: Vec<bool>,
    /// Variables with names that lie in a page, by number, sorted by address; then sections.
    pages: ByNumber<u64, Vec<u32>>,
}

impl Globals {
    /// Adds the variables of a file.
    pub(crate) fn add(&mut self, variables: Vec<Variable>) {
        let first = self.all.len();
        self.all.extend(variables);
        self.mark_alone(first);
        let mut changed = Vec::new();
        for number in first..self.all.len() {
            let range = &self.all[number].range;
            for page in range.start >> PAGE_BITS..=(range.end.max(range.start + 1) - 1) >> PAGE_BITS {
                self.pages.entry(page).or_default().push(number as u32);
                changed.push(page);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for page in changed {
            if let Some(numbers) = self.pages.get_mut(&page) {
                numbers.sort_unstable_by_key(|&number| {
                    let Variable { range, kind, .. } = &self.all[number as usize];
                    (*kind == VariableKind::Section, range.start, range.end)
                });
            }
        }
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

    /// Nothing lies anywhere any more; numbers stay.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
    }

    /// The number of the variable that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let numbers = self.pages.get(&(address >> PAGE_BITS))?;
        let of = |number: &u32| &self.all[*number as usize];
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
        let mut globals = Globals::default();
        globals.add(vec![
            variable(".data", 0x5000..0x7000, VariableKind::Section),
            variable("first", 0x5010..0x5020, VariableKind::Named),
            variable("large", 0x5800..0x6800, VariableKind::Named),
        ]);
        globals.add(vec![variable("other", 0x9000..0x9004, VariableKind::Named)]);
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
            let found = globals.find(address).map(|number| globals.all[number as usize].name.as_str());
            assert_eq!(found, expected, "{address:#x}");
        }
    }

    #[test]
    fn a_variable_is_alone_if_none_of_its_file_shares_a_byte() {
        let mut globals = Globals::default();
        globals.add(vec![
            variable(".data", 0x5000..0x7000, VariableKind::Section),
            variable("around", 0x5000..0x5100, VariableKind::Named),
            variable("within", 0x5010..0x5020, VariableKind::Named),
            variable("at its end", 0x50f0..0x5110, VariableKind::Named),
            variable("behind", 0x5110..0x5120, VariableKind::Named),
            variable("alias", 0x5200..0x5210, VariableKind::Named),
            variable("other alias", 0x5200..0x5210, VariableKind::Named),
        ]);
        globals.add(vec![variable("of another file", 0x9000..0x9008, VariableKind::Named)]);
        let alone: Vec<&str> = (0..globals.all.len() as u32)
            .filter(|&number| globals.is_alone(number))
            .map(|number| globals.all[number as usize].name.as_str())
            .collect();
        assert_eq!(alone, ["behind", "of another file"]);
    }
}
