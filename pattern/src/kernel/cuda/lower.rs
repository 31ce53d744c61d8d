//! Translates programs to CUDA C: the code of one program, between the two parts of `streams.cu`.
//!
//! **Problem.** A step of a program is a few hundred operations on 2,048 bits and more, and a card
//! is fast only while every thread does the same and everything stays in registers. A text is cut
//! into segments that run at once, so the carries of each must be known as one row of numbers that
//! can be stored, compared and put back.
//!
//! **Idea.** A thread has 64 bits of every stream. A value is then a variable, logic is an
//! operator, and only what crosses threads is a call: shuffles for an advance, ballots for an
//! addition. Each carry is a member of a structure in registers. What is written for `[a-z]+x` is,
//! in outline:
//!
//! ```text
//! struct Carries { u32 c0; u32 c1; u32 high; };        one member a carry
//! u64 lf_step(at, b, k) {                              basis streams and carries in, output out
//!     u64 v8 = b->bit[0] & ~b->bit[3];                 logic, thread by thread
//!     u64 v9 = lf_match_star(at, v7, v8, k->c0, &k->c0);    an addition across the group
//!     if (lf_any(at, v9 != 0)) { … }                   a body, on a vote of the group
//! }
//! ```
//!
//! Bodies are plain `if` and `do while` on a vote, so no thread leaves the others. Programs with
//! Unicode classes get a second body for steps of ASCII, as on processors.
//!
//! **State.** What one segment hands to the next is a row of words: for an advance the last bits of
//! its operand, for an addition one bit, for a delayed basis stream its last bits, and behind these
//! whether the last step had high bits. All but the latter are equal exactly if the streams that
//! follow are:
//!
//! ```text
//! word     0 … carries - 1      carries …               LF_COMPARED
//! holds    a carry each         a delayed stream each   whether the last step had high bits
//! ```
//!
//! **Invariants.** A value is written before it is read, as in the program. Every carry is given a
//! new value exactly once in a step; in loops, each round's is united in `h` and put back behind
//! the outermost loop. Bits of a kept operand that nobody reads are shifted out, so equal rows mean
//! equal streams.
//!
//! Left out: three-operand logic is written as its Shannon expansion, of which the assembler makes
//! one instruction. Source: Cameron et al. 2014, section 3.

use crate::program::pass::for_ascii;
use crate::program::{BitProgram, Carry, Instruction, Op, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The text before and behind the program.
const DEVICE: &str = include_str!("streams.cu");

/// Warps that compute one step together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Width(u32);

impl Width {
    /// One warp: 2,048 bits, no barrier.
    pub const WARP: Width = Width(1);
    /// Two warps, 64 threads: the paper's 4,096 bits.
    pub const PAPER: Width = Width(2);
    /// The width for following long lines: 16,384 bits.
    pub const BLOCK: Width = Width(8);

    /// This many warps.
    ///
    /// # Panics
    /// When it is not 1, 2, 4, 8, 16 or 32.
    pub fn warps(warps: u32) -> Width {
        assert!(warps.is_power_of_two() && warps <= 32, "{warps} warps do not divide a segment");
        Width(warps)
    }

    /// Bytes of one step.
    pub fn step_bytes(self) -> usize {
        64 * self.group_threads() as usize
    }

    /// Threads that compute one step: a block. Blocks of one warp need fewer registers than several
    /// warps in one, as all that steers them is known to be the same.
    pub fn group_threads(self) -> u32 {
        32 * self.0
    }
}

/// The kernel to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// All segments at once.
    Scan,
    /// The segments that began with wrong carries, one after the other.
    Chain,
}

impl Entry {
    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Entry::Scan => "scan",
            Entry::Chain => "chain",
        }
    }
}

/// How far the streams of a program reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// What the program marks in a line depends on that line alone, as in every program that
    /// [`crate::compile`](mod@crate::compile) makes.
    Line,
    /// Any bit may depend on all of the text before.
    Text,
}

/// A program as CUDA C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The whole translation unit.
    pub source: String,
    /// Words that one segment hands to the next.
    pub state_words: usize,
}

/// Writes a program for a width and a kernel. Cost: linear in the program.
///
/// # Panics
/// When the program breaks a rule of [`BitProgram::verify`].
pub fn lower(program: &BitProgram, reach: Reach, width: Width, entry: Entry) -> Lowered {
    if let Err(fault) = program.verify() {
        panic!("a program that breaks a rule cannot run: {fault}");
    }
    let (device, kernels) =
        DEVICE.split_once("// @program").expect("the device text has a place for programs");
    let (_, kernels) = kernels.split_once("// @kernels").expect("and an end of it");
    // What the preprocessor decides: which kernel, how wide, and how lines end.
    let state = SegmentState::of(program);
    let mut source = format!(
        "#define LF_{} 1\n#define LF_WARPS {}\n#define LF_LINES {}\n#define LF_TERMINATOR {}u\n",
        entry.name().to_uppercase(),
        width.0,
        u8::from(reach == Reach::Line),
        program.terminator,
    );
    if program.has_row_ends() {
        source += "#define LF_ROWS 1\n";
    }
    source += device;
    state.write(&mut source, program);
    write_step(&mut source, program, &state);
    source += kernels;
    Lowered { source, state_words: state.words() }
}

/// The representation of a carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// The upper half of a word, of which the highest bits count.
    Half(u8),
    /// A word, of which the highest bits count.
    Word(u8),
    /// One bit.
    Bit,
}

/// The carries of a program, and the basis streams that it reads with a delay.
struct SegmentState {
    carries: Vec<Kept>,
    delayed: BTreeSet<u8>,
}

/// Bits that a delay can look back.
const DELAY_BITS: u8 = 7;

impl SegmentState {
    fn of(program: &BitProgram) -> SegmentState {
        let mut state =
            SegmentState { carries: vec![Kept::Bit; program.carries.len()], delayed: BTreeSet::new() };
        state.body(&program.body);
        state
    }

    fn body(&mut self, body: &[Instruction]) {
        for one in body {
            match one.op {
                Op::Advance { by, carry, .. } => {
                    self.carries[carry.0 as usize] = if by <= 32 { Kept::Half(by) } else { Kept::Word(by) };
                }
                Op::Basis { bit, delay: 1.. } => {
                    self.delayed.insert(bit);
                }
                _ => {}
            }
            self.body(one.op.body().unwrap_or_default());
        }
    }

    fn words(&self) -> usize {
        self.carries.len() + self.delayed.len() + 1
    }

    /// The structure, and how it begins, comes from memory and goes there.
    fn write(&self, out: &mut String, program: &BitProgram) {
        // Four texts grow together, a line per member: its declaration, its value in front of the
        // text, how it comes from a row of words, and how it goes there.
        let compared = self.words() - 1;
        let [mut members, mut initial, mut restore, mut save] = [const { String::new() }; 4];
        let mut member = |at: usize, name: String, kept: Kept, start: u64| {
            // The highest bits of a kept operand count; in a row they stand lowest, the rest cut
            // off.
            let (kind, shift) = match kept {
                Kept::Half(by) => ("u32", 32 - by),
                Kept::Word(by) => ("u64", 64 - by),
                Kept::Bit => ("u32", 0),
            };
            let _ = writeln!(members, "    {kind} {name};");
            let _ =
                writeln!(initial, "    k->{name} = {start:#x}{};", if kind == "u64" { "ull" } else { "u" });
            let _ = writeln!(restore, "    k->{name} = ({kind})(from[{at}] << {shift});");
            let _ = writeln!(save, "    to[{at}] = (u64)k->{name} >> {shift};");
        };
        for (at, &kept) in self.carries.iter().enumerate() {
            let start = match kept {
                Kept::Half(_) => u64::from(program.carries[at]) << 31,
                Kept::Word(_) => u64::from(program.carries[at]) << 63,
                // Only advances start with a bit from before the text.
                Kept::Bit => 0,
            };
            member(at, format!("c{at}"), kept, start);
        }
        for (at, &bit) in self.delayed.iter().enumerate() {
            // Terminators stand before the text.
            let start = if program.terminator >> bit & 1 == 1 { u64::from(u32::MAX) } else { 0 };
            member(self.carries.len() + at, format!("d{bit}"), Kept::Half(DELAY_BITS), start);
        }
        member(compared, String::from("high"), Kept::Bit, u64::from(program.terminator >> 7));
        let _ = write!(
            out,
            "#define LF_STATE {}\n#define LF_COMPARED {compared}\n\
             struct Carries {{\n{members}}};\n\
             LF_DEVICE void lf_initial(struct Carries *k) {{\n{initial}}}\n\
             LF_DEVICE void lf_restore(struct Carries *k, const u64 *from) {{\n{restore}}}\n\
             LF_DEVICE void lf_save(const struct Carries *k, const struct Place *at, u64 *to) {{\n    if (at->thread != 0) return;\n{save}}}\n",
            self.words(),
        );
    }
}

/// One step of the program: basis streams in, output out.
fn write_step(out: &mut String, program: &BitProgram, state: &SegmentState) {
    let _ = writeln!(
        out,
        "LF_DEVICE u64 lf_step(struct Place *at, const struct Basis *b, struct Carries *k) {{\n    u64 out;"
    );
    // The word before each thread's own of the basis streams that are asked for with a delay.
    for bit in &state.delayed {
        let _ = writeln!(
            out,
            "    u32 e{bit} = lf_before_half(at, (u32)(b->bit[{bit}] >> 32), k->d{bit}, &k->d{bit});"
        );
    }
    // What is left of a program in ASCII needs the bytes before a step to be ASCII as well; a
    // terminator that is not would make that rare.
    if state.delayed.is_empty() || program.terminator >= 0x80 {
        Body::write(out, program);
    } else {
        out.push_str("    int high = lf_any(at, b->bit[7] != 0);\n    if (high | k->high) {\n");
        Body::write(out, program);
        out.push_str("    } else {\n");
        Body::write(out, &for_ascii(program));
        out.push_str("    }\n    k->high = (u32)high;\n");
    }
    out.push_str("    return out;\n}\n");
}

/// Writes the statements of a program.
struct Body<'o> {
    out: &'o mut String,
    /// How many loops are around.
    loops: usize,
}

impl Body<'_> {
    fn write(out: &mut String, program: &BitProgram) {
        out.push_str("    {\n");
        let mut body = Body { out, loops: 0 };
        body.all(&program.body);
        let _ = writeln!(body.out, "    out = v{};\n    }}", program.output.0);
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "    {line}");
    }

    fn set(&mut self, result: Value, expression: std::fmt::Arguments<'_>) {
        self.line(format_args!("u64 v{} = {expression};", result.0));
    }

    fn all(&mut self, body: &[Instruction]) {
        body.iter().for_each(|one| self.instruction(one));
    }

    fn instruction(&mut self, one: &Instruction) {
        // Pure logic is an expression of C. What carries calls a device function, which reads the
        // carry and writes the next one.
        let to = one.result;
        match &one.op {
            Op::Zero => self.set(to, format_args!("0ull")),
            Op::Ones => self.set(to, format_args!("~0ull")),
            Op::RowEnds => self.set(to, format_args!("b->row_ends")),
            Op::Basis { bit, delay: 0 } => self.set(to, format_args!("b->bit[{bit}]")),
            Op::Basis { bit, delay } => {
                self.set(to, format_args!("lf_moved(b->bit[{bit}], e{bit}, {delay})"));
            }
            Op::Not(a) => self.set(to, format_args!("~v{}", a.0)),
            Op::And(a, b) => self.set(to, format_args!("v{} & v{}", a.0, b.0)),
            Op::Or(a, b) => self.set(to, format_args!("v{} | v{}", a.0, b.0)),
            Op::Xor(a, b) => self.set(to, format_args!("v{} ^ v{}", a.0, b.0)),
            Op::AndNot(a, b) => self.set(to, format_args!("v{} & ~v{}", a.0, b.0)),
            Op::Ternary { table, of } => self.set(to, format_args!("{}", ternary(*table, *of))),
            Op::Advance { by, of, carry } => {
                let name = if *by <= 32 { "lf_advance_half" } else { "lf_advance" };
                self.carried(
                    to,
                    name,
                    &format!("v{}, {by}", of.0),
                    *carry,
                    if *by <= 32 { "u32" } else { "u64" },
                );
            }
            Op::MatchStar { markers, class, carry } => {
                self.carried(to, "lf_match_star", &format!("v{}, v{}", markers.0, class.0), *carry, "u32");
            }
            Op::ScanThru { markers, class, carry } => {
                self.carried(to, "lf_scan_thru", &format!("v{}, v{}", markers.0, class.0), *carry, "u32");
            }
            Op::Add { a, b, carry } => {
                self.carried(to, "lf_add", &format!("v{}, v{}", a.0, b.0), *carry, "u32");
            }
            Op::IfAny { condition, body, yields } => {
                // Declared in front of the body, as zero: so they are where it is skipped.
                for one in yields {
                    self.set(one.outer, format_args!("0ull"));
                }
                self.line(format_args!("if (lf_any(at, v{} != 0)) {{", condition.0));
                self.all(body);
                for one in yields {
                    self.line(format_args!("v{} = v{};", one.outer.0, one.inner.0));
                }
                self.line(format_args!("}}"));
            }
            Op::WhileAny { initial, frontier, body, next } => {
                self.repeat(to, *initial, *frontier, body, *next)
            }
        }
    }

    /// An operation that carries. In a loop every iteration's carries are united.
    fn carried(&mut self, to: Value, name: &str, operands: &str, carry: Carry, kind: &str) {
        let number = carry.0;
        // Outside of loops the carry is replaced; within one, its new value goes to `t` and joins
        // what all rounds hand on, `h`.
        if self.loops == 0 {
            self.set(to, format_args!("{name}(at, {operands}, k->c{number}, &k->c{number})"));
        } else {
            self.line(format_args!("{kind} t{number};"));
            self.set(to, format_args!("{name}(at, {operands}, k->c{number}, &t{number})"));
            self.line(format_args!("h{number} |= t{number};"));
        }
    }

    /// The least fixed point. Only the first iteration receives what the step before handed on.
    fn repeat(&mut self, to: Value, initial: Value, frontier: Value, body: &[Instruction], next: Value) {
        // What the rounds hand on is collected apart, as the carries themselves are cleared after
        // the first round.
        let mut carries = BTreeMap::new();
        carries_of(body, &mut carries);
        if self.loops == 0 {
            for (number, kind) in &carries {
                self.line(format_args!("{kind} h{number} = 0;"));
            }
        }
        // `to` is what was reached, `frontier` what is new in it; the body runs while there is any.
        self.loops += 1;
        self.set(to, format_args!("v{}", initial.0));
        self.set(frontier, format_args!("v{}", initial.0));
        self.line(format_args!("do {{"));
        self.all(body);
        self.line(format_args!("v{} = v{} & ~v{};", frontier.0, next.0, to.0));
        self.line(format_args!("v{} |= v{};", to.0, frontier.0));
        for number in carries.keys() {
            self.line(format_args!("k->c{number} = 0;"));
        }
        self.line(format_args!("}} while (lf_any(at, v{} != 0));", frontier.0));
        self.loops -= 1;
        if self.loops == 0 {
            for number in carries.keys() {
                self.line(format_args!("k->c{number} = h{number};"));
            }
        }
    }
}

/// The carries of a body, bodies inside included, with their types.
fn carries_of(body: &[Instruction], carries: &mut BTreeMap<u32, &'static str>) {
    for one in body {
        if let Some(Carry(number)) = one.op.carry() {
            let is_word = matches!(one.op, Op::Advance { by: 33.., .. });
            carries.insert(number, if is_word { "u64" } else { "u32" });
        }
        carries_of(one.op.body().unwrap_or_default(), carries);
    }
}

/// A truth table as an expression: what is left of it where the first operand is one, and where it
/// is not.
fn ternary(table: u8, [a, b, c]: [Value; 3]) -> String {
    let (where_not, is) = (two(table & 0xF, b, c), two(table >> 4, b, c));
    format!("(v{0} & {is}) | (~v{0} & {where_not})", a.0)
}

fn two(table: u8, b: Value, c: Value) -> String {
    let (b, c) = (format!("v{}", b.0), format!("v{}", c.0));
    match table {
        0b0000 => String::from("0ull"),
        0b0001 => format!("~({b} | {c})"),
        0b0010 => format!("(~{b} & {c})"),
        0b0011 => format!("~{b}"),
        0b0100 => format!("({b} & ~{c})"),
        0b0101 => format!("~{c}"),
        0b0110 => format!("({b} ^ {c})"),
        0b0111 => format!("~({b} & {c})"),
        0b1000 => format!("({b} & {c})"),
        0b1001 => format!("~({b} ^ {c})"),
        0b1010 => c,
        0b1011 => format!("(~{b} | {c})"),
        0b1100 => b,
        0b1101 => format!("({b} | ~{c})"),
        0b1110 => format!("({b} | {c})"),
        _ => String::from("~0ull"),
    }
}
