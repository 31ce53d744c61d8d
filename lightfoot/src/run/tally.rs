//! Turns a profile into counts: per function, per library, per opcode, and in total.
//!
//! The instructions of a block ran as often as the block was entered, less the times that it was
//! left before they retired (a fault, a signal, the end). Repeated string instructions, and
//! references whose number is known at run time only, are added at their instruction. A block
//! within one function is attributed as a whole; a block in two functions is attributed instruction
//! by instruction. Misses arrive per site and per block from the simulator and are attributed to
//! their instruction.
//!
//! A reference counts when its instruction retires; the references of a faulting attempt are in the
//! simulated stream only.

mod cell;
mod counts;
mod excerpt;
mod part;

pub use call_graph::{Event, Events};
pub use cell::{Cell, Grain};
pub use counts::{Counts, Misses};
pub use excerpt::Excerpts;
pub use part::{BlockLeft, Part};

use crate::cli::Rep;
use cell::Cells;
use cycles::{Estimated, Parts};
use iced_x86::{Code, Mnemonic};
use instrument::{Block, Instruction, Profile};
use std::collections::HashMap;
use std::mem::take;
use symbol::{FunctionRange, Symbolizer};

/// Misses as the simulator attributes them: those of data by site, those of instructions by block.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// 0 for each level that exists, so that rows without a miss have 0 and not null.
    pub none: Misses,
    /// By index into [`Profile::sites`].
    pub by_site: Vec<(u32, Misses)>,
    /// By index into [`Profile::blocks`].
    pub by_block: Vec<(u32, Misses)>,
}

impl Attribution {
    /// The sum of all misses.
    pub fn total(&self) -> Misses {
        let mut total = self.none;
        self.by_site.iter().chain(&self.by_block).for_each(|(_, misses)| total.add(misses));
        total
    }
}

/// Where a tally gets its misses from. A compiler has hundreds of thousands of sites that missed,
/// so they are handed out one by one and not listed with their names.
pub trait Attributed {
    /// Calls `add` with the misses of data, by index into [`Profile::sites`].
    fn each_site(&self, add: &mut dyn FnMut(u32, &Misses));

    /// Calls `add` with the misses of instructions and branches, by index into
    /// [`Profile::blocks`].
    fn each_block(&self, add: &mut dyn FnMut(u32, &Misses));
}

impl Attributed for Attribution {
    fn each_site(&self, add: &mut dyn FnMut(u32, &Misses)) {
        self.by_site.iter().for_each(|(site, misses)| add(*site, misses));
    }

    fn each_block(&self, add: &mut dyn FnMut(u32, &Misses)) {
        self.by_block.iter().for_each(|(block, misses)| add(*block, misses));
    }
}

/// Counts by all keys of reports.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Counts of 0, with misses of 0 for every level that exists.
    pub none: Counts,
    /// The counts of the whole program.
    pub totals: Counts,
    /// By index into [`Symbolizer::functions`].
    pub functions: Vec<(usize, Counts)>,
    /// By index into [`Symbolizer::libraries`].
    pub libraries: Vec<(usize, Counts)>,
    /// By mnemonic, in lower case.
    pub opcodes: Vec<(String, Counts)>,
    /// Counts by cell, at the requested grain.
    pub cells: Vec<(Cell, Counts)>,
    /// By index into [`Profile::instructions`], the index into `cells`.
    of_instruction: Vec<u32>,
}

impl Tally {
    /// The cell of an instruction of a block that ran, by index into [`Profile::instructions`].
    pub fn cell_of(&self, instruction: usize) -> Option<&Cell> {
        let number = *self.of_instruction.get(instruction)?;
        self.cells.get(number as usize).map(|(cell, _)| cell)
    }
}

/// Makes the tally of a profile.
pub fn tally(
    profile: &Profile,
    misses: Option<&Attribution>,
    how: (Rep, Grain),
    symbols: &mut Symbolizer,
) -> Tally {
    let misses = misses.map(|attribution| (attribution.none, attribution));
    tally_meanwhile(profile, misses, || None, how, symbols)
}

/// Makes the tally of a profile while another thread estimates its cycles. `misses` are the 0
/// misses of each level that exists, and the misses; the cycles are asked for when all else is
/// counted.
pub fn tally_meanwhile(
    profile: &Profile,
    misses: Option<(Misses, &impl Attributed)>,
    estimated: impl FnOnce() -> Option<Estimated>,
    (rep, grain): (Rep, Grain),
    symbols: &mut Symbolizer,
) -> Tally {
    let cells = Cells::new(grain, profile);
    let mut tallying =
        Tallying { profile, symbols, empty: Counts::default(), rows: Rows::default(), cells, last: None };
    tallying.empty.misses = misses.as_ref().map(|(none, _)| *none);
    let cuts = cuts(&profile.cut);
    for (index, block) in profile.blocks.iter().enumerate() {
        tallying.block(index, block, cuts.get(&(index as u32)).map_or(&[], Vec::as_slice));
    }
    tallying.sites(rep);
    if let Some((_, attributed)) = misses {
        tallying.misses(attributed);
    }
    if let Some(estimated) = estimated() {
        tallying.estimated(&estimated);
    }
    tallying.finish()
}

/// For each block that was left early: the first instruction that did not retire, and how often.
fn cuts(cut: &[(u32, u32, u64)]) -> HashMap<u32, Vec<(u32, u64)>> {
    let mut cuts: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    for &(block, first_lost, times) in cut {
        cuts.entry(block).or_default().push((first_lost, times));
    }
    cuts
}

/// The functions that own the instructions of a block.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// One function owns all of them.
    One(usize),
    /// Several functions own them.
    Each,
}

#[derive(Default)]
struct Rows {
    owners: Vec<Owner>,
    functions: Vec<Option<Counts>>,
    opcodes: Vec<Option<Counts>>,
    /// By mnemonic, instructions, loads and stores of blocks that were counted as a whole. They are
    /// not in `opcodes` yet: its rows are long, and there are millions of instructions.
    whole: Vec<[u64; 3]>,
}

struct Tallying<'a> {
    profile: &'a Profile,
    symbols: &'a mut Symbolizer,
    empty: Counts,
    rows: Rows,
    cells: Cells,
    /// The module and the function of the last block. Neighbours were translated one after the
    /// other, and mostly lie in one function.
    last: Option<(u32, FunctionRange)>,
}

impl Tallying<'_> {
    fn block(&mut self, index: usize, block: &Block, cuts: &[(u32, u64)]) {
        let owner = if block.executions == 0 { Owner::Each } else { self.owner(block) };
        self.rows.owners.push(owner);
        if block.executions == 0 {
            return;
        }
        if let (Owner::One(function), [], Grain::None) = (owner, cuts, self.cells.grain) {
            return self.whole(block, function);
        }
        let first = block.first as usize;
        let mut whole = Counts { blocks: block.executions, ..Counts::default() };
        for (offset, instruction) in
            self.profile.instructions[first..][..block.count as usize].iter().enumerate()
        {
            let counts = retired(instruction, offset, block.executions, cuts);
            self.opcode(instruction.code).add(&counts);
            match owner {
                Owner::One(_) => whole.add(&counts),
                Owner::Each => self.function_of(index, offset).add(&counts),
            }
            self.cell(index, offset, &counts);
        }
        let entered = Counts { blocks: block.executions, ..Counts::default() };
        self.cell(index, 0, &entered);
        match owner {
            Owner::One(function) => self.function(function).add(&whole),
            Owner::Each => self.function_of(index, 0).add(&whole),
        }
    }

    /// Counts a block that always ran to its end, in one function, where no cells are kept.
    fn whole(&mut self, block: &Block, function: usize) {
        let (instructions, times) = (&self.profile.instructions, block.executions);
        let [mut loads, mut stores] = [0, 0];
        for instruction in &instructions[block.first as usize..][..block.count as usize] {
            let opcode = mnemonic_of(instruction.code) as usize;
            if self.rows.whole.len() <= opcode {
                self.rows.whole.resize(opcode + 1, [0; 3]);
            }
            let own = [instruction.loads, instruction.stores].map(|count| times * u64::from(count));
            let row = &mut self.rows.whole[opcode];
            *row = [row[0] + times, row[1] + own[0], row[2] + own[1]];
            (loads, stores) = (loads + own[0], stores + own[1]);
        }
        let instructions = times * u64::from(block.count);
        let counts = Counts { instructions, blocks: times, loads, stores, ..Counts::default() };
        self.function(function).add(&counts);
    }

    /// Adds blocks that were counted as a whole to the rows of their opcodes.
    fn add_whole(&mut self) {
        for (opcode, [instructions, loads, stores]) in take(&mut self.rows.whole).into_iter().enumerate() {
            if instructions > 0 {
                let counts = Counts { instructions, loads, stores, ..Counts::default() };
                slot(&mut self.rows.opcodes, opcode, &self.empty).add(&counts);
            }
        }
    }

    fn owner(&mut self, block: &Block) -> Owner {
        let known = self
            .last
            .take()
            .filter(|(module, place)| *module == block.module && place.range.contains(&block.ip));
        let place = match known {
            Some((_, place)) => place,
            None => self.symbols.function_at(&self.profile.modules[block.module as usize], block.ip),
        };
        let end = block.ip + u64::from(block.len);
        let place = &self.last.insert((block.module, place)).1;
        if place.range.end >= end {
            Owner::One(place.function)
        } else {
            Owner::Each
        }
    }

    /// The function that owns one instruction of a block.
    fn function_of(&mut self, block: usize, offset: usize) -> &mut Counts {
        let function = self.owner_of(block, offset);
        self.function(function)
    }

    fn owner_of(&mut self, block: usize, offset: usize) -> usize {
        match self.rows.owners[block] {
            Owner::One(function) => function,
            Owner::Each => {
                let block = &self.profile.blocks[block];
                let instruction = &self.profile.instructions[block.first as usize + offset];
                place(self.symbols, self.profile, block, instruction).function
            }
        }
    }

    /// Adds `counts` to the cell of one instruction of a block, if cells are kept.
    fn cell(&mut self, block: usize, offset: usize, counts: &Counts) {
        if self.cells.grain == Grain::None {
            return;
        }
        let Tallying { profile, symbols, rows, cells, empty, .. } = self;
        let known = &profile.blocks[block];
        let instruction = known.first as usize + offset;
        if !cells.knows(instruction) {
            let owner = rows.owners[block];
            // A cell of a block that never ran to its end is looked up when it is needed.
            let wanted = if known.executions > 0 { 0..known.count as usize } else { offset..offset + 1 };
            let what = |symbols: &mut Symbolizer, offset: usize| {
                let instruction = &profile.instructions[known.first as usize + offset];
                let function = match owner {
                    Owner::One(function) => function,
                    Owner::Each => place(symbols, profile, known, instruction).function,
                };
                (function, mnemonic_of(instruction.code) as usize)
            };
            cells.learn(symbols, (profile, known, wanted), what, empty);
        }
        cells.add(instruction, counts);
    }

    fn function(&mut self, function: usize) -> &mut Counts {
        slot(&mut self.rows.functions, function, &self.empty)
    }

    fn opcode(&mut self, code: u16) -> &mut Counts {
        slot(&mut self.rows.opcodes, mnemonic_of(code) as usize, &self.empty)
    }

    /// Adds `counts` to the function and the opcode of a site.
    fn site(&mut self, site: u32, counts: &Counts) {
        let Some(site) = self.profile.sites.get(site as usize) else { return };
        let block = &self.profile.blocks[site.block as usize];
        let code = self.profile.instructions[(block.first + site.index) as usize].code;
        self.opcode(code).add(counts);
        self.function_of(site.block as usize, site.index as usize).add(counts);
        self.cell(site.block as usize, site.index as usize, counts);
    }

    fn sites(&mut self, rep: Rep) {
        let profile = self.profile;
        for_each_complex(profile, &profile.repeats, &profile.complex, rep, |site, counts| {
            self.site(site, counts);
        });
    }

    fn misses(&mut self, attributed: &impl Attributed) {
        attributed.each_site(&mut |site, misses| {
            self.site(site, &Counts { misses: Some(*misses), ..Counts::default() });
        });
        attributed.each_block(&mut |block, misses| {
            let block = block as usize;
            let Some(first) = self.profile.blocks.get(block).map(|block| block.first as usize) else {
                return;
            };
            let counts = Counts { misses: Some(*misses), ..Counts::default() };
            self.opcode(self.profile.instructions[first].code).add(&counts);
            self.function_of(block, 0).add(&counts);
            self.cell(block, 0, &counts);
        });
    }

    fn estimated(&mut self, estimated: &Estimated) {
        for (site, parts) in &estimated.by_site {
            self.cycles_of_site(*site, parts);
        }
        let mut spread = Vec::new();
        for (block, parts) in &estimated.by_block {
            self.cycles(*block as usize, parts, &mut spread);
        }
    }

    /// Adds what a site's references wait for.
    fn cycles_of_site(&mut self, site: u32, parts: &Parts) {
        let Some(site) = self.profile.sites.get(site as usize) else { return };
        let (block, offset) = (site.block as usize, site.index as usize);
        let code = self.profile.instructions[self.profile.blocks[block].first as usize + offset].code;
        self.opcode(code).add_cycles(parts);
        self.function_of(block, offset).add_cycles(parts);
        self.cell_cycles(block, offset, parts);
    }

    /// Adds estimated cycles to the cell of one instruction of a block, if cells are kept.
    fn cell_cycles(&mut self, block: usize, offset: usize, cycles: &Parts) {
        if self.cells.grain != Grain::None {
            let misses = Some(Misses { cycles: Some(*cycles), ..Misses::default() });
            self.cell(block, offset, &Counts { misses, ..Counts::default() });
        }
    }

    /// Adds the estimated cycles of a block, which nothing tells apart by instruction: each one has
    /// an equal share of the base, the last one, which may branch, the mispredictions.
    fn cycles(&mut self, block: usize, parts: &Parts, spread: &mut Vec<(usize, Parts)>) {
        let first = self.profile.blocks[block].first as usize;
        let count = self.profile.blocks[block].count as usize;
        let owner = self.rows.owners[block];
        if let Owner::One(function) = owner {
            self.function(function).add_cycles(parts);
        }
        parts.spread(count, spread);
        for (offset, cycles) in &*spread {
            self.opcode(self.profile.instructions[first + offset].code).add_cycles(cycles);
            if let Owner::Each = owner {
                self.function_of(block, *offset).add_cycles(cycles);
            }
            self.cell_cycles(block, *offset, cycles);
        }
    }

    fn finish(mut self) -> Tally {
        self.add_whole();
        let (none, Cells { all: cells, of_instruction, .. }) = (self.empty, self.cells);
        let mut tally = Tally { none, totals: none, cells, of_instruction, ..Tally::default() };
        let mut libraries: Vec<Option<Counts>> = Vec::new();
        for (function, counts) in self.rows.functions.into_iter().enumerate() {
            let Some(counts) = counts else { continue };
            tally.totals.add(&counts);
            slot(&mut libraries, self.symbols.functions()[function].library, &self.empty).add(&counts);
            tally.functions.push((function, counts));
        }
        let libraries = libraries.into_iter().enumerate();
        tally.libraries = libraries.filter_map(|(library, counts)| Some((library, counts?))).collect();
        let opcodes = self.rows.opcodes.into_iter().enumerate();
        tally.opcodes = opcodes.filter_map(|(opcode, counts)| Some((mnemonic(opcode), counts?))).collect();
        tally
    }
}

/// Calls `add` with the counts that complex references add to their instructions, by site.
/// `repeats` and `complex` are those of a profile, or of one of its images.
fn for_each_complex(
    profile: &Profile,
    repeats: &[(u32, u64)],
    complex: &[(u32, u64, u64)],
    rep: Rep,
    mut add: impl FnMut(u32, &Counts),
) {
    if rep != Rep::Once {
        for &(site, more) in repeats {
            add(site, &Counts { instructions: more, ..Counts::default() });
        }
    }
    if rep == Rep::Valgrind {
        for (site, executions) in counted_down(profile, repeats, complex) {
            add(site, &Counts { instructions: executions, ..Counts::default() });
        }
    }
    for &(site, loads, stores) in complex {
        add(site, &Counts { loads, stores, ..Counts::default() });
    }
}

/// For each site of a repeated `movs`, `stos` or `lods`, the number of executions with a count that
/// was not 0; each iteration of these makes one load, one store, or both.
fn counted_down(profile: &Profile, repeats: &[(u32, u64)], complex: &[(u32, u64, u64)]) -> Vec<(u32, u64)> {
    use Mnemonic::{Lodsb, Lodsd, Lodsq, Lodsw, Movsb, Movsd, Movsq, Movsw, Stosb, Stosd, Stosq, Stosw};
    let wanted = [Lodsb, Lodsw, Lodsd, Lodsq, Movsb, Movsw, Movsd, Movsq, Stosb, Stosw, Stosd, Stosq];
    let more: HashMap<u32, u64> = repeats.iter().copied().collect();
    let of = |&(site, loads, stores): &(u32, u64, u64)| {
        let known = profile.sites.get(site as usize)?;
        let block = &profile.blocks[known.block as usize];
        let code = profile.instructions[(block.first + known.index) as usize].code;
        let iterations = loads.max(stores);
        let executions = iterations - more.get(&site).copied().unwrap_or(0).min(iterations);
        wanted.contains(&mnemonic_of(code)).then_some((site, executions))
    };
    complex.iter().filter_map(of).collect()
}

/// The function of one instruction of a block.
fn place(
    symbols: &mut Symbolizer,
    profile: &Profile,
    block: &Block,
    instruction: &Instruction,
) -> FunctionRange {
    symbols.function_at(&profile.modules[block.module as usize], block.ip + u64::from(instruction.offset))
}

/// The counts of the instruction with index `index` in a block that ran `executions` times and was
/// left early at `cuts`.
fn retired(instruction: &Instruction, index: usize, executions: u64, cuts: &[(u32, u64)]) -> Counts {
    let lost: u64 = cuts.iter().filter(|(k, _)| *k as usize <= index).map(|(_, n)| n).sum();
    let times = executions.saturating_sub(lost);
    Counts {
        instructions: times,
        loads: times * u64::from(instruction.loads),
        stores: times * u64::from(instruction.stores),
        ..Counts::default()
    }
}

fn slot<'a>(rows: &'a mut Vec<Option<Counts>>, index: usize, empty: &Counts) -> &'a mut Counts {
    if rows.len() <= index {
        rows.resize(index + 1, None);
    }
    // Counts are large, and nearly all rows exist already.
    rows[index].get_or_insert(*empty)
}

fn mnemonic_of(code: u16) -> Mnemonic {
    Code::try_from(usize::from(code)).map_or(Mnemonic::INVALID, Code::mnemonic)
}

/// The name of a mnemonic, in lower case.
pub fn mnemonic(index: usize) -> String {
    Mnemonic::try_from(index).map_or_else(|_| "?".into(), |mnemonic| format!("{mnemonic:?}").to_lowercase())
}

#[cfg(test)]
mod tests;
