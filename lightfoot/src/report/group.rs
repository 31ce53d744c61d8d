//! Rows for any combination of function, line, library and opcode, added up from a tally's cells.
//!
//! A line is that of the innermost frame, as a debugger shows it; its row names that frame's function and says what it is inlined into. Where several
//! functions share a line, the row names the one with the most instructions. Code whose line is not known stands as `???`, by function,
//! because a single row for all of it would say nothing.

use super::{plain, Frame, Row};
use crate::cli::By;
use crate::symbol::{demangle, Spot, Symbolizer};
use crate::tally::{mnemonic, Cell, Counts, Grain, Tally};
use std::collections::HashMap;

/// What the cells must tell apart for `by`.
pub fn grain(by: &[By]) -> Grain {
    match (by, by.contains(&By::Line), by.contains(&By::Opcode)) {
        ([_], false, _) => Grain::None,
        (_, true, true) => Grain::LinesAndOpcodes,
        (_, true, false) => Grain::Lines,
        (_, false, _) => Grain::Opcodes,
    }
}

/// What makes two cells one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    function: Option<usize>,
    library: Option<usize>,
    line: Option<(u32, u32)>,
    opcode: Option<u16>,
}

impl Key {
    fn of(cell: &Cell, by: &[By], symbols: &Symbolizer) -> Key {
        let spot = cell.spot.map(|spot| symbols.sources().spot(spot));
        let line = spot.filter(|_| by.contains(&By::Line)).map(|spot| (spot.file, spot.line));
        let unknown = by.contains(&By::Line) && line.is_none();
        let library = symbols.functions()[cell.function].library;
        Key {
            function: (by.contains(&By::Function) || unknown).then_some(cell.function),
            library: by.contains(&By::Library).then_some(library),
            line,
            opcode: cell.opcode.filter(|_| by.contains(&By::Opcode)),
        }
    }
}

/// A row that grows.
struct Group {
    counts: Counts,
    /// The cell with the most instructions.
    heaviest: (u64, Cell),
}

/// The rows, in no order.
pub fn rows(by: &[By], tally: &Tally, symbols: &Symbolizer) -> Vec<Row> {
    let mut numbers: HashMap<Key, usize> = HashMap::new();
    let mut groups: Vec<(Key, Group)> = Vec::new();
    for (cell, counts) in &tally.cells {
        let key = Key::of(cell, by, symbols);
        let number = *numbers.entry(key).or_insert_with(|| {
            groups.push((key, Group { counts: tally.none, heaviest: (0, *cell) }));
            groups.len() - 1
        });
        let group = &mut groups[number].1;
        group.counts.add(counts);
        // Equal weights go to the lower cell, so that equal runs give equal reports.
        let before = (group.heaviest.0, std::cmp::Reverse(group.heaviest.1));
        if (counts.instructions, std::cmp::Reverse(*cell)) > before {
            group.heaviest = (counts.instructions, *cell);
        }
    }
    let mut names = Names { symbols, demangled: HashMap::new() };
    groups.iter().map(|(key, group)| names.row(by, key, group)).collect()
}

/// Demangled names, each made once.
struct Names<'a> {
    symbols: &'a Symbolizer,
    demangled: HashMap<(Kind, usize), String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Function,
    Inlined,
}

impl Names<'_> {
    fn name(&mut self, kind: Kind, index: usize) -> String {
        let symbols = self.symbols;
        let mangled = || match kind {
            Kind::Function => &symbols.functions()[index].name,
            Kind::Inlined => &symbols.sources().names()[index],
        };
        self.demangled.entry((kind, index)).or_insert_with(|| demangle(mangled())).clone()
    }

    fn row(&mut self, by: &[By], key: &Key, group: &Group) -> Row {
        let symbols = self.symbols;
        let cell = &group.heaviest.1;
        let library = symbols.functions()[cell.function].library;
        let mut row = Row {
            counts: group.counts,
            opcode: key.opcode.map(|opcode| mnemonic(opcode.into())),
            ..Row::default()
        };
        if key.line.is_some() || key.function.is_some() {
            row.name = self.name(Kind::Function, cell.function);
        }
        if let Some(function) = key.function {
            let address = symbols.functions()[function].address;
            row.address = (address != 0).then_some(address);
        }
        if key.function.is_some() || by.contains(&By::Library) || key.line.is_some() {
            row.library = Some(plain(&symbols.libraries()[library].path));
        }
        if let (Some(_), Some(spot)) = (key.line, cell.spot) {
            self.place(spot, &mut row);
        }
        if row.name.is_empty() {
            row.name = row.library.take().or_else(|| row.opcode.clone()).unwrap_or_default();
        }
        row
    }

    /// File, line and frames of a row of lines. With functions told apart the row keeps the enclosing one's name.
    fn place(&mut self, spot: u32, row: &mut Row) {
        let chain: Vec<Spot> = self.symbols.sources().chain(spot).collect();
        let file = |spot: &Spot| self.symbols.sources().files()[spot.file as usize].clone();
        row.file = Some(file(&chain[0]));
        row.line = Some(chain[0].line);
        let places: Vec<(String, u32)> = chain.iter().map(|spot| (file(spot), spot.line)).collect();
        if chain.len() == 1 {
            return;
        }
        let outermost = row.name.clone();
        for (spot, (file, line)) in chain.iter().zip(places) {
            let function = match spot.inlined {
                Some(name) => self.name(Kind::Inlined, name as usize),
                None if spot.caller.is_none() => outermost.clone(),
                None => crate::symbol::UNKNOWN.to_owned(),
            };
            row.frames.push(Frame { function, file, line });
        }
    }
}
