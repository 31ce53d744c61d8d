//! Sorted, disjoint address ranges with the symbol that each belongs to.
//!
//! **Problem.** The entries of symbol tables overlap: aliases share an address, assembly labels lie
//! inside functions, sizes are missing. **Rule.** An address belongs to the symbol that starts last
//! before it; where an inner symbol ends, the outer one resumes; a symbol without a size reaches to
//! the next one, but never cuts a symbol that has a size. One sweep over the sorted candidates
//! builds the table; a look-up is a binary search.

use std::ops::Range;

/// The source of a name. Most names are never needed, so they are not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// This offset in the string table of the symbols.
    Listed(u32),
    /// The shortest of several in the string table of the symbols, at these offsets.
    Aliases(Vec<u32>),
    /// A stub of the procedure linkage table; the name of its target is at this offset in the
    /// string table of dynamic symbols.
    Stub(u32),
    /// This text.
    Written(String),
    /// None: the function comes from the unwind tables.
    Unnamed,
}

impl Name {
    /// The name of a symbol that has both of these.
    fn or(self, alias: Name) -> Name {
        match (self, alias) {
            (Name::Listed(own), Name::Listed(other)) => Name::Aliases(vec![own, other]),
            (Name::Aliases(mut all), Name::Listed(other)) => {
                all.push(other);
                Name::Aliases(all)
            }
            (Name::Written(own), Name::Written(other)) => {
                Name::Written(if (other.len(), &other) < (own.len(), &own) { other } else { own })
            }
            (own, _) => own,
        }
    }
}

/// A symbol that may own a range of addresses.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The link addresses that it claims.
    pub(crate) range: Range<u64>,
    /// Its name.
    pub(crate) name: Name,
    /// Of several candidates at one address the one with the lowest rank gives the name.
    pub(crate) rank: u8,
    /// Whether the file states its length.
    pub(crate) size: Size,
}

/// The source of a candidate's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// The file states it.
    Stated,
    /// It is unknown: the end of the section is used.
    Guessed,
}

/// A symbol that owns at least one range.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    /// Its first link address.
    pub(crate) address: u64,
    /// Its name.
    pub(crate) name: Name,
    /// The symbolizer's number of its function, once it has one.
    pub(crate) function: Option<usize>,
}

/// A range of a symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) symbol: usize,
    pub(crate) size: Size,
}

/// A symbol that has begun before the sweep's current address and has not ended.
struct Open {
    end: u64,
    symbol: usize,
    size: Size,
}

/// The table of ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The ranges, in order.
    pub(crate) entries: Vec<Entry>,
    /// The symbols that own ranges.
    pub(crate) symbols: Vec<Symbol>,
}

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The symbol that owns the address, its range, and the reliability of the range's end.
    Symbol(usize, Range<u64>, Size),
    /// No symbol owns any address of this range.
    Gap(Range<u64>),
}

impl Table {
    /// Builds the table from candidates.
    pub(crate) fn new(candidates: Vec<Candidate>) -> Table {
        let chosen = without_covered_labels(without_aliases(candidates));
        let (entries, symbols) = (Vec::with_capacity(chosen.len()), Vec::with_capacity(chosen.len()));
        let mut table = Table { entries, symbols };
        let mut open: Vec<Open> = Vec::new();
        let mut cursor = 0;
        for candidate in chosen {
            let Range { start, end } = candidate.range;
            table.close(&mut open, &mut cursor, start);
            if let Some(outer) = open.last() {
                table.push(cursor, start, outer);
            }
            cursor = start;
            table.symbols.push(Symbol { address: start, name: candidate.name, function: None });
            open.push(Open { end, symbol: table.symbols.len() - 1, size: candidate.size });
        }
        table.close(&mut open, &mut cursor, u64::MAX);
        table
    }

    /// Ends every open symbol whose end is `limit` or lower.
    fn close(&mut self, open: &mut Vec<Open>, cursor: &mut u64, limit: u64) {
        while let Some(last) = open.pop_if(|last| last.end <= limit) {
            self.push(*cursor, last.end, &last);
            *cursor = last.end.max(*cursor);
        }
    }

    fn push(&mut self, start: u64, end: u64, open: &Open) {
        if start < end {
            self.entries.push(Entry { start, end, symbol: open.symbol, size: open.size });
        }
    }

    /// Adds functions of the unwind tables, which are sorted, in all addresses that no symbol with
    /// a stated size owns.
    pub(crate) fn fill(&mut self, frames: &[Range<u64>]) {
        let mut cuts = frames.iter().peekable();
        for entry in self.entries.iter_mut().filter(|entry| entry.size == Size::Guessed) {
            while cuts.next_if(|frame| frame.start <= entry.start).is_some() {}
            entry.end = cuts.peek().map_or(entry.end, |frame| frame.start.min(entry.end));
        }
        let mut filled = Vec::with_capacity(self.entries.len() + frames.len());
        let mut known = std::mem::take(&mut self.entries).into_iter().peekable();
        let mut cursor = 0;
        for frame in frames {
            while let Some(entry) = known.next_if(|entry| entry.start < frame.end) {
                self.unnamed(&mut filled, frame, cursor..entry.start);
                cursor = entry.end.max(cursor);
                filled.push(entry);
            }
            self.unnamed(&mut filled, frame, cursor..u64::MAX);
            cursor = cursor.max(frame.end);
        }
        filled.extend(known);
        self.entries = filled;
    }

    /// Adds the part of `frame` that lies in `gap`.
    fn unnamed(&mut self, filled: &mut Vec<Entry>, frame: &Range<u64>, gap: Range<u64>) {
        let (start, end) = (frame.start.max(gap.start), frame.end.min(gap.end));
        if start < end {
            if self
                .symbols
                .last()
                .is_none_or(|last| last.address != frame.start || last.name != Name::Unnamed)
            {
                self.symbols.push(Symbol { address: frame.start, name: Name::Unnamed, function: None });
            }
            filled.push(Entry { start, end, symbol: self.symbols.len() - 1, size: Size::Stated });
        }
    }

    /// Looks link address `address` up.
    pub(crate) fn find(&self, address: u64) -> At {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let before = after.checked_sub(1).map(|index| self.entries[index]);
        match before {
            Some(entry) if address < entry.end => {
                At::Symbol(entry.symbol, entry.start..entry.end, entry.size)
            }
            _ => {
                let end = self.entries.get(after).map_or(u64::MAX, |entry| entry.start);
                At::Gap(before.map_or(0, |entry| entry.end)..end)
            }
        }
    }

    /// Adds symbols, which do not overlap each other, as far as they begin in gaps. Cost: one sort
    /// of the table.
    pub(crate) fn insert_all(&mut self, symbols: impl Iterator<Item = (Range<u64>, Name)>) {
        let mut added = Vec::new();
        for (range, name) in symbols {
            let At::Gap(gap) = self.find(range.start) else { continue };
            let (start, end) = (range.start.max(gap.start), range.end.min(gap.end));
            self.symbols.push(Symbol { address: start, name, function: None });
            added.push(Entry { start, end, symbol: self.symbols.len() - 1, size: Size::Stated });
        }
        self.entries.extend(added);
        self.entries.sort_by_key(|entry| entry.start);
    }

    /// Adds one symbol, which must lie in a gap.
    pub(crate) fn insert(&mut self, range: Range<u64>, name: Name) -> usize {
        let at = self.entries.partition_point(|entry| entry.start < range.start);
        self.symbols.push(Symbol { address: range.start, name, function: None });
        let symbol = self.symbols.len() - 1;
        self.entries.insert(at, Entry { start: range.start, end: range.end, symbol, size: Size::Stated });
        symbol
    }
}

/// Of several candidates at one address keeps that with the best rank, then with the shortest name,
/// and gives it the longest stated size.
fn without_aliases(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.retain(|c| c.range.start < c.range.end);
    // Whole candidates are long to move, and a library has tens of thousands. Of equal ones the
    // first stays the first.
    let mut order: Vec<(u64, u8, u32)> =
        candidates.iter().zip(0..).map(|(c, index)| (c.range.start, c.rank, index)).collect();
    order.sort_unstable();
    let mut unsorted: Vec<Option<Candidate>> = candidates.into_iter().map(Some).collect();
    let sorted = order.iter().filter_map(|&(_, _, index)| unsorted[index as usize].take());
    let mut candidates: Vec<Candidate> = Vec::with_capacity(order.len());
    candidates.extend(sorted);
    candidates.dedup_by(|alias, kept| {
        let same = alias.range.start == kept.range.start;
        if same && alias.size == Size::Stated {
            let end = if kept.size == Size::Stated { kept.range.end } else { 0 };
            kept.range.end = alias.range.end.max(end);
            kept.size = Size::Stated;
        }
        if same && alias.rank == kept.rank {
            let take = |name: &mut Name| std::mem::replace(name, Name::Unnamed);
            let (own, other) = (take(&mut kept.name), take(&mut alias.name));
            kept.name = own.or(other);
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
        Candidate { range: start..end, name: Name::Written(name.into()), rank: 0, size: Size::Stated }
    }

    fn guessed(start: u64, end: u64, name: &str) -> Candidate {
        Candidate { size: Size::Guessed, ..stated(start, end, name) }
    }

    fn table(candidates: Vec<Candidate>) -> Table {
        Table::new(candidates)
    }

    #[test]
    fn names_of_one_address_and_rank_wait_until_one_is_needed() {
        let listed = |offset| Candidate { name: Name::Listed(offset), ..stated(10, 20, "") };
        let weak = Candidate { rank: 1, ..listed(9) };
        let table = table(vec![listed(5), weak, listed(3), listed(7), stated(30, 40, "alone")]);
        let names: Vec<&Name> = table.symbols.iter().map(|symbol| &symbol.name).collect();
        assert_eq!(names, [&Name::Aliases(vec![5, 3, 7]), &Name::Written("alone".into())]);
    }

    fn name(table: &Table, address: u64) -> Option<&str> {
        match table.find(address) {
            At::Symbol(symbol, range, _) => {
                assert!(range.contains(&address));
                match &table.symbols[symbol].name {
                    Name::Written(name) => Some(name),
                    _ => Some("?"),
                }
            }
            At::Gap(range) => {
                assert!(range.contains(&address));
                None
            }
        }
    }

    #[test]
    fn an_outer_symbol_resumes_after_an_inner_one() {
        let table = table(vec![stated(10, 50, "outer"), stated(20, 30, "inner"), stated(60, 70, "next")]);
        let names: Vec<_> = [9, 10, 20, 29, 30, 49, 50, 60, 70].map(|a| name(&table, a)).into();
        let (o, i, n) = (Some("outer"), Some("inner"), Some("next"));
        assert_eq!(names, [None, o, i, i, o, o, None, n, None]);
    }

    #[test]
    fn overlapping_symbols_stay_disjoint() {
        let table = table(vec![stated(10, 30, "a"), stated(20, 40, "b"), stated(25, 26, "c")]);
        let names: Vec<_> = [19, 20, 25, 26, 39, 40].map(|a| name(&table, a)).into();
        assert_eq!(names, [Some("a"), Some("b"), Some("c"), Some("b"), Some("b"), None]);
    }

    #[test]
    fn a_label_reaches_to_the_next_symbol_but_never_cuts_one() {
        let table = table(vec![stated(10, 20, "f"), guessed(15, 90, "label"), guessed(30, 90, "start")]);
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
        let table = table(vec![alias, best]);
        assert_eq!(name(&table, 19), Some("memcpy"));
        assert_eq!(name(&table, 20), None);
    }

    #[test]
    fn a_gap_can_be_filled() {
        let mut table = table(vec![stated(10, 20, "a"), stated(40, 50, "b")]);
        assert_eq!(table.find(25), At::Gap(20..40));
        table.insert(22..30, Name::Written("found".into()));
        assert_eq!(name(&table, 25), Some("found"));
        assert_eq!(table.find(35), At::Gap(30..40));
    }

    #[test]
    fn frames_fill_what_no_symbol_claims() {
        let mut table = table(vec![stated(10, 20, "a"), guessed(40, 90, "label"), stated(95, 99, "b")]);
        table.fill(&[5..8, 10..30, 50..60, 60..70, 94..100]);
        let names: Vec<_> =
            [4, 5, 8, 10, 20, 29, 30, 40, 49, 50, 65, 70, 94, 95, 99, 100].map(|a| name(&table, a)).into();
        let (a, label, b, frame) = (Some("a"), Some("label"), Some("b"), Some("?"));
        let expected = [
            None, frame, None, a, frame, frame, None, label, label, frame, frame, None, frame, b, frame, None,
        ];
        assert_eq!(names, expected);
    }
}
