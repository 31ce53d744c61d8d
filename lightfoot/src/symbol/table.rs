//! Sorted, disjoint address ranges with the symbol that each belongs to.
//!
//! Symbol tables overlap: aliases share an address, assembly labels lie inside functions, sizes are missing. The rule here: the
//! symbol that starts last owns an address, an outer one resumes where an inner one ends, and a symbol without a size reaches to
//! the next one but never cuts a symbol that has a size. One sweep over the sorted candidates builds it; a look-up is a binary search.

use std::ops::Range;

/// What a symbol table offers.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Where it claims to be.
    pub(super) range: Range<u64>,
    /// Its name as the file has it.
    pub(super) name: String,
    /// Which of several at one address gives the name: the lowest.
    pub(super) rank: u8,
    /// Whether the file says how long it is.
    pub(super) size: Size,
}

/// Where a candidate's end comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// The file.
    Stated,
    /// The end of the section.
    Guessed,
}

/// A symbol that owns at least one range.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    /// First address.
    pub(super) address: u64,
    /// Name as the file has it.
    pub(super) name: String,
    /// The number under which the symbolizer knows it, once it does.
    pub(super) function: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    end: u64,
    symbol: usize,
}

/// The ranges.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// Symbols that the ranges refer to.
    pub(super) symbols: Vec<Symbol>,
}

/// What lies at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This symbol, over this range.
    Symbol(usize, Range<u64>),
    /// No symbol in this range.
    Gap(Range<u64>),
}

impl Table {
    /// Makes ranges disjoint.
    pub(super) fn new(candidates: Vec<Candidate>) -> Table {
        let chosen = without_covered_labels(without_aliases(candidates));
        let mut table = Table::default();
        let mut open: Vec<(u64, usize)> = Vec::new();
        let mut cursor = 0;
        for candidate in chosen {
            let Range { start, end } = candidate.range;
            table.close(&mut open, &mut cursor, start);
            if let Some(&(_, outer)) = open.last() {
                table.push(cursor, start, outer);
            }
            cursor = start;
            table.symbols.push(Symbol { address: start, name: candidate.name, function: None });
            open.push((end, table.symbols.len() - 1));
        }
        table.close(&mut open, &mut cursor, u64::MAX);
        table
    }

    /// Ends every open range that ends by `limit`.
    fn close(&mut self, open: &mut Vec<(u64, usize)>, cursor: &mut u64, limit: u64) {
        while let Some(&(end, symbol)) = open.last() {
            if end > limit {
                break;
            }
            self.push(*cursor, end, symbol);
            *cursor = end.max(*cursor);
            open.pop();
        }
    }

    fn push(&mut self, start: u64, end: u64, symbol: usize) {
        if start < end {
            self.entries.push(Entry { start, end, symbol });
        }
    }

    /// What lies at `address`.
    pub(super) fn find(&self, address: u64) -> Found {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let before = after.checked_sub(1).map(|index| self.entries[index]);
        match before {
            Some(entry) if address < entry.end => Found::Symbol(entry.symbol, entry.start..entry.end),
            _ => {
                let end = self.entries.get(after).map_or(u64::MAX, |entry| entry.start);
                Found::Gap(before.map_or(0, |entry| entry.end)..end)
            }
        }
    }

    /// Adds one symbol, which must lie in a gap.
    pub(super) fn insert(&mut self, range: Range<u64>, name: String) -> usize {
        let at = self.entries.partition_point(|entry| entry.start < range.start);
        self.symbols.push(Symbol { address: range.start, name, function: None });
        let symbol = self.symbols.len() - 1;
        self.entries.insert(at, Entry { start: range.start, end: range.end, symbol });
        symbol
    }
}

/// Of several candidates at one address the best name, with the longest stated size.
fn without_aliases(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.retain(|c| c.range.start < c.range.end);
    candidates.sort_by(|a, b| {
        (a.range.start, a.rank, a.name.len(), &a.name).cmp(&(b.range.start, b.rank, b.name.len(), &b.name))
    });
    candidates.dedup_by(|alias, kept| {
        let same = alias.range.start == kept.range.start;
        if same && alias.size == Size::Stated {
            let end = if kept.size == Size::Stated { kept.range.end } else { 0 };
            kept.range.end = alias.range.end.max(end);
            kept.size = Size::Stated;
        }
        same
    });
    candidates
}

/// Drops labels without a size that lie inside a symbol that has one.
fn without_covered_labels(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut covered_to = 0;
    candidates.retain(|c| match c.size {
        Size::Stated => {
            covered_to = covered_to.max(c.range.end);
            true
        }
        Size::Guessed => c.range.start >= covered_to,
    });
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(start: u64, end: u64, name: &str) -> Candidate {
        Candidate { range: start..end, name: name.into(), rank: 0, size: Size::Stated }
    }

    fn guessed(start: u64, end: u64, name: &str) -> Candidate {
        Candidate { size: Size::Guessed, ..stated(start, end, name) }
    }

    fn name(table: &Table, address: u64) -> Option<&str> {
        match table.find(address) {
            Found::Symbol(symbol, range) => {
                assert!(range.contains(&address));
                Some(&table.symbols[symbol].name)
            }
            Found::Gap(range) => {
                assert!(range.contains(&address));
                None
            }
        }
    }

    #[test]
    fn an_outer_symbol_resumes_after_an_inner_one() {
        let table =
            Table::new(vec![stated(10, 50, "outer"), stated(20, 30, "inner"), stated(60, 70, "next")]);
        let names: Vec<_> = [9, 10, 20, 29, 30, 49, 50, 60, 70].map(|a| name(&table, a)).into();
        let (o, i, n) = (Some("outer"), Some("inner"), Some("next"));
        assert_eq!(names, [None, o, i, i, o, o, None, n, None]);
    }

    #[test]
    fn overlapping_symbols_stay_disjoint() {
        let table = Table::new(vec![stated(10, 30, "a"), stated(20, 40, "b"), stated(25, 26, "c")]);
        let names: Vec<_> = [19, 20, 25, 26, 39, 40].map(|a| name(&table, a)).into();
        assert_eq!(names, [Some("a"), Some("b"), Some("c"), Some("b"), Some("b"), None]);
    }

    #[test]
    fn a_label_reaches_to_the_next_symbol_but_never_cuts_one() {
        let table = Table::new(vec![stated(10, 20, "f"), guessed(15, 90, "label"), guessed(30, 90, "start")]);
        assert_eq!(name(&table, 16), Some("f"));
        assert_eq!(name(&table, 25), None);
        assert_eq!(name(&table, 89), Some("start"));
    }

    #[test]
    fn an_alias_lends_its_size() {
        let mut best = guessed(10, 90, "memcpy");
        best.rank = 0;
        let mut alias = stated(10, 20, "__memcpy_local");
        alias.rank = 2;
        let table = Table::new(vec![alias, best]);
        assert_eq!(name(&table, 19), Some("memcpy"));
        assert_eq!(name(&table, 20), None);
    }

    #[test]
    fn a_gap_can_be_filled() {
        let mut table = Table::new(vec![stated(10, 20, "a"), stated(40, 50, "b")]);
        assert_eq!(table.find(25), Found::Gap(20..40));
        table.insert(22..30, "found".into());
        assert_eq!(name(&table, 25), Some("found"));
        assert_eq!(table.find(35), Found::Gap(30..40));
    }
}
