//! Data for annotated outputs: costs by file, enclosing function and line.
//!
//! The function is the enclosing one of the symbol table, and the file that of the innermost frame.
//! So inlined code belongs to the file in which it was written, and to the function that runs it,
//! as in cachegrind's and callgrind's files. Unknown lines are line 0 of `???`.

use super::curve::Touched;
use super::process::ProcessRow;
use super::row::plain;
use crate::run::calls::Calls;
use crate::run::tally::{Cell, Counts, Tally};
use instrument::Profile;
use std::collections::{BTreeMap, HashMap};
use symbol::{demangle, Symbolizer, UNKNOWN};

/// A function with its costs.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its demangled name.
    pub name: String,
    /// The library that holds it.
    pub library: String,
    /// The source file of most of its own code; `???` if none is known.
    pub file: String,
    /// Its first known line in that file, else 0.
    pub first_line: u32,
    /// Costs by index into [`Detail::files`] and line.
    pub lines: BTreeMap<(u32, u32), Counts>,
    /// The calls that it makes, by source line and callee.
    pub calls: BTreeMap<((u32, u32), usize), Call>,
}

/// Calls from one place to one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Number of calls.
    pub times: u64,
    /// Inclusive costs; the costs of a recursion belong to the outermost call.
    pub counts: Counts,
}

/// The costs of one of several processes. It is used only if the processes of a run were followed.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The process's number, exit status and command.
    pub name: String,
    /// The program that it executed last.
    pub program: String,
    /// The costs of the whole process.
    pub totals: Counts,
    /// Costs by index into [`Detail::functions`].
    pub functions: BTreeMap<usize, Counts>,
    /// Costs by index into [`Detail::files`] and line, if the format shows them.
    pub lines: BTreeMap<(u32, u32), Counts>,
}

/// Whether a process has costs by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartLines {
    /// It has them.
    Kept,
    /// It has costs by function only.
    LeftOut,
}

impl Part {
    /// A process without costs of functions and lines.
    pub fn of(process: &ProcessRow) -> Part {
        Part {
            name: process.title(),
            program: process.command.first().cloned().unwrap_or_default(),
            totals: process.counts,
            ..Part::default()
        }
    }
}

/// The data for annotated outputs.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Source files; the first is `???`.
    pub files: Vec<String>,
    /// Functions that ran, sorted by library and name.
    pub functions: Vec<Function>,
    /// By index into [`Symbolizer::functions`], the index into `functions`.
    pub numbers: HashMap<usize, usize>,
    /// Costs of code that was inlined at a line, in addition to the line's own costs, by index into
    /// [`Detail::files`] and line.
    pub inlined: BTreeMap<(u32, u32), Counts>,
    /// The processes; empty unless children were followed.
    pub processes: Vec<Part>,
    /// Calling contexts, if calls were followed; their functions are indices into
    /// [`Detail::functions`].
    pub calls: Option<Calls>,
    /// Memory touched over time, if it was measured.
    pub touched: Option<Touched>,
}

impl Detail {
    /// Makes the data from a tally with lines.
    pub fn new(tally: &Tally, symbols: &Symbolizer) -> Detail {
        let sources = symbols.sources();
        let mut detail = Detail::default();
        detail.files.push(UNKNOWN.to_owned());
        detail.files.extend(sources.files().iter().cloned());
        // For each function by file: instructions, and the first line, of its own code.
        let mut own: HashMap<usize, BTreeMap<u32, (u64, u32)>> = HashMap::new();
        for (cell, counts) in &tally.cells {
            let number = detail.number(cell.function, symbols);
            let place = cell
                .frame
                .map(|frame| sources.frame(frame))
                .map_or((0, 0), |frame| (frame.file + 1, frame.line));
            detail.functions[number].lines.entry(place).or_insert(tally.none).add(counts);
            detail.inline(cell.frame, place, counts, (symbols, tally.none));
            // Inlined code does not show in which file its enclosing function was written, nor
            // where it begins: a function that was inlined may stand above it.
            if let Some(outermost) = cell.frame.and_then(|frame| sources.chain(frame).last()) {
                let file = own.entry(number).or_default().entry(outermost.file + 1);
                let (weight, first) = file.or_insert((0, u32::MAX));
                *weight += counts.instructions.max(1);
                // Line 0 is no line, and wraps behind all others.
                *first = (*first).min(outermost.line.wrapping_sub(1));
            }
        }
        for (number, files) in own {
            let heaviest =
                files.iter().max_by_key(|(file, (weight, _))| (*weight, std::cmp::Reverse(**file)));
            let Some((&file, &(_, first))) = heaviest else { continue };
            let function = &mut detail.functions[number];
            function.file.clone_from(&detail.files[file as usize]);
            function.first_line = first.wrapping_add(1);
        }
        detail
    }

    /// Adds the costs of `frame` to each line at which it is inlined, once.
    fn inline(
        &mut self,
        frame: Option<u32>,
        own: (u32, u32),
        counts: &Counts,
        (symbols, none): (&Symbolizer, Counts),
    ) {
        let Some(frame) = frame.filter(|frame| symbols.sources().frame(*frame).caller.is_some()) else {
            return;
        };
        let mut known = vec![own];
        for frame in symbols.sources().chain(frame).skip(1).filter(|frame| frame.line > 0) {
            let place = (frame.file + 1, frame.line);
            if !known.contains(&place) {
                known.push(place);
                self.inlined.entry(place).or_insert(none).add(counts);
            }
        }
    }

    /// Adds costs of one of the processes.
    pub fn add_to_process(
        &mut self,
        process: usize,
        lines: PartLines,
        cells: &[(Cell, Counts)],
        (tally, symbols): (&Tally, &Symbolizer),
    ) {
        let part = &mut self.processes[process];
        for (cell, counts) in cells {
            let frame = cell.frame.map(|frame| symbols.sources().frame(frame));
            let place = frame.map_or((0, 0), |frame| (frame.file + 1, frame.line));
            if lines == PartLines::Kept {
                part.lines.entry(place).or_insert(tally.none).add(counts);
            }
            let function = self.numbers[&cell.function];
            part.functions.entry(function).or_insert(tally.none).add(counts);
        }
    }

    /// The number of a function of `symbols`, which is added if it is new.
    pub fn number(&mut self, function: usize, symbols: &Symbolizer) -> usize {
        let next = self.functions.len();
        let number = *self.numbers.entry(function).or_insert(next);
        if number == next {
            let known = &symbols.functions()[function];
            self.functions.push(Function {
                name: demangle(&known.name),
                library: plain(&symbols.libraries()[known.library].path),
                file: UNKNOWN.to_owned(),
                ..Function::default()
            });
        }
        number
    }

    /// Adds calls.
    pub fn follow(&mut self, calls: &Calls, profile: &Profile, symbols: &mut Symbolizer) {
        let mut calls = calls.clone();
        for context in calls.contexts.iter_mut().skip(1) {
            context.function = self.number(context.function as usize, symbols) as u32;
        }
        let inclusive = calls.inclusive();
        for (node, context) in calls.contexts.iter().enumerate().skip(1) {
            // Functions at the root have no caller.
            if context.parent == 0 {
                continue;
            }
            let caller = calls.contexts[context.parent as usize].function as usize;
            let place = place_of(context.site, profile, symbols);
            let call = self.functions[caller].calls.entry((place, context.function as usize)).or_default();
            call.times += context.calls;
            call.counts.add(&inclusive[node]);
        }
        for (back, times) in calls.backs.iter().filter(|(back, _)| back.from != 0) {
            let [caller, callee] =
                [back.from, back.to].map(|node| calls.contexts[node as usize].function as usize);
            let place = place_of(back.site, profile, symbols);
            self.functions[caller].calls.entry((place, callee)).or_default().times += times;
        }
        self.files =
            std::iter::once(UNKNOWN.to_owned()).chain(symbols.sources().files().iter().cloned()).collect();
        self.calls = Some(calls);
    }
}

/// The line of the call that `block` ends with.
fn place_of(block: Option<u32>, profile: &Profile, symbols: &mut Symbolizer) -> (u32, u32) {
    let Some(block) = block.and_then(|block| profile.blocks.get(block as usize)) else { return (0, 0) };
    let last = profile.instructions[(block.first + block.count - 1) as usize];
    let frame = symbols.frame(&profile.modules[block.module as usize], block.ip + u64::from(last.offset));
    frame.map_or((0, 0), |frame| {
        let frame = symbols.sources().frame(frame);
        (frame.file + 1, frame.line)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::run::block_order::stack::Context;
    use crate::run::calls::Sample;

    /// `main` calls `leaf`, in two slices of time. The last sample belongs to the root, which is no
    /// function, so it must not appear.
    pub(in crate::report) fn called() -> Detail {
        let context = |parent, function| Context { parent, function, site: None, calls: 1 };
        let sample = |slice, node, instructions, loads| Sample {
            slice,
            node,
            counts: Counts { instructions, loads, ..Counts::default() },
        };
        let calls = Calls {
            contexts: vec![context(0, u32::MAX), context(0, 1), context(1, 0)],
            samples: vec![sample(0, 1, 5, 0), sample(0, 2, 7, 2), sample(1, 2, 9, 0), sample(1, 0, 100, 0)],
            slice_instructions: 10,
            ..Calls::default()
        };
        let leaf = Function { name: "leaf".into(), file: UNKNOWN.into(), ..Function::default() };
        let main = Function {
            name: "main".into(),
            library: "/bin/a".into(),
            file: "a.c".into(),
            first_line: 3,
            ..Function::default()
        };
        Detail { functions: vec![leaf, main], calls: Some(calls), ..Detail::default() }
    }
}
