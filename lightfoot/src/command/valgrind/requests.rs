//! What client requests and marked functions mean to callgrind and cachegrind.
//!
//! A thread counts while its image is instrumented and the thread collects. Requests change one or
//! the other, and make parts. What is not known answers its default, as in Valgrind.

use super::backtrace::Backtraces;
use super::patterns::Patterns;
use super::printed::Printed;
use super::settings::{Settings, Tool};
use super::{log, printed};
use crate::trace::metric::matches;
use heap::{AdHocEvents, Follows};
use instrument::mark::{
    Answer, Birth, Deed, FunctionCall, Mark, MarkedBlock, MarkedThread, Marker, ProgramMemory,
};
use instrument::Module;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use symbol::{Named, Symbolizer, WantedFunctions};

const RUNNING_ON_VALGRIND: u64 = 0x1001;
const GET_TOOLNAME: u64 = 0x1004;
const CLIENT_CALL_0: u64 = 0x1101;
const CLIENT_CALL_3: u64 = 0x1104;
const PRINTF: u64 = 0x1403;
const PRINTF_BACKTRACE: u64 = 0x1404;
const CALLGRIND_DUMP_STATS: u64 = 0x4354_0000;
const CALLGRIND_ZERO_STATS: u64 = 0x4354_0001;
const CALLGRIND_TOGGLE_COLLECT: u64 = 0x4354_0002;
const CALLGRIND_DUMP_STATS_AT: u64 = 0x4354_0003;
const CALLGRIND_START: u64 = 0x4354_0004;
const CALLGRIND_STOP: u64 = 0x4354_0005;
const DHAT_AD_HOC_EVENT: u64 = 0x4448_0000;
const CACHEGRIND_START: u64 = 0x4347_0000;
const CACHEGRIND_STOP: u64 = 0x4347_0001;

/// Valgrind's blocks end after this many instructions. It shows where the block that ends with a
/// request does not count.
const BLOCK_INSTRUCTIONS_MAX: usize = 60;

/// The deeds of a run, as requests and functions ask for them.
pub(super) struct Requests {
    tool: Tool,
    simulates: bool,
    separate_threads: bool,
    instruments_at_start: bool,
    collects_at_start: bool,
    patterns: Vec<(String, Role)>,
    /// Which patterns have matched.
    matched: Vec<bool>,
    functions: HashMap<u64, Vec<(String, Role)>>,
    /// By path: the functions that patterns match; `None` for what is no program.
    listings: HashMap<PathBuf, Option<Rc<MatchedIn>>>,
    images: HashMap<u32, ImageState>,
    /// The names that were read so far.
    pub(super) symbols: Symbolizer,
    /// By image: why each part was cut off.
    pub(super) triggers: BTreeMap<u32, Vec<String>>,
    /// By number of the process: what it has printed.
    pub(super) printed: BTreeMap<i32, Printed>,
    /// The log's beginning, without the number of the process, if it is yet to be written to
    /// standard error.
    pub(super) head: Option<Vec<String>>,
    /// Threads of processes that borrow an image until they execute a program, as `vfork` makes
    /// them: no threads of the image's own process, and they do not count.
    pub(super) guests: Vec<u32>,
    /// Whether lines are written to standard error when they are complete.
    pub(super) writes_at_once: bool,
    /// Whether the log tells of requests.
    is_verbose: bool,
    backtraces: Backtraces,
    /// Frames of a backtrace.
    frames_max: usize,
    /// Whether jumps within functions are counted.
    counts_jumps: bool,
    /// Whether DHAT's events are noted.
    notes_events: bool,
    /// By image: the events that DHAT was told of.
    pub(super) events: HashMap<u32, AdHocEvents>,
}

/// What happens at a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Toggles,
    DumpsBefore,
    DumpsAfter,
    ZeroesBefore,
}

/// A function of a file that some patterns match.
struct Matched {
    address: u64,
    name: String,
    patterns: Vec<usize>,
}

/// The functions of a file that patterns match, and where the file is mapped.
type MatchedIn = (Vec<Matched>, WantedFunctions);

/// What the threads of an image do.
struct ImageState {
    /// The process of its first thread.
    pid: i32,
    instruments: bool,
    /// By number of the thread.
    collects: BTreeMap<u32, bool>,
}

impl Requests {
    pub(super) fn new(tool: Tool, settings: &Settings) -> Rc<RefCell<Requests>> {
        let roles = [
            (&settings.toggles, Role::Toggles),
            (&settings.dump_before, Role::DumpsBefore),
            (&settings.dump_after, Role::DumpsAfter),
            (&settings.zero_before, Role::ZeroesBefore),
        ];
        let patterns: Vec<(String, Role)> = roles
            .into_iter()
            .flat_map(|(patterns, role)| patterns.iter().map(move |pattern| (pattern.clone(), role)))
            .collect();
        Rc::new(RefCell::new(Requests {
            tool,
            simulates: settings.simulates_caches(),
            separate_threads: settings.separate_threads,
            instruments_at_start: settings.instruments_at_start,
            collects_at_start: settings.collects_at_start,
            matched: vec![false; patterns.len()],
            patterns,
            functions: HashMap::new(),
            listings: HashMap::new(),
            images: HashMap::new(),
            symbols: Symbolizer::new(),
            triggers: BTreeMap::new(),
            printed: BTreeMap::new(),
            head: None,
            guests: Vec::new(),
            writes_at_once: settings.log_file.is_none() && !settings.is_verbose(),
            is_verbose: settings.is_verbose() && tool == Tool::Callgrind,
            backtraces: Backtraces::default(),
            frames_max: settings.callers,
            counts_jumps: settings.jumps,
            notes_events: tool == Tool::Dhat && settings.follows == Follows::Nothing,
            events: HashMap::new(),
        }))
    }

    /// The patterns that matched no function.
    pub(super) fn unmatched(&self) -> Vec<String> {
        let patterns = self.patterns.iter().zip(&self.matched);
        patterns.filter(|(_, matched)| !**matched).map(|((pattern, _), _)| pattern.clone()).collect()
    }

    /// The functions of a file that patterns match; the file is read once.
    fn matched_in(&mut self, module: &Module) -> Option<Rc<MatchedIn>> {
        if let Some(known) = self.listings.get(&module.path) {
            return known.clone();
        }
        let patterns = Patterns(self.patterns.iter().map(|(pattern, _)| pattern.as_str()).collect());
        let found = WantedFunctions::read(&module.path, &patterns);
        let matched = found.map(|found| {
            let matched: Vec<Matched> =
                found.functions.iter().filter_map(|named| self.match_name(named)).collect();
            Rc::new((matched, found))
        });
        self.listings.insert(module.path.clone(), matched.clone());
        matched
    }

    /// The function as a wanted one, if a pattern matches its name.
    fn match_name(&mut self, named: &Named) -> Option<Matched> {
        let name = symbol::demangle(&named.name);
        let numbers = 0..self.patterns.len();
        let patterns: Vec<usize> = numbers.filter(|&index| matches(&self.patterns[index].0, &name)).collect();
        patterns.iter().for_each(|&index| self.matched[index] = true);
        (!patterns.is_empty()).then_some(Matched { address: named.address, name, patterns })
    }

    fn state(&mut self, image: u32) -> &mut ImageState {
        let instruments = self.instruments_at_start;
        self.images.entry(image).or_insert_with(|| ImageState {
            pid: 0,
            instruments,
            collects: BTreeMap::new(),
        })
    }

    /// Makes the thread collect or not.
    fn toggle(&mut self, thread: &MarkedThread) -> Vec<Deed> {
        let state = self.state(thread.image);
        let collects = state.collects.entry(thread.thread).or_insert(false);
        *collects = !*collects;
        match (state.instruments, *collects) {
            (false, _) => Vec::new(),
            (true, true) => vec![Deed::Open(thread.thread)],
            (true, false) => vec![Deed::Close(thread.thread)],
        }
    }

    /// Begins or ends instrumentation of all threads.
    fn instrument(&mut self, thread: &MarkedThread, instruments: bool) -> Vec<Deed> {
        let empties = self.tool == Tool::Callgrind;
        let state = self.state(thread.image);
        if std::mem::replace(&mut state.instruments, instruments) == instruments {
            return Vec::new();
        }
        let switched = if instruments { "ON" } else { "OFF" };
        let collecting = state.collects.iter().filter(|(_, collects)| **collects).map(|(thread, _)| *thread);
        let (mut deeds, threads) = (Vec::new(), collecting.collect::<Vec<u32>>());
        if instruments {
            deeds.extend([Deed::Work].into_iter().filter(|_| empties));
            deeds.extend([Deed::Empty].into_iter().filter(|_| empties));
            deeds.extend(threads.into_iter().map(Deed::Open));
        } else {
            deeds.extend(threads.into_iter().map(Deed::Close));
            deeds.extend([Deed::Rest].into_iter().filter(|_| empties));
        }
        self.tell(thread.pid, &[format!("Client Request: instrumentation switched {switched}")]);
        deeds
    }

    /// Writes lines to the log of a process, if it tells of requests.
    fn tell(&mut self, pid: i32, lines: &[String]) {
        if self.is_verbose {
            self.printed.entry(pid).or_default().tell(pid, lines);
        }
    }

    /// Forgets what was counted since the last part.
    fn zero(&mut self, thread: &MarkedThread) -> Vec<Deed> {
        self.tell(thread.pid, &["  Zeroing costs...".to_owned(), "  ...done".to_owned()]);
        vec![Deed::Drop(self.scope(thread))]
    }

    /// Calls a function of the program, which does not count: Valgrind runs it natively.
    fn call(&mut self, thread: &MarkedThread, words: &[u64; 6]) -> Answer {
        let [code, function, first, second, third, _] = *words;
        let arguments = [u64::from(thread.thread) + 1, first, second, third];
        let unused = (CLIENT_CALL_3 - code) as usize;
        let mut call = FunctionCall { function, arguments };
        call.arguments[4 - unused..].fill(0);
        let deeds = if self.counts(thread) { vec![Deed::Close(thread.thread)] } else { Vec::new() };
        Answer { call: Some(call), deeds, ..Answer::default() }
    }

    /// Whether the thread counts.
    fn counts(&mut self, thread: &MarkedThread) -> bool {
        let state = self.state(thread.image);
        state.instruments && state.collects.get(&thread.thread).is_some_and(|collects| *collects)
    }

    /// The threads that a request of `thread` to dump or to zero is about.
    fn scope(&self, thread: &MarkedThread) -> Option<u32> {
        self.separate_threads.then_some(thread.thread)
    }

    fn dump(&mut self, thread: &MarkedThread, trigger: String) -> Vec<Deed> {
        if self.tool != Tool::Callgrind {
            return Vec::new();
        }
        let triggers = self.triggers.entry(thread.image).or_default();
        triggers.push(trigger);
        let cut = triggers.len() - 1;
        if self.is_verbose {
            self.printed.entry(thread.pid).or_default().dump(thread.image, cut);
        }
        vec![Deed::Cut(self.scope(thread))]
    }

    fn request(
        &mut self,
        thread: &MarkedThread,
        (words, registers): (&[u64; 6], &[u64; 17]),
        memory: &dyn ProgramMemory,
    ) -> Answer {
        let callgrind = self.tool == Tool::Callgrind;
        let deeds = match words[0] {
            RUNNING_ON_VALGRIND => return Answer { value: Some(1), ..Answer::default() },
            GET_TOOLNAME => {
                let value = Some(self.tool_name(words, memory));
                return Answer { value, ..Answer::default() };
            }
            CLIENT_CALL_0..=CLIENT_CALL_3 => return self.call(thread, words),
            PRINTF | PRINTF_BACKTRACE => {
                let traced = (words[0] == PRINTF_BACKTRACE).then_some(registers);
                let value = Some(self.print(thread.pid, words, traced, memory));
                return Answer { value, ..Answer::default() };
            }
            DHAT_AD_HOC_EVENT if self.notes_events => {
                let stack = self.backtraces.stack((registers, self.frames_max), memory);
                let stack = stack.into_iter().filter_map(|(module, code)| Some((module?, code)));
                let events = self.events.entry(thread.image).or_default();
                events.happens(words[1], &stack.collect::<Vec<_>>());
                Vec::new()
            }
            CALLGRIND_DUMP_STATS if callgrind => self.dump(thread, "Client Request".into()),
            CALLGRIND_DUMP_STATS_AT if callgrind => {
                let text = memory.text(words[1]).unwrap_or_default();
                self.dump(thread, format!("Client Request: {text}"))
            }
            CALLGRIND_ZERO_STATS if callgrind => self.zero(thread),
            CALLGRIND_TOGGLE_COLLECT if callgrind => self.toggle(thread),
            CALLGRIND_START if callgrind => self.instrument(thread, true),
            CALLGRIND_STOP if callgrind => self.instrument(thread, false),
            CACHEGRIND_START if self.tool == Tool::Cachegrind => self.instrument(thread, true),
            CACHEGRIND_STOP if self.tool == Tool::Cachegrind => self.instrument(thread, false),
            _ => return Answer::default(),
        };
        // Requests of callgrind and cachegrind answer 0.
        // Callgrind adds a block up when the next one begins; without a simulation it counts it at
        // its own beginning, if the thread collects then.
        let block = match (words[0], callgrind) {
            (_, false) => MarkedBlock::Before,
            (CALLGRIND_TOGGLE_COLLECT, true) if !self.simulates => MarkedBlock::Before,
            _ => MarkedBlock::Behind,
        };
        Answer { value: Some(0), deeds, block, call: None }
    }

    /// Prints for the program, and the stack of the thread with these registers behind the text;
    /// returns the number of bytes of the text.
    fn print(
        &mut self,
        pid: i32,
        words: &[u64; 6],
        traced: Option<&[u64; 17]>,
        memory: &dyn ProgramMemory,
    ) -> u64 {
        let text = printed::formatted(words[1], words[2], memory).unwrap_or_default();
        let frames = traced
            .map(|registers| self.backtraces.lines((registers, self.frames_max), memory, &mut self.symbols));
        let printed = self.printed.entry(pid).or_default();
        let before = printed.lines.len();
        printed.take(pid, &text);
        printed.trace(pid, &frames.unwrap_or_default());
        if self.writes_at_once {
            printed.lines[before..].iter().for_each(|line| log::to_standard_error(&format!("{line}\n")));
        }
        text.len() as u64
    }

    /// Ends the last line of each process that has printed.
    pub(super) fn end_lines(&mut self) {
        for (pid, printed) in &mut self.printed {
            if let Some(line) = printed.finish(*pid).filter(|_| self.writes_at_once) {
                log::to_standard_error(&format!("{line}\n"));
            }
        }
    }

    /// Writes the beginning of the log, if that is yet to be done.
    fn write_head(&mut self, pid: i32) {
        if let Some(lines) = self.head.take() {
            log::to_standard_error(&log::marked(pid, &lines));
        }
    }

    /// Writes the tool's name to a buffer of the program; returns the bytes that it needs.
    fn tool_name(&self, words: &[u64; 6], memory: &dyn ProgramMemory) -> u64 {
        let name: &[u8] = match self.tool {
            Tool::Callgrind => b"callgrind\0",
            Tool::Cachegrind => b"cachegrind\0",
            Tool::Dhat => b"dhat\0",
            Tool::Massif => b"massif\0",
            Tool::Lackey => b"lackey\0",
            Tool::Nothing => b"none\0",
        };
        let room = (words[2] as usize).min(name.len());
        if room > 0 {
            let mut part = name[..room].to_vec();
            part[room - 1] = 0;
            memory.write(words[1], &part);
        }
        name.len() as u64
    }

    fn passes(&mut self, thread: &MarkedThread, function: u64, roles: &[Role]) -> Vec<Deed> {
        let passed = self.functions.get(&function).cloned().unwrap_or_default();
        let mut deeds = Vec::new();
        for &role in roles {
            for (name, _) in passed.iter().filter(|(_, own)| *own == role).take(1) {
                deeds.extend(match role {
                    Role::Toggles => self.toggle(thread),
                    Role::ZeroesBefore => self.zero(thread),
                    Role::DumpsBefore => self.dump(thread, format!("--dump-before={name}")),
                    Role::DumpsAfter => self.dump(thread, format!("--dump-after={name}")),
                });
            }
        }
        deeds
    }
}

impl Marker for Requests {
    fn setting(&self) -> String {
        let patterns = self.patterns.iter().map(|(pattern, _)| pattern.as_str());
        let mut setting = patterns.collect::<Vec<_>>().join(" ");
        if self.counts_jumps {
            setting.push_str("\njumps");
        }
        setting
    }

    fn entries(&mut self, module: &Module) -> Vec<u64> {
        self.backtraces.meet(module);
        if self.patterns.is_empty() || !module.path.is_absolute() {
            return Vec::new();
        }
        let Some(known) = self.matched_in(module) else { return Vec::new() };
        let (matched, file) = &*known;
        let mut entries = Vec::new();
        for one in matched.iter() {
            let Some(entry) = file.mapped(module, one.address) else { continue };
            let roles = one.patterns.iter().map(|&index| (one.name.clone(), self.patterns[index].1));
            self.functions.insert(entry, roles.collect());
            entries.push(entry);
        }
        entries
    }

    fn leaves_function(&mut self, module: &Module, from: u64, target: u64) -> bool {
        let functions = [from, target].map(|address| self.symbols.function_at(module, address).function);
        functions[0] != functions[1]
    }

    fn function_around(&mut self, module: &Module, address: u64) -> Option<Range<u64>> {
        // Jumps within functions are passed over unless they are counted.
        (!self.counts_jumps).then(|| self.symbols.function_at(module, address).range)
    }

    fn is_stub(&mut self, module: &Module, address: u64) -> bool {
        let function = self.symbols.function_at(module, address).function;
        call_graph::is_stub(&self.symbols.functions()[function].name)
    }

    fn block_instructions_max(&self) -> usize {
        BLOCK_INSTRUCTIONS_MAX
    }

    fn starts(&mut self, thread: &MarkedThread, birth: Birth) -> Vec<Deed> {
        self.write_head(thread.pid);
        let inherited = match birth {
            Birth::Forked(maker) => {
                let known = self.images.iter().find_map(|(&image, state)| {
                    Some((image, (state.instruments, *state.collects.get(&maker)?)))
                });
                // Events go on behind those of the maker.
                let image = known.map(|(image, _)| image);
                let events = image.and_then(|image| self.events.get(&image).cloned());
                self.events.extend(events.map(|events| (thread.image, events)));
                known.map(|(_, state)| state)
            }
            Birth::Executed | Birth::Cloned => None,
        };
        let (instruments, collects) =
            inherited.unwrap_or((self.instruments_at_start, self.collects_at_start));
        let callgrind = self.tool == Tool::Callgrind;
        let is_first = !self.images.contains_key(&thread.image);
        let state = self.state(thread.image);
        if is_first {
            (state.pid, state.instruments) = (thread.pid, instruments);
        }
        if state.pid != thread.pid {
            self.guests.push(thread.thread);
            return Vec::new();
        }
        state.collects.insert(thread.thread, collects);
        match (state.instruments, collects) {
            (true, true) => vec![Deed::Open(thread.thread)],
            (false, _) if is_first && callgrind => vec![Deed::Rest],
            _ => Vec::new(),
        }
    }

    fn reached(&mut self, thread: &MarkedThread, mark: &Mark, memory: &dyn ProgramMemory) -> Answer {
        let deeds = match mark {
            Mark::Request { words, registers, .. } => {
                return self.request(thread, (words, registers), memory);
            }
            Mark::Returned if self.counts(thread) => vec![Deed::Open(thread.thread)],
            Mark::Returned => Vec::new(),
            Mark::Enters(function) => {
                let roles = [Role::ZeroesBefore, Role::DumpsBefore, Role::Toggles];
                self.passes(thread, *function, &roles)
            }
            Mark::Leaves(function) => self.passes(thread, *function, &[Role::Toggles, Role::DumpsAfter]),
            Mark::RegionOpens(_) | Mark::RegionCloses(_) => Vec::new(),
        };
        Answer { deeds, ..Answer::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoMemory;

    impl ProgramMemory for NoMemory {
        fn read(&self, _: u64, _: &mut [u8]) -> usize {
            0
        }
        fn write(&self, _: u64, _: &[u8]) -> usize {
            0
        }
    }

    fn thread(image: u32, number: u32) -> MarkedThread {
        MarkedThread { image, thread: number, pid: 0 }
    }

    fn requests(settings: Settings) -> Rc<RefCell<Requests>> {
        Requests::new(Tool::Callgrind, &settings)
    }

    fn ask(requests: &Rc<RefCell<Requests>>, number: u32, code: u64) -> Answer {
        let mark = Mark::Request { words: [code, 0, 0, 0, 0, 0], default: 7, registers: [0; 17] };
        requests.borrow_mut().reached(&thread(0, number), &mark, &NoMemory)
    }

    #[test]
    fn what_is_known_is_answered_and_the_rest_has_its_default() {
        let all = requests(Settings::default());
        assert_eq!(all.borrow_mut().starts(&thread(0, 0), Birth::Executed), [Deed::Open(0)]);
        assert_eq!(ask(&all, 0, RUNNING_ON_VALGRIND).value, Some(1));
        for unknown in [0x1201, 0x1301, 0x4d43_0000, CACHEGRIND_START, 0xffff_ffff_ffff] {
            assert_eq!(ask(&all, 0, unknown), Answer::default());
        }
    }

    #[test]
    fn threads_collect_by_themselves_and_are_instrumented_together() {
        let all = requests(Settings { collects_at_start: false, ..Settings::default() });
        for number in [0, 1] {
            let birth = if number == 0 { Birth::Executed } else { Birth::Cloned };
            assert!(all.borrow_mut().starts(&thread(0, number), birth).is_empty());
        }
        assert_eq!(ask(&all, 1, CALLGRIND_TOGGLE_COLLECT).deeds, [Deed::Open(1)]);
        assert_eq!(ask(&all, 0, CALLGRIND_STOP).deeds, [Deed::Close(1), Deed::Rest]);
        assert!(ask(&all, 0, CALLGRIND_STOP).deeds.is_empty(), "it has stopped already");
        assert!(ask(&all, 0, CALLGRIND_TOGGLE_COLLECT).deeds.is_empty());
        let started = [Deed::Work, Deed::Empty, Deed::Open(0), Deed::Open(1)];
        assert_eq!(ask(&all, 1, CALLGRIND_START).deeds, started);
        assert_eq!(ask(&all, 1, CALLGRIND_DUMP_STATS).deeds, [Deed::Cut(None)]);
        assert_eq!(all.borrow().triggers[&0], ["Client Request"]);
    }

    #[test]
    fn a_forked_thread_goes_on_as_its_maker() {
        let all = requests(Settings { collects_at_start: false, ..Settings::default() });
        all.borrow_mut().starts(&thread(0, 0), Birth::Executed);
        ask(&all, 0, CALLGRIND_TOGGLE_COLLECT);
        assert_eq!(all.borrow_mut().starts(&thread(1, 1), Birth::Forked(0)), [Deed::Open(1)]);
        assert!(all.borrow_mut().starts(&thread(2, 2), Birth::Executed).is_empty());
    }
}
