//! Makes the rows of a table for any combination of function, line, library and opcode, from the
//! cells of a tally.
//!
//! A line is that of the innermost frame, as a debugger shows it. Its row names that frame's
//! function and the lines at which it is inlined. If several functions share a line, the row names
//! the one with the most instructions. Code without a known line has rows `???`, one for each
//! function, because a single row for all of it would not help. The costs of code that was inlined
//! at a line are a separate number beside the line's own.

use super::row::{plain, Frame, Row};
use crate::cli::By;
use crate::run::tally::{mnemonic, Cell, Counts, Grain, Tally};
use present::order::SortRows;
use std::cmp::Reverse;
use symbol::{demangle, ByNumber, SourceFrame, Symbolizer};

/// The grain of cells that rows by `by` need.
pub fn grain(by: &[By]) -> Grain {
    match (by, by.contains(&By::Line), by.contains(&By::Opcode)) {
        ([_], false, _) => Grain::None,
        (_, true, true) => Grain::LinesAndOpcodes,
        (_, true, false) => Grain::Lines,
        (_, false, _) => Grain::Opcodes,
    }
}

/// The key of a row: cells with equal keys are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    function: Option<usize>,
    library: Option<usize>,
    line: Option<(u32, u32)>,
    opcode: Option<u16>,
}

impl Key {
    fn of(cell: &Cell, by: &[By], symbols: &Symbolizer) -> Key {
        let frame = cell.frame.map(|frame| symbols.sources().frame(frame));
        let line = frame.filter(|_| by.contains(&By::Line)).map(|frame| (frame.file, frame.line));
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

/// A row while cells are added to it.
struct Group {
    counts: Counts,
    /// Costs of code that was inlined there, if any.
    inlined: Option<Box<Counts>>,
    /// The cell with the most instructions; `None` if the row has inlined code only.
    heaviest: Option<(u64, Cell)>,
    /// The first cell of the row.
    first: Cell,
}

impl Group {
    /// The cell that the row is named after.
    fn cell(&self) -> Cell {
        self.heaviest.map_or(self.first, |(_, cell)| cell)
    }

    fn with_inlined(&self) -> Option<Counts> {
        let mut all = self.counts;
        self.inlined.as_ref().map(|inlined| {
            all.add(inlined);
            all
        })
    }
}

/// All rows while cells are added to them.
struct Groups<'a> {
    by: &'a [By],
    symbols: &'a Symbolizer,
    none: Counts,
    numbers: ByNumber<Key, u32>,
    all: Vec<(Key, Group)>,
}

impl Groups<'_> {
    /// The number of the row of a cell.
    fn of(&mut self, cell: &Cell) -> u32 {
        let key = Key::of(cell, self.by, self.symbols);
        *self.numbers.entry(key).or_insert_with(|| {
            let group = Group { counts: self.none, inlined: None, heaviest: None, first: *cell };
            self.all.push((key, group));
            self.all.len() as u32 - 1
        })
    }

    fn add(&mut self, number: u32, cell: &Cell, counts: &Counts) {
        let group = &mut self.all[number as usize].1;
        group.counts.add(counts);
        // Of equal weights the lower cell wins, so that equal runs give equal reports.
        let before = group.heaviest.map(|(instructions, cell)| (instructions, Reverse(cell)));
        if Some((counts.instructions, Reverse(*cell))) > before {
            group.heaviest = Some((counts.instructions, *cell));
        }
    }

    /// Adds the costs of inlined code to each line at which it is inlined, once.
    fn add_inlined(&mut self, own: u32, cell: &Cell, counts: &Counts) {
        let sources = self.symbols.sources();
        let caller = |number: u32| sources.frame(number).caller;
        let Some(first) = cell.frame.and_then(caller) else { return };
        let (mut known, none) = (vec![own], self.none);
        for number in std::iter::successors(Some(first), |number| caller(*number)) {
            if sources.frame(number).line == 0 {
                continue;
            }
            let line = self.of(&Cell { frame: Some(number), ..*cell });
            if !known.contains(&line) {
                known.push(line);
                let group = &mut self.all[line as usize].1;
                group.inlined.get_or_insert_with(|| Box::new(none)).add(counts);
            }
        }
    }
}

/// The rows, sorted by `weight` of a row's own counts and of those with inlined code, the largest
/// first; equal rows are in any order.
pub fn rows(
    by: &[By],
    tally: &Tally,
    symbols: &Symbolizer,
    weight: impl Fn(&Counts, Option<&Counts>) -> (u64, u64),
) -> Vec<Row> {
    let (numbers, all) = (ByNumber::default(), Vec::new());
    let mut groups = Groups { by, symbols, none: tally.none, numbers, all };
    for (cell, counts) in &tally.cells {
        let number = groups.of(cell);
        groups.add(number, cell, counts);
        if by.contains(&By::Line) {
            groups.add_inlined(number, cell, counts);
        }
    }
    let groups = groups.all;
    let names = Names::new(symbols);
    let (functions, libraries, files) =
        (ranks(&names.functions), ranks(&names.libraries), ranks(symbols.sources().files()));
    // Sort small keys first: rows are large and are compared by their texts.
    let place = |(key, group): &(Key, Group)| {
        let function = group.cell().function;
        let line = key.line.map(|(file, line)| (files[file as usize], line));
        let library = libraries[symbols.functions()[function].library];
        (Reverse(weight(&group.counts, group.with_inlined().as_ref())), library, functions[function], line)
    };
    let places: Vec<_> = groups.iter().map(place).collect();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_rows_by_key(|&number| places[number]);
    order.iter().map(|&number| names.row(by, &groups[number].0, &groups[number].1)).collect()
}

/// The rank of each text in sorted order.
fn ranks(texts: &[String]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    order.sort_rows(|one, other| texts[*one as usize].cmp(&texts[*other as usize]));
    let mut ranks = vec![0; texts.len()];
    let mut rank = 0;
    for (place, number) in order.iter().enumerate() {
        if place > 0 && texts[order[place - 1] as usize] != texts[*number as usize] {
            rank += 1;
        }
        ranks[*number as usize] = rank;
    }
    ranks
}

/// The names for rows; each is made once.
struct Names<'a> {
    symbols: &'a Symbolizer,
    /// Demangled names by index into [`Symbolizer::functions`].
    functions: Vec<String>,
    /// Demangled names by index into the names of inlined functions.
    inlined: Vec<String>,
    libraries: Vec<String>,
}

impl Names<'_> {
    fn new(symbols: &Symbolizer) -> Names<'_> {
        let functions = symbols.functions().iter().map(|function| demangle(&function.name)).collect();
        let inlined = symbols.sources().names().iter().map(|name| demangle(name)).collect();
        let libraries = symbols.libraries().iter().map(|library| plain(&library.path)).collect();
        Names { symbols, functions, inlined, libraries }
    }

    fn row(&self, by: &[By], key: &Key, group: &Group) -> Row {
        let symbols = self.symbols;
        let cell = group.cell();
        let library = symbols.functions()[cell.function].library;
        let mut row = Row {
            counts: group.counts,
            with_inlined: group.with_inlined().map(Box::new),
            opcode: key.opcode.map(|opcode| mnemonic(opcode.into())),
            ..Row::default()
        };
        if key.line.is_some() || key.function.is_some() {
            row.name.clone_from(&self.functions[cell.function]);
        }
        if let Some(function) = key.function {
            let address = symbols.functions()[function].address;
            row.address = (address != 0).then_some(address);
        }
        if key.function.is_some() || by.contains(&By::Library) || key.line.is_some() {
            row.library = Some(self.libraries[library].clone());
        }
        if let (Some(_), Some(frame)) = (key.line, cell.frame) {
            self.place(frame, &mut row);
        }
        if row.name.is_empty() {
            row.name = row.library.take().or_else(|| row.opcode.clone()).unwrap_or_default();
        }
        row
    }

    /// Sets file, line and frames of a row of lines. If rows also distinguish functions, the row
    /// keeps the name of the enclosing one.
    fn place(&self, frame: u32, row: &mut Row) {
        let sources = self.symbols.sources();
        let file = |frame: &SourceFrame| sources.files()[frame.file as usize].clone();
        let innermost = sources.frame(frame);
        row.file = Some(file(&innermost));
        row.line = Some(innermost.line);
        if innermost.caller.is_none() {
            return;
        }
        for frame in sources.chain(frame) {
            let function = match frame.inlined {
                Some(name) => self.inlined[name as usize].clone(),
                None if frame.caller.is_none() => row.name.clone(),
                None => symbol::UNKNOWN.to_owned(),
            };
            row.frames.push(Frame { function, file: file(&frame), line: frame.line });
        }
    }
}
