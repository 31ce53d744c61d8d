//! Writes files in the forms of callgrind and cachegrind, as their readers want them.
//!
//! Unlike the files of `cache --format callgrind`, these have Valgrind's own header and events, and
//! may have several parts. A function belongs to an object and a file; code that was inlined from
//! another file begins with `fi=` and ends with `fe=`. A `calls=` line is followed by one with the
//! place of the call and its inclusive cost. Positions are absolute, which every reader takes.
//! Source: the Valgrind manual, "Callgrind Format Specification" and "Cachegrind: the output file
//! format".

use super::abbreviation::{Abbreviations, Kind};
use crate::run::tally::{Event, Events};
use present::terminal::printable;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The place of costs. The address is 0 where lines suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index into [`Names::objects`].
    pub object: usize,
    /// Index into [`Names::functions`].
    pub function: usize,
    /// The file of the function, as an index into [`Names::files`].
    pub home: usize,
    /// The file of the code, which differs where code was inlined from another one.
    pub file: usize,
    /// Address in the object's file.
    pub address: u64,
    /// Line; 0 if it is unknown.
    pub line: u32,
}

/// The names to which places refer.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Paths of executables and libraries.
    pub objects: Vec<String>,
    /// Demangled functions.
    pub functions: Vec<String>,
    /// Source files.
    pub files: Vec<String>,
}

/// Costs by place.
pub type Costs = BTreeMap<Place, Events>;

/// Calls with their inclusive costs, by the place of the call and that of the callee's beginning.
pub type CallCosts = BTreeMap<(Place, Place), (u64, Events)>;

/// The jumps between two places of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jumped {
    /// The place of the jump.
    pub from: Place,
    /// That of its target.
    pub to: Place,
    /// Whether it jumps on a condition.
    pub kind: JumpKind,
    /// How often it was taken.
    pub taken: u64,
    /// How often its instruction ran.
    pub executed: u64,
}

/// Whether an instruction always jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JumpKind {
    /// It does.
    Always,
    /// It jumps on a condition.
    Conditional,
}

/// Everything of a part that has a place.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// What instructions cost.
    pub costs: Costs,
    /// Their calls.
    pub calls: CallCosts,
    /// Their jumps, in the order of places.
    pub jumps: Vec<Jumped>,
}

/// What a file says besides costs.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Valgrind's version, such as `3.26.0`.
    pub version: String,
    /// The process's number.
    pub pid: i32,
    /// Its program and arguments.
    pub command: String,
    /// The events that are counted.
    pub events: Vec<Event>,
    /// Descriptions of the caches I1, D1 and LL; empty texts if none are simulated.
    pub caches: [String; 3],
    /// Whether positions have addresses.
    pub addresses: bool,
    /// Whether positions have lines.
    pub lines: bool,
    /// Whether names are abbreviated.
    pub compressed: bool,
}

/// A part of a file of callgrind.
#[derive(Clone, Debug)]
pub struct PartHead {
    /// Its number, from 1.
    pub number: usize,
    /// The thread's number, from 1, if threads have files of their own.
    pub thread: Option<usize>,
    /// Why it was written.
    pub trigger: String,
    /// What the summary has in addition to the totals: blocks whose last instruction is a request
    /// that ended the part.
    pub aside: Events,
}

/// The sum of all costs.
pub fn total(costs: &Costs) -> Events {
    let mut total = Events::default();
    costs.values().for_each(|events| total.add(events));
    total
}

/// A part of a file for `callgrind_annotate` and KCachegrind. The first part of a file has the
/// header.
pub fn callgrind(shape: &Shape, head: &PartHead, is_first: bool, placed: &Placed, names: &Names) -> String {
    let mut out = String::new();
    if is_first {
        let Shape { version, pid, command, .. } = shape;
        let _ = writeln!(out, "# callgrind format\nversion: 1\ncreator: callgrind-{version}\npid: {pid}");
        let _ = writeln!(out, "cmd:  {command}");
    } else {
        out.push('\n');
    }
    let _ = writeln!(out, "part: {}", head.number);
    if let Some(thread) = head.thread {
        let _ = writeln!(out, "thread: {thread}");
    }
    if is_first {
        let [i1, d1, ll] = &shape.caches;
        let _ = writeln!(out, "\n\ndesc: I1 cache: {i1}\ndesc: D1 cache: {d1}\ndesc: LL cache: {ll}");
    }
    let _ = writeln!(out, "\ndesc: Trigger: {}\n", printable(&head.trigger));
    let address = if shape.addresses { " instr" } else { "" };
    // A file without addresses has lines even where none were asked for.
    let line = if shape.lines || !shape.addresses { " line" } else { "" };
    let _ = writeln!(out, "positions:{address}{line}\nevents: {}", event_names(&shape.events));
    let total = total(&placed.costs);
    let mut summary = total;
    summary.add(&head.aside);
    let _ = writeln!(out, "summary: {}\n\n", values(&shape.events, &summary));
    let mut writer = Writer { shape, names, abbreviations: Abbreviations::new(), out };
    writer.body(placed);
    let mut out = writer.out;
    let _ = writeln!(out, "\ntotals: {}", values(&shape.events, &total));
    out
}

fn event_names(events: &[Event]) -> String {
    events.iter().map(|event| format!("{event:?}")).collect::<Vec<_>>().join(" ")
}

fn values(events: &[Event], costs: &Events) -> String {
    events.iter().map(|&event| costs.get(event).to_string()).collect::<Vec<_>>().join(" ")
}

struct Writer<'a> {
    shape: &'a Shape,
    names: &'a Names,
    /// By index into the names of each kind.
    abbreviations: Abbreviations<usize>,
    out: String,
}

impl Writer<'_> {
    /// Writes `key=(7) name` the first time, `key=(7)` from then on.
    fn name(&mut self, key: &str, kind: Kind, index: usize) {
        let names = match kind {
            Kind::Object => &self.names.objects,
            Kind::File => &self.names.files,
            Kind::Function => &self.names.functions,
        };
        let name = printable(&names[index]);
        let name = match self.shape.compressed {
            true => self.abbreviations.name(kind, index, &name),
            false => name,
        };
        let _ = writeln!(self.out, "{key}={name}");
    }

    fn body(&mut self, Placed { costs, calls, jumps }: &Placed) {
        let mut at = Position::default();
        let (mut calls, mut jumps) = (calls.iter().peekable(), jumps.iter().peekable());
        for (place, events) in costs {
            // Calls and jumps stand in the order of places, each behind the costs of its own place.
            while let Some((key, call)) = calls.next_if(|((caller, _), _)| caller < place) {
                self.call(&mut at, key, *call);
            }
            while let Some(jump) = jumps.next_if(|jump| jump.from < *place) {
                self.jump(&mut at, jump);
            }
            self.turn_to(&mut at, place);
            self.line(place, events);
        }
        for (key, call) in calls {
            self.call(&mut at, key, *call);
        }
        for jump in jumps {
            self.jump(&mut at, jump);
        }
    }

    /// Writes a jump and, in a line of its own, the place from which it leads.
    fn jump(&mut self, at: &mut Position, jump: &Jumped) {
        self.turn_to(at, &jump.from);
        if jump.to.file != jump.from.file {
            self.name("jfi", Kind::File, jump.to.file);
        }
        let _ = match jump.kind {
            JumpKind::Always => write!(self.out, "jump={} ", jump.taken),
            JumpKind::Conditional => write!(self.out, "jcnd={}/{} ", jump.taken, jump.executed),
        };
        self.position(&jump.to);
        self.out.push('\n');
        self.position(&jump.from);
        self.out.push('\n');
    }

    fn call(&mut self, at: &mut Position, (caller, callee): &(Place, Place), (times, events): (u64, Events)) {
        self.turn_to(at, caller);
        if callee.object != caller.object {
            self.name("cob", Kind::Object, callee.object);
        }
        if callee.home != caller.file {
            self.name("cfi", Kind::File, callee.home);
        }
        self.name("cfn", Kind::Function, callee.function);
        let _ = write!(self.out, "calls={times} ");
        self.position(callee);
        self.out.push('\n');
        self.line(caller, &events);
    }

    /// Writes what changes from the place before: object, function and file.
    fn turn_to(&mut self, at: &mut Position, place: &Place) {
        if at.object.replace(place.object) != Some(place.object) {
            self.name("ob", Kind::Object, place.object);
            at.function = None;
        }
        let function = (place.function, place.home);
        if at.function.replace(function) != Some(function) {
            self.name("fl", Kind::File, place.home);
            self.name("fn", Kind::Function, place.function);
            at.file = Some(place.home);
        }
        if at.file.replace(place.file) != Some(place.file) {
            let key = if place.file == place.home { "fe" } else { "fi" };
            self.name(key, Kind::File, place.file);
        }
    }

    fn line(&mut self, place: &Place, events: &Events) {
        self.position(place);
        let _ = writeln!(self.out, "{}", values(&self.shape.events, events));
    }

    /// Writes a place's address and line, each with a blank behind it.
    fn position(&mut self, place: &Place) {
        if self.shape.addresses {
            let _ = write!(self.out, "{:#x} ", place.address);
        }
        if self.shape.lines || !self.shape.addresses {
            let _ = write!(self.out, "{} ", place.line);
        }
    }
}

/// The object, function and file to which lines of a file belong.
#[derive(Default)]
struct Position {
    object: Option<usize>,
    function: Option<(usize, usize)>,
    file: Option<usize>,
}

/// A file for `cg_annotate`, `cg_diff` and `cg_merge`.
pub fn cachegrind(shape: &Shape, costs: &Costs, names: &Names) -> String {
    let [i1, d1, ll] = &shape.caches;
    // Empty descriptions stand where no caches are simulated: cg_merge wants at least one.
    let mut out = format!("desc: I1 cache: {i1}\ndesc: D1 cache: {d1}\ndesc: LL cache: {ll}\n");
    let _ = writeln!(out, "cmd: {}\nevents: {}", shape.command, event_names(&shape.events));
    // The format orders by file, and cannot tell functions of one name in one file apart.
    let mut lines: BTreeMap<(&str, &str, u32), Events> = BTreeMap::new();
    for (place, events) in costs {
        let key = (names.files[place.file].as_str(), names.functions[place.function].as_str(), place.line);
        lines.entry(key).or_default().add(events);
    }
    let (mut file, mut function) = (None, None);
    for ((own_file, own_function, line), events) in &lines {
        if file.replace(*own_file) != Some(*own_file) {
            let _ = writeln!(out, "fl={}", printable(own_file));
            function = None;
        }
        if function.replace(*own_function) != Some(*own_function) {
            let _ = writeln!(out, "fn={}", printable(own_function));
        }
        let _ = writeln!(out, "{line} {}", values(&shape.events, events));
    }
    let _ = writeln!(out, "summary: {}", values(&shape.events, &total(costs)));
    out
}
