//! The program that is measured where a contender is a library: counts the matching lines of a
//! file, by an engine that is named.
//!
//! It runs as `lightfoot matches`, a process of its own, so that every contender is measured in the
//! same way: bit streams with each width of vectors from one program, and the `regex` crate's lazy
//! DFA and NFA simulation without the literal searches that `regex` itself puts in front of them.
//! The automata search forwards for the end of the first match and go on behind its line.

use anyhow::{Context, Result};
use pattern::kernel::{Kernel, Scanner, KERNELS};
use pattern::{Regex, RegexBuilder};
use present::exit::{Failure, USAGE};
use present::output::print;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config, WhichCaptures, NFA};
use regex_automata::{Anchored, Input};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The lazy DFA's name.
pub(super) const DFA_ENGINE: &str = "dfa";
/// The name of the NFA simulation.
pub(super) const NFA_ENGINE: &str = "nfa";

/// What the program is asked for.
#[derive(Clone, Debug)]
pub struct Matches {
    /// A kernel's name, `dfa` or `nfa`.
    pub engine: String,
    /// The pattern.
    pub pattern: String,
    /// The file that is searched.
    pub file: PathBuf,
}

/// Text is read and searched by pieces of about this length, which stay in the second-level cache.
const PIECE_BYTES: usize = 256 << 10;

/// How an engine counts the lines of a piece.
type Count = Box<dyn FnMut(&[u8]) -> Result<u64>>;

/// Counts and prints the number of matching lines.
///
/// # Errors
/// When there is no such engine here, the engine cannot take the pattern, or the file cannot be
/// read.
pub fn matches(options: &Matches) -> Result<()> {
    let mut count = engine(&options.engine, &options.pattern)?;
    let cannot_read = || format!("cannot read {}", options.file.display());
    let mut file = File::open(&options.file).with_context(cannot_read)?;
    let (mut piece, mut held, mut lines) = (vec![0; 2 * PIECE_BYTES], 0, 0);
    loop {
        let read = file.read(&mut piece[held..]).with_context(cannot_read)?;
        held += read;
        // A piece ends with a line; what is behind it begins the next one.
        let end = if read == 0 {
            held
        } else {
            piece[..held].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
        };
        lines += count(&piece[..end])?;
        if read == 0 {
            return print(&format!("{lines}\n"));
        }
        piece.copy_within(end..held, 0);
        held -= end;
        if held == piece.len() {
            piece.resize(2 * piece.len(), 0);
        }
    }
}

/// The engine of that name, ready for one pattern.
fn engine(name: &str, pattern: &str) -> Result<Count> {
    match name {
        DFA_ENGINE => by_dfa(pattern),
        NFA_ENGINE => by_nfa(pattern),
        name => by_kernel(name, pattern),
    }
}

fn by_kernel(name: &str, pattern: &str) -> Result<Count> {
    let Some(kernel) = Kernel::from_name(name) else {
        let known: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name()).collect();
        let sentence = format!("there is no engine {name}: the engines are dfa, nfa, {}", known.join(", "));
        return Err(Failure { status: USAGE, sentence }.into());
    };
    let regex = RegexBuilder::new().engine("streams").build(pattern)?;
    let program = regex.program().with_context(|| format!("{pattern} has no program of bit streams"))?;
    let scanner =
        Scanner::with_kernel(program, kernel).with_context(|| format!("this machine cannot run {name}"))?;
    Ok(Box::new(move |text| Ok(scanner.count_lines(text))))
}

/// The automaton of a pattern whose matches lie within lines.
pub(super) fn automaton(pattern: &str) -> Result<NFA> {
    let config = Config::new().utf8(false).which_captures(WhichCaptures::Implicit);
    Compiler::new().configure(config).build_from_hir(Regex::new(pattern)?.hir()).context("no NFA")
}

fn by_dfa(pattern: &str) -> Result<Count> {
    // Large enough never to be emptied: what a full cache costs is no figure of a DFA.
    let config = DFA::config().cache_capacity(64 << 20);
    let dfa = DFA::builder().configure(config).build_from_nfa(automaton(pattern)?).context("no DFA")?;
    let mut cache = dfa.create_cache();
    Ok(Box::new(move |text| {
        each_line(text, |at| {
            let input = Input::new(text).range(at..).anchored(Anchored::No).earliest(true);
            Ok(dfa.try_search_fwd(&mut cache, &input).context("the DFA gave up")?.map(|found| found.offset()))
        })
    }))
}

fn by_nfa(pattern: &str) -> Result<Count> {
    let machine = PikeVM::new_from_nfa(automaton(pattern)?).context("no NFA simulation")?;
    let mut cache = machine.create_cache();
    Ok(Box::new(move |text| {
        each_line(text, |at| {
            let input = Input::new(text).range(at..).anchored(Anchored::No).earliest(true);
            let mut slots = [None; 2];
            let found = machine.search_slots(&mut cache, &input, &mut slots);
            // A slot holds a position plus one.
            Ok(found.and(slots[1]).map(|end| end.get()))
        })
    }))
}

/// Counts lines: `first_end` gives the end of a match at or behind a place, and the search goes on
/// behind that match's line.
fn each_line(text: &[u8], mut first_end: impl FnMut(usize) -> Result<Option<usize>>) -> Result<u64> {
    let (mut at, mut lines) = (0, 0);
    while at < text.len() {
        let Some(end) = first_end(at)? else { break };
        lines += 1;
        at = pattern::line::end_of(text, end, b'\n');
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::super::family::FAMILIES;
    use super::*;

    #[test]
    fn every_engine_counts_the_same_lines() {
        let text = corpus::collect(60_000);
        for family in FAMILIES {
            let expected = Regex::new(family.pattern).unwrap().count_lines(&text);
            assert!(expected > 0, "{}", family.name);
            let kernels = KERNELS.iter().filter(|kernel| kernel.is_available()).map(|kernel| kernel.name());
            for name in kernels.chain([DFA_ENGINE, NFA_ENGINE]) {
                let lines = engine(name, family.pattern).unwrap()(&text).unwrap();
                assert_eq!(lines, expected, "{} by {name}", family.name);
            }
        }
    }

    #[test]
    fn an_unknown_engine_is_named_with_those_that_there_are() {
        let said = engine("abacus", "a").err().unwrap().to_string();
        assert!(said.contains("abacus") && said.contains("dfa, nfa"), "{said}");
    }
}
